// ArgMax on the cpu: a partial sort. The layer is used at the end of a net, so plain layouts are
// enough.
#include <functional>
#include <limits>
#include <utility>

#include "layers/argmax/argmax_geometry.h"
#include "plugins/cpu/team.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;
using Ranked = std::pair<float, int64_t>;

class ArgMaxCpu : public Needs {
 public:
  ArgMaxCpu(const Binding& binding, const Call&) : geometry_(binding) {
    scratch_bytes =
        geometry_.outer * geometry_.inner * geometry_.extent * static_cast<int64_t>(sizeof(Ranked));
  }

  void forward(const Call& call, const Pass& pass) const {
    auto* scratch = pass.scratch<Ranked>();
    const int64_t runs = geometry_.outer * geometry_.inner, extent = geometry_.extent;
    tandem::cpu::for_items(call.threads, runs, 8 * extent, [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run) rank(pass, run, scratch + run * extent);
    });
  }

 private:
  void rank(const Pass& pass, int64_t run, Ranked* ranked) const {
    const ArgMaxGeometry& g = geometry_;
    const float* x = pass.input(0) + run / g.inner * g.extent * g.inner + run % g.inner;
    for (int64_t i = 0; i < g.extent; ++i) {
      const float value = x[i * g.inner];
      ranked[i] = {value == value ? value : -std::numeric_limits<float>::infinity(),
                   ranked_index(value, i)};
    }
    std::partial_sort(ranked, ranked + g.top_k, ranked + g.extent, std::greater<>());
    for (int64_t k = 0; k < g.top_k; ++k) {
      g.write(pass.output(0), run / g.inner, run % g.inner, k, ranked[k].second, x);
    }
  }

  ArgMaxGeometry geometry_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "argmax", "1.0").layer<ArgMax>().kernel<ArgMax, ArgMaxCpu>("cpu").table();
}
