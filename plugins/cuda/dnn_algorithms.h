// The algorithms of a convolution's passes as text, which the record of a run keeps, and the choice
// among the algorithms that cuDNN has measured. It does not use CUDA, so that both can be tested
// without a GPU.
//   cuDNN forward algorithm 1 on tensor cores, backward data algorithm 4, backward weights ...
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/sdk.h"

namespace tandem::cuda {

// The arithmetic that an algorithm may use: all bits of float32, cuDNN's default (TF32 on Ampere
// and newer), or tensor cores.
enum class ConvolutionMath { full, by_default, tensor };
constexpr std::array<const char*, 3> math_texts{"", " by default arithmetic", " on tensor cores"};

struct ConvolutionAlgorithm {
  int number = 0;  // cuDNN's number within its pass
  ConvolutionMath math = ConvolutionMath::full;
  bool operator==(const ConvolutionAlgorithm&) const = default;
};

// The layer's passes. A binding may have only some of them. For a deconvolution they differ from
// cuDNN's.
constexpr std::array<const char*, 3> pass_names{"forward", "backward data", "backward weights"};
using ConvolutionAlgorithms = std::array<std::optional<ConvolutionAlgorithm>, 3>;

// The arguments of prepare(): an algorithm of an earlier run, or permission to measure.
struct ConvolutionChoice {
  const char* recorded = nullptr;
  bool may_measure = false;

  [[nodiscard]] bool is_measured() const { return recorded != nullptr || may_measure; }
};

// The text of measured algorithms begins and ends with these. The suffix means that cuDNN's model
// had to choose after all; the host reports it (plugins/abi/layers.h).
constexpr std::string_view measured_prefix = "measured: ", by_model_suffix = "; by a model";

inline std::string text_of(const ConvolutionAlgorithms& algorithms, bool is_measured,
                           bool is_by_model = false) {
  std::string text = (is_measured ? std::string(measured_prefix) : "") + "cuDNN";
  bool is_first = true;
  for (size_t pass = 0; pass < algorithms.size(); ++pass) {
    if (!algorithms[pass]) continue;
    text +=
        sdk::text(is_first ? " " : ", ", pass_names[pass], " algorithm ", algorithms[pass]->number,
                  math_texts[static_cast<size_t>(algorithms[pass]->math)]);
    is_first = false;
  }
  if (is_measured && is_by_model) text += by_model_suffix;
  return text;
}

namespace detail {

inline bool take(std::string_view& text, std::string_view beginning) {
  if (!text.starts_with(beginning)) return false;
  text.remove_prefix(beginning.size());
  return true;
}

inline std::optional<ConvolutionAlgorithm> take_algorithm(std::string_view& text) {
  ConvolutionAlgorithm algorithm;
  if (!take(text, " algorithm ")) return {};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), algorithm.number);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (take(text, math_texts[1])) algorithm.math = ConvolutionMath::by_default;
  if (take(text, math_texts[2])) algorithm.math = ConvolutionMath::tensor;
  return algorithm;
}

}  // namespace detail

// Reads the text that text_of() wrote for measured algorithms. Throws Refusal for any other text.
inline ConvolutionAlgorithms read_algorithms(const char* recorded) {
  std::string_view text(recorded);
  if (text.ends_with(by_model_suffix)) text.remove_suffix(by_model_suffix.size());
  ConvolutionAlgorithms result;
  bool is_good = detail::take(text, measured_prefix) && detail::take(text, "cuDNN ");
  while (is_good) {
    size_t pass = 0;
    while (pass < pass_names.size() && !detail::take(text, pass_names[pass])) ++pass;
    is_good = pass < pass_names.size() && !result[pass];
    if (is_good) is_good = (result[pass] = detail::take_algorithm(text)).has_value();
    if (text.empty() || !is_good) break;
    is_good = detail::take(text, ", ");
  }
  if (is_good) return result;
  throw sdk::invalid("the recorded algorithm '", recorded,
                     "' is not one of cuDNN's, which look like '", measured_prefix,
                     "cuDNN forward algorithm 1, backward data algorithm 1'");
}

// One of cuDNN's results of measuring.
struct MeasuredAlgorithm {
  ConvolutionAlgorithm algorithm;
  bool works = false, is_deterministic = false;
  double milliseconds = 0;
  int64_t bytes = 0;  // of scratch memory
};

// The fastest that works, always gives the same bits, and needs at most `most_bytes`; the first one
// of equal ones. An algorithm may occur several times, once for each measurement. `full`: only
// those measured with all bits of float32, even if cuDNN has tried others.
inline std::optional<ConvolutionAlgorithm> fastest(const std::vector<MeasuredAlgorithm>& measured,
                                                   int64_t most_bytes, bool full = false) {
  const MeasuredAlgorithm* best = nullptr;
  for (const MeasuredAlgorithm& one : measured) {
    if (!one.works || !one.is_deterministic || one.bytes > most_bytes) continue;
    if (full && one.algorithm.math != ConvolutionMath::full) continue;
    if (!(one.milliseconds >= 0)) continue;
    if (best == nullptr || one.milliseconds < best->milliseconds) best = &one;
  }
  return best == nullptr ? std::nullopt : std::optional(best->algorithm);
}

}  // namespace tandem::cuda
