// Losses, metrics and the other layers at the end of a net, on NVIDIA GPUs.
#include "layers/accuracy/accuracy_cuda.h"
#include "layers/argmax/argmax_cuda.h"
#include "layers/contrastive_loss/contrastive_loss_cuda.h"
#include "layers/euclidean_loss/euclidean_loss_cuda.h"
#include "layers/hinge_loss/hinge_loss_cuda.h"
#include "layers/huber_loss/huber_loss_cuda.h"
#include "layers/multinomial_logistic_loss/multinomial_logistic_loss_cuda.h"
#include "layers/sigmoid_cross_entropy_loss/sigmoid_cross_entropy_loss_cuda.h"
#include "layers/softmax/softmax_cuda.h"
#include "layers/softmax_with_loss/softmax_with_loss_cuda.h"
#include "layers/sum_loss/sum_loss_cuda.h"

using namespace tandem::sdk;
using namespace tandem::layers;

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  const char* kind = tandem::cuda::device_kind;
  return Plugin(host, "losses-cuda", "1.0")
      .kernel<Accuracy, AccuracyCuda>(kind)
      .kernel<ArgMax, ArgMaxCuda>(kind)
      .kernel<ContrastiveLoss, ContrastiveLossCuda>(kind)
      .kernel<EuclideanLoss, EuclideanLossCuda>(kind)
      .kernel<HingeLoss, HingeLossCuda>(kind)
      .kernel<HuberLoss, HuberLossCuda>(kind)
      .kernel<MultinomialLogisticLoss, MultinomialLogisticLossCuda>(kind)
      .kernel<SigmoidCrossEntropyLoss, SigmoidCrossEntropyLossCuda>(kind)
      .kernel<Softmax, SoftmaxCuda>(kind)
      .kernel<SoftmaxWithLoss, SoftmaxWithLossCuda>(kind)
      .kernel<SumLoss, SumLossCuda>(kind)
      .table();
}
