#include "layers/inner_product/input_gradient.h"

#include <algorithm>
#include <atomic>

#include "plugins/cpu/team.h"

namespace tandem::layers {

namespace {

// The copied weights and the sums of 128 rows fill most of an L2 cache of 512 KiB.
constexpr int64_t panels_at_a_time = 16, outputs_at_a_time = 128;

}  // namespace

// oneDNN's product of up to some 260 rows reads the weights where they lie. If the distance of
// their rows is a multiple of 2 KiB, the values of a column share few places of a cache, and it
// reaches two fifths of the multiply-adds. With few rows or outputs the copy takes longer than that
// costs. With AVX-512 oneDNN's is faster: 53 ms for AlexNet's fc6 and 128 rows, 61 by panels.
std::unique_ptr<InputGradient> InputGradient::make(const ProductExtents& extents, int32_t threads) {
  constexpr int64_t enough_rows = 32, max_rows = 256, enough_inputs = 1024, enough_outputs = 64;
  constexpr int64_t shared_places = 512, avx2_lanes = 8;
  const int64_t lanes = vector_products::kernels().lanes;
  const bool suits = lanes == avx2_lanes && extents.weight_stride % shared_places == 0 &&
                     extents.rows >= enough_rows && extents.rows <= max_rows &&
                     extents.inputs >= enough_inputs && extents.inputs % lanes == 0 &&
                     extents.outputs >= enough_outputs;
  return std::unique_ptr<InputGradient>(suits ? new InputGradient(extents, threads) : nullptr);
}

InputGradient::InputGradient(const ProductExtents& extents, int32_t threads)
    : kernels_(vector_products::kernels()), e_(extents), slots_(std::max(1, threads)) {
  for (int64_t row = 0; row < e_.rows; ++row) rows_.push_back(row * e_.output_stride);
}

int64_t InputGradient::panels() const {
  const int64_t columns = kernels_.panel * kernels_.lanes;
  return (e_.inputs + columns - 1) / columns;
}

// Panels whose widths differ by at most one vector.
int64_t InputGradient::first_column(int64_t panel) const {
  return panel * (e_.inputs / kernels_.lanes) / panels() * kernels_.lanes;
}

int64_t InputGradient::block_columns() const {
  return panels_at_a_time * kernels_.panel * kernels_.lanes;
}

int64_t InputGradient::scratch_bytes() const {
  return slots_ * block_columns() * (outputs_at_a_time + e_.rows) *
         static_cast<int64_t>(sizeof(float));
}

std::string InputGradient::name() const {
  return sdk::text("panels of weights, ", kernels_.instructions);
}

// A panel's columns of all outputs become contiguous. The rows of the weights are pages apart, so
// that the processor does not see which it should fetch next.
void InputGradient::copy_weights(const float* weights, int64_t outputs, const Panels& panels,
                                 float* copied) const {
  constexpr int64_t ahead = 4, line = 16;
  const int64_t begin = first_column(panels.begin), end = first_column(panels.end);
  for (int64_t output = 0; output < outputs; ++output) {
    const float* source = weights + output * e_.weight_stride;
    const float* next = weights + std::min(output + ahead, outputs - 1) * e_.weight_stride;
    for (int64_t i = begin; i < end; i += line) {
      __builtin_prefetch(next + i);
    }
    float* target = copied;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t first = first_column(panel), width = first_column(panel + 1) - first;
      std::copy_n(source + first, width, target + output * width);
      target += outputs * width;
    }
  }
}

void InputGradient::multiply(const Panels& panels, const float* dy, const float* weights, float* dx,
                             float* scratch) const {
  float* sums = scratch + block_columns() * outputs_at_a_time;
  for (int64_t first = 0; first < e_.outputs; first += outputs_at_a_time) {
    const int64_t outputs = std::min(outputs_at_a_time, e_.outputs - first);
    copy_weights(weights + first * e_.weight_stride, outputs, panels, scratch);
    const float* copied = scratch;
    float* target = sums;
    for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
      const int64_t width = first_column(panel + 1) - first_column(panel);
      kernels_.multiply({dy + first, 0, 1, rows_.data(), e_.rows, copied, 0, width, kernels_.lanes,
                         1, outputs, width / kernels_.lanes, target, first > 0});
      copied += outputs * width;
      target += e_.rows * width;
    }
  }
  store(panels, sums, dx);
}

void InputGradient::store(const Panels& panels, const float* sums, float* dx) const {
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const int64_t first = first_column(panel), width = first_column(panel + 1) - first;
    for (int64_t row = 0; row < e_.rows; ++row, sums += width) {
      std::copy_n(sums, width, dx + row * e_.inputs + first);
    }
  }
}

void InputGradient::run(int32_t threads, const float* dy, const float* weights, float* dx,
                        float* scratch) const {
  const int64_t most = (panels() + panels_at_a_time - 1) / panels_at_a_time;
  const int64_t slots = std::min<int64_t>({slots_, std::max(1, threads), panels()});
  const int64_t blocks = std::min((most + slots - 1) / slots * slots, panels());
  const int64_t slot_floats = block_columns() * (outputs_at_a_time + e_.rows);
  std::atomic<int64_t> next = 0;
  cpu::for_parts(threads, slots, [&](int64_t slot) {
    for (int64_t block = next++; block < blocks; block = next++) {
      multiply({block * panels() / blocks, (block + 1) * panels() / blocks}, dy, weights, dx,
               scratch + slot * slot_floats);
    }
  });
}

}  // namespace tandem::layers
