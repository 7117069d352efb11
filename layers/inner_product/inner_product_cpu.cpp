// InnerProduct on the cpu: oneDNN's matrix product of the plain weights, which it packs as needed,
// or products of our own: for input gradients where that is faster, and for all where oneDNN has
// only reference code.
#include "layers/inner_product/inner_product.h"

#include <dnnl.hpp>
#include <optional>

#include "layers/inner_product/bfloat16_products.h"
#include "layers/inner_product/input_gradient.h"
#include "layers/inner_product/own_products.h"
#include "layers/inner_product/transpose.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using tandem::layers::Bfloat16Products;
using tandem::layers::InnerProduct;
using tandem::layers::InputGradient;
using tandem::layers::OwnProducts;

// A row-major matrix, or columns of one whose rows lie `stride` floats apart.
struct Matrix {
  const float* values;
  int64_t stride;
  bool transposed = false;
};
// C = A B + beta C; `m`, `n`, `k` as in BLAS.
void multiply(Matrix a, Matrix b, float* c, int64_t c_stride, int64_t m, int64_t n, int64_t k,
              float beta) {
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0F, a.values,
                 a.stride, b.values, b.stride, beta, c, c_stride);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success) throw failed("oneDNN's sgemm failed with status ", status);
}

// Slices use a part of the same matrices, so that nothing is copied.
class InnerProductCpu : public Needs {
 public:
  InnerProductCpu(const Binding& binding, const Call& call)
      : rows_(binding.input(0).shape.n),
        inputs_(count(binding.input(0).shape) / rows_),
        outputs_(binding.raw.slice_end - binding.raw.slice_begin),
        weight_stride_(count(binding.weight(0)) / outputs_),
        output_stride_(binding.output(0).shape.c),
        first_input_(binding.input_begin()),
        first_output_(output_stride_ == outputs_ ? 0 : binding.raw.slice_begin),
        bias_(binding.attributes.boolean("bias_term")),
        adds_(binding.has(TANDEM_ADD_TO_OUTPUT)) {
    algorithm = "sgemm";
    scratch_bytes = rows_ * (inputs_ + outputs_) * static_cast<int64_t>(sizeof(float));
    const tandem::layers::ProductExtents extents{rows_,          inputs_, outputs_, weight_stride_,
                                                 output_stride_, bias_,   adds_};
    if (binding.input(0).dtype == TANDEM_BFLOAT16) {
      rounded_.emplace(extents, binding);
      scratch_bytes = rounded_->scratch_bytes();
      algorithm = rounded_->algorithm();
    } else if (has_own_kernels_only(TANDEM_FLOAT32)) {
      own_.emplace(extents, call.threads);
      scratch_bytes = own_->scratch_bytes();
      algorithm = own_->name();
    } else if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
      take_input_gradient(InputGradient::make(extents, call.threads));
    }
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  // As W x^T: the product packs the larger matrix in its order, which takes half the time of x W^T.
  void forward(const Call& call, const Pass& pass) {
    if (rounded_) {
      return rounded_->forward(
          pass.scratch<std::byte>(), pass.input<bfloat16>(0).data(), pass.weight(0) + first_input_,
          bias_ ? pass.weight(1).data() : nullptr, pass.output<bfloat16>(0).data() + first_output_);
    }
    if (own_) {
      return own_->forward(call.threads, pass.input(0), pass.weight(0) + first_input_,
                           bias_ && !adds_ ? pass.weight(1).data() : nullptr,
                           pass.output(0) + first_output_, pass.scratch());
    }
    float* x = pass.scratch();
    float* product = x + rows_ * inputs_;
    tandem::layers::transpose(call.threads, pass.input(0), rows_, inputs_, x);
    multiply({pass.weight(0) + first_input_, weight_stride_}, {x, rows_}, product, rows_, outputs_,
             rows_, inputs_, 0.0F);
    float* y = pass.output(0) + first_output_;
    const float* bias = bias_ && !adds_ ? pass.weight(1).data() : nullptr;
    tandem::layers::for_tiles(
        call.threads, outputs_, rows_, [=, this](int64_t output, int64_t row) {
          float& target = y[row * output_stride_ + output];
          const float start = adds_ ? target : bias != nullptr ? bias[output] : 0.0F;
          target = start + product[output * rows_ + row];
        });
  }

  void backward_data(const Call& call, const Pass& pass) {
    if (input_gradient_ != nullptr) {
      return input_gradient_->run(call.threads, pass.output_gradient(0) + first_output_,
                                  pass.weight(0) + first_input_, pass.input_gradient(0),
                                  pass.scratch());
    }
    if (own_) {
      return own_->backward_data(call.threads, pass.output_gradient(0) + first_output_,
                                 pass.weight(0) + first_input_, pass.input_gradient(0),
                                 pass.scratch());
    }
    if (rounded_) {
      return rounded_->backward_data(
          pass.scratch<std::byte>(), pass.output_gradient<bfloat16>(0).data() + first_output_,
          pass.weight(0) + first_input_, pass.input_gradient<bfloat16>(0).data());
    }
    multiply({pass.output_gradient(0) + first_output_, output_stride_},
             {pass.weight(0) + first_input_, weight_stride_}, pass.input_gradient(0), inputs_,
             rows_, inputs_, outputs_, 0.0F);
  }

  void backward_weights(const Call& call, const Pass& pass) {
    if (rounded_) {
      const bfloat16* dy = pass.output_gradient<bfloat16>(0).data() + first_output_;
      rounded_->backward_weights(pass.scratch<std::byte>(), pass.input<bfloat16>(0).data(), dy,
                                 pass.weight_gradient(0) + first_input_, pass.accumulate());
      return backward_bias(pass, dy);
    }
    const float* dy = pass.output_gradient(0) + first_output_;
    float* gradient = pass.weight_gradient(0) + first_input_;
    if (own_) {
      own_->backward_weights(call.threads, pass.input(0), dy, pass.accumulate(), gradient,
                             pass.scratch());
    } else {
      multiply({dy, output_stride_, true}, {pass.input(0), inputs_}, gradient, weight_stride_,
               outputs_, inputs_, rows_, pass.accumulate() ? 1.0F : 0.0F);
    }
    backward_bias(pass, dy);
  }

 private:
  void take_input_gradient(std::unique_ptr<InputGradient> gradient) {
    input_gradient_ = std::move(gradient);
    if (input_gradient_ == nullptr) return;
    scratch_bytes = std::max(scratch_bytes, input_gradient_->scratch_bytes());
    algorithm += ", backward data " + input_gradient_->name();
  }
  template <class T>
  void backward_bias(const Pass& pass, const T* dy) const {
    if (!bias_ || adds_) return;
    float* gradient = pass.weight_gradient(1);
    if (!pass.accumulate()) std::fill_n(gradient, outputs_, 0.0F);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t i = 0; i < outputs_; ++i) gradient[i] += load(dy[row * output_stride_ + i]);
    }
  }

  int64_t rows_, inputs_, outputs_;
  int64_t weight_stride_, output_stride_;
  int64_t first_input_, first_output_;
  bool bias_, adds_;
  std::optional<Bfloat16Products> rounded_;
  std::optional<OwnProducts> own_;                 // in place of oneDNN's, for float32
  std::unique_ptr<InputGradient> input_gradient_;  // in place of oneDNN's
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "inner_product", "1.0")
      .layer<InnerProduct>()
      .kernel<InnerProduct, InnerProductCpu>("cpu")
      .table();
}
