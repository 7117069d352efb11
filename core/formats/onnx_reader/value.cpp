#include "core/formats/onnx_reader/value.h"

#include <algorithm>
#include <numeric>

namespace tandem {

int64_t OnnxNetValue::product(const std::vector<size_t>& some) const {
  int64_t result = 1;
  for (const size_t factor : some) result *= factors[factor];
  return result;
}

int64_t OnnxNetValue::extent(size_t axis) const {
  return product(axes[axis]);
}

std::vector<int64_t> OnnxNetValue::extents() const {
  std::vector<int64_t> result;
  for (const auto& axis : axes) result.push_back(product(axis));
  return result;
}

int64_t OnnxNetValue::count() const {
  return net[0] * net[1] * net[2];
}

std::vector<size_t> OnnxNetValue::order() const {
  std::vector<size_t> all(axes.size());
  std::iota(all.begin(), all.end(), 0);
  return factors_of(all);
}

bool OnnxNetValue::is_plain() const {
  const std::vector<size_t> all = order();
  return std::is_sorted(all.begin(), all.end());
}

std::vector<size_t> OnnxNetValue::factors_of(const std::vector<size_t>& some_axes) const {
  std::vector<size_t> result;
  for (const size_t axis : some_axes) {
    result.insert(result.end(), axes[axis].begin(), axes[axis].end());
  }
  return result;
}

std::vector<size_t> OnnxNetValue::factors_without(const std::vector<size_t>& some) const {
  std::vector<size_t> result;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (std::find(some.begin(), some.end(), i) == some.end()) result.push_back(i);
  }
  return result;
}

void OnnxNetValue::divide(size_t factor, int64_t first) {
  const int64_t second = factors[factor] / first;
  factors[factor] = first;
  factors.insert(factors.begin() + int64_t(factor) + 1, second);
  for (std::vector<size_t>& axis : axes) {
    for (size_t i = 0; i < axis.size(); ++i) {
      if (axis[i] > factor) {
        ++axis[i];
      } else if (axis[i] == factor) {
        axis.insert(axis.begin() + int64_t(i) + 1, factor + 1);
        ++i;
      }
    }
  }
}

void OnnxNetValue::reorder(const std::vector<size_t>& new_order) {
  std::vector<int64_t> moved;
  std::vector<size_t> place(factors.size());
  for (size_t i = 0; i < new_order.size(); ++i) {
    moved.push_back(factors[new_order[i]]);
    place[new_order[i]] = i;
  }
  factors = std::move(moved);
  for (std::vector<size_t>& axis : axes) {
    for (size_t& factor : axis) factor = place[factor];
  }
}

void OnnxNetValue::set_plain(const std::vector<int64_t>& extents) {
  factors.clear();
  axes.clear();
  for (const int64_t extent : extents) {
    axes.emplace_back();
    if (extent == 1) continue;
    axes.back().push_back(factors.size());
    factors.push_back(extent);
  }
}

bool OnnxNetValue::reshape(const std::vector<int64_t>& extents) {
  if (is_plain()) {
    set_plain(extents);
    return true;
  }
  OnnxNetValue result = *this;
  result.axes = {order()};  // one axis, so that factors that are divided stay in their order
  std::vector<size_t> sizes;
  size_t next = 0;
  for (const int64_t extent : extents) {
    int64_t left = extent;
    const size_t begin = next;
    while (left > 1) {
      const size_t factor = result.axes[0].at(next);
      if (left % result.factors[factor] == 0) {
        left /= result.factors[factor];
      } else if (result.factors[factor] % left == 0) {
        result.divide(factor, left);
        left = 1;
      } else {
        return false;
      }
      ++next;
    }
    sizes.push_back(next - begin);
  }
  const std::vector<size_t> all = result.axes[0];
  result.axes.clear();
  auto from = all.begin();
  for (const size_t size : sizes) {
    result.axes.emplace_back(from, from + int64_t(size));
    from += int64_t(size);
  }
  *this = std::move(result);
  return true;
}

bool divide_alike(OnnxNetValue& a, OnnxNetValue& b, const std::vector<size_t>& some_axes) {
  for (const size_t axis : some_axes) {
    for (size_t i = 0; i < a.axes[axis].size() || i < b.axes[axis].size(); ++i) {
      const size_t in_a = a.axes[axis].at(i), in_b = b.axes[axis].at(i);
      const int64_t of_a = a.factors[in_a], of_b = b.factors[in_b];
      if (of_a == of_b) continue;
      if (of_a % of_b == 0) {
        a.divide(in_a, of_b);
      } else if (of_b % of_a == 0) {
        b.divide(in_b, of_a);
      } else {
        return false;
      }
    }
  }
  return true;
}

}  // namespace tandem
