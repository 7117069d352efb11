// MatMul on the cpu: oneDNN, or a product of our own where oneDNN has only reference code.
#include "layers/matmul/matmul.h"

#include <optional>

#include "layers/common/matrix_product.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/onednn.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using tandem::layers::MatMul;
using tandem::layers::MatMulExtents;
using tandem::layers::MatrixProduct;

// One of the layer's products: c = a b, a of m x k, b of k x n, for each matrix.
struct Factors {
  int64_t m, k, n;
  bool transpose_a, transpose_b;
};

MatrixProduct own_product(const Factors& f, int64_t count, int32_t threads) {
  const auto strides = [](int64_t rows, int64_t columns, bool transposed) {
    return transposed ? MatrixProduct::Strides{1, rows} : MatrixProduct::Strides{columns, 1};
  };
  return {{f.m, f.n, f.k, strides(f.m, f.k, f.transpose_a), strides(f.k, f.n, f.transpose_b),
           strides(f.m, f.n, false)},
          threads,
          count};
}

class MatMulCpu : public Needs {
 public:
  MatMulCpu(const Binding& binding, const Call& call)
      : e_(binding.attributes, binding.input(0).shape, binding.input(1).shape),
        type_(type_of(binding.input(0).dtype)) {
    require_computable(binding.input(0).dtype);
    // da = dy b', db = a' dy; of a transposed input the transposes.
    const MatMulExtents& e = e_;
    const Factors forward{e.m, e.k, e.n, e.transpose_a, e.transpose_b};
    const Factors to_a = e.transpose_a ? Factors{e.k, e.n, e.m, e.transpose_b, true}
                                       : Factors{e.m, e.n, e.k, false, !e.transpose_b};
    const Factors to_b = e.transpose_b ? Factors{e.n, e.m, e.k, true, e.transpose_a}
                                       : Factors{e.k, e.m, e.n, !e.transpose_a, false};
    ScratchPlan plan;
    forward_ = product(forward, binding, call, plan);
    algorithm = "forward " + forward_.name();
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
      to_a_ = product(to_a, binding, call, plan);
      to_b_ = product(to_b, binding, call, plan);
      algorithm += ", backward data " + to_a_.name() + " and " + to_b_.name();
    }
    scratch_bytes = plan.bytes();
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  static LayoutOptions layouts(const Binding&) { return {{TANDEM_NCHW, TANDEM_NCHW, 0}}; }

  void forward(const Call& call, const Pass& pass) {
    run(call, pass, forward_, pass.raw.inputs[0], pass.raw.inputs[1], pass.raw.outputs[0]);
  }
  void backward_data(const Call& call, const Pass& pass) {
    const void* dy = pass.raw.output_gradients[0];
    const void *a = pass.raw.inputs[0], *b = pass.raw.inputs[1];
    void *da = pass.raw.input_gradients[0], *db = pass.raw.input_gradients[1];
    const auto multiply = [&](Product& product, bool swaps, const void* x, const void* y, void* c) {
      swaps ? run(call, pass, product, y, x, c) : run(call, pass, product, x, y, c);
    };
    if (da != nullptr) multiply(to_a_, e_.transpose_a, dy, b, da);
    if (db != nullptr) multiply(to_b_, e_.transpose_b, a, dy, db);
  }

 private:
  [[nodiscard]] dnnl::memory::desc matrices(int64_t rows, int64_t columns, bool transposed) const {
    using Dims = dnnl::memory::dims;
    return {{e_.count, rows, columns},
            type_,
            transposed ? Dims{rows * columns, 1, rows} : Dims{rows * columns, columns, 1}};
  }
  // oneDNN's or our own.
  struct Product {
    Operation library;
    std::optional<MatrixProduct> own{};
    int64_t offset = 0;  // of our own scratch memory

    [[nodiscard]] std::string name() const { return own ? own->name() : library.name(); }
  };
  Product product(const Factors& f, const Binding& binding, const Call& call,
                  ScratchPlan& plan) const {
    if (has_own_kernels_only(binding.input(0).dtype)) {
      Product made{{}, own_product(f, e_.count, call.threads)};
      made.offset = plan.reserve(made.own->scratch_bytes());
      return made;
    }
    const auto chosen =
        describe<dnnl::matmul>({engine_}, matrices(f.m, f.k, f.transpose_a),
                               matrices(f.k, f.n, f.transpose_b), matrices(f.m, f.n, false));
    return {{chosen, dnnl::matmul(chosen), {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, plan}};
  }
  static void run(const Call& call, const Pass& pass, Product& product, const void* a,
                  const void* b, void* c) {
    auto* scratch = pass.scratch<std::byte>();
    if (product.own) {
      product.own->run(call.threads, static_cast<const float*>(a), static_cast<const float*>(b),
                       static_cast<float*>(c), false,
                       reinterpret_cast<float*>(scratch + product.offset));
    } else {
      product.library.run(scratch, {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
    }
  }

  dnnl::engine engine_ = cpu_engine();
  MatMulExtents e_;
  dnnl::memory::data_type type_;
  Product forward_, to_a_, to_b_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "matmul", "1.0").layer<MatMul>().kernel<MatMul, MatMulCpu>("cpu").table();
}
