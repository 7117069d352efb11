#include "core/schedule/execution/kernels.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/model/fields.h"
#include "core/plugin/registry.h"
#include "core/schedule/execution/kernel_checks.h"
#include "core/schedule/execution/runtime.h"

namespace tandem {

namespace {

// What a tandem_binding points to.
struct Description {
  std::vector<tandem_tensor> inputs, outputs;
  std::vector<Shape> weights;
  tandem_binding raw{};
};

std::vector<tandem_tensor> describe(const Net& net, const std::vector<Shape>& shapes,
                                    const std::vector<int>& tensors) {
  std::vector<tandem_tensor> result;
  for (const int tensor : tensors) {
    const auto i = static_cast<size_t>(tensor);
    result.push_back({shapes[i], net.tensors[i].dtype, net.tensors[i].layout});
  }
  return result;
}

// What a slice has of its layer's tensors and weights, as tandem_binding says.
void cut(const PlanBinding& binding, Description& result) {
  const int64_t channels = binding.slice.count();
  if (binding.slice.end >= 0) {
    if (!binding.whole_outputs) result.outputs[0].shape.c = channels;
    if (result.weights.empty()) result.inputs[0].shape.c = channels;
    for (Shape& weight : result.weights) weight.n = channels;
  }
  if (binding.input_slice.end >= 0) {
    Shape& input = result.inputs[0].shape;
    input = {input.n, binding.input_slice.count(), 1, 1};
  }
}

void describe(const Net& net, const PlanBinding& binding, Description& result) {
  const Layer& layer = net.layers[static_cast<size_t>(binding.layer)];
  const std::vector<Shape> shapes = net.shapes(binding.rows.count());
  result.inputs = describe(net, shapes, layer.inputs);
  result.outputs = describe(net, shapes, layer.outputs);
  for (size_t i = 0; i < layer.weights.size(); ++i) {
    result.weights.push_back(layer.weight_shapes.empty()
                                 ? net.weights[static_cast<size_t>(layer.weights[i])].shape
                                 : layer.weight_shapes[i]);
  }
  cut(binding, result);
  tandem_binding& raw = result.raw;
  raw.struct_size = sizeof raw;
  raw.phase = net.phase;
  raw.layer_index = layer.random_index;
  raw.flags = (layer.wants_backward_data ? TANDEM_WANTS_BACKWARD_DATA : 0) |
              (layer.wants_backward_weights ? TANDEM_WANTS_BACKWARD_WEIGHTS : 0) |
              (layer.runs_in_place ? TANDEM_RUNS_IN_PLACE : 0) |
              (binding.adds_to_output ? TANDEM_ADD_TO_OUTPUT : 0) |
              (layer.allows_tf32 ? TANDEM_ALLOWS_TF32 : 0);
  raw.layer_name = layer.name.c_str();
  raw.attributes = layer.attributes ? layer.attributes->handle() : nullptr;
  raw.inputs = result.inputs.data();
  raw.input_count = static_cast<uint32_t>(result.inputs.size());
  raw.outputs = result.outputs.data();
  raw.output_count = static_cast<uint32_t>(result.outputs.size());
  raw.weights = result.weights.data();
  raw.weight_count = static_cast<uint32_t>(result.weights.size());
  raw.batch_begin = binding.rows.begin;
  raw.batch_size = net.batch;
  raw.slice_begin = binding.slice.begin;
  raw.slice_end = binding.slice.end;
  raw.input_begin = binding.input_slice.begin;
  raw.activation = binding.activation;
  if (raw.slice_end < 0) raw.slice_end = result.outputs.empty() ? 0 : result.outputs[0].shape.c;
}

struct Prepared {
  const tandem_kernel* table = nullptr;
  void* handle = nullptr;
  tandem_kernel_report report{};
  std::string algorithm;
  std::string given, key;  // the algorithm of an earlier run, and the use's name; "": none
  StreamId stream;
  Description description;
  tandem_status status = TANDEM_FAILED;
  std::string reason;

