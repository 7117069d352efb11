#include "layers/common/matrix_product.h"

#include <algorithm>

#include "plugins/cpu/team.h"
#include "plugins/sdk.h"

namespace tandem::layers {
namespace {

// The copied columns and the sums of all rows fill some 256 KiB of an L2 cache, and the vectors of
// a panel a third of an L1 cache.
constexpr int64_t rows_at_a_time = 128, columns_at_a_time = 192, steps_at_a_time = 256;

int64_t divide_up(int64_t count, int64_t by) {
  return (count + by - 1) / by;
}

}  // namespace

MatrixProduct::MatrixProduct(const Extents& extents, int32_t threads, int64_t count)
    : kernels_(&vector_products::kernels()),
      e_(extents),
      slots_(std::max(1, threads)),
      count_(count) {
  for (int64_t i = 0; i < std::min(rows_at_a_time, e_.m); ++i) rows_.push_back(i * e_.a.row);
}

int64_t MatrixProduct::panels() const {
  return divide_up(e_.n, kernels_->panel * kernels_->lanes);
}

// Panels whose widths differ by at most one vector.
MatrixProduct::Columns MatrixProduct::columns_of(int64_t panel) const {
  const int64_t chunks = divide_up(e_.n, kernels_->lanes);
  const int64_t first = panel * chunks / panels() * kernels_->lanes;
  const int64_t last = (panel + 1) * chunks / panels() * kernels_->lanes;
  return {first, std::min(last, e_.n) - first, last - first};
}

int64_t MatrixProduct::panels_at_a_time() const {
  return std::max<int64_t>(1, columns_at_a_time / (kernels_->panel * kernels_->lanes));
}

int64_t MatrixProduct::block_columns() const {
  return std::min(panels_at_a_time(), panels()) * kernels_->panel * kernels_->lanes;
}

int64_t MatrixProduct::slot_floats() const {
  return block_columns() * (std::min(steps_at_a_time, e_.k) + std::min(rows_at_a_time, e_.m));
}

int64_t MatrixProduct::scratch_bytes() const {
  return slots_ * slot_floats() * static_cast<int64_t>(sizeof(float));
}

std::string MatrixProduct::name() const {
  return sdk::text("product by vectors of columns, ", kernels_->instructions);
}

void MatrixProduct::run(int32_t threads, const float* a, const float* b, float* c, bool adds,
                        float* scratch) const {
  const int64_t row_blocks = divide_up(e_.m, rows_at_a_time);
  const int64_t panel_blocks = divide_up(panels(), panels_at_a_time());
  const int64_t units = count_ * row_blocks * panel_blocks;
  const int64_t slots = std::min<int64_t>({slots_, std::max(1, threads), units});
  cpu::for_parts(threads, slots, [&](int64_t slot) {
    for (int64_t unit = slot * units / slots; unit < (slot + 1) * units / slots; ++unit) {
      const int64_t matrix = unit / panel_blocks / row_blocks, panel = unit % panel_blocks;
      const int64_t row = unit / panel_blocks % row_blocks * rows_at_a_time;
      const Block block{row, std::min(rows_at_a_time, e_.m - row), panel * panels() / panel_blocks,
                        (panel + 1) * panels() / panel_blocks};
      multiply(block, a + matrix * e_.m * e_.k, b + matrix * e_.k * e_.n, c + matrix * e_.m * e_.n,
               adds, scratch + slot * slot_floats());
    }
  });
}

void MatrixProduct::multiply(const Block& block, const float* a, const float* b, float* c,
                             bool adds, float* slot) const {
  const int64_t lanes = kernels_->lanes;
  // With few rows, the copy of whole vectors would take longer than their products.
  constexpr int64_t few_rows = 16;
  const bool reads_in_place = e_.b.column == 1 && block.rows <= few_rows;
  float* all_sums = slot + block_columns() * std::min(steps_at_a_time, e_.k);
  for (int64_t step = 0; step < e_.k; step += steps_at_a_time) {
    const int64_t steps = std::min(steps_at_a_time, e_.k - step);
    float *copied = slot, *sums = all_sums;
    for (int64_t panel = block.first_panel; panel < block.last_panel; ++panel) {
      const Columns columns = columns_of(panel);
      const float* vectors = b + step * e_.b.row + columns.first * e_.b.column;
      int64_t distance = e_.b.row;
      if (!reads_in_place || columns.count < columns.width) {
        copy(columns, steps, vectors, copied);
        vectors = copied;
        distance = columns.width;
      }
      kernels_->multiply({a + block.first_row * e_.a.row + step * e_.a.column, 0, e_.a.column,
                          rows_.data(), block.rows, vectors, 0, distance, lanes, 1, steps,
                          columns.width / lanes, sums, step > 0});
      copied += steps * columns.width;
      sums += block.rows * columns.width;
    }
  }
  store(block, all_sums, adds, c);
}

// Steps of a panel's columns, from the first one's value on.
void MatrixProduct::copy(const Columns& columns, int64_t steps, const float* b,
                         float* copied) const {
  const int64_t count = columns.count;
  for (int64_t i = 0; i < steps; ++i, b += e_.b.row, copied += columns.width) {
    if (e_.b.column == 1) {
      std::copy_n(b, count, copied);
    } else {
      for (int64_t k = 0; k < count; ++k) copied[k] = b[k * e_.b.column];
    }
    std::fill(copied + count, copied + columns.width, 0.0F);
  }
}

void MatrixProduct::store(const Block& block, const float* sums, bool adds, float* c) const {
  for (int64_t panel = block.first_panel; panel < block.last_panel; ++panel) {
    const Columns columns = columns_of(panel);
    for (int64_t row = 0; row < block.rows; ++row, sums += columns.width) {
      float* target = c + (block.first_row + row) * e_.c.row + columns.first * e_.c.column;
      if (e_.c.column == 1) {
        for (int64_t i = 0; i < columns.count; ++i) {
          target[i] = adds ? target[i] + sums[i] : sums[i];
        }
      } else {
        for (int64_t i = 0; i < columns.count; ++i) {
          float& value = target[i * e_.c.column];
          value = adds ? value + sums[i] : sums[i];
        }
      }
    }
  }
}

}  // namespace tandem::layers
