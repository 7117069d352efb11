// The element-wise layers on NVIDIA GPUs.
#include "layers/absval/absval.h"
#include "layers/absval/absval_formula.h"
#include "layers/bnll/bnll.h"
#include "layers/bnll/bnll_formula.h"
#include "layers/clip/clip.h"
#include "layers/clip/clip_formula.h"
#include "layers/common/elementwise_cuda.h"
#include "layers/elu/elu.h"
#include "layers/elu/elu_formula.h"
#include "layers/exp/exp.h"
#include "layers/exp/exp_formula.h"
#include "layers/gelu/gelu.h"
#include "layers/gelu/gelu_formula.h"
#include "layers/hard_swish/hard_swish.h"
#include "layers/hard_swish/hard_swish_formula.h"
#include "layers/log/log.h"
#include "layers/log/log_formula.h"
#include "layers/power/power.h"
#include "layers/power/power_formula.h"
#include "layers/relu/relu.h"
#include "layers/relu/relu_formula.h"
#include "layers/sigmoid/sigmoid.h"
#include "layers/sigmoid/sigmoid_formula.h"
#include "layers/swish/swish.h"
#include "layers/swish/swish_formula.h"
#include "layers/tanh/tanh.h"
#include "layers/tanh/tanh_formula.h"
#include "layers/threshold/threshold.h"
#include "layers/threshold/threshold_formula.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  const char* kind = tandem::cuda::device_kind;
  return Plugin(host, "activations-cuda", "1.0")
      .kernel<AbsoluteValue, ElementwiseCuda<AbsoluteValueFormula>>(kind)
      .kernel<Bnll, ElementwiseCuda<BnllFormula>>(kind)
      .kernel<Clip, ElementwiseCuda<ClipFormula>>(kind)
      .kernel<Elu, ElementwiseCuda<EluFormula>>(kind)
      .kernel<Exponential, ElementwiseCuda<ExponentialFormula>>(kind)
      .kernel<Gelu, ElementwiseCuda<GeluFormula>>(kind)
      .kernel<HardSigmoid, ElementwiseCuda<HardSigmoidFormula>>(kind)
      .kernel<HardSwish, ElementwiseCuda<HardSwishFormula>>(kind)
      .kernel<Logarithm, ElementwiseCuda<LogarithmFormula>>(kind)
      .kernel<Power, ElementwiseCuda<PowerFormula>>(kind)
      .kernel<Relu, ElementwiseCuda<ReluFormula>>(kind)
      .kernel<Sigmoid, ElementwiseCuda<SigmoidFormula>>(kind)
      .kernel<SigmoidLinearUnit, ElementwiseCuda<SiluFormula>>(kind)
      .kernel<Swish, ElementwiseCuda<SwishFormula>>(kind)
      .kernel<HyperbolicTangent, ElementwiseCuda<HyperbolicTangentFormula>>(kind)
      .kernel<Threshold, ElementwiseCuda<ThresholdFormula>>(kind)
      .table();
}
