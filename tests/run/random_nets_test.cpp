// Random nets give the same weights, bit for bit, whether sums share their gradient and ReLUs are
// applied by other layers, or every layer computes for itself: with every strategy.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "tests/support/strategy_runs.h"

namespace tandem::test {
namespace {

// The same for each seed. `apart`: with coefficients that are 1, and slopes that are 0, in float32
// but not as they are written.
class RandomNet {
 public:
  RandomNet(unsigned seed, bool apart)
      : random_(seed),
        one_(apart ? "1.00000001" : "1"),
        none_(apart ? "1e-46" : "0"),
        net_(fmt::format("random_{}", seed)) {
    net_.data(20);
    convolve("data", 2);
    const int layers = 5 + below(12);
    for (int i = 0; i < layers; ++i) add_layer();
  }

  // Of all that no layer reads yet.
  std::string text() {
    std::vector<std::string> leaves;
    for (const std::string& tensor : tensors_) {
      if (!read_.contains(tensor)) leaves.push_back(tensor);
    }
    if (leaves.size() > 1) add("Concat", leaves);
    add("Pooling", {tensors_.back()}, "pooling_param { pool: AVE global_pooling: true }");
    const std::string dense =
        "inner_product_param {{ num_output: {} weight_filler {{ type: "
        "\"xavier\" }} }}";
    add("InnerProduct", {tensors_.back()}, fmt::format(fmt::runtime(dense), 12));
    rectify(tensors_.back());
    add("InnerProduct", {tensors_.back()}, fmt::format(fmt::runtime(dense), 5));
    return net_.loss().text();
  }

 private:
  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  // Of the last ones, so that few have more than two readers.
  std::string any() {
    const int count = std::min(5, static_cast<int>(tensors_.size()));
    return tensors_[tensors_.size() - 1 - static_cast<size_t>(below(count))];
  }
  void add(const std::string& type, const std::vector<std::string>& inputs,
           const std::string& fields = "") {
    const std::string name = fmt::format("layer{}", ++layers_);
    net_.layer(name, type, inputs, {name}, fields);
    read_.insert(inputs.begin(), inputs.end());
    tensors_.push_back(name);
  }
  void convolve(const std::string& input, int stride = 1) {
    add("Convolution", {input},
        fmt::format("convolution_param {{ num_output: 8 kernel_size: 3 pad: 1 stride: {} "
                    "weight_filler {{ type: \"xavier\" }} }}",
                    stride));
  }
  // In place, or not.
  void rectify(const std::string& tensor) {
    const std::string slope = fmt::format("relu_param {{ negative_slope: {} }}", none_);
    if (read_.contains(tensor)) return add("ReLU", {tensor}, slope);
    net_.layer(fmt::format("layer{}", ++layers_), "ReLU", {tensor}, {tensor}, slope);
  }
  void add_layer() {
    const std::string tensor = any();
    switch (below(10)) {
      case 0:
      case 1:
        return convolve(tensor);
      case 2:
        return rectify(tensor);
      case 3:
        return add("Pooling", {tensor},
                   fmt::format("pooling_param {{ pool: {} kernel_size: 3 pad: 1 }}",
                               below(2) == 0 ? "MAX" : "AVE"));
      case 4:
        return add("LRN", {tensor}, "lrn_param { local_size: 3 }");
      case 5:
        return lose(tensor);
      case 6:  // looks at the extents of the other one only
        return add("Crop", {tensor, any()}, "crop_param { axis: 2 offset: 0 }");
      default:
        return sum(tensor);
    }
  }
  void sum(const std::string& tensor) {
    std::vector<std::string> inputs{tensor, any()};
    if (below(3) == 0) inputs.push_back(any());
    std::string coefficients;
    for (size_t i = 0; i < inputs.size(); ++i) coefficients += " coeff: " + one_;
    add("Eltwise", inputs, "eltwise_param {" + coefficients + " }");
  }
  // A loss that looks at another tensor as at a target.
  void lose(const std::string& tensor) {
    const std::string name = fmt::format("layer{}", ++layers_), other = any();
    net_.layer(name, "EuclideanLoss", {tensor, other}, {name}, "loss_weight: 0.001");
    read_.insert({tensor, other});
  }

  std::mt19937 random_;
  std::string one_, none_;
  NetWriter net_;
  std::vector<std::string> tensors_;
  std::set<std::string> read_;
  int layers_ = 0;
};

class RandomNets : public StrategyRuns, public testing::WithParamInterface<unsigned> {
 protected:
  // Costs would divide the two nets differently, and oneDNN's product with AVX2 sums up in another
  // order for another number of rows.
  static StrategyOptions divided(const std::string& slices) {
    return {{"groups", "E=1/W=0,2"}, {"slices", slices}};
  }
  static Weights run_of(const StrategyCase& c, bool apart, bool recomputes = false) {
    TrainOptions o = many(c, 2);
    o.net_text = RandomNet(GetParam(), apart).text();
    o.recompute = recomputes;
    return run(o);
  }
};

INSTANTIATE_TEST_SUITE_P(Seeds, RandomNets, testing::Range(60U, 90U));

TEST_P(RandomNets, GiveTheBitsOfNetsWhoseLayersComputeForThemselves) {
  SCOPED_TRACE(RandomNet(GetParam(), false).text());
  for (const StrategyCase& c : {StrategyCase{"sequential", 1}, StrategyCase{"layerwise", 2},
                                StrategyCase{"asymmetric", 2, in_groups("E=0/W=1")},
                                StrategyCase{"asymmetric", 3, divided("all")},
                                StrategyCase{"asymmetric", 3, divided("none")}}) {
    SCOPED_TRACE(c.name());
    const Weights together = run_of(c, false);
    EXPECT_EQ(together, run_of(c, true));
    if (c.strategy == "sequential") {
      EXPECT_EQ(together, run_of(c, false, true)) << "recomputed";
    }
  }
}

}  // namespace
}  // namespace tandem::test
