// Layers that load and go wrong later, each in its own way; and some that are right: one with two
// inputs, a trained weight and a kink, for strategies; a classifier; and for the check one with a
// label and one that keeps memory for later use.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "plugins/sdk.h"

namespace {

// The address is volatile, so that the compiler does not know and warn.
void write_to_unmapped_memory() {
  volatile uintptr_t address = 16;
  *reinterpret_cast<volatile float*>(address) = 1;
}

using namespace tandem::sdk;

struct MoreRows : LayerType {
  const char* name() const override { return "test.MoreRows"; }
  const char* help() const override { return "has one row too many"; }
  std::vector<Shape> shapes(const Query& query) const override {
    Shape shape = query.input(0);
    ++shape.n;
    return {shape};
  }
};

struct Asks : LayerType {
  const char* name() const override { return "test.Asks"; }
  const char* help() const override { return "its kernel reports the given numbers"; }
  std::vector<Parameter> parameters() const override {
    return {integer("test_param", "saved").by_default("0"),
            integer("test_param", "scratch").by_default("0"),
            integer("test_param", "statistics").by_default("0")};
  }
};

// Not a loss, and its label is not input 1.
struct Labelled : LayerType {
  const char* name() const override { return "test.Labelled"; }
  const char* help() const override { return "the sum of two inputs; its label must be plain"; }
  Inputs inputs() const override { return {Input("a"), Input("b"), Input("label").label()}; }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
};

// Right: a row of weights for each class, whose number is not that of the input's channels.
struct OfClass : LayerType {
  const char* name() const override { return "test.OfClass"; }
  const char* help() const override { return "the product of a row and the weights of its class"; }
  Inputs inputs() const override { return {Input("data"), Input("label").label()}; }
  std::vector<Parameter> parameters() const override {
    return {integer("test_param", "num_output").required().range(1, 1000)};
  }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING;
  }
  std::vector<Shape> shapes(const Query& query) const override {
    return {{query.input(0).n, 1, 1, 1}};
  }
  std::vector<Weight> weights(const Query& query) const override {
    const Shape& x = query.input(0);
    return {{.name = "weight",
             .shape = {query.attributes.integer("num_output"), x.c * x.h * x.w, 1, 1},
             .fan_in = x.c * x.h * x.w}};
  }
};

// Right: a classifier. Its number of scores has a name that no built-in layer has.
struct Scores : LayerType {
  const char* name() const override { return "test.Scores"; }
  const char* help() const override { return "as many scores as there are classes"; }
  std::vector<Parameter> parameters() const override {
    return {integer("test_param", "classes").by_default("3").range(1, 1000)};
  }
  uint64_t traits() const override { return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING; }
  std::vector<Shape> shapes(const Query& query) const override {
    return {{query.input(0).n, query.attributes.integer("classes"), 1, 1}};
  }
};

struct Ends : LayerType {
  const char* name() const override { return "test.Ends"; }
  const char* help() const override { return "ends the program, or fails"; }
  std::vector<Parameter> parameters() const override {
    return {word("test_param", "by")
                .by_default("throw")
                .one_of("throw|write|abort|prepare|exit|stack|thread|divide|illegal|hang"),
            integer("test_param", "after").by_default("0").help("right passes before it")};
  }
};

struct Keeps : LayerType {
  const char* name() const override { return "test.Keeps"; }
  const char* help() const override { return "a copy; keeps memory of its first 200 passes"; }
};

struct Join : LayerType {
  const char* name() const override { return "test.Join"; }
  const char* help() const override { return "the larger of two inputs times a trained factor"; }
  Inputs inputs() const override { return {Input("a"), Input("b")}; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING;
  }
  std::vector<Weight> weights(const Query& query) const override {
    return {{.name = "factor", .shape = {query.input(0).c, 1, 1, 1}, .initial = 1}};
  }
};

struct Copies {
  Copies(const Binding& binding, const Call&) : elements(count(binding.input(0).shape)) {}
  void forward(const Call&, const Pass& pass) const {
    std::copy_n(pass.input(0).data(), elements, pass.output(0).data());
  }
  void backward_data(const Call&, const Pass& pass) const {
    std::copy_n(pass.output_gradient(0).data(), elements, pass.input_gradient(0).data());
  }
  int64_t elements;
};

struct KeepsCpu : Copies {
  using Copies::Copies;
  void forward(const Call& call, const Pass& pass) const {
    static std::vector<std::unique_ptr<char[]>> kept;
    if (kept.size() < 200) kept.push_back(std::make_unique<char[]>(100));
    Copies::forward(call, pass);
  }
};

