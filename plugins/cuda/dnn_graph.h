// The graph of one pass of a convolution, as cuDNN's graph interface describes it: one operation on
// the tensors x, weight and y, where a backward pass has the gradient in the place of its result.
// In a forward pass a bias and a ReLU may follow. Layouts are given by strides, so that NCHW and
// NHWC differ in numbers only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/descriptors.h"

namespace tandem::cuda::detail {

// cuDNN's passes, which for a deconvolution are not the layer's.
enum class DnnPass : size_t { forward, backward_data, backward_weights };
constexpr size_t dnn_passes = 3;

// The GPU for which cuDNN chooses and prepares engines: that of the handle, or for tests one that
// is only described. The latter needs no GPU and no handle; its plans cannot run.
struct DnnTarget {
  cudnnHandle_t handle = nullptr;
  const Descriptor* described = nullptr;
};
// The attributes that take such a description. Headers before cuDNN 9.8 do not name them.
constexpr auto gpu_of_model = static_cast<cudnnBackendAttributeName_t>(204),
               gpu_of_plan = static_cast<cudnnBackendAttributeName_t>(407),
               gpu_of_engine = static_cast<cudnnBackendAttributeName_t>(1307);

inline cudnnDataType_t dnn_type(int32_t dtype) {
  return dtype == TANDEM_BFLOAT16  ? CUDNN_DATA_BFLOAT16
         : dtype == TANDEM_FLOAT16 ? CUDNN_DATA_HALF
                                   : CUDNN_DATA_FLOAT;
}

// The names by which a plan is given the addresses.
enum class DnnTensor : int64_t {
  x = 1,
  weight,
  y,
  bias,
  // float32 values between the operations of a graph, which are never in memory
  products,
  sums
};

// In bytes. The host's memory, and what follows weights in scratch memory, is aligned to 64 bytes.
// A use may be of some rows of a tensor, though, which begin behind any number of other rows.
inline int64_t alignment_of(DnnTensor name, const tandem_shape& s, const ConvolutionKind& kind) {
  constexpr int64_t most = 16;
  if (name != DnnTensor::x && name != DnnTensor::y) return most;
  int64_t row_bytes = s.c * s.h * s.w * (kind.dtype == TANDEM_FLOAT32 ? 4 : 2), alignment = 1;
  for (; alignment < most && row_bytes % 2 == 0; row_bytes /= 2) alignment *= 2;
  return alignment;
}

inline Descriptor describe(DnnTensor name, const tandem_shape& s, const ConvolutionKind& kind) {
  using Four = std::array<int64_t, 4>;
  const bool is_virtual = name == DnnTensor::products || name == DnnTensor::sums;
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, is_virtual ? CUDNN_DATA_FLOAT : dnn_type(kind.dtype));
  if (is_virtual) tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, Four{s.n, s.c, s.h, s.w});
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, kind.channels_last
                                            ? Four{s.c * s.h * s.w, 1, s.w * s.c, s.c}
                                            : Four{s.c * s.h * s.w, s.h * s.w, s.w, 1});
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(name));
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment_of(name, s, kind));
  tensor.finalize();
  return tensor;
}

// Products are added in float32, whatever the tensors are.
inline Descriptor describe_window(const ConvolutionShape& s) {
  using Two = std::array<int64_t, 2>;
  Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  window.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  window.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Two{s.pad.h, s.pad.w});
  window.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Two{s.pad.h, s.pad.w});
  window.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, Two{s.stride.h, s.stride.w});
  window.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, Two{s.dilation.h, s.dilation.w});
  window.finalize();
  return window;
}

// cuDNN's names of a pass and of its attributes.
struct OperationNames {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t window, x, weight, y, alpha, beta;
};
constexpr std::array<OperationNames, dnn_passes> operation_names{
    {{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
     {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
     {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}}};

// An operation on each element. A NaN stays one.
inline Descriptor describe_elementwise(cudnnPointwiseMode_t mode) {
  Descriptor kind(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  kind.set(CUDNN_ATTR_POINTWISE_MODE, mode);
  kind.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  if (mode == CUDNN_POINTWISE_RELU_FWD) {
    kind.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
  }
  kind.finalize();
  return kind;
}

class PassGraph {
 public:
  // `epilogue`: of a forward pass.
  PassGraph(const DnnTarget& target, const ConvolutionShape& shape, const ConvolutionKind& kind,
            DnnPass pass, ConvolutionEpilogue epilogue = {}) {
    const Descriptor& x = keep(describe(DnnTensor::x, shape.x, kind));
    const Descriptor& weight = keep(describe(DnnTensor::weight, shape.weight, kind));
    const Descriptor& y = keep(describe(DnnTensor::y, shape.y, kind));
    const Descriptor& window = keep(describe_window(shape));
    if (!epilogue.adds_bias) {
      add_products(pass, window, x, weight, y);
    } else {
      const Descriptor& products = keep(describe(DnnTensor::products, shape.y, kind));
      const Descriptor& bias = keep(describe(DnnTensor::bias, bias_of(shape), kind));
      const Descriptor& sums =
          epilogue.rectifies ? keep(describe(DnnTensor::sums, shape.y, kind)) : y;
      add_products(pass, window, x, weight, products);
      add_elementwise(CUDNN_POINTWISE_ADD, products, &bias, sums);
      if (epilogue.rectifies) add_elementwise(CUDNN_POINTWISE_RELU_FWD, sums, nullptr, y);
    }
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
    if (target.handle != nullptr) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
    const cudnnStatus_t status = graph_.try_finalize();
    is_known_ = CUDNN_STATUS_CATEGORY(status) != CUDNN_STATUS_NOT_SUPPORTED;
    if (is_known_) check(status, "cudnnBackendFinalize of an operation graph");
  }
  // False: this cuDNN has no engine for it.
  [[nodiscard]] bool is_known() const { return is_known_; }
  [[nodiscard]] const Descriptor& get() const { return graph_; }
  [[nodiscard]] bool adds_bias() const { return operations_.size() > 1; }

 private:
  // As long as the graph.
  const Descriptor& keep(Descriptor part) { return parts_.emplace_back(std::move(part)); }

  void add_products(DnnPass pass, const Descriptor& window, const Descriptor& x,
                    const Descriptor& weight, const Descriptor& y) {
    const OperationNames& names = operation_names[static_cast<size_t>(pass)];
    Descriptor& operation = operations_.emplace_back(names.operation);
    operation.set(names.window, window);
    operation.set(names.x, x);
    operation.set(names.weight, weight);
    operation.set(names.y, y);
    operation.set(names.alpha, 1.0F);
    operation.set(names.beta, 0.0F);
    operation.finalize();
  }
  void add_elementwise(cudnnPointwiseMode_t mode, const Descriptor& from, const Descriptor* addend,
                       const Descriptor& to) {
    Descriptor& operation = operations_.emplace_back(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(describe_elementwise(mode)));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from);
    if (addend != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *addend);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to);
    operation.finalize();
  }

  std::deque<Descriptor> parts_;
  std::vector<Descriptor> operations_;
  Descriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
  bool is_known_ = false;
};

}  // namespace tandem::cuda::detail
