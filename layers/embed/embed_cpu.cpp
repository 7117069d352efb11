// Embed on the cpu. A vector's gradient is summed over the batch in the batch's order: threads
// divide the values of the vectors, not the batch.
#include <cmath>

#include "layers/embed/embed.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::Embed;

class EmbedCpu {
 public:
  EmbedCpu(const Binding& binding, const Call&)
      : count_(tandem::sdk::count(binding.input(0).shape)),
        outputs_(binding.attributes.integer("num_output")),
        indices_(binding.attributes.integer("input_dim")),
        bias_(binding.attributes.boolean("bias_term")) {}

  void forward(const Call& call, const Pass& pass) const {
    require_indices(pass.input(0));
    tandem::cpu::for_items(call.threads, count_, outputs_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const auto index = static_cast<int64_t>(pass.input(0)[i]);
        float* y = pass.output(0) + i * outputs_;
        if (pass.input(0)[i] < 0) {
          std::fill_n(y, outputs_, 0.0F);
          continue;
        }
        const float* vector = pass.weight(0) + index * outputs_;
        const float* bias = bias_ ? pass.weight(1).data() : nullptr;
        for (int64_t k = 0; k < outputs_; ++k) y[k] = vector[k] + (bias_ ? bias[k] : 0.0F);
      }
    });
  }

  void backward_weights(const Call& call, const Pass& pass) const {
    float* dw = pass.weight_gradient(0);
    float* db = bias_ ? pass.weight_gradient(1).data() : nullptr;
    if (!pass.accumulate()) {
      tandem::cpu::for_ranges(call.threads, indices_ * outputs_, [dw](int64_t begin, int64_t end) {
        std::fill(dw + begin, dw + end, 0.0F);
      });
      if (bias_) std::fill_n(db, outputs_, 0.0F);
    }
    tandem::cpu::for_items(call.threads, outputs_, 2 * count_, [&](int64_t begin, int64_t end) {
      for (int64_t i = 0; i < count_; ++i) {
        if (pass.input(0)[i] < 0) continue;
        const auto index = static_cast<int64_t>(pass.input(0)[i]);
        const float* dy = pass.output_gradient(0) + i * outputs_;
        float* row = dw + index * outputs_;
        for (int64_t k = begin; k < end; ++k) row[k] += dy[k];
        if (!bias_) continue;
        for (int64_t k = begin; k < end; ++k) db[k] += dy[k];
      }
    });
  }

 private:
  void require_indices(const float* x) const {
    for (int64_t i = 0; i < count_; ++i) {
      if (x[i] < 0) continue;
      if (std::floor(x[i]) != x[i]) throw failed("index ", x[i], " is not a whole number");
      if (!(x[i] < static_cast<float>(indices_))) {
        throw failed("index ", x[i], " is not below input_dim ", indices_);
      }
    }
  }

  int64_t count_, outputs_, indices_;
  bool bias_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "embed", "1.0").layer<Embed>().kernel<Embed, EmbedCpu>("cpu").table();
}