struct AsksCpu : Needs, Copies {
  AsksCpu(const Binding& binding, const Call& call) : Copies(binding, call) {
    saved_bytes = binding.attributes.integer("saved");
    scratch_bytes = binding.attributes.integer("scratch");
    statistics = binding.attributes.integer("statistics");
  }
};

class OfClassCpu {
 public:
  OfClassCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        size_(count(binding.input(0).shape) / rows_),
        classes_(binding.weight(0).n) {
    if (count(binding.input(1).shape) != rows_) throw invalid("it takes one label for each row");
  }
  void forward(const Call&, const Pass& pass) const {
    for (int64_t row = 0; row < rows_; ++row) {
      const float* x = pass.input(0) + row * size_;
      const float* w = pass.weight(0) + class_of(pass, row) * size_;
      double sum = 0;
      for (int64_t i = 0; i < size_; ++i) sum += double(x[i]) * double(w[i]);
      pass.output(0)[row] = static_cast<float>(sum);
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t row = 0; row < rows_; ++row) {
      const float* w = pass.weight(0) + class_of(pass, row) * size_;
      float* dx = pass.input_gradient(0) + row * size_;
      for (int64_t i = 0; i < size_; ++i) dx[i] = pass.output_gradient(0)[row] * w[i];
    }
  }
  void backward_weights(const Call&, const Pass& pass) const {
    float* dw = pass.weight_gradient(0);
    if (!pass.accumulate()) std::fill_n(dw, classes_ * size_, 0.0F);
    for (int64_t row = 0; row < rows_; ++row) {
      const float* x = pass.input(0) + row * size_;
      float* of_class = dw + class_of(pass, row) * size_;
      for (int64_t i = 0; i < size_; ++i) of_class[i] += pass.output_gradient(0)[row] * x[i];
    }
  }

 private:
  [[nodiscard]] int64_t class_of(const Pass& pass, int64_t row) const {
    const float label = pass.input(1)[row];
    if (!(label >= 0) || label >= static_cast<float>(classes_)) {
      throw failed("row ", row, " has label ", label, ", which is no class");
    }
    return static_cast<int64_t>(label);
  }
  int64_t rows_, size_, classes_;
};

// Score k is value k of the row, and 0 if it has none.
class ScoresCpu {
 public:
  ScoresCpu(const Binding& binding, const Call&)
      : rows_(binding.input(0).shape.n),
        size_(count(binding.input(0).shape) / rows_),
        classes_(binding.attributes.integer("classes")) {}
  void forward(const Call&, const Pass& pass) const {
    copy(pass.input(0), size_, pass.output(0), classes_);
  }
  void backward_data(const Call&, const Pass& pass) const {
    copy(pass.output_gradient(0), classes_, pass.input_gradient(0), size_);
  }

 private:
  void copy(const float* from, int64_t length, float* to, int64_t to_length) const {
    for (int64_t i = 0; i < rows_ * to_length; ++i) {
      const int64_t row = i / to_length, at = i % to_length;
      to[i] = at < length ? from[row * length + at] : 0;
    }
  }
  int64_t rows_, size_, classes_;
};

// The sum of a and b in float32 or bfloat16, in every layout, whose label is plain float32.
class LabelledCpu {
 public:
  static constexpr uint32_t dtypes = 1U << TANDEM_FLOAT32 | 1U << TANDEM_BFLOAT16;
  static LayoutOptions layouts(const Binding& binding) {
    return any_layout(binding.input(0).shape.c);
  }
  LabelledCpu(const Binding& binding, const Call&)
      : elements_(count(binding.input(0).shape)),
        is_narrow_(binding.input(0).dtype == TANDEM_BFLOAT16) {
    const tandem_tensor& label = binding.input(2);
    if (label.dtype != TANDEM_FLOAT32 || label.layout != TANDEM_NCHW) {
      throw invalid("the label has dtype ", label.dtype, " and layout ", label.layout);
    }
  }
  void forward(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < elements_; ++i) {
      write(pass.raw.outputs[0], i, read(pass.raw.inputs[0], i) + read(pass.raw.inputs[1], i));
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int input : {0, 1}) {
      if (pass.raw.input_gradients[input] == nullptr) continue;
      for (int64_t i = 0; i < elements_; ++i) {
        write(pass.raw.input_gradients[input], i, read(pass.raw.output_gradients[0], i));
      }
    }
  }

 private:
  float read(const void* values, int64_t i) const {
    if (!is_narrow_) return static_cast<const float*>(values)[i];
    const uint32_t bits = uint32_t{static_cast<const uint16_t*>(values)[i]} << 16U;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  void write(void* values, int64_t i, float value) const {
    if (!is_narrow_) {
      static_cast<float*>(values)[i] = value;
      return;
    }
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    static_cast<uint16_t*>(values)[i] = static_cast<uint16_t>(bits >> 16U);
  }
  int64_t elements_;
  bool is_narrow_;
};

