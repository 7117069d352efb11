// ArgMax on the cpu: a partial sort. The layer is used at the end of a net, so plain layouts are
// enough.
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "layers/argmax/argmax.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;
using Ranked = std::pair<float, int64_t>;

class ArgMaxCpu : public Needs {
 public:
  ArgMaxCpu(const Binding& binding, const Call&)
      : axis_(binding.attributes.is_set("axis")),
        values_(binding.attributes.boolean("out_max_val")),
        top_k_(binding.attributes.integer("top_k")) {
    const Extents e = extents_of(binding.input(0).shape);
    const size_t axis =
        axis_ ? sample_axis(binding.attributes.integer("axis"), binding.input(0).shape) : 1;
    for (size_t i = 0; i < axis; ++i) outer_ *= e[i];
    for (size_t i = axis; i < e.size(); ++i) (axis_ && i > axis ? inner_ : extent_) *= e[i];
    scratch_bytes = outer_ * inner_ * extent_ * static_cast<int64_t>(sizeof(Ranked));
  }

  void forward(const Call& call, const Pass& pass) const {
    auto* scratch = pass.scratch<Ranked>();
    tandem::cpu::for_items(call.threads, outer_ * inner_, 8 * extent_,
                           [&](int64_t begin, int64_t end) {
                             for (int64_t run = begin; run < end; ++run)
                               rank(pass, run, scratch + run * extent_);
                           });
  }

 private:
  void rank(const Pass& pass, int64_t run, Ranked* ranked) const {
    const float* x = pass.input(0) + run / inner_ * extent_ * inner_ + run % inner_;
    for (int64_t i = 0; i < extent_; ++i) {
      const float value = x[i * inner_];
      ranked[i] = {std::isnan(value) ? -std::numeric_limits<float>::infinity() : value,
                   std::isnan(value) ? -1 - i : i};
    }
    std::partial_sort(ranked, ranked + top_k_, ranked + extent_, std::greater<>());
    for (int64_t k = 0; k < top_k_; ++k) write(pass.output(0), run, k, x, ranked[k].second);
  }
  void write(float* y, int64_t run, int64_t k, const float* x, int64_t rank) const {
    const int64_t index = rank < 0 ? -1 - rank : rank;
    const auto position = static_cast<float>(index);
    const float value = x[index * inner_];
    if (axis_) {
      y[(run / inner_ * top_k_ + k) * inner_ + run % inner_] = values_ ? value : position;
    } else if (values_) {
      y[2 * run * top_k_ + k] = position;
      y[(2 * run + 1) * top_k_ + k] = value;
    } else {
      y[run * top_k_ + k] = position;
    }
  }

  bool axis_, values_;
  int64_t top_k_, outer_ = 1, extent_ = 1, inner_ = 1;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "argmax", "1.0").layer<ArgMax>().kernel<ArgMax, ArgMaxCpu>("cpu").table();
}
