#include "core/check/cases/known_types.h"

namespace tandem::checker {

const std::vector<Known>& known_types() {
  static const std::vector<Known> known{
      {"Convolution", {{"num_output", "4"}, {"kernel_size", "3"}, {"pad", "1"}}, {}},
      {"Convolution",
       {{"num_output", "16"}, {"kernel_size", "3"}, {"stride", "2"}, {"group", "2"}},
       {{3, 16, 7, 5}}},
      {"Deconvolution", {{"num_output", "4"}, {"kernel_size", "2"}, {"stride", "2"}}, {}},
      {"InnerProduct", {{"num_output", "6"}}, {}},
      {"Pooling", {{"kernel_size", "3"}, {"stride", "2"}, {"pad", "1"}}, {}},
      {"Pooling", {{"kernel_size", "2"}, {"pool", "AVE"}}, {{3, 4, 3, 5}, {2, 16, 4, 3}}},
      {"Embed", {{"input_dim", "7"}, {"num_output", "4"}}, {{3, 2, 1, 1}}, 1, {Values::indices}},
      {"Slice", {}, {{3, 4, 3, 5}}, 2},
      {"Clip", {{"min", "-0.7"}, {"max", "0.7"}}, {}},
      {"Crop", {{"offset", "1"}}, {{3, 4, 5, 7}, {3, 4, 3, 4}}},
      {"Reshape", {{"dim", "0"}, {"dim", "-1"}, {"dim", "1"}, {"dim", "1"}}, {{3, 4, 3, 5}}},
      {"Tile", {{"tiles", "2"}}, {{3, 4, 3, 5}}},
      {"Log", {}, {{3, 4, 3, 5}}, 1, {Values::positive}},
      {"Power", {{"power", "1.5"}, {"scale", "2"}}, {{3, 4, 3, 5}}, 1, {Values::positive}},
      {"Eltwise",
       {{"operation", "POW"}},
       {{3, 4, 3, 5}, {3, 4, 3, 5}},
       1,
       {Values::positive, Values::normal}},
      {"ContrastiveLoss",
       {},
       {{4, 6, 1, 1}, {4, 6, 1, 1}, {4, 1, 1, 1}},
       1,
       {Values::normal, Values::normal, Values::flags}},
      {"MultinomialLogisticLoss",
       {},
       {{4, 6, 1, 1}, {4, 1, 1, 1}},
       1,
       {Values::positive, Values::labels}},
      {"SigmoidCrossEntropyLoss",
       {},
       {{4, 6, 1, 1}, {4, 6, 1, 1}},
       1,
       {Values::normal, Values::flags}},
      {"Reduction", {{"axis", "1"}}, {}},
      {"Silence", {}, {{3, 4, 3, 5}}, 0},
  };
  return known;
}

std::vector<Values> values_of(const std::string& type, size_t inputs) {
  std::vector<Values> values;
  for (const Known& known : known_types()) {
    if (known.type == type && known.values.size() == inputs) values = known.values;
  }
  return values;
}

}  // namespace tandem::checker
