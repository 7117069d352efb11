// A value of an ONNX graph in a net whose tensors have three axes besides the batch: what is in the
// tensor's memory, and which of it makes each axis of the value. Reshapes and transposes of a graph
// change only this description; a layer moves elements where a later one needs another order.
//
// A sample's elements lie in the order of `factors`, extents above 1. An axis of the value is the
// product of some of them, most significant first. The batch is no factor: a graph is read with one
// sample, and every layer computes sample by sample.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tandem {

using NetExtents = std::array<int64_t, 3>;  // C, H, W of a tensor of the net

struct OnnxNetValue {
  std::string top;  // the tensor
  NetExtents net{1, 1, 1};
  std::vector<int64_t> factors;
  std::vector<std::vector<size_t>> axes;  // indices of factors
  // Extents that an Expand has promised: axes of extent 1 stand for more. Sums and products with
  // another value, and transposes, keep the promise; for other nodes the value is repeated.
  std::vector<int64_t> expanded;

  [[nodiscard]] int64_t extent(size_t axis) const;
  [[nodiscard]] std::vector<int64_t> extents() const;
  [[nodiscard]] std::vector<int64_t> promised() const {
    return expanded.empty() ? extents() : expanded;
  }
  [[nodiscard]] int64_t count() const;
  // The factors in the order of the value's axes.
  [[nodiscard]] std::vector<size_t> order() const;
  // Whether the elements lie in the order of the axes.
  [[nodiscard]] bool is_plain() const;
  // Those of one axis after another.
  [[nodiscard]] std::vector<size_t> factors_of(const std::vector<size_t>& some_axes) const;
  // All but these, in the order of the memory.
  [[nodiscard]] std::vector<size_t> factors_without(const std::vector<size_t>& some) const;
  [[nodiscard]] int64_t product(const std::vector<size_t>& some) const;

  // Divides a factor into two, the first more significant.
  void divide(size_t factor, int64_t first);
  // Makes the memory's order that of `order`, as after a layer that moves elements.
  void reorder(const std::vector<size_t>& order);
  // A plain value of these extents.
  void set_plain(const std::vector<int64_t>& extents);
  // Gives it other axes with as many elements; false if that needs elements to be moved.
  [[nodiscard]] bool reshape(const std::vector<int64_t>& extents);
};

// Divides factors of both until these axes, of equal extents, have equal ones. False if that is not
// possible.
[[nodiscard]] bool divide_alike(OnnxNetValue& a, OnnxNetValue& b,
                                const std::vector<size_t>& some_axes);

}  // namespace tandem
