// Silence on the cpu: nothing to do, and gradients of zero where one is asked for.
#include "layers/silence/silence.h"

#include <algorithm>
#include <vector>

namespace {

using namespace tandem::sdk;
using tandem::layers::Silence;

class SilenceCpu {
 public:
  SilenceCpu(const Binding& binding, const Call&) {
    for (size_t i = 0; i < binding.input_count(); ++i) {
      elements_.push_back(count(binding.input(i).shape));
    }
  }

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call&, const Pass&) const {}

  void backward_data(const Call&, const Pass& pass) const {
    for (size_t i = 0; i < elements_.size(); ++i) {
      if (pass.input_gradient(i) != nullptr)
        std::fill_n(pass.input_gradient(i), elements_[i], 0.0F);
    }
  }

 private:
  std::vector<int64_t> elements_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "silence", "1.0").layer<Silence>().kernel<Silence, SilenceCpu>("cpu").table();
}
