// Chooses the algorithm of each pass of a convolution, for dnn.h: the recorded one, the fastest
// measured one, or the first of cuDNN's own list. It always gives the same bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/dnn_measure.h"

namespace tandem::cuda::detail {

// The algorithm of one pass. The kind of arithmetic is part of cuDNN's description of the
// convolution.
template <class Algorithm>
struct ChosenConvolution {
  ConvolutionDescriptor window;
  bool is_wanted = false;
  Algorithm algorithm{};
  cudnnMathType_t math{};
  size_t bytes = 0;
};

class AlgorithmChooser {
 public:
  // The limit of an algorithm's scratch memory.
  static constexpr int64_t most_scratch = int64_t{256} << 20;

 protected:
  AlgorithmChooser(const sdk::Call& call, const ConvolutionShape& shape,
                   const ConvolutionKind& kind, const ConvolutionChoice& how)
      : kind_(kind), is_measured_(how.is_measured()) {
    if (how.recorded != nullptr) {
      recorded_text_ = how.recorded;
      recorded_ = read_algorithms(how.recorded);
    } else if (how.may_measure) {
      const auto bytes = [&](const tandem_shape& s) {
        return sdk::count(s) * (kind.dtype == TANDEM_FLOAT32 ? 4 : 2);
      };
      memory_ = std::make_unique<MeasuringMemory>(call, bytes(shape.x), bytes(shape.weight),
                                                  bytes(shape.y), most_scratch);
      // Training does not need this memory, so a lack of it is no reason to refuse.
      if (!memory_->has_room()) memory_.reset();
    }
  }
  // Frees the memory used for measuring.
  void has_chosen() { memory_.reset(); }

  // A use with fewer passes than the recorded one has the same record.
  [[nodiscard]] std::string text(const ConvolutionAlgorithms& algorithms) const {
    if (!recorded_text_.empty()) return recorded_text_;
    return text_of(algorithms, is_measured_, is_by_model_);
  }

  static void set_math(const ConvolutionDescriptor& window, cudnnMathType_t math) {
    check(cudnnSetConvolutionMathType(window.get(), math), "cudnnSetConvolutionMathType");
  }
  // The arithmetic that cuDNN is asked for: tensor cores for 16 bits. For float32 the default
  // arithmetic rounds to TF32, and FMA keeps all bits.
  [[nodiscard]] cudnnMathType_t wanted_math() const {
    if (kind_.dtype != TANDEM_FLOAT32) return CUDNN_TENSOR_OP_MATH;
    return kind_.allows_tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  }
  [[nodiscard]] bool keeps_all_bits() const { return wanted_math() == CUDNN_FMA_MATH; }
  // Whether this convolution may use the arithmetic of a result. Conversion of float32 to 16 bits
  // is not allowed, since the user has not asked for it.
  [[nodiscard]] bool may_use(cudnnMathType_t math) const {
    if (math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) return false;
    return !keeps_all_bits() || math != CUDNN_TENSOR_OP_MATH;
  }

  // The layer's pass, as an index into pass_names, for one of cuDNN's passes.
  [[nodiscard]] size_t layer_pass(size_t pass) const {
    return kind_.deconvolves && pass < 2 ? 1 - pass : pass;
  }
  template <class Algorithm>
  static ConvolutionAlgorithm of(const ChosenConvolution<Algorithm>& chosen) {
    return {static_cast<int>(chosen.algorithm), math_of(chosen.math)};
  }

  // Sets the pass's algorithm. False if cuDNN does not support it for these shapes, or not within
  // the scratch memory.
  template <class Algorithm, class Bytes>
  bool fits(ChosenConvolution<Algorithm>& chosen, Algorithm algorithm, cudnnMathType_t math,
            const Bytes& bytes_of) const {
    chosen.algorithm = algorithm;
    chosen.math = keeps_all_bits() ? CUDNN_FMA_MATH : math;
    set_math(chosen.window, chosen.math);
    return bytes_of(algorithm, &chosen.bytes) == CUDNN_STATUS_SUCCESS &&
           static_cast<int64_t>(chosen.bytes) <= most_scratch;
  }

