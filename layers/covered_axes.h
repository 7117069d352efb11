// The parameters `axis` and `num_axes` of Scale and Bias, and what a second input covers. Axes are
// those of N, C, H, W.
#pragma once

#include <vector>

#include "layers/broadcast.h"
#include "plugins/sdk.h"

namespace tandem::layers {

inline std::vector<sdk::Parameter> covered_axes_parameters(const char* block) {
  return {
      sdk::integer(block, "axis")
          .by_default("1")
          .range(-4, 3)
          .help("the first axis covered: 1 is the channels; below zero it counts from the last"),
      sdk::integer(block, "num_axes")
          .by_default("1")
          .range(-1, 4)
          .help("how many axes are covered; -1: all from axis on, 0: none, one value for all"),
  };
}

// Of one input and trained values. Throws Refusal.
inline CoveredAxes axes_of_weights(const sdk::Attributes& attributes, const sdk::Shape& input) {
  CoveredAxes axes{attributes.integer("axis"), attributes.integer("num_axes")};
  if (axes.count == 0) return {1, 0};
  if (axes.first < 0) {
    if (input.h == 1 && input.w == 1) {
      throw sdk::invalid("axis ", axes.first, " counts from the last axis, but whether this ",
                         sdk::text_of(input),
                         " input has two axes or four cannot be told: write axis 1");
    }
    axes.first += 4;
  }
  if (axes.first == 0) {
    throw sdk::invalid(
        "axis 0 is the batch, and its rows cannot have weights of their own: begin "
        "at axis 1");
  }
  if (axes.count < 0) axes.count = 4 - axes.first;
  if (axes.end() > 4) {
    throw sdk::invalid("num_axes ", axes.count, " from axis ", axes.first,
                       " on exceeds the 4 axes of its input ", sdk::text_of(input));
  }
  return axes;
}

// Of the values that a second input gives: its axes without the ones of extent 1 at its end, which
// must be the first axes of input 0. Throws Refusal.
inline CoveredAxes axes_of_input(const sdk::Attributes& attributes, const sdk::Shape& input,
                                 const sdk::Shape& values) {
  const int64_t axis = attributes.integer("axis");
  if (axis != 0 && axis != -4) {
    throw sdk::unsupported("axis is ", axis,
                           ", but with two inputs it must be 0: each row of the "
                           "batch has values of its own");
  }
  const int64_t extents[4] = {input.n, input.c, input.h, input.w};
  const int64_t others[4] = {values.n, values.c, values.h, values.w};
  CoveredAxes axes{0, 4};
  while (axes.count > 1 && others[axes.count - 1] == 1) --axes.count;
  for (int64_t i = 0; i < axes.count; ++i) {
    if (extents[i] == others[i]) continue;
    throw sdk::invalid("input 1 is ", sdk::text_of(values), ", which does not begin as input 0, ",
                       sdk::text_of(input), ", does");
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

// The extents of the covered axes, then ones, as the values of a weight are stored.
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