  // Refusing is an answer and not a failure of the machine, so the work itself succeeds.
  static tandem_status prepare(void* context, const tandem_call* call) {
    Prepared& self = *static_cast<Prepared*>(context);
    static_cast<void>(take_reason());
    self.report.struct_size = sizeof self.report;
    self.description.raw.algorithm = self.given.empty() ? nullptr : self.given.c_str();
    self.status = self.table->prepare(&self.description.raw, call, &self.handle, &self.report);
    if (self.status != TANDEM_OK) self.reason = take_reason();
    if (self.status == TANDEM_OK && self.report.algorithm != nullptr) {
      self.algorithm = self.report.algorithm;
    }
    return TANDEM_OK;
  }
  static tandem_status release(void* context, const tandem_call*) {
    static_cast<Prepared*>(context)->release();
    return TANDEM_OK;
  }
  void release() {
    if (handle == nullptr) return;
    table->release(handle);
    handle = nullptr;
  }
};

// A kernel that can measure has to take what it is told, or refuse.
void require_given(const Layer& layer, const Prepared& prepared) {
  const bool takes_another =
      prepared.algorithm.starts_with(measured_prefix) && prepared.algorithm != prepared.given;
  if (prepared.given.empty() || !takes_another) return;
  throw error("{}: its kernel was to take the algorithm '{}' again, but took '{}'{}", layer.title(),
              prepared.given, prepared.algorithm, in_file(layer.location));
}

// Whatever can be known to be missing is said before the first step.
void require(const Layer& layer, const Prepared& prepared, int64_t statistics) {
  if (prepared.status != TANDEM_OK) {
    const std::string reason =
        prepared.reason.empty() ? fmt::format("its kernel refused with status {}", prepared.status)
                                : prepared.reason;
    const std::string message =
        fmt::format("{}: {}{}{}", layer.title(), reason, in_file(layer.location),
                    prepared.given.empty()
                        ? ""
                        : fmt::format("; the run's record says to take '{}' again: begin a new run "
                                      "to choose anew",
                                      prepared.given));
    if (prepared.status == TANDEM_UNSUPPORTED) throw Unsupported(message);
    throw Error(message);
  }
  require_given(layer, prepared);
  if (prepared.report.statistics > statistics) {
    throw error("{}: its kernel writes {} statistics of the batch, but its type says {}{}",
                layer.title(), prepared.report.statistics, statistics, in_file(layer.location));
  }
  if (prepared.report.saved_bytes > 0 && layer.has(TANDEM_SAVES_NOTHING)) {
    throw error("{}: its kernel keeps {} bytes of saved memory, but its type says it keeps none{}",
                layer.title(), prepared.report.saved_bytes, in_file(layer.location));
  }
}

void need(Plan& plan, int buffer, int64_t bytes) {
  if (buffer < 0) return;
  int64_t& needed = plan.buffers[static_cast<size_t>(buffer)].bytes;
  needed = std::max(needed, bytes);
}

}  // namespace

struct Kernels::State {
  explicit State(Runtime& runtime) : runtime(runtime) {}
  ~State() {
    // On the stream's thread, where the device is current; directly if the machine has failed and
    // runs nothing any more.
    for (Prepared& prepared : kernels) {
      try {
        if (prepared.handle == nullptr) continue;
        runtime.stream(prepared.stream)
            .submit({sizeof(tandem_work), TANDEM_WORK_HOST, "release", 0, &Prepared::release,
                     &prepared});
      } catch (const Error&) {
      }
    }
    for (Prepared& prepared : kernels) {
      try {
        runtime.stream(prepared.stream).synchronize();
      } catch (const Error&) {
      }
      prepared.release();
    }
  }

