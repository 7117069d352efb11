// The files of corpus/TARGET, their beginnings, and each of them with a byte changed: the readers
// survive them. scripts/fuzz searches for other bytes.
#include <algorithm>

#include "core/base/numbers/random.h"
#ifdef TANDEM_TEST_IMAGES
#include "tests/fuzz/images/images.h"
#endif
#include "tests/fuzz/targets.h"
#include "tests/support/folders.h"
#include "tests/support/temp_folder.h"

namespace tandem::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr size_t cuts = 200, changes = 1000;  // of each file

std::vector<fs::path> files_of(const std::string& target) {
  std::vector<fs::path> files;
  for (const auto& entry :
       fs::directory_iterator(test::source_folder() / "tests/fuzz/corpus" / target)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::map<std::string, Target> all_targets() {
  std::map<std::string, Target> all = targets();
#ifdef TANDEM_TEST_IMAGES
  all.insert(image_targets().begin(), image_targets().end());
#endif
  return all;
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, IsReadWholeCutAndChanged) {
  const std::vector<fs::path> files = files_of(GetParam());
  ASSERT_FALSE(files.empty());
  const Target target = all_targets().at(GetParam());
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.string());
    const std::string bytes = test::read_text(file);
    target(bytes);
    for (size_t i = 0; i < cuts; ++i) target(bytes.substr(0, bytes.size() * i / cuts));
    Random random(1, stream_of("changes"));
    for (size_t i = 0; i < changes && !bytes.empty(); ++i) {
      std::string changed = bytes;
      changed[random.below(bytes.size())] = static_cast<char>(random.below(256));
      target(changed);
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, target] : all_targets()) all.push_back(name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Fuzz, Corpus, testing::ValuesIn(names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tandem::fuzz
