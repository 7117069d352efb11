// Eltwise on the cpu: one pass over memory. A tile of the output stays in the cache while all
// inputs are combined in it. What the backward pass of a product or a maximum needs is saved, so
// that a sum keeps no input alive.
#include "layers/eltwise/eltwise.h"

#include <algorithm>

#include "layers/common/elementwise_cpu.h"
#include "plugins/cpu/fused_relu.h"

namespace {

using namespace tandem::cpu;
using namespace tandem::sdk;
using namespace tandem::layers;

constexpr int64_t at_once = 2048;

enum class Operation { sum, product, maximum, minimum, quotient, power };

// The same tile of all tensors of a pass, as floats: in the tensors themselves, or as copies of
// bfloat16.
template <class T>
class Tile {
 public:
  Tile(const Pass& pass, int64_t at, int64_t size) : pass_(pass), at_(at), size_(size) {}
  [[nodiscard]] int64_t at() const { return at_; }
  [[nodiscard]] int64_t size() const { return size_; }
  // Of bfloat16: valid until the next input with the same `copy`, 0 or 1.
  const float* input(size_t k, size_t copy) { return read(pass_.input<T>(k) + at_, copies_[copy]); }
  const float* output_gradient() { return read(pass_.output_gradient<T>(0) + at_, copies_[0]); }
  // write(floats) fills the floats, which are then stored in the output or gradient.
  template <class Write>
  void output(bool fuses_relu, const Write& write) {
    write_to(pass_.output<T>(0) + at_, [&](float* y) {
      write(y);
      if (fuses_relu) std::transform(y, y + size_, y, [](float v) { return rounded_relu<T>(v); });
    });
  }
  template <class Write>
  void input_gradient(size_t k, const Write& write) {
    write_to(pass_.input_gradient<T>(k) + at_, write);
  }

 private:
  const float* read(const float* memory, float*) { return memory; }
  const float* read(const bfloat16* memory, float* copy) {
    widen(memory, copy, size_);
    return copy;
  }
  template <class Write>
  void write_to(float* memory, const Write& write) {
    write(memory);
  }
  template <class Write>
  void write_to(bfloat16* memory, const Write& write) {
    write(result_);
    narrow(result_, memory, size_);
  }

  const Pass& pass_;
  int64_t at_, size_;
  static constexpr int64_t copied = std::is_same_v<T, float> ? 1 : at_once;
  float copies_[2][copied], result_[copied];
};

class EltwiseCpu : public Needs {
 public:
  EltwiseCpu(const Binding& binding, const Call&)
      : inputs_(binding.input_count()),
        elements_(count(binding.input(0).shape)),
        dtype_(binding.input(0).dtype),
        stable_(binding.attributes.boolean("stable_prod_grad")),
        fuses_relu_(binding.fuses_relu()) {
    for (const double value : binding.attributes.numbers("coeff")) {
      coefficients_.push_back(static_cast<float>(value));
    }
    coefficients_.resize(inputs_, 1);
    const std::string_view operation = binding.attributes.text("operation");
    if (operation == "PROD") operation_ = Operation::product;
    if (operation == "MAX") operation_ = Operation::maximum;
    if (operation == "MIN") operation_ = Operation::minimum;
    if (operation == "DIV") operation_ = Operation::quotient;
    if (operation == "POW") operation_ = Operation::power;
    if (!binding.has(TANDEM_WANTS_BACKWARD_DATA) || operation_ == Operation::sum) return;
    saved_bytes = picks() ? elements_ : elements_ * static_cast<int64_t>(inputs_ * sizeof(float));
  }

  static constexpr uint32_t dtypes = float32_and_bfloat16;
  static constexpr uint32_t fused_activations = relu_only;
  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }

