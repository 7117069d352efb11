// bench_layers [BATCH] [LAYER]: times the layers of AlexNet, and those that work element by element
// at the size of ResNet's first block, on this thread's OpenMP team, each pass
// in every layout the kernel offers, and prints what oneDNN chose, so that a pass that fell to a
// slow implementation is seen.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>

#include "core/base/attributes.h"
#include "core/base/shape.h"
#include "core/plugin/registry.h"

namespace {

using namespace tandem;
using Parameters = std::map<std::string, std::vector<std::string>>;

struct Case {
  const char* name;
  const char* type;
  Shape input;
  Parameters parameters;
  uint32_t inputs = 1;  // of this shape each
};

std::vector<Case> alexnet(int64_t n) {
  const Parameters norm{{"alpha", {"0.0001"}}};
  const Parameters pool{{"kernel_size", {"3"}}, {"stride", {"2"}}};
  const auto convolution = [](const char* outputs, const char* kernel, const char* stride,
                              const char* pad, const char* group) {
    return Parameters{{"num_output", {outputs}},
                      {"kernel_size", {kernel}},
                      {"stride", {stride}},
                      {"pad", {pad}},
                      {"group", {group}}};
  };
  return {
      {"conv1", "Convolution", {n, 3, 227, 227}, convolution("96", "11", "4", "0", "1")},
      {"relu1", "ReLU", {n, 96, 55, 55}, {}},
      {"norm1", "LRN", {n, 96, 55, 55}, norm},
      {"pool1", "Pooling", {n, 96, 55, 55}, pool},
      {"conv2", "Convolution", {n, 96, 27, 27}, convolution("256", "5", "1", "2", "2")},
      {"norm2", "LRN", {n, 256, 27, 27}, norm},
      {"pool2", "Pooling", {n, 256, 27, 27}, pool},
      {"conv3", "Convolution", {n, 256, 13, 13}, convolution("384", "3", "1", "1", "1")},
      {"conv4", "Convolution", {n, 384, 13, 13}, convolution("384", "3", "1", "1", "2")},
      {"conv5", "Convolution", {n, 384, 13, 13}, convolution("256", "3", "1", "1", "2")},
      {"pool5", "Pooling", {n, 256, 13, 13}, pool},
      {"flat5", "Reorder", {n, 256, 6, 6}, {}},
      {"fc6", "InnerProduct", {n, 256, 6, 6}, {{"num_output", {"4096"}}}},
      {"drop6", "Dropout", {n, 4096, 1, 1}, {}},
      {"fc7", "InnerProduct", {n, 4096, 1, 1}, {{"num_output", {"4096"}}}},
      {"fc8", "InnerProduct", {n, 4096, 1, 1}, {{"num_output", {"1000"}}}},
  };
}

std::vector<Case> elementwise(int64_t n) {
  const Shape block{n, 64, 56, 56};
  return {
      {"scale", "Scale", block, {{"bias_term", {"true"}}}},
      {"bias", "Bias", block, {}},
      {"sum", "Eltwise", block, {}, 2},
      {"coeff", "Eltwise", block, {{"coeff", {"1", "-1"}}}, 2},
      {"prod", "Eltwise", block, {{"operation", {"PROD"}}}, 2},
      {"max", "Eltwise", block, {{"operation", {"MAX"}}}, 2},
      {"prelu", "PReLU", block, {}},
      {"sigmoid", "Sigmoid", block, {}},
      {"tanh", "TanH", block, {}},
      {"elu", "ELU", block, {}},
      {"swish", "Swish", block, {}},
      {"gelu", "GELU", block, {}},
      {"bnll", "BNLL", block, {}},
  };
}

// Zeroed, 64-byte aligned.
class Buffer {
 public:
  explicit Buffer(int64_t bytes)
      : memory_(std::aligned_alloc(64, static_cast<size_t>(bytes / 64 + 1) * 64), &std::free) {
    std::fill_n(static_cast<char*>(memory_.get()), bytes, 0);
  }
  [[nodiscard]] void* get() const { return memory_.get(); }

 private:
  std::unique_ptr<void, void (*)(void*)> memory_;
};

double best_milliseconds(const std::function<void()>& run) {
  using clock = std::chrono::steady_clock;
  double best = 1e30;
  run();
  for (int i = 0; i < 3; ++i) {
    const auto begin = clock::now();
    run();
    best = std::min(best, std::chrono::duration<double, std::milli>(clock::now() - begin).count());
  }
  return best;
}

// One layer of the net, with the memory of all its passes.
class Bench {
 public:
  Bench(const Registry& registry, const Case& layer)
      : case_(layer),
        type_(registry.layer_type(layer.type)),
        kernel_(registry.kernel(layer.type, "cpu")),
        first_(layer.input.c == 3),
        input_shapes_(layer.inputs, layer.input) {
    for (uint32_t i = 0; i < type_.parameter_count; ++i) {
      const tandem_parameter& parameter = *type_.parameters[i];
      const auto found = layer.parameters.find(parameter.name);
      attributes_.set(parameter.name,
                      found == layer.parameters.end()
                          ? default_attribute(parameter, layer.name)
                          : parse_attribute(parameter, found->second, layer.name, {}));
    }
    const tandem_layer_query query{sizeof query,         TANDEM_TRAIN, attributes_.handle(),
                                   input_shapes_.data(), layer.inputs, 1};
    check(type_.shapes(&query, &output_), layer.name);
    check(type_.weights(&query, weights_, 4, &weight_count_), layer.name);
    cost_.struct_size = sizeof cost_;
    check(type_.cost(&query, &cost_), layer.name);
    for (uint32_t i = 0; i < weight_count_; ++i) weight_shapes_[i] = weights_[i].shape;
  }

