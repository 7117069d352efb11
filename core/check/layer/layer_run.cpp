#include "core/check/layer/layer_run.h"

#include <algorithm>
#include <optional>

#include "core/base/running_note.h"
#include "core/check/layer/halting_memory.h"
#include "core/plugin/layer_questions.h"

namespace tandem::checker {

namespace {

std::vector<PlainTensor> read(const std::vector<GuardedMemory>& memory,
                              const std::vector<tandem_tensor>& tensors) {
  std::vector<PlainTensor> result;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const tandem_tensor& t = tensors[i];
    result.push_back(read_in_layout(t.shape, t.layout, memory[i].data(), t.dtype));
  }
  return result;
}

std::vector<void*> pointers(const std::vector<GuardedMemory>& memory) {
  std::vector<void*> result;
  for (const GuardedMemory& one : memory) result.push_back(one.data());
  return result;
}

}  // namespace

std::vector<PlainTensor> LayerRun::forward(const OtherParts& others) {
  outputs_ = make(outputs_of_binding_);
  const PlainTensor& start = in_place() ? setup_.inputs[0] : setup_.output_start;
  if (!start.values.empty()) {
    write_in_layout(start, outputs_of_binding_[0].layout, outputs_[0].data(), setup_.output_dtype);
  }
  if (statistics_floats_.forward > 0) {
    run_statistics(kernel_.forward_statistics, {}, statistics_floats_.forward);
    merge(others);
  }
  run(kernel_.forward, true, {});
  return read(outputs_, outputs_of_binding_);
}

void LayerRun::take_outputs_of(const LayerRun& other) {
  outputs_.clear();
  for (const GuardedMemory& output : other.outputs_) {
    outputs_.emplace_back(output.data(), output.bytes());
  }
}

std::vector<float> LayerRun::forward_statistics() {
  run_statistics(kernel_.forward_statistics, {}, statistics_floats_.forward);
  return statistics();
}

std::vector<float> LayerRun::statistics() const {
  if (statistics_ == nullptr) return {};
  return {statistics_->data(), statistics_->data() + statistics_count_};
}

std::vector<PlainTensor> LayerRun::backward_data(const std::vector<PlainTensor>& output_gradients,
                                                 const OtherParts& others) {
  const std::vector<GuardedMemory> gradients = write(output_gradients, outputs_of_binding_);
  run_backward_statistics(gradients, others);
  const std::vector<GuardedMemory> results = make(inputs_of_binding_);
  const Addresses addresses = input_gradient_pointers(results, gradients);
  run(kernel_.backward_data, false, {output_pointers(gradients), addresses, {}});
  return read_input_gradients(addresses);
}

std::pair<std::vector<PlainTensor>, std::vector<PlainTensor>> LayerRun::backward(
    const std::vector<PlainTensor>& output_gradients) {
  const std::vector<tandem_tensor> plain = weights_of_binding();
  const std::vector<GuardedMemory> gradients = write(output_gradients, outputs_of_binding_);
  run_backward_statistics(gradients, {});
  const std::vector<GuardedMemory> results = make(inputs_of_binding_), weights = make(plain);
  const Addresses addresses = input_gradient_pointers(results, gradients);
  const Addresses of_weights = weight_gradient_pointers(weights);
  run(kernel_.backward, false, {output_pointers(gradients), addresses, of_weights});
  return {read_input_gradients(addresses), read_weight_gradients(of_weights)};
}

LayerRun::Addresses LayerRun::input_gradient_pointers(
    const std::vector<GuardedMemory>& memory,
    const std::vector<GuardedMemory>& output_gradients) const {
  Addresses addresses = pointers(memory);
  for (size_t i = 0; i < addresses.size(); ++i) {
    if (is_label(type_, i) || input_role(type_, i) == TANDEM_INPUT_SHAPE) addresses[i] = nullptr;
  }
  // A host that runs in place also gives the gradients the same memory.
  if (in_place()) addresses[0] = output_gradients[0].data();
  for (size_t i = 0; i < unwanted_.size(); ++i) {
    if (unwanted_[i]) addresses[i] = nullptr;
  }
  return addresses;
}

