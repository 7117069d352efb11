// The order of a value's elements, and layers that move or repeat them.
#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/formats/onnx_reader/mapper.h"

namespace tandem {
namespace {

bool ascends(const std::vector<size_t>& factors) {
  for (size_t i = 1; i < factors.size(); ++i) {
    if (factors[i] != factors[i - 1] + 1) return false;
  }
  return true;
}

NetExtents first_three(std::vector<int64_t> extents) {
  extents.resize(std::max<size_t>(extents.size(), 3), 1);
  for (size_t i = 3; i < extents.size(); ++i) extents[2] *= extents[i];
  return {extents[0], extents[1], extents[2]};
}

}  // namespace

OnnxNetValue OnnxMapper::plain(OnnxNetValue value, const NetExtents& net) {
  const std::vector<size_t> order = value.order();
  return arranged(std::move(value), order, net);
}

OnnxNetValue OnnxMapper::arranged(OnnxNetValue value, const std::vector<size_t>& order,
                                  const NetExtents& net) {
  const bool moves = !ascends(order);
  if (!moves && value.net == net) return value;
  OnnxNetValue result = value;
  result.reorder(order);
  result.net = net;
  const std::string key = fmt::format("{} {} {} {}", value.top, fmt::join(value.factors, "x"),
                                      fmt::join(order, ","), fmt::join(net, "x"));
  if (const auto made = arranged_.find(key); made != arranged_.end()) {
    result.top = made->second.top;
    return result;
  }
  NetExtents made_net = value.net;
  if (moves) {
    // Factors that stay together are one axis.
    std::vector<int64_t> moved;                    // extents, in the new order
    std::vector<std::pair<size_t, size_t>> first;  // their first factor, and their place
    for (size_t i = 0; i < order.size(); ++i) {
      const int64_t extent = value.factors[order[i]];
      if (i > 0 && order[i] == order[i - 1] + 1) {
        moved.back() *= extent;
      } else {
        first.emplace_back(order[i], moved.size());
        moved.push_back(extent);
      }
    }
    std::vector<size_t> place(first.size());
    std::vector<int64_t> dims;
    std::sort(first.begin(), first.end());
    for (size_t i = 0; i < first.size(); ++i) {
      dims.push_back(moved[first[i].second]);
      place[first[i].second] = i;
    }
    Message& layer = add(value.top + "/permuted", "Permute", {value.top});
    Message& block = layer.add_block("permute_param");
    for (const int64_t dim : dims) block.add("dim", fmt::format("{}", dim));
    block.add("order", "0");
    for (const size_t axis : place) block.add("order", fmt::format("{}", axis + 1));
    value.top = layer.find("top")->text;
    made_net = first_three(moved);
  }
  if (made_net != net) {
    Message& layer = add(value.top + "/reshaped", "Reshape", {value.top});
    Message& shape = layer.add_block("reshape_param").add_block("shape");
    shape.add("dim", "0");
    for (const int64_t extent : net) shape.add("dim", fmt::format("{}", extent));
    value.top = layer.find("top")->text;
  }
  result.top = value.top;
  arranged_[key] = result;
  return result;
}

OnnxMapper::Exposed OnnxMapper::exposed(OnnxNetValue value, const std::vector<size_t>& factors,
                                        bool first) {
  const int64_t covered = value.product(factors);
  const std::vector<size_t> others = value.factors_without(factors);
  const bool is_together = ascends(factors) && (!first || factors.empty() || factors[0] == 0);
  if (!is_together || factors.empty()) {
    std::vector<size_t> order = factors;
    order.insert(order.end(), others.begin(), others.end());
    const NetExtents net = covered == value.net[0] && is_together
                               ? value.net
                               : NetExtents{covered, value.product(others), 1};
    return {arranged(std::move(value), order, net), 1, 1};
  }
  int64_t before = 1;
  for (size_t i = 0; i < factors[0]; ++i) before *= value.factors[i];
  std::vector<size_t> same(value.factors.size());
  std::iota(same.begin(), same.end(), 0);
  int64_t passed = 1;
  for (size_t axis = 0; axis < 3 && passed <= before; passed *= value.net[axis++]) {
    if (passed != before || (first && axis > 0)) continue;
    int64_t extent = 1;
    for (size_t end = axis; end < 3; ++end) {
      extent *= value.net[end];
      if (extent == covered && (!first || end == 0)) {
        return {std::move(value), int64_t(axis) + 1, int64_t(end - axis) + 1};
      }
    }
  }
  const int64_t after = value.count() / before / covered;
  const NetExtents net =
      before > 1 ? NetExtents{before, covered, after} : NetExtents{covered, after, 1};
  return {arranged(std::move(value), same, net), before > 1 ? 2 : 1, 1};
}

OnnxNetValue OnnxMapper::repeated(OnnxNetValue x, const std::vector<int64_t>& extents) {
  if (x.extents() == extents) return x;
  constexpr int64_t most = int64_t{1} << 31;
  if (count_of(extents, most) < 1) throw error("it repeats a value to {}", fmt::join(extents, "x"));
  int64_t times = 1;
  std::vector<int64_t> more;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    if (x.extent(axis) == extents[axis]) continue;
    times *= extents[axis];
    more.push_back(extents[axis]);
  }
  std::vector<size_t> same(x.factors.size());
  std::iota(same.begin(), same.end(), 0);
  x = arranged(x, same, {1, x.count(), 1});
  size_t next = 0;
  for (size_t axis = 0; axis < extents.size(); ++axis) {
    const bool is_new = x.axes[axis].empty() && extents[axis] > 1;
    for (size_t& factor : x.axes[axis]) factor += more.size();
    if (is_new) x.axes[axis] = {next++};
  }
  x.factors.insert(x.factors.begin(), more.begin(), more.end());
  x.net[0] = times;
  Message& layer = add(x.top + "/repeated", "Tile", {x.top});
  Message& block = layer.add_block("tile_param");
  block.add("axis", "1");
  block.add("tiles", fmt::format("{}", times));
  x.top = layer.find("top")->text;
  return x;
}

}  // namespace tandem
