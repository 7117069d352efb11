// InnerProduct on the cpu: oneDNN's matrix product on the plain weights, which it packs as it goes.
#include <dnnl.hpp>

#include "layers/inner_product/inner_product.h"

namespace {

using namespace tandem::sdk;
using tandem::layers::InnerProduct;

// Row-major C = A B + beta C, A and B transposed or not; `m`, `n`, `k` as in BLAS.
struct Matrix {
  const float* values;
  bool transposed;
};
void multiply(Matrix a, Matrix b, float* c, int64_t m, int64_t n, int64_t k, float beta) {
  const dnnl_status_t status =
      dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0F, a.values,
                 a.transposed ? m : k, b.values, b.transposed ? k : n, beta, c, n);
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  if (status != dnnl_success) throw failed("oneDNN's sgemm failed with status ", status);
}

class InnerProductCpu : public Needs {
 public:
  InnerProductCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        inputs_(count(binding.input(0).shape) / rows_),
        outputs_(binding.output(0).shape.c),
        bias_(binding.attributes.boolean("bias_term")) {
    algorithm = "sgemm";
  }

  void forward(const Call&, const Pass& pass) const {
    float* y = pass.output(0);
    if (bias_) {
      for (int64_t row = 0; row < rows_; ++row) {
        std::copy_n(pass.weight(1), outputs_, y + row * outputs_);
      }
    }
    multiply({pass.input(0), false}, {pass.weight(0), true}, y, rows_, outputs_, inputs_,
             bias_ ? 1.0F : 0.0F);
  }

  void backward_data(const Call&, const Pass& pass) const {
    multiply({pass.output_gradient(0), false}, {pass.weight(0), false}, pass.input_gradient(0),
             rows_, inputs_, outputs_, 0.0F);
  }

  void backward_weights(const Call&, const Pass& pass) const {
    const float* dy = pass.output_gradient(0);
    multiply({dy, true}, {pass.input(0), false}, pass.weight_gradient(0), outputs_, inputs_, rows_,
             pass.accumulate() ? 1.0F : 0.0F);
    if (!bias_) return;
    float* gradient = pass.weight_gradient(1);
    if (!pass.accumulate()) std::fill_n(gradient, outputs_, 0.0F);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t i = 0; i < outputs_; ++i) gradient[i] += dy[row * outputs_ + i];
    }
  }

 private:
  int64_t rows_, inputs_, outputs_;
  bool bias_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "inner_product", "1.0")
      .layer<InnerProduct>()
      .kernel<InnerProduct, InnerProductCpu>("cpu")
      .table();
}
