#include "picture.h"

#include <tandem/plugins/random.h>

#include <cmath>
#include <numbers>
#include <opencv2/imgproc.hpp>
#include <vector>

namespace tandem::shapes {
namespace {

// Drawn this much larger and then shrunk: smooth edges.
constexpr int oversampling = 4;

class Dice {
 public:
  Dice(uint64_t seed, uint64_t class_index, uint64_t number)
      : seed_(seed), layer_(static_cast<uint32_t>(class_index)), number_(number) {}
  double between(double low, double high) {
    if (left_ == 0) {
      block_ = tandem_random_block(seed_, 0, layer_, number_, counter_++);
      left_ = 4;
    }
    return low + (high - low) * static_cast<double>(tandem_uniform(block_.value[--left_]));
  }
  int whole(int low, int high) {
    return static_cast<int>(std::floor(between(low, static_cast<double>(high) + 1)));
  }
  cv::Vec3d color() { return {between(20, 235), between(20, 235), between(20, 235)}; }

 private:
  uint64_t seed_;
  uint32_t layer_;
  uint64_t number_;
  uint32_t counter_ = 0;
  int left_ = 0;
  tandem_random4 block_{};
};

cv::Scalar scalar(const cv::Vec3d& color) {
  return {color[0], color[1], color[2]};
}

// Colors that differ enough for a person to tell them apart.
cv::Vec3d color_unlike(Dice& dice, const cv::Vec3d& other) {
  cv::Vec3d color = dice.color();
  for (int i = 0; i < 20 && cv::norm(color - other) < 140; ++i) color = dice.color();
  return color;
}

// A slope of two near colors under soft blotches.
cv::Mat background(Dice& dice, int side, const cv::Vec3d& color) {
  const cv::Vec3d slope(dice.between(-25, 25), dice.between(-25, 25), dice.between(-25, 25));
  const double angle = dice.between(0, 2 * std::numbers::pi);
  const int cells = dice.whole(4, 10);
  cv::Mat blotches(cells, cells, CV_32F);
  for (int i = 0; i < cells * cells; ++i) {
    blotches.at<float>(i / cells, i % cells) = static_cast<float>(dice.between(-20, 20));
  }
  cv::resize(blotches, blotches, {side, side}, 0, 0, cv::INTER_CUBIC);
  cv::Mat image(side, side, CV_8UC3);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const double along = (x * std::cos(angle) + y * std::sin(angle)) / side;
      for (int c = 0; c < 3; ++c) {
        image.at<cv::Vec3b>(y, x)[c] =
            cv::saturate_cast<uchar>(color[c] + along * slope[c] + blotches.at<float>(y, x));
      }
    }
  }
  return image;
}

void draw_distractors(Dice& dice, cv::Mat& image) {
  const int lines = dice.whole(1, 4);
  const double side = image.cols;
  for (int i = 0; i < lines; ++i) {
    const cv::Point from(dice.whole(0, image.cols), dice.whole(0, image.rows));
    const double angle = dice.between(0, 2 * std::numbers::pi);
    const double length = dice.between(0.15, 0.6) * side;
    const cv::Point to(from.x + static_cast<int>(length * std::cos(angle)),
                       from.y + static_cast<int>(length * std::sin(angle)));
    const int thickness = std::max(1, static_cast<int>(dice.between(0.008, 0.025) * side));
    cv::line(image, from, to, scalar(dice.color()), thickness, cv::LINE_AA);
  }
}

using Corners = std::vector<cv::Point>;

// Corners at (radius, angle) around the centre: `radii` repeats until there are `count`.
Corners around(cv::Point2d centre, int count, std::initializer_list<double> radii, double turn) {
  Corners corners;
  for (int i = 0; i < count; ++i) {
    const double radius = *(radii.begin() + static_cast<size_t>(i) % radii.size());
    const double angle = turn + 2 * std::numbers::pi * i / count;
    corners.emplace_back(static_cast<int>(std::lround(centre.x + radius * std::cos(angle))),
                         static_cast<int>(std::lround(centre.y + radius * std::sin(angle))));
  }
  return corners;
}

void draw_cross(cv::Mat& image, cv::Point2d centre, double radius, double turn,
                const cv::Scalar& color) {
  const double wide = radius, narrow = radius * 0.3;
  for (const double quarter : {0.0, std::numbers::pi / 2}) {
    const cv::RotatedRect bar(centre, cv::Size2d(2 * wide, 2 * narrow),
                              static_cast<float>((turn + quarter) * 180 / std::numbers::pi));
    std::array<cv::Point2f, 4> corners;
    bar.points(corners.data());
    cv::fillConvexPoly(image, Corners(corners.begin(), corners.end()), color, cv::LINE_AA);
  }
}

void draw_shape(cv::Mat& image, std::string_view name, cv::Point2d centre, double radius,
                double turn, const cv::Scalar& color) {
  const auto fill = [&](const Corners& corners) {
    cv::fillPoly(image, std::vector<Corners>{corners}, color, cv::LINE_AA);
  };
  const cv::Point middle(centre);
  const int r = static_cast<int>(radius);
  if (name == "circle") {
    cv::circle(image, middle, r, color, cv::FILLED, cv::LINE_AA);
  } else if (name == "ring") {
    cv::circle(image, middle, static_cast<int>(0.8 * radius), color, static_cast<int>(0.4 * radius),
               cv::LINE_AA);
  } else if (name == "square") {
    fill(around(centre, 4, {radius}, turn));
  } else if (name == "triangle") {
    fill(around(centre, 3, {radius * 1.1}, turn));
  } else if (name == "star") {
    fill(around(centre, 10, {radius * 1.1, radius * 0.45}, turn));
  } else {
    draw_cross(image, centre, radius, turn, color);
  }
}

void add_grain(Dice& dice, cv::Mat& image) {
  const double strength = dice.between(2, 10);
  for (int y = 0; y < image.rows; ++y) {
    for (int x = 0; x < image.cols; ++x) {
      const double grain = dice.between(-strength, strength);
      for (int c = 0; c < 3; ++c) {
        uchar& value = image.at<cv::Vec3b>(y, x)[c];
        value = cv::saturate_cast<uchar>(value + grain);
      }
    }
  }
}

}  // namespace

cv::Mat draw(size_t class_index, int size, uint64_t seed, uint64_t number) {
  Dice dice(seed, class_index, number);
  const int side = size * oversampling;
  const cv::Vec3d behind = dice.color();
  cv::Mat image = background(dice, side, behind);
  draw_distractors(dice, image);
  const double radius = dice.between(0.22, 0.36) * side;
  const cv::Point2d centre(dice.between(radius, side - radius),
                           dice.between(radius, side - radius));
  draw_shape(image, class_names.at(class_index), centre, radius,
             dice.between(0, 2 * std::numbers::pi), scalar(color_unlike(dice, behind)));
  cv::Mat small;
  cv::resize(image, small, {size, size}, 0, 0, cv::INTER_AREA);
  add_grain(dice, small);
  return small;
}

}  // namespace tandem::shapes
