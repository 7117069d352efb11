// The layers and the data set of stored_2_0.c, in C++ with plugins/sdk.h: trained, they give the
// same bits, whichever compiler and standard library they were built with.
#include "plugins/sdk.h"

namespace {

using namespace tandem::sdk;

struct Mix : LayerType {
  const char* name() const override { return "stored.Mix"; }
  const char* help() const override { return "two inputs and two weights"; }
  Inputs inputs() const override { return {Input("a"), Input("b")}; }
  std::vector<Parameter> parameters() const override {
    constexpr const char* block = "stored_mix_param";
    return {number(block, "scale").by_default("1"),
            integer(block, "power").by_default("0"),
            boolean(block, "doubled").by_default("false"),
            word(block, "sign").by_default("PLUS").one_of("PLUS|MINUS"),
            integers(block, "halves"),
            numbers(block, "more"),
            filler(block, "factor_filler")};
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_RANDOM | TANDEM_BACKWARD_READS_INPUTS;
  }
  std::vector<Weight> weights(const Query& query) const override {
    return {
        {.name = "factor", .shape = {query.input(0).c, 1, 1, 1}, .filler = "factor_filler"},
        {.name = "offset", .shape = {1, 1, 1, 1}, .initial = 0.5},
    };
  }
};

class MixCpu : public Needs {
 public:
  MixCpu(const Binding& binding, const Call&)
      : shape_(binding.input(0).shape),
        first_row_(binding.raw.batch_begin),
        layer_(binding.raw.layer_index),
        draws_(binding.training()),
        scale_(scale_of(binding.attributes)) {
    if (!equal(shape_, binding.input(1).shape)) throw invalid("its inputs must have one shape");
    saved_bytes = 4 * shape_.n;
  }

  void forward(const Call&, const Pass& pass) const {
    for (int64_t row = 0; row < shape_.n; ++row) pass.saved()[row] = draw(pass, row);
    each([&](int64_t i, int64_t c, int64_t row) {
      pass.output(0)[i] = pass.saved()[row] * (scale_ * pass.weight(0)[c]) * pass.input(0)[i] +
                          pass.weight(1)[0] * pass.input(1)[i];
    });
  }
  void backward_data(const Call&, const Pass& pass) const {
    const std::span<const float> dy = pass.output_gradient(0);
    const auto da = pass.input_gradient(0), db = pass.input_gradient(1);
    each([&](int64_t i, int64_t c, int64_t row) {
      const float slope = dy[static_cast<size_t>(i)];
      if (da != nullptr) da[i] = pass.saved()[row] * (scale_ * pass.weight(0)[c]) * slope;
      if (db != nullptr) db[i] = pass.weight(1)[0] * slope;
    });
  }
  void backward_weights(const Call&, const Pass& pass) const {
    std::vector<float> factors(static_cast<size_t>(shape_.c));
    float offset = 0;
    each([&](int64_t i, int64_t c, int64_t row) {
      const float dy = pass.output_gradient(0)[i];
      factors[static_cast<size_t>(c)] += pass.saved()[row] * scale_ * pass.input(0)[i] * dy;
      offset += pass.input(1)[i] * dy;
    });
    const auto add = [&](float& gradient, float sum) {
      gradient = (pass.accumulate() ? gradient : 0) + sum;
    };
    if (pass.weight_gradient(0) != nullptr) {
      for (size_t c = 0; c < factors.size(); ++c) add(pass.weight_gradient(0)[c], factors[c]);
    }
    if (pass.weight_gradient(1) != nullptr) add(pass.weight_gradient(1)[0], offset);
  }

 private:
  static float scale_of(const Attributes& attributes) {
    double scale = attributes.number("scale");
    for (int64_t i = 0; i < attributes.integer("power"); ++i) scale *= 2;
    if (attributes.boolean("doubled")) scale *= 2;
    if (attributes.is_set("sign") && attributes.text("sign") == "MINUS") scale = -scale;
    for (const int64_t halves : attributes.integers("halves")) {
      for (int64_t i = 0; i < halves; ++i) scale /= 2;
    }
    for (const double factor : attributes.numbers("more")) scale *= factor;
    return static_cast<float>(scale);
  }
  float draw(const Pass& pass, int64_t row) const {
    if (!draws_) return 1;
    const auto position = static_cast<uint64_t>(first_row_ + pass.step().first_row + row);
    const tandem_random4 numbers =
        tandem_random_block(pass.step().seed, pass.step().step, layer_, position, 0);
    return tandem_uniform(numbers.value[0]) < 0.5F ? 0.5F : 2.0F;
  }
  template <class Body>
  void each(const Body& body) const {
    const int64_t area = shape_.h * shape_.w;
    for (int64_t i = 0; i < count(shape_); ++i) body(i, i / area % shape_.c, i / area / shape_.c);
  }

