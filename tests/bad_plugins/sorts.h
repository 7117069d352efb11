// Layers that sort the channels of each pixel: their gradients have kinks where two values are
// equal. All are right but for one, which gives the gradients of a sort to the wrong channels.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "plugins/sdk.h"

namespace tandem::test {

enum class Sorts { Largest, Median, MeanOfTwo, All, AllButUnsortedGradients };
constexpr const char* sorts_names[] = {"right.LargestChannel", "right.MedianChannel",
                                       "right.MeanOfTwoLargest", "right.SortedChannels",
                                       "mistake.SortsGradientsNot"};

template <Sorts s>
struct SortsType : sdk::LayerType {
  const char* name() const override { return sorts_names[static_cast<int>(s)]; }
  const char* help() const override { return "sorts the channels of each pixel"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_BACKWARD_READS_INPUTS;
  }
  std::vector<sdk::Shape> shapes(const sdk::Query& query) const override {
    sdk::Shape shape = query.input(0);
    if (s < Sorts::All) shape.c = 1;
    return {shape};
  }
};

template <Sorts s>
class SortsCpu {
 public:
  SortsCpu(const sdk::Binding& binding, const sdk::Call&)
      : shape_(binding.input(0).shape), area_(shape_.h * shape_.w) {}
  void forward(const sdk::Call&, const sdk::Pass& pass) const {
    each_pixel([&](int64_t row, int64_t pixel) {
      const std::vector<int64_t> places = sorted(pass.input(0), row, pixel);
      float* y = pass.output(0).data() + row * (s < Sorts::All ? 1 : shape_.c) * area_ + pixel;
      each_share(places, [&](int64_t from, int64_t to, float share) {
        if (is_first(places, from, to)) y[to * area_] = 0;
        y[to * area_] += share * pass.input(0)[at(row, from, pixel)];
      });
    });
  }
  void backward_data(const sdk::Call&, const sdk::Pass& pass) const {
    each_pixel([&](int64_t row, int64_t pixel) {
      const std::vector<int64_t> places = sorted(pass.input(0), row, pixel);
      const float* dy =
          pass.output_gradient(0).data() + row * (s < Sorts::All ? 1 : shape_.c) * area_ + pixel;
      for (int64_t c = 0; c < shape_.c; ++c) pass.input_gradient(0)[at(row, c, pixel)] = 0;
      each_share(places, [&](int64_t from, int64_t to, float share) {
        const int64_t into = s == Sorts::AllButUnsortedGradients ? to : from;
        pass.input_gradient(0)[at(row, into, pixel)] = share * dy[to * area_];
      });
    });
  }

 private:
  [[nodiscard]] int64_t at(int64_t row, int64_t c, int64_t pixel) const {
    return (row * shape_.c + c) * area_ + pixel;
  }
  template <class Body>
  void each_pixel(const Body& body) const {
    for (int64_t row = 0; row < shape_.n; ++row) {
      for (int64_t pixel = 0; pixel < area_; ++pixel) body(row, pixel);
    }
  }
  // The channels from the largest value to the smallest, a NaN first.
  std::vector<int64_t> sorted(const float* x, int64_t row, int64_t pixel) const {
    std::vector<int64_t> places(static_cast<size_t>(shape_.c));
    std::iota(places.begin(), places.end(), int64_t{0});
    std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
      const float of_a = x[at(row, a, pixel)], of_b = x[at(row, b, pixel)];
      return std::isnan(of_b) ? false : std::isnan(of_a) || of_a > of_b;
    });
    const bool has_nan = std::isnan(x[at(row, places[0], pixel)]);
    if (has_nan && s == Sorts::Median) std::swap(places[0], places[places.size() / 2]);
    return places;
  }
  static bool is_first(const std::vector<int64_t>& places, int64_t from, int64_t to) {
    return s >= Sorts::All || s == Sorts::Median || to > 0 || from == places[0];
  }
  // Calls body(channel, output channel, share) for what outputs are made of.
  template <class Body>
  void each_share(const std::vector<int64_t>& places, const Body& body) const {
    const auto channels = static_cast<int64_t>(places.size());
    if (s == Sorts::Median) return body(places[places.size() / 2], 0, 1.0F);
    const int64_t count = s == Sorts::Largest     ? 1
                          : s == Sorts::MeanOfTwo ? std::min<int64_t>(channels, 2)
                                                  : channels;
    const float share = s == Sorts::MeanOfTwo ? 1 / static_cast<float>(count) : 1.0F;
    for (int64_t i = 0; i < count; ++i) {
      body(places[static_cast<size_t>(i)], s < Sorts::All ? 0 : i, share);
    }
  }
  sdk::Shape shape_;
  int64_t area_;
};

template <Sorts s>
void add_sorts(sdk::Plugin& plugin) {
  plugin.layer<SortsType<s>>().template kernel<SortsType<s>, SortsCpu<s>>("cpu");
}

}  // namespace tandem::test
