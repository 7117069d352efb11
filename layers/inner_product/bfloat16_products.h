// InnerProduct in bfloat16 on the cpu: oneDNN's matrix products with the plain weights, which are
// rounded to bfloat16 first. Sums, biases and weight gradients are float32. As in float32, slices
// use a part of the same matrices.
#pragma once

#include "layers/inner_product/product_extents.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/onednn.h"

namespace tandem::layers {

class Bfloat16Products {
 public:
  Bfloat16Products(const ProductExtents& extents, const sdk::Binding& binding) : e_(extents) {
    cpu::require_computable(TANDEM_BFLOAT16);
    prepare_weights();
    prepare_forward();
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) prepare_backward_data();
    if (binding.has(TANDEM_WANTS_BACKWARD_WEIGHTS)) prepare_backward_weights();
  }

  [[nodiscard]] int64_t scratch_bytes() const { return scratch_bytes_; }
  [[nodiscard]] const std::string& algorithm() const { return algorithm_; }

  void forward(std::byte* scratch, const cpu::bfloat16* x, const float* weight, const float* bias,
               cpu::bfloat16* y) {
    fetch_.run(scratch, {{DNNL_ARG_FROM, weight}, {DNNL_ARG_TO, scratch}});
    forward_.run(
        scratch,
        {{DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, scratch}, {DNNL_ARG_BIAS, bias}, {DNNL_ARG_DST, y}});
  }
  void backward_data(std::byte* scratch, const cpu::bfloat16* dy, const float* weight,
                     cpu::bfloat16* dx) {
    fetch_.run(scratch, {{DNNL_ARG_FROM, weight}, {DNNL_ARG_TO, scratch}});
    backward_data_.run(scratch,
                       {{DNNL_ARG_SRC, dy}, {DNNL_ARG_WEIGHTS, scratch}, {DNNL_ARG_DST, dx}});
  }
  void backward_weights(std::byte* scratch, const cpu::bfloat16* x, const cpu::bfloat16* dy,
                        float* gradient, bool add) {
    (add ? add_weights_ : backward_weights_)
        .run(scratch, {{DNNL_ARG_SRC, dy}, {DNNL_ARG_WEIGHTS, x}, {DNNL_ARG_DST, gradient}});
  }

 private:
  using Description = dnnl::memory::desc;
  using Type = dnnl::memory::data_type;

  static Description matrix(int64_t rows, int64_t columns, Type type, int64_t row_stride,
                            int64_t column_stride = 1) {
    return {{rows, columns}, type, dnnl::memory::dims{row_stride, column_stride}};
  }

  // The rounded weights are at the beginning of the scratch memory.
  cpu::ScratchPlan plan_with_weights() const {
    cpu::ScratchPlan plan;
    static_cast<void>(plan.reserve(e_.outputs * e_.inputs * 2));
    return plan;
  }

  static dnnl::primitive_attr attributes(bool adds) {
    dnnl::primitive_attr result = cpu::user_scratchpad();
    if (adds) {
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      result.set_post_ops(sum);
    }
    return result;
  }

  void prepare_weights() {
    cpu::ScratchPlan plan = plan_with_weights();
    fetch_ =
        cpu::reorder_operation(engine_, matrix(e_.outputs, e_.inputs, Type::f32, e_.weight_stride),
                               matrix(e_.outputs, e_.inputs, Type::bf16, e_.inputs), false, plan);
    scratch_bytes_ = plan.bytes();
  }

  void prepare_forward() {
    cpu::ScratchPlan plan = plan_with_weights();
    const Description x = matrix(e_.rows, e_.inputs, Type::bf16, e_.inputs);
    const Description weight = matrix(e_.inputs, e_.outputs, Type::bf16, 1, e_.inputs);
    const Description y = matrix(e_.rows, e_.outputs, Type::bf16, e_.output_stride);
    if (e_.bias && !e_.adds) {
      const auto chosen = cpu::describe<dnnl::matmul>(
          {engine_}, x, weight, matrix(1, e_.outputs, Type::f32, e_.outputs), y);
      forward_ = {chosen,
                  dnnl::matmul(chosen),
                  {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST},
                  plan};
    } else {
      forward_ = product(x, weight, y, e_.adds, plan);
    }
    report("forward ", forward_, plan);
  }

  void prepare_backward_data() {
    cpu::ScratchPlan plan = plan_with_weights();
    backward_data_ = product(matrix(e_.rows, e_.outputs, Type::bf16, e_.output_stride),
                             matrix(e_.outputs, e_.inputs, Type::bf16, e_.inputs),
                             matrix(e_.rows, e_.inputs, Type::bf16, e_.inputs), false, plan);
    report(", backward data ", backward_data_, plan);
  }

  void prepare_backward_weights() {
    cpu::ScratchPlan plan;
    const Description dy = matrix(e_.outputs, e_.rows, Type::bf16, 1, e_.output_stride);
    const Description x = matrix(e_.rows, e_.inputs, Type::bf16, e_.inputs);
    const Description gradient = matrix(e_.outputs, e_.inputs, Type::f32, e_.weight_stride);
    backward_weights_ = product(dy, x, gradient, false, plan);
    add_weights_ = product(dy, x, gradient, true, plan);
    report(", backward weights ", backward_weights_, plan);
  }

  cpu::Operation product(const Description& a, const Description& b, const Description& c,
                         bool adds, cpu::ScratchPlan& plan) {
    const auto chosen = cpu::describe<dnnl::matmul>({engine_, attributes(adds)}, a, b, c);
    return {chosen, dnnl::matmul(chosen), {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, plan};
  }

  void report(const char* pass, const cpu::Operation& operation, const cpu::ScratchPlan& plan) {
    scratch_bytes_ = std::max(scratch_bytes_, plan.bytes());
    algorithm_ += pass + operation.name();
  }

  dnnl::engine engine_ = cpu::cpu_engine();
  ProductExtents e_;
  cpu::Operation fetch_, forward_, backward_data_, backward_weights_, add_weights_;
  int64_t scratch_bytes_ = 0;
  std::string algorithm_;
};

}  // namespace tandem::layers
