// The loops of a resampling: one row at a time, first down the picture's rows, then along the row,
// to floats or to bytes. The same bits whichever instruction set they were compiled for.
#pragma once

#include <array>
#include <cstddef>

#include "datasets/picture/axis.h"

namespace tandem::picture {

// How the values of one row become those of the result, by channel of the picture. Floats become
// (value - mean) * scale; bytes are only rounded.
template <class Value>
struct RowFinish {
  std::array<float, 4> mean{};
  float scale = 1;
  float inside_down = 1;
  bool limited = false;  // values are kept from 0 to 255, which negative weights may pass
  std::array<Value*, 3> planes{};
};

// The weighted sum of rows of the picture, before the resampling along the row.
void weigh_rows(const unsigned char* rows, std::ptrdiff_t stride, int length, const float* weights,
                int taps, float* result);

// Loading a pixel of `row` as a vector reads up to three values after it.
void finish_row(const float* row, const Axis& axis, int channels, const RowFinish<float>& how);
void finish_row(const float* row, const Axis& axis, int channels,
                const RowFinish<unsigned char>& how);

// The nearest bytes of values + added, ties to even.
void round_row(const float* values, std::ptrdiff_t count, float added, unsigned char* bytes);

// A channel of a row that needs no resampling: every value is a byte's.
void copy_row(const unsigned char* row, int count, int channels, int channel,
              const RowFinish<float>& how);
void copy_row(const unsigned char* row, int count, int channels, int channel,
              const RowFinish<unsigned char>& how);

}  // namespace tandem::picture
