// oneDNN's two C++ APIs as one: version 2 (Debian 12 has 2.6) makes a primitive descriptor from an
// operation descriptor, version 3 (Debian 13 has 3.7) from the operation's arguments themselves.
// Nothing else in Tandem depends on the version. What an implementation can do differs too, so code
// asks for it (Making::may_be_absent).
#pragma once

#include <dnnl.hpp>

#if DNNL_VERSION_MAJOR != 2 && DNNL_VERSION_MAJOR != 3
#error "Tandem knows the APIs of oneDNN 2 and 3 only"
#endif

namespace tandem::cpu {

// Primitives take their scratchpad as an argument.
inline dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// What every primitive descriptor is made with. If oneDNN has no implementation, the descriptor is
// empty with `may_be_absent`, and otherwise dnnl::error is thrown.
struct Making {
  dnnl::engine engine;
  dnnl::primitive_attr attributes = user_scratchpad();
  bool may_be_absent = false;
};

template <class Primitive>
using DescriptorOf = typename Primitive::primitive_desc;

// For primitives whose arguments are the same in both versions: convolution, deconvolution, matmul.
template <class Primitive, class... Arguments>
DescriptorOf<Primitive> describe(const Making& how, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR == 2
  const typename Primitive::desc operation(arguments...);
  return {operation, how.attributes, how.engine, how.may_be_absent};
#else
  return {how.engine, arguments..., how.attributes, how.may_be_absent};
#endif
}

// The same for a backward pass; `forward` is the descriptor of its forward pass.
template <class Primitive, class Forward, class... Arguments>
DescriptorOf<Primitive> describe_backward(const Making& how, const Forward& forward,
                                          const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR == 2
  const typename Primitive::desc operation(arguments...);
  return {operation, how.attributes, how.engine, forward, how.may_be_absent};
#else
  return {how.engine, arguments..., forward, how.attributes, how.may_be_absent};
#endif
}

// Goes on to oneDNN's next kernel for the same primitive; false if there is none. Version 2 would
// read the operation that `describe` has built, which no longer exists; it stays at its first one.
template <class Descriptor>
bool take_next_kernel([[maybe_unused]] Descriptor& descriptor) {
#if DNNL_VERSION_MAJOR == 2
  return false;
#else
  return descriptor.next_impl();
#endif
}

// A pooling layer's windows: their strides and extents, and the padding before and after the image.
struct PoolingWindows {
  dnnl::memory::dims stride, kernel, begin, end;
};

inline DescriptorOf<dnnl::pooling_forward> describe_pooling(const Making& how, dnnl::prop_kind kind,
                                                            dnnl::algorithm method,
                                                            const dnnl::memory::desc& input,
                                                            const dnnl::memory::desc& output,
                                                            const PoolingWindows& w) {
#if DNNL_VERSION_MAJOR == 2
  return describe<dnnl::pooling_forward>(how, kind, method, input, output, w.stride, w.kernel,
                                         w.begin, w.end);
#else
  const dnnl::memory::dims dilation(w.kernel.size(), 0);
  return describe<dnnl::pooling_forward>(how, kind, method, input, output, w.stride, w.kernel,
                                         dilation, w.begin, w.end);
#endif
}

inline DescriptorOf<dnnl::pooling_backward> describe_pooling_backward(
    const Making& how, const DescriptorOf<dnnl::pooling_forward>& forward, dnnl::algorithm method,
    const dnnl::memory::desc& input, const dnnl::memory::desc& output, const PoolingWindows& w) {
#if DNNL_VERSION_MAJOR == 2
  return describe_backward<dnnl::pooling_backward>(how, forward, method, input, output, w.stride,
                                                   w.kernel, w.begin, w.end);
#else
  const dnnl::memory::dims dilation(w.kernel.size(), 0);
  return describe_backward<dnnl::pooling_backward>(how, forward, method, input, output, w.stride,
                                                   w.kernel, dilation, w.begin, w.end);
#endif
}

// Input and output have the same descriptor, `data`.
inline DescriptorOf<dnnl::softmax_forward> describe_softmax(const Making& how, dnnl::prop_kind kind,
                                                            const dnnl::memory::desc& data,
                                                            int axis) {
#if DNNL_VERSION_MAJOR == 2
  return describe<dnnl::softmax_forward>(how, kind, data, axis);
#else
  return describe<dnnl::softmax_forward>(how, kind, dnnl::algorithm::softmax_accurate, data, data,
                                         axis);
#endif
}

inline DescriptorOf<dnnl::softmax_backward> describe_softmax_backward(
    const Making& how, const DescriptorOf<dnnl::softmax_forward>& forward,
    const dnnl::memory::desc& data, int axis) {
#if DNNL_VERSION_MAJOR == 2
  return describe_backward<dnnl::softmax_backward>(how, forward, data, data, axis);
#else
  return describe_backward<dnnl::softmax_backward>(how, forward, dnnl::algorithm::softmax_accurate,
                                                   data, data, data, axis);
#endif
}

}  // namespace tandem::cpu
