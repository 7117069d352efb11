#include "bench/layer_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/plugin/host.h"
#include "core/plugin/layer_questions.h"

namespace tandem::bench {

std::string to_string(const TimedPass& timed) {
  return timed.adds ? "added_weights" : to_string(timed.pass);
}

CaseType::CaseType(const Registry& registry, LayerCase layer, int32_t dtype)
    : case_(std::move(layer)),
      dtype_(dtype),
      type_(registry.layer_type(case_.type)),
      kernel_(registry.kernel(case_.type, "cpu")),
      input_shapes_(case_.inputs, case_.input) {
  for (uint32_t i = 0; i < type_.parameter_count; ++i) {
    const tandem_parameter& parameter = *type_.parameters[i];
    const auto found = case_.parameters.find(parameter.name);
    attributes_.set(parameter.name,
                    found == case_.parameters.end()
                        ? default_attribute(parameter, case_.name)
                        : parse_attribute(parameter, found->second, case_.name, {}));
  }
  const tandem_layer_query query{sizeof query,         TANDEM_TRAIN, attributes_.handle(),
                                 input_shapes_.data(), case_.inputs, 1};
  check(type_.shapes(&query, &output_), case_.name);
  std::vector<tandem_weight> weights;
  check(ask_weights(type_, query, weights), case_.name);
  check(ask_cost(type_, query, cost_), case_.name);
  if (type_.statistics != nullptr) check(type_.statistics(&query, &statistics_), case_.name);
  for (const tandem_weight& weight : weights) weight_shapes_.push_back(weight.shape);
}

bool CaseType::knows_dtype() const {
  return dtype_ == TANDEM_FLOAT32 || (kernel_.dtypes >> dtype_ & 1U) != 0;
}

std::vector<tandem_layout_option> CaseType::options() {
  std::vector<tandem_layout_option> options;
  check(ask_layouts(kernel_, bind({TANDEM_NCHW, TANDEM_NCHW, 0}), options), case_.name);
  return options;
}

std::vector<TimedPass> CaseType::passes() const {
  std::vector<TimedPass> passes{{LayerPass::forward}};
  if (!is_first()) passes.push_back({LayerPass::backward_data});
  if (weight_shapes_.empty() || kernel_.backward_weights == nullptr) return passes;
  for (const bool adds : {false, true}) passes.push_back({LayerPass::backward_weights, adds});
  return passes;
}

int64_t CaseType::weight_bytes() const {
  int64_t bytes = 0;
  for (const Shape& shape : weight_shapes_) bytes += 4 * element_count(shape);
  return bytes;
}

double CaseType::flops(LayerPass pass) const {
  if (pass == LayerPass::forward) return cost_.forward_flops;
  return pass == LayerPass::backward_data ? cost_.backward_data_flops
                                          : cost_.backward_weights_flops;
}

double CaseType::bytes(LayerPass pass) const {
  double all = cost_.backward_weights_bytes;
  if (pass == LayerPass::forward) all = cost_.forward_bytes;
  if (pass == LayerPass::backward_data) all = cost_.backward_data_bytes;
  // What a type says is in float32.
  const double weights = std::min(all, static_cast<double>(weight_bytes()));
  return weights + (all - weights) * static_cast<double>(dtype_bytes(dtype_)) / 4;
}

tandem_binding CaseType::bind(const tandem_layout_option& option) {
  input_tensors_.assign(case_.inputs, {case_.input, dtype_, option.input});
  output_tensor_ = {output_, dtype_, option.output};
  tandem_binding binding{};
  binding.struct_size = sizeof binding;
  binding.phase = TANDEM_TRAIN;
  binding.flags = TANDEM_WANTS_BACKWARD_WEIGHTS;
  if (!is_first()) binding.flags |= TANDEM_WANTS_BACKWARD_DATA;
  binding.layer_name = case_.name;
  binding.attributes = attributes_.handle();
  binding.inputs = input_tensors_.data();
  binding.input_count = case_.inputs;
  binding.tensor_size = sizeof(tandem_tensor);
  binding.outputs = &output_tensor_;
  binding.output_count = 1;
  binding.weights = weight_shapes_.data();
  binding.weight_count = static_cast<uint32_t>(weight_shapes_.size());
  binding.batch_size = case_.input.n;
  binding.slice_end = output_.c;
  return binding;
}

LayerRun::LayerRun(CaseType& type, const tandem_layout_option& option, int32_t threads)
    : type_(type), handle_(nullptr, type.kernel_.release) {
  call_.struct_size = sizeof call_;
  call_.threads = threads;
  report_.struct_size = sizeof report_;
  const tandem_binding binding = type.bind(option);
  void* handle = nullptr;
  check(type.kernel_.prepare(&binding, &call_, &handle, &report_), type.case_.name);
  handle_.reset(handle);
  const int64_t element = dtype_bytes(type.dtype_);
  for (uint32_t i = 0; i < type.case_.inputs; ++i) {
    inputs_.push_back(allocate(element * element_count(type.case_.input)));
    input_gradients_.push_back(allocate(element * element_count(type.case_.input)));
  }
  for (const Shape& shape : type.weight_shapes_) {
    weights_.push_back(allocate(4 * element_count(shape)));
    weight_gradients_.push_back(allocate(4 * element_count(shape)));
  }
  output_ = allocate(element * element_count(type.output_));
  output_gradient_ = allocate(element * element_count(type.output_));
  pass_.struct_size = sizeof pass_;
  pass_.inputs = inputs_.data();
  pass_.outputs = &output_;
  pass_.weights = weights_.data();
  pass_.input_gradients = input_gradients_.data();
  pass_.output_gradients = &output_gradient_;
  pass_.weight_gradients = weight_gradients_.data();
  pass_.saved = allocate(report_.saved_bytes);
  pass_.scratch = allocate(report_.scratch_bytes);
  const tandem_layer_statistics& statistics = type.statistics_;
  if (statistics.forward > 0) forward_statistics_ = allocate(4 * statistics.forward);
  if (statistics.backward > 0) backward_statistics_ = allocate(4 * statistics.backward);
  pass_.step = &step_;
  pass_.normaliser = &normaliser_;
  run({LayerPass::forward});  // what backward passes read is then there
}

void* LayerRun::allocate(int64_t bytes) {
  const size_t size = (static_cast<size_t>(bytes) / 64 + 1) * 64;
  memory_.emplace_back(std::aligned_alloc(64, size), &std::free);
  if (memory_.back() == nullptr) throw error("{}: no {} bytes of memory", type_.case_.name, size);
  std::memset(memory_.back().get(), 0, size);
  return memory_.back().get();
}

void LayerRun::run(const TimedPass& timed) {
  const tandem_kernel& kernel = type_.kernel_;
  pass_.flags = timed.adds ? uint32_t{TANDEM_ACCUMULATE} : 0;
  const bool is_forward = timed.pass == LayerPass::forward;
  tandem_pass_function function = is_forward ? kernel.forward : kernel.backward_weights;
  if (timed.pass == LayerPass::backward_data) function = kernel.backward_data;
  pass_.statistics = static_cast<float*>(is_forward ? forward_statistics_ : backward_statistics_);
  if (pass_.statistics != nullptr) {
    const auto statistics = is_forward ? kernel.forward_statistics : kernel.backward_statistics;
    check(statistics(handle_.get(), &call_, &pass_), type_.case_.name);
  }
  check(function(handle_.get(), &call_, &pass_), type_.case_.name);
}

std::string LayerRun::description() const {
  return fmt::format("{}; saved {} MiB, scratch {} MiB",
                     report_.algorithm == nullptr ? "" : report_.algorithm,
                     report_.saved_bytes >> 20, report_.scratch_bytes >> 20);
}

}  // namespace tandem::bench
