// Element-wise layers that keep something in static variables: a buffer that all kernels share, and
// a table of the first shape of the process. Alone, each pass is right. And a wrong sort.
#include <vector>

#include "plugins/sdk.h"
#include "tests/bad_plugins/sorts.h"

namespace {

using namespace tandem::sdk;

enum class Static { Buffer, Table };

template <Static s>
struct StaticType : LayerType {
  const char* name() const override {
    return s == Static::Buffer ? "mistake.StaticBuffer" : "mistake.TableOfFirstShape";
  }
  const char* help() const override { return "a mistake to be found"; }
  uint64_t traits() const override {
    return TANDEM_PER_SAMPLE | TANDEM_SAVES_NOTHING | TANDEM_BACKWARD_READS_INPUTS;
  }
};

// y = x^2 + x, by a buffer that grows to the largest batch.
struct StaticBufferCpu {
  StaticBufferCpu(const Binding& binding, const Call&) : size(count(binding.input(0).shape)) {}
  void forward(const Call&, const Pass& pass) const {
    static std::vector<float> buffer;
    if (buffer.size() < static_cast<size_t>(size)) buffer.resize(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) {
      buffer[static_cast<size_t>(i)] = pass.input(0)[i] * pass.input(0)[i];
    }
    for (int64_t i = 0; i < size; ++i) {
      pass.output(0)[i] = buffer[static_cast<size_t>(i)] + pass.input(0)[i];
    }
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < size; ++i) {
      pass.input_gradient(0)[i] = (2 * pass.input(0)[i] + 1) * pass.output_gradient(0)[i];
    }
  }
  int64_t size;
};

// A pixel times 1 / (1 + its number), by a table that is made once.
struct FirstTableCpu {
  FirstTableCpu(const Binding& binding, const Call&) : shape(binding.input(0).shape) {}
  [[nodiscard]] float factor(int64_t i) const {
    static const std::vector<float> table = [this] {
      std::vector<float> made;
      for (int64_t k = 0; k < shape.h * shape.w; ++k) made.push_back(1 / (1 + float(k)));
      return made;
    }();
    return table[static_cast<size_t>(i) % table.size()];
  }
  void forward(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < count(shape); ++i) pass.output(0)[i] = factor(i) * pass.input(0)[i];
  }
  void backward_data(const Call&, const Pass& pass) const {
    for (int64_t i = 0; i < count(shape); ++i) {
      pass.input_gradient(0)[i] = factor(i) * pass.output_gradient(0)[i];
    }
  }
  Shape shape;
};

}  // namespace

void add_mistakes_of_statics(Plugin& plugin) {
  plugin.layer<StaticType<Static::Buffer>>()
      .kernel<StaticType<Static::Buffer>, StaticBufferCpu>("cpu")
      .layer<StaticType<Static::Table>>()
      .kernel<StaticType<Static::Table>, FirstTableCpu>("cpu");
  tandem::test::add_sorts<tandem::test::Sorts::AllButUnsortedGradients>(plugin);
}
