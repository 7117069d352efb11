// Layers without a mistake, of kinds that built-in layers are not: attention with three inputs, a
// focal loss, ArcFace with a row of weights for each class, a permutation of axes, and those that
// differ on purpose.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "plugins/sdk.h"
#include "tests/bad_plugins/on_purpose.h"
#include "tests/bad_plugins/row_loss.h"

namespace {

using namespace tandem::sdk;
using tandem::test::add_on_purpose;
using tandem::test::Purpose;
using tandem::test::RowLoss;
using Values = std::vector<double>;

// Of values in any range; also the logarithms.
struct Softmax {
  explicit Softmax(const Values& z) : logs(z), shares(z) {
    const double top = *std::max_element(z.begin(), z.end());
    double sum = 0;
    for (const double one : z) sum += std::exp(one - top);
    for (size_t i = 0; i < z.size(); ++i) {
      logs[i] = z[i] - top - std::log(sum);
      shares[i] = std::exp(logs[i]);
    }
  }
  Values logs, shares;
};

// y_i = the sum over the pixels j of softmax_j(q_i k_j / sqrt(channels)) v_j.
struct Attention : LayerType {
  const char* name() const override { return "right.Attention"; }
  const char* help() const override { return "attention between the pixels of a row"; }
  Inputs inputs() const override { return {Input("query"), Input("key"), Input("value")}; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_BACKWARD_READS_INPUTS;
  }
  std::vector<Shape> shapes(const Query& query) const override {
    const Shape& q = query.input(0);
    for (size_t i = 1; i < 3; ++i) {
      const Shape& other = query.input(i);
      const bool fits = other.c == q.c && other.h == q.h && other.w == q.w;
      if (!fits) throw invalid("query, key and value have one shape");
    }
    if (q.h * q.w > 400) throw invalid("at most 400 pixels attend to each other");
    return {q};
  }
};

class AttentionCpu {
 public:
  AttentionCpu(const Binding& binding, const Call&) : shape_(binding.input(0).shape) {
    area_ = shape_.h * shape_.w;
    scale_ = 1 / std::sqrt(static_cast<double>(shape_.c));
  }
  void forward(const Call&, const Pass& pass) const {
    for (int64_t row = 0; row < shape_.n; ++row) {
      float* y = at(pass.output(0).data(), row);
      for (int64_t i = 0; i < area_; ++i) {
        const Softmax a = attention(pass, row, i);
        for (int64_t c = 0; c < shape_.c; ++c) {
          y[c * area_ + i] = static_cast<float>(dot(a.shares, at(pass.input(2).data(), row), c));
        }
      }
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    const auto size = static_cast<size_t>(shape_.c * area_);
    for (int64_t row = 0; row < shape_.n; ++row) {
      const float *q = at(pass.input(0).data(), row), *k = at(pass.input(1).data(), row),
                  *v = at(pass.input(2).data(), row), *dy = at(pass.output_gradient(0).data(), row);
      std::array<Values, 3> gradients{Values(size), Values(size), Values(size)};
      for (int64_t i = 0; i < area_; ++i) {
        const Softmax a = attention(pass, row, i);
        Values of_share(static_cast<size_t>(area_));
        double mean = 0;
        for (int64_t j = 0; j < area_; ++j) {
          double& one = of_share[static_cast<size_t>(j)];
          for (int64_t c = 0; c < shape_.c; ++c) {
            one += double{dy[c * area_ + i]} * double{v[c * area_ + j]};
            gradients[2][static_cast<size_t>(c * area_ + j)] +=
                a.shares[static_cast<size_t>(j)] * double{dy[c * area_ + i]};
          }
          mean += a.shares[static_cast<size_t>(j)] * one;
        }
        for (int64_t j = 0; j < area_; ++j) {
          const double score =
              scale_ * a.shares[static_cast<size_t>(j)] * (of_share[static_cast<size_t>(j)] - mean);
          for (int64_t c = 0; c < shape_.c; ++c) {
            gradients[0][static_cast<size_t>(c * area_ + i)] += score * double{k[c * area_ + j]};
            gradients[1][static_cast<size_t>(c * area_ + j)] += score * double{q[c * area_ + i]};
          }
        }
      }
      for (size_t input = 0; input < 3; ++input) {
        if (pass.input_gradient(input) == nullptr) continue;
        float* to = at(pass.input_gradient(input).data(), row);
        std::transform(gradients[input].begin(), gradients[input].end(), to,
                       [](double value) { return static_cast<float>(value); });
      }
    }
  }

 private:
  template <class T>
  T* at(T* data, int64_t row) const {
    return data + row * shape_.c * area_;
  }
  double dot(const Values& shares, const float* v, int64_t c) const {
    double sum = 0;
    for (int64_t j = 0; j < area_; ++j) {
      sum += shares[static_cast<size_t>(j)] * double{v[c * area_ + j]};
    }
    return sum;
  }
  Softmax attention(const Pass& pass, int64_t row, int64_t i) const {
    const float *q = at(pass.input(0).data(), row), *k = at(pass.input(1).data(), row);
    Values scores(static_cast<size_t>(area_));
    for (int64_t j = 0; j < area_; ++j) {
      for (int64_t c = 0; c < shape_.c; ++c) {
        scores[static_cast<size_t>(j)] +=
            scale_ * double{q[c * area_ + i]} * double{k[c * area_ + j]};
      }
    }
    return Softmax(scores);
  }
  Shape shape_;
  int64_t area_;
  double scale_;
};

// -1: the row has none.
int64_t label_of(const Pass& pass, int64_t row, int64_t classes) {
  const float label = pass.input(1)[row];
  const bool is_class = label >= 0 && label < static_cast<float>(classes);
  return pass.holds_sample(row) && is_class ? static_cast<int64_t>(label) : -1;
}

// -(1 - p)^2 log(p), of the label's probability p.
struct Focal : RowLoss {
  const char* name() const override { return "right.Focal"; }
  const char* help() const override { return "focal loss"; }
};
class FocalCpu {
 public:
  FocalCpu(const Binding& binding, const Call&) : rows_(binding.input(0).shape.n) {
    classes_ = count(binding.input(0).shape) / rows_;
  }
  void forward(const Call&, const Pass& pass) const {
    double sum = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = label_of(pass, row, classes_);
      if (label < 0) continue;
      const Softmax s = softmax(pass, row);
      const double rest = 1 - s.shares[static_cast<size_t>(label)];
      sum -= rest * rest * s.logs[static_cast<size_t>(label)];
    }
    pass.output(0)[0] = static_cast<float>(sum / double{pass.normaliser()});
  }
  void backward_data(const Call&, const Pass& pass) const {
    const double scale = double{pass.output_gradient(0)[0]} / double{pass.normaliser()};
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = label_of(pass, row, classes_);
      const Softmax s = softmax(pass, row);
      const auto at = static_cast<size_t>(std::max<int64_t>(label, 0));
      const double p = s.shares[at], rest = 1 - p;
      const double of_log = label < 0 ? 0 : 2 * p * rest * s.logs[at] - rest * rest;
      for (int64_t c = 0; c < classes_; ++c) {
        const double share = s.shares[static_cast<size_t>(c)];
        pass.input_gradient(0)[row * classes_ + c] =
            static_cast<float>(scale * of_log * ((c == label ? 1 : 0) - share));
      }
    }
  }

