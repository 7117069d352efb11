// The normalization of losses: the divisor of the sum over the batch. The host knows the number of
// samples of the whole batch. Labels that count are counted by a statistics pass, so that the
// divisor is the same on any number of devices.
#pragma once

#include <algorithm>
#include <vector>

#include "plugins/sdk.h"

namespace tandem::layers {

enum class Normalization { full, valid, batch_size, none };

// loss_param, for losses with ignored labels.
inline std::vector<sdk::Parameter> loss_parameters(const char* normalization) {
  return {
      sdk::integer("loss_param", "ignore_label").help("elements with this label do not count"),
      sdk::boolean("loss_param", "normalize").help("older form: VALID if true, else BATCH_SIZE"),
      sdk::word("loss_param", "normalization")
          .by_default(normalization)
          .one_of("FULL|VALID|BATCH_SIZE|NONE")
          .help("divide by all labels, those that count, the samples, or 1"),
  };
}

inline Normalization normalization_of(const sdk::Attributes& attributes) {
  if (attributes.is_set("normalize") && !attributes.is_set("normalization")) {
    return attributes.boolean("normalize") ? Normalization::valid : Normalization::batch_size;
  }
  const std::string_view word = attributes.text("normalization");
  if (word == "FULL") return Normalization::full;
  if (word == "VALID") return Normalization::valid;
  return word == "NONE" ? Normalization::none : Normalization::batch_size;
}

// True if the labels that count must be counted. Then there is one float of forward statistics.
inline bool counts_labels(const sdk::Attributes& attributes) {
  return attributes.is_set("ignore_label") && normalization_of(attributes) == Normalization::valid;
}

class Normaliser {
 public:
  // `labels`: per sample.
  Normaliser(const sdk::Attributes& attributes, int64_t labels)
      : how_(normalization_of(attributes)),
        counts_(counts_labels(attributes)),
        labels_(static_cast<double>(labels)) {}

  [[nodiscard]] bool counts() const { return counts_; }
  // For forward. At least 1, so that the loss of a batch in which nothing counts is 0.
  [[nodiscard]] double divisor(const sdk::Pass& pass) const {
    return std::max(1.0, unbounded(pass));
  }

 private:
  [[nodiscard]] double unbounded(const sdk::Pass& pass) const {
    const double samples = pass.normaliser();
    switch (how_) {
      case Normalization::valid:
        return counts_ ? static_cast<double>(pass.statistics()[0]) : samples * labels_;
      case Normalization::full:
        return samples * labels_;
      case Normalization::batch_size:
        return samples;
      case Normalization::none:
        return 1;
    }
    return 1;
  }

  Normalization how_;
  bool counts_;
  double labels_;
};

// Refuses inputs with different numbers of rows, or of values in a row.
inline void require_pairs(const sdk::Shape& a, const sdk::Shape& b, const char* what) {
  if (a.n == b.n && sdk::count(a) == sdk::count(b)) return;
  throw sdk::invalid("needs one ", what, " for each of the ", sdk::text_of(a),
                     " values, but its second input is ", sdk::text_of(b));
}

}  // namespace tandem::layers