  void run_all() {
    tandem_layout_option options[16];
    uint32_t count = 0;
    const tandem_binding binding = bind({}, {});
    check(kernel_.layouts(&binding, options, 16, &count), case_.name);
    for (uint32_t i = 0; i < count; ++i) run(options[i]);
  }

 private:
  tandem_binding bind(const tandem_tensor& input, const tandem_tensor& output) {
    input_tensors_.assign(case_.inputs, {case_.input, TANDEM_FLOAT32, input.layout});
    output_tensor_ = {output_, TANDEM_FLOAT32, output.layout};
    return {sizeof(tandem_binding),
            TANDEM_TRAIN,
            0,
            (first_ ? 0U : uint32_t{TANDEM_WANTS_BACKWARD_DATA}) | TANDEM_WANTS_BACKWARD_WEIGHTS,
            case_.name,
            attributes_.handle(),
            input_tensors_.data(),
            case_.inputs,
            &output_tensor_,
            1,
            weight_shapes_,
            weight_count_,
            0,
            case_.input.n,
            0,
            output_.c,
            0,
            nullptr,
            0};
  }

  void run(const tandem_layout_option& option) {
    const tandem_binding binding = bind({{}, 0, option.input}, {{}, 0, option.output});
    const tandem_call call{sizeof(tandem_call),
                           0,
                           static_cast<int32_t>(std::thread::hardware_concurrency()),
                           nullptr,
                           nullptr,
                           nullptr};
    void* handle = nullptr;
    tandem_kernel_report report{sizeof(tandem_kernel_report), 0, 0, 0, nullptr};
    check(kernel_.prepare(&binding, &call, &handle, &report), case_.name);
    const int64_t in = 4 * element_count(case_.input), out = 4 * element_count(output_);
    const Buffer y(out), dy(out), saved(report.saved_bytes), scratch(report.scratch_bytes);
    std::vector<Buffer> parts;
    std::vector<void*> weight, gradient, inputs, input_gradients;
    for (uint32_t i = 0; i < case_.inputs; ++i) {
      inputs.push_back(parts.emplace_back(in).get());
      input_gradients.push_back(parts.emplace_back(in).get());
    }
    for (uint32_t i = 0; i < weight_count_; ++i) {
      parts.emplace_back(4 * element_count(weight_shapes_[i]));
      weight.push_back(parts.back().get());
      parts.emplace_back(4 * element_count(weight_shapes_[i]));
      gradient.push_back(parts.back().get());
    }
    void* outputs[] = {y.get()};
    const void* output_gradients[] = {dy.get()};
    const tandem_step step{1, 1, 0.01F, 1, 0, 0};
    const float normaliser = 1;
    tandem_pass pass{sizeof(tandem_pass),
                     0,
                     inputs.data(),
                     outputs,
                     weight.data(),
                     input_gradients.data(),
                     output_gradients,
                     gradient.data(),
                     saved.get(),
                     scratch.get(),
                     &step,
                     &normaliser,
                     nullptr};
    const auto time = [&](tandem_pass_function function) {
      return best_milliseconds([&] { check(function(handle, &call, &pass), case_.name); });
    };
    fmt::print("{:7} {:>7} -> {:7}", case_.name, layout_name(option.input),
               layout_name(option.output));
    print("forward", time(kernel_.forward), cost_.forward_flops, cost_.forward_bytes);
    if (!first_) {
      print("data", time(kernel_.backward_data), cost_.backward_data_flops,
            cost_.backward_data_bytes);
    }
    if (weight_count_ > 0) {
      print("weights", time(kernel_.backward_weights), cost_.backward_weights_flops,
            cost_.backward_weights_bytes);
      pass.flags = TANDEM_ACCUMULATE;
      print("added", time(kernel_.backward_weights), cost_.backward_weights_flops,
            cost_.backward_weights_bytes);
    }
    fmt::print("  {} (saved {} MB, scratch {} MB, +{:.0f} MB)\n",
               report.algorithm == nullptr ? "" : report.algorithm, report.saved_bytes >> 20,
               report.scratch_bytes >> 20, option.extra_bytes / 1e6);
    std::fflush(stdout);
    kernel_.release(handle);
  }

  static void print(const char* pass, double milliseconds, double flops, double bytes) {
    if (flops > 20 * bytes / 4) {
      fmt::print("  {} {:7.2f} ms {:4.0f} GFLOP/s", pass, milliseconds, flops / milliseconds / 1e6);
    } else {
      fmt::print("  {} {:7.2f} ms {:4.1f} GB/s", pass, milliseconds, bytes / milliseconds / 1e6);
    }
  }

  const Case& case_;
  const tandem_layer_type& type_;
  const tandem_kernel& kernel_;
  bool first_;  // nobody wants the gradient of the images
  Attributes attributes_;
  Shape output_{};
  tandem_weight weights_[4]{};
  Shape weight_shapes_[4]{};
  uint32_t weight_count_ = 0;
  tandem_layer_cost cost_{};
  std::vector<Shape> input_shapes_;
  std::vector<tandem_tensor> input_tensors_;
  tandem_tensor output_tensor_{};
};

}  // namespace

int main(int argc, char** argv) try {
  const int64_t batch = argc > 1 ? std::atoll(argv[1]) : 128;
  const std::string only = argc > 2 ? argv[2] : "";
  Registry registry;
  registry.scan(TANDEM_PLUGIN_DIR);
  for (const auto& layers : {alexnet(batch), elementwise(batch)}) {
    for (const Case& layer : layers) {
      if (only.empty() || only == layer.name) Bench(registry, layer).run_all();
    }
  }
  return 0;
} catch (const std::exception& failure) {
  fmt::print(stderr, "{}\n", failure.what());
  return 1;
}
