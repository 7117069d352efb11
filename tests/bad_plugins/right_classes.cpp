// Layers without a mistake whose labels are classes: a loss that is divided by the weights of all
// labelled rows of the batch, and a row of weights for each of the classes that a parameter counts.
// And layers that sort.
#include <algorithm>
#include <cmath>
#include <vector>

#include "plugins/sdk.h"
#include "tests/bad_plugins/sorts.h"

namespace {

using namespace tandem::sdk;
using tandem::test::add_sorts;
using tandem::test::Sorts;

// -1: the row has none. A label beyond the classes is refused.
int64_t class_of(const Pass& pass, int64_t row, int64_t classes) {
  const float label = pass.input(1)[row];
  if (!pass.holds_sample(row) || !(label >= 0)) return -1;
  if (label >= static_cast<float>(classes)) {
    throw invalid("label ", label, " is beyond the ", classes, " classes");
  }
  return static_cast<int64_t>(label);
}

// Cross entropy of softmax, of a class c with the weight 1 + c / 10, over the batch's weights.
struct LabelledRows : LayerType {
  const char* name() const override { return "right.LabelledRows"; }
  const char* help() const override { return "cross entropy over the weights of labelled rows"; }
  Inputs inputs() const override { return {Input("scores"), Input("label").label()}; }
  uint64_t traits() const override {
    return TANDEM_LOSS | TANDEM_BATCH_STATISTICS | TANDEM_BACKWARD_READS_INPUTS;
  }
  Statistics statistics(const Query&) const override { return {.forward = 1, .backward = 1}; }
  std::vector<Shape> shapes(const Query& query) const override {
    if (count(query.input(1)) != query.input(1).n) throw invalid("one label for each row");
    return {{1, 1, 1, 1}};
  }
};
class LabelledRowsCpu {
 public:
  LabelledRowsCpu(const Binding& binding, const Call&) : rows_(binding.input(0).shape.n) {
    classes_ = count(binding.input(0).shape) / rows_;
  }
  void forward_statistics(const Call&, const Pass& pass) const { add_weights(pass); }
  void backward_statistics(const Call&, const Pass& pass) const { add_weights(pass); }
  void forward(const Call&, const Pass& pass) const {
    double sum = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = class_of(pass, row, classes_);
      const float* x = pass.input(0) + row * classes_;
      if (label >= 0) sum += weight_of(label) * (log_of_sum(x) - double{x[label]});
    }
    pass.output(0)[0] = static_cast<float>(sum / all(pass));
  }
  void backward_data(const Call&, const Pass& pass) const {
    const double scale = double{pass.output_gradient(0)[0]} / all(pass);
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = class_of(pass, row, classes_);
      const float* x = pass.input(0) + row * classes_;
      const double sum = log_of_sum(x), factor = label < 0 ? 0 : scale * weight_of(label);
      for (int64_t c = 0; c < classes_; ++c) {
        const double share = std::exp(double{x[c]} - sum) - (c == label ? 1 : 0);
        pass.input_gradient(0)[row * classes_ + c] =
            label < 0 ? 0.0F : static_cast<float>(factor * share);
      }
    }
  }

 private:
  static double weight_of(int64_t label) { return 1 + 0.1 * static_cast<double>(label); }
  static double all(const Pass& pass) {
    return pass.statistics()[0] > 0 ? double{pass.statistics()[0]} : 1;
  }
  void add_weights(const Pass& pass) const {
    double sum = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = class_of(pass, row, classes_);
      if (label >= 0) sum += weight_of(label);
    }
    pass.statistics()[0] = static_cast<float>(sum);
  }
  double log_of_sum(const float* x) const {
    const double top = *std::max_element(x, x + classes_);
    double sum = 0;
    for (int64_t c = 0; c < classes_; ++c) sum += std::exp(double{x[c]} - top);
    return top + std::log(sum);
  }
  int64_t rows_, classes_;
};

// The row plus the weights of its class.
struct ClassRows : LayerType {
  const char* name() const override { return "right.ClassRows"; }
  const char* help() const override { return "the row plus the weights of its class"; }
  Inputs inputs() const override { return {Input("data"), Input("label").label()}; }
  std::vector<Parameter> parameters() const override {
    return {integer("right_param", "classes").by_default("3").range(1, 1e6)};
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_BACKWARD_READS_INPUTS;
  }
  std::vector<Shape> shapes(const Query& query) const override {
    if (count(query.input(1)) != query.input(0).n) throw invalid("one label for each row");
    return {query.input(0)};
  }
  std::vector<Weight> weights(const Query& query) const override {
    const Shape& x = query.input(0);
    return {{.name = "weight",
             .shape = {query.attributes.integer("classes") * x.c * x.h * x.w, 1, 1, 1}}};
  }
};
class ClassRowsCpu {
 public:
  ClassRowsCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n), classes_(binding.attributes.integer("classes")) {
    size_ = count(binding.input(0).shape) / rows_;
  }
  void forward(const Call&, const Pass& pass) const {
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = class_of(pass, row, classes_);
      for (int64_t i = 0; i < size_; ++i) {
        const float more = label < 0 ? 0 : pass.weight(0)[label * size_ + i];
        pass.output(0)[row * size_ + i] = pass.input(0)[row * size_ + i] + more;
      }
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < rows_ * size_; ++i) {
      pass.input_gradient(0)[i] = pass.output_gradient(0)[i];
    }
  }
  void backward_weights(const Call&, const Pass& pass) const {
    if (!pass.accumulate()) {
      for (int64_t i = 0; i < classes_ * size_; ++i) pass.weight_gradient(0)[i] = 0;
    }
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = class_of(pass, row, classes_);
      for (int64_t i = 0; i < size_ && label >= 0; ++i) {
        pass.weight_gradient(0)[label * size_ + i] += pass.output_gradient(0)[row * size_ + i];
      }
    }
  }

 private:
  int64_t rows_, classes_, size_;
};

}  // namespace

void add_layers_of_classes(Plugin& plugin) {
  plugin.layer<LabelledRows>()
      .kernel<LabelledRows, LabelledRowsCpu>("cpu")
      .layer<ClassRows>()
      .kernel<ClassRows, ClassRowsCpu>("cpu");
  add_sorts<Sorts::Largest>(plugin);
  add_sorts<Sorts::Median>(plugin);
  add_sorts<Sorts::MeanOfTwo>(plugin);
  add_sorts<Sorts::All>(plugin);
}
