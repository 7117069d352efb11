// MatMul on the cpu: oneDNN.
#include "layers/matmul/matmul.h"
#include "plugins/cpu/bfloat16.h"
#include "plugins/cpu/onednn.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::cpu;
using tandem::layers::MatMul;
using tandem::layers::MatMulExtents;

class MatMulCpu : public Needs {
 public:
  MatMulCpu(const Binding& binding, const Call&)
      : e_(binding.attributes, binding.input(0).shape, binding.input(1).shape),
        type_(type_of(binding.input(0).dtype)) {
    require_computable(binding.input(0).dtype);
    ScratchPlan plan;
    forward_ = product(e_.m, e_.k, e_.n, e_.transpose_a, e_.transpose_b, plan);
    algorithm = "forward " + forward_.name();
    if (binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
      // da = dy b', db = a' dy; of a transposed input the transposes.
      to_a_ = e_.transpose_a ? product(e_.k, e_.n, e_.m, e_.transpose_b, true, plan)
                             : product(e_.m, e_.n, e_.k, false, !e_.transpose_b, plan);
      to_b_ = e_.transpose_b ? product(e_.n, e_.m, e_.k, true, e_.transpose_a, plan)
                             : product(e_.k, e_.m, e_.n, !e_.transpose_a, false, plan);
      algorithm += ", backward data " + to_a_.name() + " and " + to_b_.name();
    }
    scratch_bytes = plan.bytes();
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;

  static LayoutOptions layouts(const Binding&) { return {{TANDEM_NCHW, TANDEM_NCHW, 0}}; }

  void forward(const Call&, const Pass& pass) {
    run(pass, forward_, pass.raw.inputs[0], pass.raw.inputs[1], pass.raw.outputs[0]);
  }
  void backward_data(const Call&, const Pass& pass) {
    const void* dy = pass.raw.output_gradients[0];
    const void *a = pass.raw.inputs[0], *b = pass.raw.inputs[1];
    void *da = pass.raw.input_gradients[0], *db = pass.raw.input_gradients[1];
    if (da != nullptr) e_.transpose_a ? run(pass, to_a_, b, dy, da) : run(pass, to_a_, dy, b, da);
    if (db != nullptr) e_.transpose_b ? run(pass, to_b_, dy, a, db) : run(pass, to_b_, a, dy, db);
  }

 private:
  [[nodiscard]] dnnl::memory::desc matrices(int64_t rows, int64_t columns, bool transposed) const {
    using Dims = dnnl::memory::dims;
    return {{e_.count, rows, columns},
            type_,
            transposed ? Dims{rows * columns, 1, rows} : Dims{rows * columns, columns, 1}};
  }
  // c = a b, a of m x k, b of k x n.
  Operation product(int64_t m, int64_t k, int64_t n, bool transpose_a, bool transpose_b,
                    ScratchPlan& plan) const {
    const auto chosen = describe<dnnl::matmul>({engine_}, matrices(m, k, transpose_a),
                                               matrices(k, n, transpose_b), matrices(m, n, false));
    return {chosen, dnnl::matmul(chosen), {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST}, plan};
  }
  static void run(const Pass& pass, Operation& operation, const void* a, const void* b, void* c) {
    operation.run(pass.scratch<std::byte>(),
                  {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}});
  }

  dnnl::engine engine_ = cpu_engine();
  MatMulExtents e_;
  dnnl::memory::data_type type_;
  Operation forward_, to_a_, to_b_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "matmul", "1.0").layer<MatMul>().kernel<MatMul, MatMulCpu>("cpu").table();
}