  Shape shape_;
  int64_t first_row_;
  uint32_t layer_;
  bool draws_;
  float scale_;
};

struct Loss : LayerType {
  const char* name() const override { return "stored.Loss"; }
  const char* help() const override { return "half the squared distance from the label's class"; }
  Inputs inputs() const override { return {Input("scores"), Input("label").label()}; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING;
  }
  std::vector<Shape> shapes(const Query&) const override { return {{1, 1, 1, 1}}; }
};

class LossCpu {
 public:
  LossCpu(const Binding& binding, const Call&) : rows_(binding.input(0).shape.n) {}

  void forward(const Call&, const Pass& pass) const {
    double sum = 0;
    each(pass, [&](float distance, int64_t) {
      sum += static_cast<double>(distance) * static_cast<double>(distance) / 2;
    });
    pass.output(0)[0] = static_cast<float>(sum / static_cast<double>(divisor(pass)));
  }
  void backward_data(const Call&, const Pass& pass) const {
    const float factor = pass.output_gradient(0)[0] / divisor(pass);
    std::ranges::fill(pass.input_gradient(0), 0.0F);
    each(pass, [&](float distance, int64_t i) { pass.input_gradient(0)[i] = factor * distance; });
  }

 private:
  static float divisor(const Pass& pass) { return std::max(1.0F, pass.normaliser()); }
  // body(distance, element) for each score of a row that holds a sample.
  template <class Body>
  void each(const Pass& pass, const Body& body) const {
    for (int64_t row = 0; row < rows_; ++row) {
      const float label = pass.input(1)[row];
      if (!pass.holds_sample(row) || label < 0) continue;
      const std::span<const float> scores = pass.input(0).row(row);
      for (size_t c = 0; c < scores.size(); ++c) {
        const float target = static_cast<size_t>(label) == c ? 1.0F : 0.0F;
        body(scores[c] - target, static_cast<int64_t>(scores.size()) * row + int64_t(c));
      }
    }
  }
  int64_t rows_;
};

class Rows : public DatasetType {
 public:
  static const char* name() { return "stored_rows"; }
  static const char* help() { return "pictures of one bright row"; }
  static std::vector<Parameter> parameters() {
    return {integer("", "pictures").by_default("64").range(1, 1000000)};
  }
  Rows(const tandem_dataset_request& request, const Attributes& attributes)
      : size_(attributes.integer("pictures")), shape_(request.shape) {
    shape_ = {1, shape_.c > 0 ? shape_.c : 3, shape_.h > 0 ? shape_.h : 8,
              shape_.w > 0 ? shape_.w : 8};
  }
  int64_t size() const override { return size_; }
  int64_t class_count() const override { return 4; }
  Shape shape() const override { return shape_; }
  const char* class_name(int64_t index) const override {
    static const std::vector<std::string> names{"row 0", "row 1", "row 2", "row 3"};
    return names[static_cast<size_t>(index)].c_str();
  }
  const char* sample_name(int64_t) const override { return "made up"; }
  void get(int64_t index, uint64_t seed, float* pixels, float* label) const override {
    for (int64_t i = 0; i < count(shape_); ++i) {
      const tandem_random4 noise =
          tandem_random_block(seed, 0, 0, static_cast<uint64_t>(index), static_cast<uint32_t>(i));
      const bool is_bright = i / shape_.w % shape_.h == index % 4;
      pixels[i] = 0.25F * tandem_uniform(noise.value[0]) + (is_bright ? 1.0F : 0.0F);
    }
    *label = static_cast<float>(index % 4);
  }

 private:
  int64_t size_;
  Shape shape_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "stored", "1.0")
      .layer<Mix>()
      .kernel<Mix, MixCpu>("cpu")
      .layer<Loss>()
      .kernel<Loss, LossCpu>("cpu")
      .dataset<Rows>()
      .table();
}