 private:
  Softmax softmax(const Pass& pass, int64_t row) const {
    const float* x = pass.input(0) + row * classes_;
    return Softmax(Values(x, x + classes_));
  }
  int64_t rows_, classes_;
};

// Cross entropy of 8 times the cosines between a row and the weights of each class, of whose own
// class the angle is larger by 0.3: in training alone, or in testing, too.
template <bool always>
struct ArcFace : RowLoss {
  const char* name() const override { return always ? "right.ArcFace" : "right.ArcFaceInTraining"; }
  const char* help() const override { return "cross entropy of angles, with a margin"; }
  uint64_t traits() const override {
    return RowLoss::traits() | (always ? 0 : TANDEM_TESTS_OTHERWISE);
  }
  std::vector<Parameter> parameters() const override {
    return {integer("right_param", "num_output").required().range(1, 1e6)};
  }
  std::vector<Weight> weights(const Query& query) const override {
    const Shape& x = query.input(0);
    const int64_t size = x.c * x.h * x.w;
    return {{.name = "weight",
             .shape = {query.attributes.integer("num_output"), size, 1, 1},
             .initial = 0.1,
             .fan_in = size}};
  }
};
template <bool always>
class ArcFaceCpu {
 public:
  ArcFaceCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        classes_(binding.weight(0).n),
        margin_(always || binding.training() ? 0.3 : 0) {
    size_ = count(binding.input(0).shape) / rows_;
  }
  void forward(const Call&, const Pass& pass) const {
    double sum = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t label = label_of(pass, row, classes_);
      if (label >= 0) sum -= Softmax(scores(pass, row, label)).logs[static_cast<size_t>(label)];
    }
    pass.output(0)[0] = static_cast<float>(sum / double{pass.normaliser()});
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t row = 0; row < rows_; ++row) {
      const float* x = pass.input(0) + row * size_;
      Values gradient(static_cast<size_t>(size_));
      each_slope(pass, row, [&](int64_t c, double slope) {
        add_gradient(slope, x, pass.weight(0) + c * size_, gradient.data());
      });
      std::copy(gradient.begin(), gradient.end(), pass.input_gradient(0).row(row).begin());
    }
  }
  void backward_weights(const Call&, const Pass& pass) const {
    Values gradient(static_cast<size_t>(classes_ * size_));
    for (int64_t row = 0; row < rows_; ++row) {
      const float* x = pass.input(0) + row * size_;
      each_slope(pass, row, [&](int64_t c, double slope) {
        add_gradient(slope, pass.weight(0) + c * size_, x, gradient.data() + c * size_);
      });
    }
    for (size_t i = 0; i < gradient.size(); ++i) {
      float& to = pass.weight_gradient(0)[i];
      to = static_cast<float>((pass.accumulate() ? double{to} : 0) + gradient[i]);
    }
  }

 private:
  static constexpr double factor = 8, least = 1e-12;
  double dot(const float* a, const float* b) const {
    double sum = 0;
    for (int64_t i = 0; i < size_; ++i) sum += double{a[i]} * double{b[i]};
    return sum;
  }
  double length(const float* a) const { return std::sqrt(dot(a, a) + least); }
  double cosine(const Pass& pass, int64_t row, int64_t c) const {
    const float *x = pass.input(0) + row * size_, *w = pass.weight(0) + c * size_;
    return dot(x, w) / length(x) / length(w);
  }
  Values scores(const Pass& pass, int64_t row, int64_t label) const {
    Values z;
    for (int64_t c = 0; c < classes_; ++c) {
      const double cos = cosine(pass, row, c), sin = std::sqrt(std::max(1 - cos * cos, 1e-6));
      z.push_back(factor * (c == label ? cos * std::cos(margin_) - sin * std::sin(margin_) : cos));
    }
    return z;
  }
  // Of the loss by the cosine of each class.
  template <class Visit>
  void each_slope(const Pass& pass, int64_t row, const Visit& visit) const {
    const int64_t label = label_of(pass, row, classes_);
    if (label < 0) return;
    const double scale = double{pass.output_gradient(0)[0]} / double{pass.normaliser()};
    const Softmax s(scores(pass, row, label));
    for (int64_t c = 0; c < classes_; ++c) {
      const double cos = cosine(pass, row, c), sin = std::sqrt(std::max(1 - cos * cos, 1e-6));
      const double bent = 1 - cos * cos > 1e-6 ? cos / sin * std::sin(margin_) : 0;
      const double share = s.shares[static_cast<size_t>(c)] - (c == label ? 1 : 0);
      visit(c, scale * share * factor * (c == label ? std::cos(margin_) + bent : 1));
    }
  }
  // Of the cosine of a and b by a.
  void add_gradient(double slope, const float* a, const float* b, double* gradient) const {
    const double la = length(a), lb = length(b), ab = dot(a, b);
    for (int64_t i = 0; i < size_; ++i) {
      gradient[i] += slope * (double{b[i]} / (la * lb) - ab * double{a[i]} / (la * la * la * lb));
    }
  }
  int64_t rows_, classes_, size_ = 1;
  double margin_;
};