std::vector<PlainTensor> LayerRun::read_input_gradients(const Addresses& addresses) const {
  std::vector<PlainTensor> read_back(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    const tandem_tensor& t = inputs_of_binding_[i];
    if (addresses[i] == nullptr) continue;
    read_back[i] = read_in_layout(t.shape, t.layout, addresses[i], t.dtype);
  }
  return read_back;
}

std::vector<float> LayerRun::backward_statistics(const std::vector<PlainTensor>& output_gradients) {
  const std::vector<GuardedMemory> gradients = write(output_gradients, outputs_of_binding_);
  run_statistics(kernel_.backward_statistics, pointers(gradients), statistics_floats_.backward);
  return statistics();
}

std::vector<PlainTensor> LayerRun::backward_weights(
    const std::vector<PlainTensor>& output_gradients, const std::vector<PlainTensor>& start,
    const OtherParts& others) {
  const std::vector<tandem_tensor> plain = weights_of_binding();
  const std::vector<GuardedMemory> gradients = write(output_gradients, outputs_of_binding_);
  run_backward_statistics(gradients, others);
  const std::vector<GuardedMemory> results = start.empty() ? make(plain) : write(start, plain);
  const Addresses addresses = weight_gradient_pointers(results);
  run(kernel_.backward_weights, false, {output_pointers(gradients), {}, addresses},
      start.empty() ? 0 : TANDEM_ACCUMULATE);
  return read_weight_gradients(addresses);
}

// A host has no memory for the gradient of a state.
LayerRun::Addresses LayerRun::weight_gradient_pointers(
    const std::vector<GuardedMemory>& memory) const {
  Addresses addresses = pointers(memory);
  const std::vector<tandem_weight> declared = declared_weights();
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].kind != TANDEM_TRAINED) addresses[i] = nullptr;
  }
  return addresses;
}

std::vector<PlainTensor> LayerRun::read_weight_gradients(const Addresses& addresses) const {
  const std::vector<tandem_tensor> plain = weights_of_binding();
  std::vector<PlainTensor> gradients(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    const tandem_tensor& t = plain[i];
    if (addresses[i] == nullptr) continue;
    gradients[i] = read_in_layout(t.shape, t.layout, addresses[i], t.dtype);
  }
  return gradients;
}

std::vector<GuardedMemory> LayerRun::make(const std::vector<tandem_tensor>& tensors) const {
  std::vector<GuardedMemory> result;
  for (const tandem_tensor& t : tensors) {
    result.emplace_back(dtype_bytes(t.dtype) * element_count(t.shape), setup_.fill);
  }
  return result;
}

std::vector<GuardedMemory> LayerRun::write(const std::vector<PlainTensor>& values,
                                           const std::vector<tandem_tensor>& tensors) const {
  std::vector<GuardedMemory> result = make(tensors);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].values.empty()) continue;  // the gradient of a state
    write_in_layout(values[i], tensors[i].layout, result[i].data(), tensors[i].dtype);
  }
  return result;
}

LayerRun::Addresses LayerRun::output_pointers(const std::vector<GuardedMemory>& memory) const {
  Addresses result = pointers(memory);
  for (size_t i = 0; i < absent_.size(); ++i) {
    if (absent_[i]) result[i] = nullptr;
  }
  return result;
}

void LayerRun::run_statistics(tandem_pass_function function, const Addresses& output_gradients,
                              int64_t floats) {
  statistics_ = std::make_unique<GuardedMemory>(4 * floats, setup_.fill);
  statistics_count_ = floats;
  if (function == nullptr) throw error("{}: its kernel has no statistics pass", setup_.type);
  run(function, output_gradients.empty(),
      {output_gradients, Addresses(input_shapes_.size()), Addresses(weight_shapes_.size())});
}

void LayerRun::run_backward_statistics(const std::vector<GuardedMemory>& output_gradients,
                                       const OtherParts& others) {
  if (statistics_floats_.backward == 0) return;
  run_statistics(kernel_.backward_statistics, pointers(output_gradients),
                 statistics_floats_.backward);
  for (const std::vector<float>& other : others) add_to_statistics(other);
}

void LayerRun::add_to_statistics(const std::vector<float>& other) {
  for (size_t i = 0; i < other.size(); ++i) statistics_->data()[i] += other[i];
}