  void describe_all(const Plan& plan, const Net& net, const Registry& registry) {
    kernels.resize(plan.bindings.size());
    for (size_t i = 0; i < kernels.size(); ++i) {
      const PlanBinding& binding = plan.bindings[i];
      const Layer& layer = net.layers[static_cast<size_t>(binding.layer)];
      kernels[i].table = &registry.kernel(layer.type->name, runtime.machine().kind());
      require_activation(layer, *kernels[i].table, binding.activation);
      kernels[i].stream = {binding.device, StreamKind::compute};
      if (unaware_of_graphs.empty()) {
        unaware_of_graphs =
            reason_against_graphs(registry, layer.type->name, runtime.machine().kind());
      }
      describe(net, binding, kernels[i].description);
    }
  }

  void name_uses(const Plan& plan, const Net& net) {
    std::vector<std::string> hardware;
    for (int device = 0; device < plan.devices; ++device) {
      hardware.push_back(fmt::format("{} {}", runtime.machine().kind(),
                                     runtime.machine().device_info(device).name));
    }
    for (size_t i = 0; i < kernels.size(); ++i) {
      const PlanBinding& use = plan.bindings[i];
      kernels[i].key = choice_key(hardware[static_cast<size_t>(use.device)], net, use);
    }
  }

  void submit(Prepared& prepared) const {
    runtime.stream(prepared.stream)
        .submit({sizeof(tandem_work), TANDEM_WORK_HOST, prepared.description.raw.layer_name, 0,
                 &Prepared::prepare, &prepared});
  }

  void prepare(const Plan& plan) {
    for (Prepared& prepared : kernels) submit(prepared);
    for (int device = 0; device < plan.devices; ++device) {
      runtime.stream({device, StreamKind::compute}).synchronize();
    }
  }

  // One after the other: what runs beside a measurement would change it, also on another device of
  // the same GPU, and the second use of a kind takes what the first has chosen.
  void prepare(const Plan& plan, const Net& net, Tuning& tuning) {
    name_uses(plan, net);
    for (Prepared& prepared : kernels) {
      const auto known = tuning.choices.find(prepared.key);
      if (known != tuning.choices.end()) prepared.given = known->second;
      if (!tuning.measures) continue;
      if (prepared.given.empty()) prepared.description.raw.flags |= TANDEM_MAY_MEASURE;
      submit(prepared);
      runtime.stream(prepared.stream).synchronize();
      if (prepared.algorithm.starts_with(measured_prefix)) {
        tuning.choices.emplace(prepared.key, prepared.algorithm);
      }
    }
    if (!tuning.measures) prepare(plan);
  }

  Runtime& runtime;
  std::vector<Prepared> kernels;
  std::string unaware_of_graphs;
};

Kernels::Kernels(Plan& plan, const Net& net, const Registry& registry, Runtime& runtime,
                 Tuning* tuning)
    : state_(std::make_unique<State>(runtime)) {
  state_->describe_all(plan, net, registry);
  if (tuning != nullptr && (tuning->measures || !tuning->choices.empty())) {
    state_->prepare(plan, net, *tuning);
  } else {
    state_->prepare(plan);
  }
  for (size_t i = 0; i < plan.bindings.size(); ++i) {
    const PlanBinding& binding = plan.bindings[i];
    const Prepared& prepared = state_->kernels[i];
    require(net.layers[static_cast<size_t>(binding.layer)], prepared,
            plan.bytes(binding.forward_statistics) / 4);
    need(plan, binding.saved, prepared.report.saved_bytes);
    need(plan, binding.scratch, prepared.report.scratch_bytes);
    need(plan, binding.backward_scratch, prepared.report.scratch_bytes);
  }
}

Kernels::~Kernels() {
  if (state_ != nullptr && state_->runtime.abandoned()) static_cast<void>(state_.release());
}

Kernels::Kernels(Kernels&&) noexcept = default;

const tandem_kernel& Kernels::table(int binding) const {
  return *state_->kernels[static_cast<size_t>(binding)].table;
}
void* Kernels::handle(int binding) const {
  return state_->kernels[static_cast<size_t>(binding)].handle;
}
const std::string& Kernels::unaware_of_graphs() const {
  return state_->unaware_of_graphs;
}
const std::string& Kernels::algorithm(int binding) const {
  return state_->kernels[static_cast<size_t>(binding)].algorithm;
}

}  // namespace tandem
