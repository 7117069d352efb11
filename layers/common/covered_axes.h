// The parameters `axis` and `num_axes` of Scale and Bias, and the axes that a second input covers.
// Axes are those of N, C, H, W.
#pragma once

#include <vector>

#include "layers/common/broadcast.h"
#include "plugins/sdk.h"

namespace tandem::layers {

inline std::vector<sdk::Parameter> covered_axes_parameters(const char* block) {
  return {
      sdk::integer(block, "axis")
          .by_default("1")
          .range(-4, 3)
          .help("the first covered axis; 1: channels; a negative one counts from the last"),
      sdk::integer(block, "num_axes")
          .by_default("1")
          .range(-1, 4)
          .help("number of covered axes; -1: all from axis on; 0: none, one value for all"),
  };
}

// The axes of trained values. Throws Refusal.
inline CoveredAxes axes_of_weights(const sdk::Attributes& attributes, const sdk::Shape& input) {
  CoveredAxes axes{attributes.integer("axis"), attributes.integer("num_axes")};
  if (axes.count == 0) return {1, 0};
  if (axes.first < 0) {
    if (input.h == 1 && input.w == 1) {
      throw sdk::invalid("axis ", axes.first, " counts from the last axis, but this ",
                         sdk::text_of(input), " input may have two axes or four: write axis 1");
    }
    axes.first += 4;
  }
  if (axes.first == 0) {
    throw sdk::invalid(
        "axis 0 is the batch, whose rows cannot have their own weights: begin at axis 1");
  }
  if (axes.count < 0) axes.count = 4 - axes.first;
  if (axes.end() > 4) {
    throw sdk::invalid("num_axes ", axes.count, " from axis ", axes.first,
                       " on exceeds the 4 axes of its input ", sdk::text_of(input));
  }
  return axes;
}

// The axes of the values in a second input: those of its shape without the trailing ones of extent
// 1. They must be the first axes of input 0. Throws Refusal.
inline CoveredAxes axes_of_input(const sdk::Attributes& attributes, const sdk::Shape& input,
                                 const sdk::Shape& values) {
  const int64_t axis = attributes.integer("axis");
  if (axis != 0 && axis != -4) {
    throw sdk::unsupported("axis is ", axis,
                           ", but with two inputs it must be 0: each row of the "
                           "batch has its own values");
  }
  const int64_t extents[4] = {input.n, input.c, input.h, input.w};
  const int64_t others[4] = {values.n, values.c, values.h, values.w};
  CoveredAxes axes{0, 4};
  while (axes.count > 1 && others[axes.count - 1] == 1) --axes.count;
  for (int64_t i = 0; i < axes.count; ++i) {
    if (extents[i] == others[i]) continue;
    throw sdk::invalid("input 1 is ", sdk::text_of(values),
                       ", which does not match the first axes of input 0, ", sdk::text_of(input));
  }
  return axes;
}

inline CoveredAxes axes_of(const sdk::Query& query) {
  return query.input_count() == 1 ? axes_of_weights(query.attributes, query.input(0))
                                  : axes_of_input(query.attributes, query.input(0), query.input(1));
}
inline CoveredAxes axes_of(const sdk::Binding& binding) {
  return binding.input_count() == 1
             ? axes_of_weights(binding.attributes, binding.input(0).shape)
             : axes_of_input(binding.attributes, binding.input(0).shape, binding.input(1).shape);
}

// The shape of a weight: the extents of the covered axes, then ones.
inline sdk::Shape shape_of_weight(const sdk::Shape& input, const CoveredAxes& axes) {
  const int64_t extents[4] = {input.n, input.c, input.h, input.w};
  int64_t shape[4] = {1, 1, 1, 1};
  for (int64_t i = 0; i < axes.count; ++i) shape[i] = extents[axes.first + i];
  return {shape[0], shape[1], shape[2], shape[3]};
}

inline sdk::LayoutOptions layouts_for(const sdk::Binding& binding) {
  if (axes_of(binding).fits_any_layout()) return sdk::any_layout(binding.input(0).shape.c);
  return {{TANDEM_NCHW, TANDEM_NCHW, 0}};
}

}  // namespace tandem::layers
