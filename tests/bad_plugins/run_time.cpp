// Layers that load and go wrong later, each in its own way; and one that is right, with two inputs,
// a trained weight and a kink, for strategies.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>

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

template <int64_t saved, int64_t scratch>
struct NegativeBytes : LayerType {
  const char* name() const override { return saved < 0 ? "test.Saved" : "test.Scratch"; }
  const char* help() const override { return "asks for less than no memory"; }
};

struct Ends : LayerType {
  const char* name() const override { return "test.Ends"; }
  const char* help() const override { return "ends the program, or fails"; }
  std::vector<Parameter> parameters() const override {
    return {word("test_param", "by").by_default("throw").one_of("throw|write|abort|prepare")};
  }
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

template <int64_t saved, int64_t scratch>
struct NegativeBytesCpu : Needs, Copies {
  NegativeBytesCpu(const Binding& binding, const Call& call) : Copies(binding, call) {
    saved_bytes = saved;
    scratch_bytes = scratch;
  }
};

struct EndsCpu : Copies {
  EndsCpu(const Binding& binding, const Call& call)
      : Copies(binding, call), by(binding.attributes.text("by")) {
    if (by == "prepare") std::abort();
  }
  void backward_data(const Call& call, const Pass& pass) const {
    if (by == "throw") throw std::runtime_error("no luck today");
    if (by == "abort") std::abort();
    if (by == "write") write_to_unmapped_memory();
    Copies::backward_data(call, pass);
  }
  std::string by;
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
      .layer<NegativeBytes<-8, 0>>()
      .kernel<NegativeBytes<-8, 0>, NegativeBytesCpu<-8, 0>>("cpu")
      .layer<NegativeBytes<0, -8>>()
      .kernel<NegativeBytes<0, -8>, NegativeBytesCpu<0, -8>>("cpu")
      .layer<Ends>()
      .kernel<Ends, EndsCpu>("cpu")
      .layer<Join>()
      .kernel<Join, JoinCpu>("cpu")
      .table();
}
