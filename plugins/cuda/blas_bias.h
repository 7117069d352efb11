// y = x w' + bias in one kernel by cuBLASLt, for float32 and whole row-major matrices. cuBLASLt is
// column-major: it sees the transposes, Y' = W X' of outputs x rows. To it, W, whose rows have
// `inputs` values, is an inputs x outputs matrix that is transposed, and X' is inputs x rows. Its
// epilogue adds a vector to every column of Y', one value for each of the rows. Those are the
// outputs, so the vector is the bias. The algorithm is the first of cuBLASLt's list and is chosen
// once for the shape: the same shapes on the same GPU and library have the same algorithm.
#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "plugins/cuda/libraries.h"
#include "plugins/cuda/scratch_memory.h"

namespace tandem::cuda {

class BiasedProduct {
 public:
  // The limit of an algorithm's scratch memory.
  static constexpr int64_t max_scratch = int64_t{32} << 20;

  BiasedProduct(const sdk::Call& call, int64_t rows, int64_t inputs, int64_t outputs,
                bool allows_tf32)
      : w_(inputs, outputs), x_(inputs, rows), y_(outputs, rows), product_(allows_tf32) {
    set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    choose(call);
  }

  // False: cuBLASLt has no algorithm for the shape, and run() must not be called.
  [[nodiscard]] bool is_possible() const { return is_possible_; }
  [[nodiscard]] int64_t scratch_bytes() const {
    return scratch_bytes_ == 0 ? 0 : static_cast<int64_t>(scratch_bytes_) + scratch_alignment;
  }

  void run(const sdk::Call& call, const float* x, const float* weight, const float* bias, float* y,
           void* scratch) const {
    // Stored in the description, which only this stream's thread uses.
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    const float one = 1, zero = 0;
    check(cublasLtMatmul(handle_of(call), product_.product, &one, weight, w_.layout, x, x_.layout,
                         &zero, y, y_.layout, y, y_.layout, &algorithm_, aligned_scratch(scratch),
                         scratch_bytes_, static_cast<cudaStream_t>(call.native_stream)),
          "cublasLtMatmul");
  }

 private:
  struct Product {
    explicit Product(bool allows_tf32) {
      check(cublasLtMatmulDescCreate(
                &product, allows_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                CUDA_R_32F),
            "cublasLtMatmulDescCreate");
    }
    ~Product() { static_cast<void>(cublasLtMatmulDescDestroy(product)); }
    Product(const Product&) = delete;
    Product& operator=(const Product&) = delete;
    cublasLtMatmulDesc_t product = nullptr;
  };
  // Contiguous columns.
  struct Layout {
    Layout(int64_t rows, int64_t columns) {
      check(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, static_cast<uint64_t>(rows),
                                       static_cast<uint64_t>(columns), rows),
            "cublasLtMatrixLayoutCreate");
    }
    ~Layout() { static_cast<void>(cublasLtMatrixLayoutDestroy(layout)); }
    Layout(const Layout&) = delete;
    Layout& operator=(const Layout&) = delete;
    cublasLtMatrixLayout_t layout = nullptr;
  };
  struct Preference {
    Preference() {
      check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    }
    ~Preference() { static_cast<void>(cublasLtMatmulPreferenceDestroy(preference)); }
    Preference(const Preference&) = delete;
    Preference& operator=(const Preference&) = delete;
    template <class T>
    void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) const {
      check(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute");
    }
    cublasLtMatmulPreference_t preference = nullptr;
  };

  // A handle of cuBLAS is also a handle of cuBLASLt.
  static cublasLtHandle_t handle_of(const sdk::Call& call) {
    return reinterpret_cast<cublasLtHandle_t>(blas_of(call));
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) const {
    check(cublasLtMatmulDescSetAttribute(product_.product, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }

  void choose(const sdk::Call& call) {
    const Preference preference;
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{max_scratch});
    // The alignment of the memory of whole bindings; the default is larger.
    constexpr uint32_t alignment = 64;
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      preference.set(attribute, alignment);
    }
    // Partial sums are added in float32 and in a fixed order, or there are none.
    preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                   uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_of(call), product_.product, w_.layout, x_.layout, y_.layout, y_.layout,
        preference.preference, 1, &found, &count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) return;
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (count < 1 || found.state != CUBLAS_STATUS_SUCCESS) return;
    algorithm_ = found.algo;
    scratch_bytes_ = found.workspaceSize;
    is_possible_ = true;
  }

  Layout w_, x_, y_;
  Product product_;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t scratch_bytes_ = 0;
  bool is_possible_ = false;
};

}  // namespace tandem::cuda