// The axes channel, height, width in another order.
struct Permutation : LayerType {
  const char* name() const override { return "right.Permutation"; }
  const char* help() const override { return "the axes 1, 2, 3 in another order"; }
  std::vector<Parameter> parameters() const override {
    return {integers("right_param", "order").help("three axes; without it 1, 3, 2")};
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
  static std::array<size_t, 3> order(const Attributes& attributes) {
    std::vector<int64_t> axes = attributes.integers("order");
    if (axes.empty()) axes = {1, 3, 2};
    std::vector<int64_t> sorted = axes;
    std::sort(sorted.begin(), sorted.end());
    if (sorted != std::vector<int64_t>{1, 2, 3}) throw invalid("order: 1, 2 and 3, each once");
    return {static_cast<size_t>(axes[0]), static_cast<size_t>(axes[1]),
            static_cast<size_t>(axes[2])};
  }
  std::vector<Shape> shapes(const Query& query) const override {
    const Shape& x = query.input(0);
    const std::array<int64_t, 4> old{x.n, x.c, x.h, x.w};
    const auto [c, h, w] = order(query.attributes);
    return {{x.n, old[c], old[h], old[w]}};
  }
};
class PermutationCpu {
 public:
  PermutationCpu(const Binding& binding, const Call&)
      : shape_(binding.input(0).shape), order_(Permutation::order(binding.attributes)) {}
  void forward(const Call&, const Pass& pass) const {
    each([&](int64_t from, int64_t to) { pass.output(0)[to] = pass.input(0)[from]; });
  }
  void backward_data(const Call&, const Pass& pass) const {
    each([&](int64_t from, int64_t to) {
      pass.input_gradient(0)[from] = pass.output_gradient(0)[to];
    });
  }