// The array and the sum keep the calls from becoming a loop.
int fill_the_stack(int depth) {
  volatile char used[1000];
  used[depth % 1000] = 1;
  return depth < 0 ? 0 : fill_the_stack(depth + 1) + used[depth % 1000];
}

// A processor without that trap goes on.
void divide_by_zero() {
  volatile int none = 0;
  volatile int result = 1 / none;
  static_cast<void>(result);
  std::raise(SIGFPE);
}

struct EndsCpu : Copies {
  EndsCpu(const Binding& binding, const Call& call)
      : Copies(binding, call),
        by(binding.attributes.text("by")),
        right_passes(binding.attributes.integer("after")) {
    if (by == "prepare") std::abort();
  }
  void backward_data(const Call& call, const Pass& pass) {
    if (right_passes-- > 0) return Copies::backward_data(call, pass);
    if (by == "throw") throw std::runtime_error("no luck today");
    if (by == "abort") std::abort();
    if (by == "write") write_to_unmapped_memory();
    if (by == "exit") std::exit(0);
    if (by == "stack") fill_the_stack(0);
    if (by == "illegal") std::raise(SIGILL);
    if (by == "divide") divide_by_zero();
    if (by == "thread") std::thread([] { throw std::runtime_error("no luck here"); }).join();
    while (by == "hang") std::this_thread::yield();
    Copies::backward_data(call, pass);
  }
  std::string by;
  int64_t right_passes;
};

class JoinCpu {
 public:
  JoinCpu(const Binding& binding, const Call&) : shape_(binding.input(0).shape) {}
  void forward(const Call&, const Pass& pass) const {
    each([&](int64_t i, int64_t c) {
      pass.output(0)[i] = pass.weight(0)[c] * std::max(pass.input(0)[i], pass.input(1)[i]);
    });
  }
  void backward_data(const Call&, const Pass& pass) const {
    each([&](int64_t i, int64_t c) {
      const float gradient = pass.weight(0)[c] * pass.output_gradient(0)[i];
      const bool first = !(pass.input(0)[i] < pass.input(1)[i]);
      if (pass.input_gradient(0) != nullptr) pass.input_gradient(0)[i] = first ? gradient : 0;
      if (pass.input_gradient(1) != nullptr) pass.input_gradient(1)[i] = first ? 0 : gradient;
    });
  }
  void backward_weights(const Call&, const Pass& pass) const {
    std::vector<double> sums(static_cast<size_t>(shape_.c));
    each([&](int64_t i, int64_t c) {
      const float largest = std::max(pass.input(0)[i], pass.input(1)[i]);
      sums[static_cast<size_t>(c)] +=
          static_cast<double>(largest) * static_cast<double>(pass.output_gradient(0)[i]);
    });
    for (size_t c = 0; c < sums.size(); ++c) {
      float& gradient = pass.weight_gradient(0)[c];
      gradient = static_cast<float>(sums[c] + (pass.accumulate() ? double{gradient} : 0));
    }
  }

 private:
  template <class Body>
  void each(const Body& body) const {
    const int64_t area = shape_.h * shape_.w;
    for (int64_t i = 0; i < count(shape_); ++i) body(i, i / area % shape_.c);
  }
  Shape shape_;
};

}  // namespace

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  return Plugin(host, "test-run-time", "1.0")
      .layer<MoreRows>()
      .kernel<MoreRows, Copies>("cpu")
      .layer<Asks>()
      .kernel<Asks, AsksCpu>("cpu")
      .layer<Labelled>()
      .kernel<Labelled, LabelledCpu>("cpu")
      .layer<OfClass>()
      .layer<Scores>()
      .kernel<Scores, ScoresCpu>("cpu")
      .kernel<OfClass, OfClassCpu>("cpu")
      .layer<Keeps>()
      .kernel<Keeps, KeepsCpu>("cpu")
      .layer<Ends>()
      .kernel<Ends, EndsCpu>("cpu")
      .layer<Join>()
      .kernel<Join, JoinCpu>("cpu")
      .table();
}
