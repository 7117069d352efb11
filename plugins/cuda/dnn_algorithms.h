// The algorithms of a convolution's passes: as text, which the record of a run keeps, and which of
// cuDNN's engines may be chosen. An algorithm is one of cuDNN's engines and the values of its
// knobs. This file does not use CUDA, so that it can be tested without a GPU.
//   cuDNN forward engine 62 with bias on tensor cores (2=130, 13=64), backward data engine 1
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

struct Knob {
  int64_t type = 0, value = 0;  // by cuDNN's numbers
  bool operator==(const Knob&) const = default;
};

struct ConvolutionAlgorithm {
  int64_t engine = 0;  // cuDNN's number within its pass
  bool on_tensor_cores = false;
  std::vector<Knob> knobs{};
  bool adds_bias = false;  // in its kernel, and rectifies where a ReLU is fused
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

// What cuDNN says of an engine, most of it of its results.
struct EngineNotes {
  bool is_deterministic = true;
  bool on_tensor_cores = false;  // for float32: the products are TF32
  bool converts_inputs = false;  // to fewer bits than TF32 has
  bool sums_in_16_bits = false;
  // Preparing it takes seconds, in which its kernels are compiled.
  bool compiles_at_run_time = false;
};

// Whether the arithmetic is what the user asked for. `full`: all bits of float32. Conversion to
// fewer bits is never allowed, since nobody can ask for it.
constexpr bool may_use_arithmetic(const EngineNotes& notes, bool full) {
  return !notes.converts_inputs && !notes.sums_in_16_bits && !(full && notes.on_tensor_cores);
}
constexpr bool is_usable(const EngineNotes& notes, bool full) {
  return notes.is_deterministic && may_use_arithmetic(notes, full);
}

// The text of measured algorithms begins and ends with these. The suffix means that cuDNN's model
// had to choose after all; the host reports it (plugins/abi/layers.h).
constexpr std::string_view measured_prefix = "measured: ", by_model_suffix = "; by a model";
constexpr std::string_view engine_word = " engine ", bias_words = " with bias",
                           tensor_cores_words = " on tensor cores";

inline std::string text_of(const ConvolutionAlgorithm& algorithm) {
  std::string text = std::to_string(algorithm.engine);
  if (algorithm.adds_bias) text += bias_words;
  if (algorithm.on_tensor_cores) text += tensor_cores_words;
  for (const Knob& knob : algorithm.knobs) {
    text += sdk::text(&knob == algorithm.knobs.data() ? " (" : ", ", knob.type, "=", knob.value);
  }
  return algorithm.knobs.empty() ? text : text + ")";
}

inline std::string text_of(const ConvolutionAlgorithms& algorithms, bool is_measured,
                           bool is_by_model = false) {
  std::string text = (is_measured ? std::string(measured_prefix) : "") + "cuDNN";
  bool is_first = true;
  for (size_t pass = 0; pass < algorithms.size(); ++pass) {
    if (!algorithms[pass]) continue;
    text +=
        sdk::text(is_first ? " " : ", ", pass_names[pass], engine_word, text_of(*algorithms[pass]));
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

inline bool take_number(std::string_view& text, int64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc();
}

inline std::optional<ConvolutionAlgorithm> take_algorithm(std::string_view& text) {
  ConvolutionAlgorithm algorithm;
  if (!take(text, engine_word) || !take_number(text, algorithm.engine)) return {};
  algorithm.adds_bias = take(text, bias_words);
  algorithm.on_tensor_cores = take(text, tensor_cores_words);
  if (!take(text, " (")) return algorithm;
  do {
    Knob& knob = algorithm.knobs.emplace_back();
    if (!take_number(text, knob.type) || !take(text, "=") || !take_number(text, knob.value)) {
      return {};
    }
  } while (take(text, ", "));
  if (!take(text, ")")) return {};
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
                     "cuDNN forward engine 62 on tensor cores (2=130), backward data engine 1'");
}

// The most scratch memory that an engine may need, by the memory of the whole GPU: a 64th, from 256
// MiB to 1 GiB. Which engines fit must be the same on all GPUs of a kind, and with it the bits that
// they give. So it does not depend on what is free, and has steps, since drivers keep more or less
// of the memory for themselves.
constexpr int64_t scratch_limit(int64_t gpu_bytes) {
  constexpr int64_t step = int64_t{128} << 20, least = 2 * step, most = 8 * step;
  return std::clamp((gpu_bytes / 64 + step - 1) / step * step, least, most);
}

// What the order of measuring needs to know of an entry of cuDNN's list.
struct ListedEngine {
  int64_t engine = 0;
  bool takes_long = false;  // to prepare, because it compiles, or to run
};

// The order in which engines are measured, as indices, if not all of them are: the first ones of
// cuDNN's list, then the first one of each other engine, then the rest; last those that take long.
// cuDNN lists an engine many times with other knobs, and its model is often wrong about an engine
// as a whole.
inline std::vector<size_t> measuring_order(const std::vector<ListedEngine>& engines) {
  constexpr size_t trusted = 3;
  std::vector<size_t> order, rest, slow;
  std::vector<int64_t> seen;
  for (size_t i = 0; i < engines.size(); ++i) {
    const auto [engine, takes_long] = engines[i];
    if (takes_long) {
      slow.push_back(i);
      continue;
    }
    const bool is_new = std::find(seen.begin(), seen.end(), engine) == seen.end();
    (seen.size() < trusted || is_new ? order : rest).push_back(i);
    seen.push_back(engine);
  }
  order.insert(order.end(), rest.begin(), rest.end());
  order.insert(order.end(), slow.begin(), slow.end());
  return order;
}

// The index of the shortest time, the first one of equal ones; none if no time is valid (negative:
// it did not run). An algorithm that was measured several times has its shortest time.
inline std::optional<size_t> fastest(const std::vector<double>& milliseconds) {
  std::optional<size_t> best;
  for (size_t i = 0; i < milliseconds.size(); ++i) {
    if (!(milliseconds[i] >= 0)) continue;
    if (!best || milliseconds[i] < milliseconds[*best]) best = i;
  }
  return best;
}

}  // namespace tandem::cuda
