// The graph of one pass of a convolution, as cuDNN's graph interface describes it: one operation on
// the tensors x, weight and y, where a backward pass has the gradient in the place of its result.
// Layouts are given by strides, so that NCHW and NHWC differ in numbers only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

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
enum class DnnTensor : int64_t { x = 1, weight, y };

// In bytes. The host's memory, and what follows weights in scratch memory, is aligned to 64 bytes.
// A use may be of some rows of a tensor, though, which begin behind any number of other rows.
inline int64_t alignment_of(DnnTensor name, const tandem_shape& s, const ConvolutionKind& kind) {
  constexpr int64_t most = 16;
  if (name == DnnTensor::weight) return most;
  int64_t row_bytes = s.c * s.h * s.w * (kind.dtype == TANDEM_FLOAT32 ? 4 : 2), alignment = 1;
  for (; alignment < most && row_bytes % 2 == 0; row_bytes /= 2) alignment *= 2;
  return alignment;
}

inline Descriptor describe(DnnTensor name, const tandem_shape& s, const ConvolutionKind& kind) {
  using Four = std::array<int64_t, 4>;
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, dnn_type(kind.dtype));
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

class PassGraph {
 public:
  PassGraph(const DnnTarget& target, const ConvolutionShape& shape, const ConvolutionKind& kind,
            DnnPass pass)
      : x_(describe(DnnTensor::x, shape.x, kind)),
        weight_(describe(DnnTensor::weight, shape.weight, kind)),
        y_(describe(DnnTensor::y, shape.y, kind)),
        window_(describe_window(shape)),
        operation_(operation_names[static_cast<size_t>(pass)].operation) {
    const OperationNames& names = operation_names[static_cast<size_t>(pass)];
    operation_.set(names.window, window_);
    operation_.set(names.x, x_);
    operation_.set(names.weight, weight_);
    operation_.set(names.y, y_);
    operation_.set(names.alpha, 1.0F);
    operation_.set(names.beta, 0.0F);
    operation_.finalize();
    graph_.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation_);
    if (target.handle != nullptr) graph_.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle);
    graph_.finalize();
  }
  [[nodiscard]] const Descriptor& get() const { return graph_; }

 private:
  Descriptor x_, weight_, y_, window_, operation_;
  Descriptor graph_{CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR};
};

}  // namespace tandem::cuda::detail
