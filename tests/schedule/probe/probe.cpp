// probe.Double: a layer for tests of the kernels and the executor. y = 2 x + w, with everything a
// kernel may ask for: saved and scratch memory, both backward passes, a refusal. Its algorithm
// names what it was given when it was prepared. Where it may measure, it takes another algorithm
// each time and names it.

#include <atomic>
#include <string>

#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

constexpr int64_t refused_channels = 13;
std::atomic<int> measurements{0};

struct Double : LayerType {
  const char* name() const override { return "probe.Double"; }
  const char* help() const override { return "doubles, and adds a trained constant"; }
  std::vector<Weight> weights(const Query&) const override {
    return {{.name = "constant", .shape = {1, 1, 1, 1}}};
  }
};

class DoubleCpu : public Needs {
 public:
  DoubleCpu(const Binding& binding, const Call& call) : count_(count(binding.input(0).shape)) {
    const Shape& shape = binding.input(0).shape;
    if (shape.c == refused_channels) throw invalid(shape.c, " channels bring bad luck");
    saved_bytes = count_ * 4;
    scratch_bytes = count_ * 8;
    algorithm =
        text(text_of(shape), " of ", binding.raw.batch_size, " from ", binding.raw.batch_begin,
             ", flags ", binding.raw.flags, ", slice ", binding.raw.slice_begin, " to ",
             binding.raw.slice_end, ", device ", call.device);
    choose(binding);
  }

  void forward(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < count_; ++i) {
      pass.scratch()[i] = 2 * pass.input(0)[i];
      pass.saved()[i] = pass.input(0)[i];
      pass.output(0)[i] = pass.scratch()[i] + pass.weight(0)[0];
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    if (pass.input_gradient(0) == nullptr) throw invalid("no place for the input's gradient");
    for (int64_t i = 0; i < count_; ++i) {
      pass.input_gradient(0)[i] = 2 * pass.output_gradient(0)[i];
    }
  }
  // Not the true gradient: it shows what forward saved.
  void backward_weights(const Call&, const Pass& pass) const {
    float sum = pass.accumulate() ? pass.weight_gradient(0)[0] : 0;
    for (int64_t i = 0; i < count_; ++i) sum += pass.saved()[i] * pass.output_gradient(0)[i];
    pass.weight_gradient(0)[0] = sum;
  }

 private:
  void choose(const Binding& binding) {
    is_measured = binding.algorithm() != nullptr || binding.has(TANDEM_MAY_MEASURE);
    if (binding.algorithm() != nullptr) {
      algorithm = binding.algorithm();
      if (algorithm == "measured: gone") throw unsupported("there is no algorithm 'gone'");
      if (algorithm == "measured: moody") algorithm = "measured: another";
    } else if (binding.has(TANDEM_MAY_MEASURE)) {
      algorithm = text("measured: number ", ++measurements);
    }
  }

  int64_t count_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  Plugin plugin(host, "tandem-probe", "1");
  return plugin.layer<Double>().kernel<Double, DoubleCpu>("cpu").table();
}