  // Sets the recorded algorithm. Throws Refusal if it is not available.
  template <class Algorithm, class Bytes>
  void take_recorded(ChosenConvolution<Algorithm>& chosen, size_t pass,
                     std::initializer_list<Algorithm> not_deterministic, const Bytes& bytes_of) {
    const std::optional<ConvolutionAlgorithm>& given = (*recorded_)[layer_pass(pass)];
    const char* name = pass_names[layer_pass(pass)];
    if (!given) {
      throw sdk::invalid("the recorded algorithm '", recorded_text_, "' has none for the ", name,
                         " pass");
    }
    const auto algorithm = static_cast<Algorithm>(given->number);
    const cudnnMathType_t math = dnn_math(given->math);
    const bool is_deterministic = std::find(not_deterministic.begin(), not_deterministic.end(),
                                            algorithm) == not_deterministic.end();
    if (is_deterministic && may_use(math) && fits(chosen, algorithm, math, bytes_of)) return;
    throw sdk::unsupported(
        "cuDNN ", cudnnGetVersion(), " on ", current_device(), " cannot use the recorded ", name,
        " algorithm ", given->number, math_texts[static_cast<size_t>(given->math)],
        is_deterministic ? sdk::text(" for these shapes and this precision in ", most_scratch >> 20,
                                     " MiB of scratch memory")
                         : std::string(": it does not always give the same bits"));
  }

  // Sets the recorded or the fastest measured algorithm; false if cuDNN's model has to choose.
  template <class Algorithm, class Measure, class Bytes>
  bool chosen_already(ChosenConvolution<Algorithm>& chosen, size_t pass,
                      std::initializer_list<Algorithm> not_deterministic, const Measure& measure,
                      const Bytes& bytes_of) {
    if (recorded_) {
      take_recorded(chosen, pass, not_deterministic, bytes_of);
      return true;
    }
    const std::optional<ConvolutionAlgorithm> best =
        memory_ == nullptr ? std::nullopt
                           : fastest(measure(*memory_), most_scratch, keeps_all_bits());
    const bool is_chosen =
        best && fits(chosen, static_cast<Algorithm>(best->number), dnn_math(best->math), bytes_of);
    is_by_model_ = is_by_model_ || !is_chosen;
    return is_chosen;
  }

  // Sets the first usable one of the list, which is sorted by speed; else one of those that are
  // always usable.
  template <class Algorithm, class Candidate, size_t count, class Bytes>
  void choose(ChosenConvolution<Algorithm>& chosen, const std::array<Candidate, count>& candidates,
              int found, std::initializer_list<Algorithm> always, size_t pass,
              const Bytes& bytes_of) const {
    for (size_t i = 0; i < std::min(static_cast<size_t>(found), count); ++i) {
      const Candidate& candidate = candidates[i];
      if (candidate.status == CUDNN_STATUS_SUCCESS && may_use(candidate.mathType) &&
          candidate.determinism == CUDNN_DETERMINISTIC &&
          fits(chosen, candidate.algo, candidate.mathType, bytes_of)) {
        return;
      }
    }
    for (const Algorithm algorithm : always) {
      if (fits(chosen, algorithm, wanted_math(), bytes_of)) return;
    }
    throw sdk::unsupported("cuDNN has no deterministic ", pass_names[layer_pass(pass)],
                           " algorithm for these shapes in ", most_scratch >> 20,
                           " MiB of scratch memory", way_out());
  }
  [[nodiscard]] const char* way_out() const {
    if (kind_.dtype != TANDEM_FLOAT32) return ": use --precision tf32 or float32";
    return kind_.allows_tf32 ? ": use --precision float32" : "";
  }
  // A query with the result NOT_SUPPORTED has found nothing; the algorithms that are always usable
  // are still tried.
  static int found_by(cudnnStatus_t status, const int& found, const char* query) {
    if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return 0;
    check(status, query);
    return found;
  }

  template <class Answer, size_t count, class Find>
  [[nodiscard]] std::vector<MeasuredAlgorithm> measured(const char* query, const Find& find) const {
    return measure_algorithms<Answer, count>(
        query, find, [this](cudnnMathType_t math) { return may_use(math); });
  }

 private:
  ConvolutionKind kind_;
  bool is_measured_;          // now, or in an earlier run
  bool is_by_model_ = false;  // for a pass: nothing could be measured
  std::string recorded_text_;
  std::optional<ConvolutionAlgorithms> recorded_;
  std::unique_ptr<MeasuringMemory> memory_;  // during measuring
};

}  // namespace tandem::cuda::detail
