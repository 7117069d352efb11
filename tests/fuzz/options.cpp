// Devices, links and sizes, as options have them.
#include "core/device/parse.h"
#include "tests/fuzz/targets.h"

namespace tandem::fuzz {

void options(std::string_view bytes) {
  const std::string text(bytes);
  accepts([&] {
    const auto is_counted = [](const std::string& kind) { return kind != "cuda"; };
    const auto count_all = [](const std::string&) { return 2; };
    const DeviceSpec spec = parse_devices(text, {"cpu", "cuda", "sim"}, is_counted, count_all);
    if (spec.count() < 1 || spec.count() > max_devices) fail("an impossible number of devices");
  });
  accepts([&] { (void)parse_link(text); });
  accepts([&] {
    if (parse_size(text, "--size") < 1) fail("a size below 1");
  });
}

}  // namespace tandem::fuzz
