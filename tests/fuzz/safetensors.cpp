// The safetensors format: what was read is written, and reads the same.
#include "core/formats/safetensors.h"

#include <cstring>

#include "tests/fuzz/targets.h"
#include "tests/support/safetensors_file.h"

namespace tandem::fuzz {
namespace {

using test::read_safetensors;

// Bits, so that a NaN equals itself.
bool same(const ArrayFile& a, const ArrayFile& b) {
  if (a.metadata != b.metadata || a.arrays.size() != b.arrays.size()) return false;
  for (const auto& [name, array] : a.arrays) {
    const auto other = b.arrays.find(name);
    if (other == b.arrays.end() || array.shape != other->second.shape) return false;
    if (array.values.size() != other->second.values.size()) return false;
    if (!array.values.empty() && std::memcmp(array.values.data(), other->second.values.data(),
                                             array.values.size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

void safetensors(std::string_view bytes) {
  const std::filesystem::path path = file_of("a.safetensors", bytes);
  ArrayFile file;
  accepts([&] { (void)read_safetensors_metadata(path); });
  if (!accepts([&] { file = read_safetensors(path); })) return;
  std::vector<NamedArray> arrays;
  for (const auto& [name, array] : file.arrays) {
    arrays.push_back({name, array.shape, array.values.data()});
  }
  const std::filesystem::path again = file_of("b.safetensors", "");
  if (!accepts([&] {
        write_safetensors_plain(again, arrays, file.metadata);
        if (!same(read_safetensors(again), file)) fail("another file");
      })) {
    fail("what was written is refused");
  }
}

}  // namespace tandem::fuzz
