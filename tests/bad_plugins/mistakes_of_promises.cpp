// Layers that do what they say in every pass, but say, keep or merge something wrong: an activation
// that is none, a label in 8 bits, a default of the kernel's own, statistics of two parts alone.
// "mistake.RightRectifier" has no mistake.
#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

// A ReLU, as its type says.
enum class Bend { Right, Leaks, EndsAtSix };
template <Bend bend>
struct Rectifier : LayerType {
  const char* name() const override {
    return bend == Bend::Right   ? "mistake.RightRectifier"
           : bend == Bend::Leaks ? "mistake.NamesReluButLeaks"
                                 : "mistake.NamesReluButEndsAtSix";
  }
  const char* help() const override { return "a mistake to be found"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_BACKWARD_READS_OUTPUTS;
  }
  int32_t activation(const Query&) const override { return TANDEM_ACTIVATION_RELU; }
};
template <Bend bend>
struct RectifierCpu {
  RectifierCpu(const Binding& binding, const Call&) : size(count(binding.input(0).shape)) {}
  static constexpr float slope = bend == Bend::Leaks ? 0.1F : 0;
  void forward(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < size; ++i) {
      const float x = pass.input(0)[i];
      const bool is_past = bend == Bend::EndsAtSix && x > 6;
      pass.output(0)[i] = x < 0 ? slope * x : is_past ? 6 : x;
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < size; ++i) {
      const float y = pass.output(0)[i], dy = pass.output_gradient(0)[i];
      const bool is_past = bend == Bend::EndsAtSix && y >= 6;
      pass.input_gradient(0)[i] = is_past ? 0 : y > 0 ? dy : slope * dy;
    }
  }
  int64_t size;
};

template <Bend bend>
void add(Plugin& plugin) {
  plugin.layer<Rectifier<bend>>().template kernel<Rectifier<bend>, RectifierCpu<bend>>("cpu");
}

}  // namespace

void add_mistakes_of_promises(Plugin& plugin) {
  add<Bend::Right>(plugin);
  add<Bend::Leaks>(plugin);
  add<Bend::EndsAtSix>(plugin);
}
