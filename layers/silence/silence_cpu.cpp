// Silence on the cpu: nothing to do.
#include "layers/silence/silence.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::Silence;

struct SilenceCpu {
  SilenceCpu(const Binding&, const Call&) {}

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call&, const Pass&) const {}
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "silence", "1.0").layer<Silence>().kernel<Silence, SilenceCpu>("cpu").table();
}
