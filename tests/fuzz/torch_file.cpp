// Files of torch.save(), and pickles alone: in an archive a checksum would refuse most others.
#include "core/formats/torch_file.h"

#include "core/formats/pickle.h"
#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void torch_file(std::string_view bytes) {
  const std::filesystem::path path = file_of("a.pth", bytes);
  accepts([&] {
    const auto reader = open_torch_file(path);
    if (reader == nullptr) return;
    size_t left = 64 * bytes.size();  // several arrays may be of the same bytes
    for (const auto& [name, array] : reader->contents().arrays) {
      if (array.count > bytes.size()) fail("an array is larger than its file");
      if (array.count > left) break;
      left -= array.count;
      if (reader->values(array).size() != array.count) fail("an array has another size");
    }
  });
  accepts([&] {
    const PickleTree tree = read_pickle(bytes, "a.pkl");
    if (tree.bytes > bytes.size() || tree.root >= tree.values.size()) fail("no value");
  });
}

}  // namespace tandem::fuzz
