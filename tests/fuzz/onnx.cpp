// ONNX files as nets: every array that is read has the values of its shape.
#include "core/formats/onnx_reader/reader.h"

#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void onnx(std::string_view bytes) {
  const std::filesystem::path path = file_of("a.onnx", bytes);
  OnnxImport read;
  if (!accepts([&] { read = import_onnx(path, std::array<double, 3>{1, 1, 1}); })) return;
  for (const auto& [name, array] : read.arrays.arrays) {
    int64_t count = 1;
    for (const int64_t size : array.shape) count *= size;
    if (count != static_cast<int64_t>(array.values.size())) fail("an array of another shape");
  }
}

}  // namespace tandem::fuzz
