// Eltwise on the cpu: one pass over memory. A part of the output stays in the cache while input
// after input goes into it. What backward needs of a product or a maximum is saved, so that a sum
// keeps no input alive.
#include "layers/eltwise/eltwise.h"

#include <algorithm>

#include "layers/elementwise_cpu.h"

namespace {

using namespace tandem::sdk;
using namespace tandem::layers;

constexpr int64_t part = 2048;

enum class Operation { sum, product, maximum };

class EltwiseCpu : public Needs {
 public:
  EltwiseCpu(const Binding& binding, const Call&)
      : inputs_(binding.input_count()),
        elements_(count(binding.input(0).shape)),
        stable_(binding.attributes.boolean("stable_prod_grad")) {
    for (const double value : binding.attributes.numbers("coeff")) {
      coefficients_.push_back(static_cast<float>(value));
    }
    coefficients_.resize(inputs_, 1);
    const std::string_view operation = binding.attributes.text("operation");
    if (operation == "PROD") operation_ = Operation::product;
    if (operation == "MAX") operation_ = Operation::maximum;
    if (!binding.has(TANDEM_WANTS_BACKWARD_DATA)) return;
    if (operation_ == Operation::product) {
      saved_bytes = elements_ * static_cast<int64_t>(inputs_ * sizeof(float));
    }
    if (operation_ == Operation::maximum) saved_bytes = elements_;
  }

  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    if (operation_ == Operation::sum && inputs_ == 2 && coefficients_[0] == 1 &&
        coefficients_[1] == 1) {
      map(call.threads, elements_, pass.input(0), pass.input(1), pass.output(0),
          [](float a, float b) { return a + b; });
      return;
    }
    for_chunks(call, [&](int64_t at, int64_t size) {
      if (operation_ == Operation::sum) add(pass, at, size);
      if (operation_ == Operation::product) multiply(pass, at, size);
      if (operation_ == Operation::maximum) pick(pass, at, size);
    });
  }

  // From the last to the first, since input gradient 0 may be the output gradient's memory.
  void backward_data(const Call& call, const Pass& pass) const {
    const float* dy = pass.output_gradient(0);
    for_chunks(call, [&](int64_t at, int64_t size) {
      for (size_t k = inputs_; k-- > 0;) {
        float* dx = pass.input_gradient(k);
        if (dx == nullptr) continue;
        if (operation_ == Operation::sum) {
          scale(coefficients_[k], dy + at, dx + at, size);
        } else if (operation_ == Operation::product) {
          combine(dy + at, saved_factor(pass, k) + at, dx + at, size,
                  [](float g, float factor) { return g * factor; });
        } else {
          route(static_cast<uint8_t>(k), pass.saved<uint8_t>() + at, dy + at, dx + at, size);
        }
      }
    });
  }

 private:
  template <class Body>
  void for_chunks(const Call& call, const Body& body) const {
    tandem::cpu::for_ranges(call.threads, elements_, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += part) body(at, std::min(part, end - at));
    });
  }

  template <class Function>
  static void combine(const float* a, const float* b, float* out, int64_t size,
                      const Function& function) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) out[i] = function(a[i], b[i]);
  }

  static void scale(float factor, const float* from, float* to, int64_t size) {
    if (factor == 1) {
      if (from != to) std::copy_n(from, size, to);
      return;
    }
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) to[i] = factor * from[i];
  }

  // What the gradient of input k is multiplied with in a product.
  [[nodiscard]] float* saved_factor(const Pass& pass, size_t k) const {
    return pass.saved() + static_cast<int64_t>(k) * elements_;
  }

  void add(const Pass& pass, int64_t at, int64_t size) const {
    float* y = pass.output(0) + at;
    const float first = coefficients_[0], second = coefficients_[1];
    combine(pass.input(0) + at, pass.input(1) + at, y, size,
            [=](float a, float b) { return first * a + second * b; });
    for (size_t k = 2; k < inputs_; ++k) {
      combine(y, pass.input(k) + at, y, size,
              [c = coefficients_[k]](float sum, float x) { return sum + c * x; });
    }
  }

  // The product of all inputs but `without`.
  void product_of_inputs(const Pass& pass, size_t without, int64_t at, int64_t size,
                         float* out) const {
    std::fill_n(out, size, 1.0F);
    for (size_t k = 0; k < inputs_; ++k) {
      if (k == without) continue;
      combine(out, pass.input(k) + at, out, size, [](float a, float b) { return a * b; });
    }
  }

  // The output is written last: it may be the memory of input 0.
  void multiply(const Pass& pass, int64_t at, int64_t size) const {
    float result[part];
    product_of_inputs(pass, inputs_, at, size, result);
    for (size_t k = 0; k < inputs_ && saved_bytes > 0; ++k) {
      float* factor = saved_factor(pass, k) + at;
      if (stable_) {
        product_of_inputs(pass, k, at, size, factor);
      } else {
        combine(result, pass.input(k) + at, factor, size, [](float y, float x) { return y / x; });
      }
    }
    std::copy_n(result, size, pass.output(0) + at);
  }

  void pick(const Pass& pass, int64_t at, int64_t size) const {
    float* y = pass.output(0) + at;
    uint8_t unused[part];
    uint8_t* from = saved_bytes > 0 ? pass.saved<uint8_t>() + at : unused;
    const float *a = pass.input(0) + at, *b = pass.input(1) + at;
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      const float first = a[i], second = b[i];
      from[i] = first > second ? 0 : 1;
      y[i] = first > second ? first : second;
    }
    for (size_t k = 2; k < inputs_; ++k) {
      const float* x = pass.input(k) + at;
      const auto number = static_cast<uint8_t>(k);
#pragma omp simd
      for (int64_t i = 0; i < size; ++i) {
        const float best = y[i], other = x[i];
        // In arithmetic: g++ makes a branch of a choice between bytes.
        const auto taken = static_cast<uint8_t>(-static_cast<int>(other > best));
        from[i] = static_cast<uint8_t>((number & taken) | (from[i] & ~taken));
        y[i] = other > best ? other : best;
      }
    }
  }

  static void route(uint8_t number, const uint8_t* from, const float* dy, float* dx, int64_t size) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      const float g = dy[i];
      dx[i] = from[i] == number ? g : 0.0F;
    }
  }

  size_t inputs_;
  int64_t elements_;
  bool stable_;
  Operation operation_ = Operation::sum;
  std::vector<float> coefficients_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "eltwise", "1.0").layer<Eltwise>().kernel<Eltwise, EltwiseCpu>("cpu").table();
}