void LayerRun::merge(const OtherParts& others) {
  if (others.empty()) return;
  std::vector<GuardedMemory> memory;
  for (const std::vector<float>& other : others) {
    if (kernel_.merge_forward_statistics == nullptr) {
      add_to_statistics(other);
    } else {
      memory.emplace_back(other.data(), int64_t(other.size()) * 4);
    }
  }
  if (memory.empty()) return;
  OnDevice on(device_);
  std::vector<const float*> sources;
  for (const GuardedMemory& one : memory) {
    sources.push_back(static_cast<const float*>(on.at(one.data())));
  }
  auto* target = static_cast<float*>(on.at(statistics_->data()));
  call([&](const tandem_call* call) {
    return kernel_.merge_forward_statistics(handle_, call, target, sources.data(),
                                            uint32_t(sources.size()));
  });
}

// `memory` has the gradients. A backward pass gets only the tensors that its traits name.
void LayerRun::run(tandem_pass_function function, bool is_forward, Memory memory, uint32_t flags) {
  if (function == nullptr) throw error("{}: its kernel has no such pass", setup_.type);
  const bool has_all = is_forward || shows_everything_;
  const bool reads_inputs = has_all || (type_.traits & TANDEM_BACKWARD_READS_INPUTS) != 0 ||
                            setup_.activation_before != TANDEM_ACTIVATION_NONE;
  const bool reads_outputs = has_all || (type_.traits & TANDEM_BACKWARD_READS_OUTPUTS) != 0;
  const std::vector<GuardedMemory> inputs =
      reads_inputs ? write(setup_.inputs, inputs_of_binding_) : make(inputs_of_binding_);
  const std::vector<GuardedMemory> hidden = make(outputs_of_binding_);
  const std::vector<GuardedMemory> weights = write(setup_.weights, weights_of_binding());
  const GuardedMemory scratch(report_.scratch_bytes, setup_.fill);
  std::vector<GuardedMemory> addend;
  if (function == kernel_.forward && !setup_.addend.values.empty()) {
    addend = write({setup_.addend}, {outputs_of_binding_[0]});
    memory.addend = addend[0].data();
  }
  memory.inputs = pointers(inputs);
  memory.outputs = pointers(reads_outputs ? outputs_ : hidden);
  memory.weights = pointers(weights);
  memory.scratch = scratch.data();
  if (in_place()) memory.inputs[0] = memory.outputs[0];
  for (size_t i = 1; i < memory.inputs.size() && shares_inputs_; ++i) {
    const bool is_same = equal(input_shapes_[i], input_shapes_[0]) && !is_label(type_, i);
    if (is_same) memory.inputs[i] = memory.inputs[0];
  }
  const std::vector<ReadOnly> before = read_only(memory, is_forward);
  call_pass(function, flags, memory);
  check_unwritten(before);
  weights_after_ = read(weights, weights_of_binding());
  check_guards(memory);
}

// With all memory on the device for the time of the call.
void LayerRun::call_pass(tandem_pass_function function, uint32_t flags, const Memory& memory) {
  const GuardedMemory step(&setup_.step, sizeof setup_.step);
  const GuardedMemory normaliser(&setup_.normaliser, sizeof setup_.normaliser);
  const std::vector<float>& labels = setup_.row_labels;
  const GuardedMemory row_labels(labels.data(), int64_t(4 * labels.size()), setup_.fill);
  OnDevice on(device_);
  Addresses x = on.at(memory.inputs), y = on.at(memory.outputs), dx = on.at(memory.input_gradients),
            dy = on.at(memory.output_gradients);
  const Addresses w = on.at(memory.weights), dw = on.at(memory.weight_gradients);
  std::optional<HaltingMemory> halting;
  void** const address = halting_address(x, y, dx, dy);
  if (address != nullptr && HaltingMemory::is_possible()) {
    halting.emplace(*address, GuardedMemory::bytes_of(*address), meanwhile_);
    *address = halting->data();
  }
  const void* statistics = statistics_ == nullptr ? nullptr : statistics_->data();
  const tandem_pass pass{
      sizeof(tandem_pass),
      flags,
      x.data(),
      y.data(),
      w.data(),
      dx.data(),
      const_cast<const void* const*>(dy.data()),
      dw.data(),
      on.at(saved_->data()),
      on.at(memory.scratch),
      static_cast<const tandem_step*>(on.at(step.data())),
      static_cast<const float*>(on.at(normaliser.data())),
      static_cast<float*>(on.at(statistics)),
      labels.empty() ? nullptr : static_cast<const float*>(on.at(row_labels.data())),
      on.at(memory.addend)};
  call([&](const tandem_call* call) {
    give_signal_stack();
    return function(handle_, call, &pass);
  });
}

