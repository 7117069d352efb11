// Kernels of the fake layer types, which only report layouts and dtypes.
#pragma once

#include "plugins/sdk.h"

namespace fake {

namespace sdk = tandem::sdk;

// As of a fast convolution: blocked is best where the channels allow it, NHWC costs a little, NCHW
// much.
inline sdk::LayoutOptions blocked_first(const sdk::Binding& binding) {
  const int64_t in = binding.input(0).shape.c, out = binding.output(0).shape.c;
  sdk::LayoutOptions options;
  if (out % 16 == 0 && in % 16 == 0) options.push_back({TANDEM_NCHW16C, TANDEM_NCHW16C, 0});
  if (out % 16 == 0 && in % 16 != 0) options.push_back({TANDEM_NCHW, TANDEM_NCHW16C, 0});
  options.push_back({TANDEM_NHWC, TANDEM_NHWC, 1e6});
  options.push_back({TANDEM_NCHW, TANDEM_NCHW, 1e12});
  return options;
}

struct NoWork {
  NoWork(const sdk::Binding&, const sdk::Call&) {}
  void forward(const sdk::Call&, const sdk::Pass&) {}
};
struct Plain : NoWork {
  using NoWork::NoWork;
};
struct Blocked : NoWork {
  using NoWork::NoWork;
  static sdk::LayoutOptions layouts(const sdk::Binding& binding) { return blocked_first(binding); }
};
struct Any : NoWork {
  using NoWork::NoWork;
  static sdk::LayoutOptions layouts(const sdk::Binding& binding) {
    return sdk::any_layout(binding.input(0).shape.c);
  }
};
template <class Kernel>
struct Half : Kernel {  // knows bfloat16, too
  using Kernel::Kernel;
  static constexpr uint32_t dtypes = 1U << TANDEM_FLOAT32 | 1U << TANDEM_BFLOAT16;
};
template <class Kernel>
struct Rectifying : Kernel {  // fuses a ReLU
  using Kernel::Kernel;
  static constexpr uint32_t fused_activations = uint64_t{1} << TANDEM_ACTIVATION_RELU;
};
struct NoLayouts : NoWork {
  using NoWork::NoWork;
  static sdk::LayoutOptions layouts(const sdk::Binding&) { return {}; }
};
struct RefusesLayouts : NoWork {
  using NoWork::NoWork;
  static sdk::LayoutOptions layouts(const sdk::Binding&) { throw sdk::failed(""); }
};
struct OnlyBlocked : NoWork {
  using NoWork::NoWork;
  static sdk::LayoutOptions layouts(const sdk::Binding&) {
    return {{TANDEM_NCHW16C, TANDEM_NCHW16C, 0}};
  }
};

}  // namespace fake
