// Nets: .prototxt in current and old forms, up to the net of each phase. What was read is written
// as text that gives the same text again.
#include "core/model/passes/build_net.h"
#include "tests/fuzz/targets.h"

namespace tandem::fuzz {
namespace {

// As a user's that has images of any size, and none.
void build(const NetDefinition& definition, int32_t phase, int64_t side) {
  NetOptions options;
  options.phase = phase;
  options.batch = 2;
  options.data = {1, 3, side, side};
  options.device_kind = "";
  (void)build_net(definition, registry(), options);
}

}  // namespace

void net(std::string_view bytes) {
  NetDefinition definition;
  const std::string text(bytes);
  if (!accepts([&] { definition = read_net_text(text); })) return;
  std::string written;
  accepts([&] {
    written = write_net(definition);
    if (write_net(read_net_text(written)) != written) fail("another net:\n" + written);
  });
  for (const int32_t phase : {TANDEM_TRAIN, TANDEM_TEST}) {
    accepts([&] { build(definition, phase, 8); });
  }
  // Where numbers of elements come near the ends of their range.
  if (definition.layers.size() <= 4) accepts([&] { build(definition, TANDEM_TRAIN, 1 << 20); });
}

}  // namespace tandem::fuzz