void** LayerRun::halting_address(Addresses& inputs, Addresses& outputs, Addresses& input_gradients,
                                 Addresses& output_gradients) const {
  Addresses* const all[] = {nullptr, &inputs, &outputs, &input_gradients, &output_gradients};
  Addresses* const chosen = all[static_cast<int>(halt_)];
  const bool has_memory = chosen != nullptr && halt_index_ < chosen->size() &&
                          (*chosen)[halt_index_] != nullptr &&
                          GuardedMemory::bytes_of((*chosen)[halt_index_]) > 0;
  return has_memory ? &(*chosen)[halt_index_] : nullptr;
}

std::vector<LayerRun::ReadOnly> LayerRun::read_only(const Memory& memory, bool is_forward) const {
  std::vector<ReadOnly> result;
  if (tolerates_) return result;
  const auto add = [&](std::string what, const void* data) {
    if (data == nullptr) return;
    const auto* bytes = static_cast<const unsigned char*>(data);
    result.push_back({std::move(what), data, {bytes, bytes + GuardedMemory::bytes_of(data)}});
  };
  add("the addend", memory.addend);
  for (size_t i = in_place() ? 1 : 0; i < memory.inputs.size(); ++i) {
    add(fmt::format("input {}", i), memory.inputs[i]);
  }
  const std::vector<tandem_weight> declared = declared_weights();
  for (size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].kind == TANDEM_STATE && setup_.phase == TANDEM_TRAIN) continue;
    add(fmt::format("weight '{}'", declared[i].name), memory.weights[i]);
  }
  for (size_t i = 0; i < memory.outputs.size() && !is_forward; ++i) {
    add(fmt::format("output {}", i), memory.outputs[i]);
  }
  // A host that runs in place gives both gradients the same memory.
  const bool shares = in_place() && !memory.input_gradients.empty();
  for (size_t i = shares ? 1 : 0; i < memory.output_gradients.size(); ++i) {
    add(fmt::format("the gradient of output {}", i), memory.output_gradients[i]);
  }
  return result;
}

void LayerRun::check_unwritten(const std::vector<ReadOnly>& before) const {
  for (const ReadOnly& one : before) {
    const auto* now = static_cast<const unsigned char*>(one.data);
    const auto differ = std::mismatch(one.bytes.begin(), one.bytes.end(), now);
    if (differ.first == one.bytes.end()) continue;
    throw Violation(fmt::format("{}: {} was written (byte {}), but a pass may only read it",
                                setup_.type, one.what, differ.first - one.bytes.begin()));
  }
}

void LayerRun::check_guards(const Memory& memory) const {
  if (tolerates_) return;
  const auto check = [&](const std::string& what, const void* data) {
    const std::string damage = data == nullptr ? "" : GuardedMemory::damage_of(data);
    if (!damage.empty()) throw Violation(fmt::format("{}: {}: {}", setup_.type, what, damage));
  };
  check("saved memory", saved_->data());
  check("scratch memory", memory.scratch);
  for (const auto& [what, addresses] : {std::pair{"input", &memory.inputs},
                                        {"output", &memory.outputs},
                                        {"weight", &memory.weights},
                                        {"the gradient of input", &memory.input_gradients},
                                        {"the gradient of output", &memory.output_gradients},
                                        {"the gradient of weight", &memory.weight_gradients}}) {
    for (size_t i = 0; i < addresses->size(); ++i) {
      check(fmt::format("{} {}", what, i), (*addresses)[i]);
    }
  }
  check("the statistics", statistics_ == nullptr ? nullptr : statistics_->data());
}

}  // namespace tandem::checker