  void forward(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { forward_of<decltype(element)>(call, pass); });
  }
  void backward_data(const Call& call, const Pass& pass) const {
    with_elements(dtype_, [&](auto element) { backward_of<decltype(element)>(call, pass); });
  }

 private:
  // Of each element the output is that of one input.
  [[nodiscard]] bool picks() const {
    return operation_ == Operation::maximum || operation_ == Operation::minimum;
  }

  template <class T>
  void forward_of(const Call& call, const Pass& pass) const {
    if (operation_ == Operation::sum && inputs_ == 2 && coefficients_[0] == 1 &&
        coefficients_[1] == 1) {
      with_fused_relu<T>(
          fuses_relu_, [](float a, float b) { return a + b; },
          [&](const auto& function) {
            map(call.threads, elements_, pass.input<T>(0).data(), pass.input<T>(1).data(),
                pass.output<T>(0).data(), function);
          });
      return;
    }
    for_tiles<T>(call, pass, [&](Tile<T>& tile) {
      if (operation_ == Operation::sum) add(tile);
      if (operation_ == Operation::product) multiply(pass, tile);
      if (operation_ == Operation::maximum) pick<false>(pass, tile);
      if (operation_ == Operation::minimum) pick<true>(pass, tile);
      if (operation_ == Operation::quotient) combine_two(pass, tile, Combination::quotient);
      if (operation_ == Operation::power) combine_two(pass, tile, Combination::power);
    });
  }

  // From the last to the first, since input gradient 0 may use the output gradient's memory.
  template <class T>
  void backward_of(const Call& call, const Pass& pass) const {
    for_tiles<T>(call, pass, [&](Tile<T>& tile) {
      const float* dy = tile.output_gradient();
      for (size_t k = inputs_; k-- > 0;) {
        if (pass.raw.input_gradients[k] == nullptr) continue;
        tile.input_gradient(k, [&](float* dx) {
          if (operation_ == Operation::sum) {
            scale(coefficients_[k], dy, dx, tile.size());
          } else if (!picks()) {
            combine(dy, saved_factor(pass, k) + tile.at(), dx, tile.size(),
                    [](float g, float factor) { return g * factor; });
          } else {
            route(static_cast<uint8_t>(k), pass.saved<uint8_t>() + tile.at(), dy, dx, tile.size());
          }
        });
      }
    });
  }

  template <class T, class Body>
  void for_tiles(const Call& call, const Pass& pass, const Body& body) const {
    const auto range = [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += at_once) {
        Tile<T> tile(pass, at, std::min(at_once, end - at));
        body(tile);
      }
    };
    for_ranges(call.threads, elements_, vectorized(range));
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

  // The factor of the gradient of input k in a product.
  [[nodiscard]] float* saved_factor(const Pass& pass, size_t k) const {
    return pass.saved() + static_cast<int64_t>(k) * elements_;
  }

  template <class T>
  void add(Tile<T>& tile) const {
    const float first = coefficients_[0], second = coefficients_[1];
    tile.output(fuses_relu_, [&](float* y) {
      combine(tile.input(0, 0), tile.input(1, 1), y, tile.size(),
              [=](float a, float b) { return first * a + second * b; });
      for (size_t k = 2; k < inputs_; ++k) {
        combine(y, tile.input(k, 0), y, tile.size(),
                [c = coefficients_[k]](float sum, float x) { return sum + c * x; });
      }
    });
  }

  // The product of all inputs except `without`.
  template <class T>
  void product_of_inputs(Tile<T>& tile, size_t without, float* out) const {
    std::fill_n(out, tile.size(), 1.0F);
    for (size_t k = 0; k < inputs_; ++k) {
      if (k == without) continue;
      combine(out, tile.input(k, 0), out, tile.size(), [](float a, float b) { return a * b; });
    }
  }

  // The output is written last: it may use the memory of input 0.
  template <class T>
  void multiply(const Pass& pass, Tile<T>& tile) const {
    float result[at_once];
    product_of_inputs(tile, inputs_, result);
    for (size_t k = 0; k < inputs_ && saved_bytes > 0; ++k) {
      float* factor = saved_factor(pass, k) + tile.at();
      if (stable_) {
        product_of_inputs(tile, k, factor);
      } else {
        combine(result, tile.input(k, 0), factor, tile.size(),
                [](float y, float x) { return y / x; });
      }
    }
    tile.output(fuses_relu_, [&](float* y) { std::copy_n(result, tile.size(), y); });
  }

  // The output is written last, as above.
  template <class T, class Function>
  void combine_two(const Pass& pass, Tile<T>& tile, const Function& function) const {
    const float *a = tile.input(0, 0), *b = tile.input(1, 1);
    float result[at_once], unused[at_once];
    float* by_first = saved_bytes > 0 ? saved_factor(pass, 0) + tile.at() : unused;
    float* by_second = saved_bytes > 0 ? saved_factor(pass, 1) + tile.at() : unused;
    for (int64_t i = 0; i < tile.size(); ++i) {
      const Combination all = function(a[i], b[i]);
      result[i] = all.value;
      by_first[i] = all.by_first;
      by_second[i] = all.by_second;
    }
    tile.output(fuses_relu_, [&](float* y) { std::copy_n(result, tile.size(), y); });
  }

  template <bool smallest, class T>
  void pick(const Pass& pass, Tile<T>& tile) const {
    uint8_t unused[at_once];
    uint8_t* from = saved_bytes > 0 ? pass.saved<uint8_t>() + tile.at() : unused;
    tile.output(fuses_relu_, [&](float* y) {
      pick_of_two<smallest>(tile.input(0, 0), tile.input(1, 1), y, from, tile.size());
      for (size_t k = 2; k < inputs_; ++k) {
        pick_next<smallest>(tile.input(k, 0), static_cast<uint8_t>(k), y, from, tile.size());
      }
    });
  }
  template <bool smallest>
  static void pick_of_two(const float* a, const float* b, float* y, uint8_t* from, int64_t size) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      const float first = a[i], second = b[i];
      const bool wins = smallest ? first < second : first > second;
      const bool takes_first = wins | (first != first);  // a NaN stays NaN
      from[i] = takes_first ? 0 : 1;
      y[i] = takes_first ? first : second;
    }
  }
  template <bool smallest>
  static void pick_next(const float* x, uint8_t number, float* y, uint8_t* from, int64_t size) {
#pragma omp simd
    for (int64_t i = 0; i < size; ++i) {
      const float best = y[i], other = x[i];
      const bool wins = smallest ? other < best : other > best;
      const bool takes_other = wins | (other != other);
      // By arithmetic: g++ would make a branch of a choice between bytes.
      const auto taken = static_cast<uint8_t>(-static_cast<int>(takes_other));
      from[i] = static_cast<uint8_t>((number & taken) | (from[i] & ~taken));
      y[i] = takes_other ? other : best;
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
  int32_t dtype_;
  bool stable_, fuses_relu_;
  Operation operation_ = Operation::sum;
  std::vector<float> coefficients_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "eltwise", "1.0").layer<Eltwise>().kernel<Eltwise, EltwiseCpu>("cpu").table();
}
