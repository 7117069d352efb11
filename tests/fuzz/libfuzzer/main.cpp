// Runs one target for libFuzzer: TANDEM_FUZZ_TARGET=net fuzz -dict=net.dict CORPUS
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/images/images.h"
#include "tests/fuzz/targets.h"

using namespace tandem;

namespace {

fuzz::Target target = nullptr;

// What these load is known before the first input, because modules report their coverage only if
// they are loaded by then. The others are faster without: all counters are read for each input.
constexpr std::array<std::string_view, 8> with_modules{"checkpoint",    "cifar",     "class_names",
                                                       "class_weights", "idx",       "name_rules",
                                                       "net",           "pretrained"};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  std::map<std::string, fuzz::Target> all = fuzz::targets();
  all.insert(fuzz::image_targets().begin(), fuzz::image_targets().end());
  const char* name = std::getenv("TANDEM_FUZZ_TARGET");
  const auto found = all.find(name == nullptr ? "" : name);
  if (found == all.end()) {
    std::fprintf(stderr, "TANDEM_FUZZ_TARGET is none of:");
    for (const auto& [known, unused] : all) std::fprintf(stderr, " %s", known.c_str());
    std::fprintf(stderr, "\n");
    std::exit(1);
  }
  target = found->second;
  if (std::find(with_modules.begin(), with_modules.end(), found->first) != with_modules.end()) {
    (void)fuzz::registry();
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target({reinterpret_cast<const char*>(data), size});
  return 0;
}
