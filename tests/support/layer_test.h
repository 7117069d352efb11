// Runs one layer in a test (core/check/layer/layer_run.h). The environment's TANDEM_TEST_KERNELS
// names the device of the kernels under test: "cpu" (the default), "cuda" (a GPU), or
// "cuda_on_host" (the kernels for GPUs, built to run without one). The latter two have their own
// memory, which only kernels can access.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/check/layer/layer_run.h"

namespace tandem::test {

using namespace checker;

// The device that the environment names. Throws Error if the name is unknown or there is no such
// device.
KernelDevice& kernel_device();
KernelDevice& cpu_device();
// With the kernels of kernel_device().
const Registry& layer_registry();

inline bool kernels_run_on_a_cpu() {
  return kernel_device().kind() == "cpu";
}

class LayerRun : public checker::LayerRun {
 public:
  explicit LayerRun(const LayerSetup& setup)
      : checker::LayerRun(setup, layer_registry(),
                          setup.on_a_cpu ? cpu_device() : kernel_device()) {}
};

// The setup in each layout that the kernel offers for it.
inline std::vector<LayerSetup> in_every_layout(const LayerSetup& setup) {
  std::vector<LayerSetup> result;
  for (const tandem_layout_option& option : LayerRun(setup).layouts()) {
    result.push_back(setup);
    result.back().input_layout = option.input;
    result.back().output_layout = option.output;
  }
  return result;
}

// max |a - b| / max |b|; infinite if sizes differ or a value is NaN.
template <class Expected>
double relative_difference(const std::vector<float>& a, const std::vector<Expected>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0, largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double here = std::abs(double(a[i]) - double(b[i]));
    if (!std::isfinite(here)) return INFINITY;
    difference = std::max(difference, here);
    largest = std::max(largest, std::abs(double(b[i])));
  }
  return difference == 0 ? 0 : difference / largest;
}

inline std::string layout_text(const LayerSetup& setup) {
  return layout_name(setup.input_layout) + " -> " + layout_name(setup.output_layout);
}

// The reason why a layer is refused; "" if it is not.
inline std::string refusal_of(const LayerSetup& setup) {
  try {
    LayerRun run(setup);
  } catch (const Error& refusal) {
    return refusal.what();
  }
  return "";
}

}  // namespace tandem::test
