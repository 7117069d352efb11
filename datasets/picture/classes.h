// The classes of a data set: which samples of each are held out for validation, and their numbers
// in a model, which every split finds by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugins/sdk.h"

namespace tandem::picture {

// What is held out for validation where nothing is given for it: a share, or one of several equal
// parts (cross-validation).
struct HeldOut {
  double fraction = 0.2;        // of a part: 1 / parts; 0 and 1 are nothing and all
  int64_t parts = 0, part = 0;  // 0 parts: the share; `part` is counted from 1
  // The parameters val_fraction and fold. Refusal for a fold that is none.
  static HeldOut of(const sdk::Attributes& attributes);
  // Neither nothing nor all.
  [[nodiscard]] bool is_share() const { return fraction > 0 && fraction < 1; }
  // Why not one image of any class is held out, and what to do.
  [[nodiscard]] std::string why_none() const;
  static void add_parameters(const char* block, std::vector<sdk::Parameter>& parameters);
};

// For each of `count` images of the class, in their order, whether it is held out: the rounded
// share of them, but at least one of two and never all, unless the fraction is 0 or 1. Every image
// is in one part. A pure function of the arguments.
[[nodiscard]] std::vector<bool> choose_held_out(const std::string& class_name, size_t count,
                                                const HeldOut& share, uint64_t seed);

// Which of the samples with these classes are held out, or, with `held_out` false, are not: their
// numbers by class, and within a class in their order.
[[nodiscard]] std::vector<size_t> part_of(const std::vector<int64_t>& labels,
                                          const std::vector<std::string>& class_names,
                                          const HeldOut& share, uint64_t seed, bool held_out);

// tandem_dataset_request::class_names as a list; empty for null.
[[nodiscard]] std::vector<std::string> lines_of(const char* text);
// The number of a class in the model. Refusal with near names if the model does not have it.
[[nodiscard]] int64_t model_class(const std::string& name, const std::vector<std::string>& model);

}  // namespace tandem::picture
