// plugins/cuda/blas_bias.h for a machine without a GPU. It has no algorithm for a single output, so
// that the code without it is tested, too.
#pragma once

#include "plugins/cuda/rounded_to_tf32.h"
#include "plugins/cuda/teams.h"

namespace tandem::cuda {

class BiasedProduct {
 public:
  BiasedProduct(const sdk::Call&, int64_t rows, int64_t inputs, int64_t outputs, bool allows_tf32)
      : rows_(rows), inputs_(inputs), outputs_(outputs), tf32_(allows_tf32) {}

  [[nodiscard]] bool is_possible() const { return outputs_ > 1; }
  [[nodiscard]] int64_t scratch_bytes() const { return 64; }

  void run(const sdk::Call& call, const float* x, const float* weight, const float* bias, float* y,
           void* scratch) const {
    const DeviceWork work(call);
    std::memset(scratch, 0x5A, static_cast<size_t>(scratch_bytes()));
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < outputs_; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < inputs_; ++l) {
          sum += static_cast<double>(rounded_to_tf32(x[i * inputs_ + l], tf32_)) *
                 static_cast<double>(rounded_to_tf32(weight[j * inputs_ + l], tf32_));
        }
        y[i * outputs_ + j] = static_cast<float>(sum) + bias[j];
      }
    }
  }

 private:
  int64_t rows_, inputs_, outputs_;
  bool tf32_;
};

}  // namespace tandem::cuda
