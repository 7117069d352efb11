// Runs one target for libFuzzer: TANDEM_FUZZ_TARGET=net fuzz -dict=net.dict CORPUS
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/images/images.h"
#include "tests/fuzz/targets.h"

using namespace tandem;

namespace {

fuzz::Target target = nullptr;

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
  (void)fuzz::registry();  // modules report their coverage only if they are loaded by now
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target({reinterpret_cast<const char*>(data), size});
  return 0;
}
