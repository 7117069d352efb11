// One drawn shape in clutter: its color, place, size and angle at random, on a textured
// background, among lines that belong to nothing. A pure function of its arguments.
#pragma once

#include <array>
#include <cstdint>
#include <opencv2/core.hpp>

namespace tandem::shapes {

constexpr std::array class_names{"circle", "cross", "ring", "square", "star", "triangle"};

// A size x size picture (B,G,R, 8 bits) of the class; `size` is at least 16.
[[nodiscard]] cv::Mat draw(size_t class_index, int size, uint64_t seed, uint64_t number);

}  // namespace tandem::shapes