 private:
  template <class Visit>
  void each(const Visit& visit) const {
    const std::array<int64_t, 4> size{shape_.n, shape_.c, shape_.h, shape_.w},
        step{shape_.c * shape_.h * shape_.w, shape_.h * shape_.w, shape_.w, 1};
    const auto [a, b, c] = order_;
    int64_t to = 0;
    for (int64_t n = 0; n < size[0]; ++n) {
      for (int64_t i = 0; i < size[a]; ++i) {
        for (int64_t j = 0; j < size[b]; ++j) {
          for (int64_t k = 0; k < size[c]; ++k) {
            visit(n * step[0] + i * step[a] + j * step[b] + k * step[c], to++);
          }
        }
      }
    }
  }
  Shape shape_;
  std::array<size_t, 3> order_;
};

}  // namespace

void add_layers_of_classes(Plugin& plugin);  // right_classes.cpp
void add_layers_of_files(Plugin& plugin);    // right_of_files.cpp

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  Plugin plugin(host, "right_layers", "1.0");
  plugin.layer<Attention>()
      .kernel<Attention, AttentionCpu>("cpu")
      .layer<Focal>()
      .kernel<Focal, FocalCpu>("cpu")
      .layer<ArcFace<true>>()
      .kernel<ArcFace<true>, ArcFaceCpu<true>>("cpu")
      .layer<ArcFace<false>>()
      .kernel<ArcFace<false>, ArcFaceCpu<false>>("cpu")
      .layer<Permutation>()
      .kernel<Permutation, PermutationCpu>("cpu");
  add_layers_of_classes(plugin);
  add_layers_of_files(plugin);
  add_on_purpose<Purpose::Reversal>(plugin);
  add_on_purpose<Purpose::StraightSign>(plugin);
  add_on_purpose<Purpose::BinaryScale>(plugin);
  add_on_purpose<Purpose::RowsDropped>(plugin);
  return plugin.table();
}
