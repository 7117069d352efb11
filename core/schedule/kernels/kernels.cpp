#include "core/schedule/kernels/kernels.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/running_note.h"
#include "core/model/net/layer_calls.h"
#include "core/plugin/host.h"
#include "core/plugin/registry.h"
#include "core/schedule/kernels/runtime.h"
#include "core/schedule/plan/buffers.h"

namespace tandem {
namespace {

// Reduces the shapes of a whole layer to those of a slice, as tandem_binding says.
void cut(const PlanBinding& binding, LayerBinding& result) {
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

// `shapes`: of all tensors, for the binding's rows.
LayerBinding layer_binding(const Net& net, const PlanBinding& binding,
                           const std::vector<Shape>& shapes) {
  LayerBinding result(net, net.layer(binding.layer), shapes);
  cut(binding, result);
  tandem_binding& raw = result.raw;
  if (binding.adds_to_output) raw.flags |= TANDEM_ADD_TO_OUTPUT;
  raw.batch_begin = binding.rows.begin;
  raw.slice_begin = binding.slice.begin;
  raw.slice_end = binding.slice.end;
  raw.input_begin = binding.input_slice.begin;
  raw.fused_activation = binding.activation;
  raw.activation_before = binding.activation_before;
  if (raw.slice_end < 0) raw.slice_end = result.outputs.empty() ? 0 : result.outputs[0].shape.c;
  return result;
}

struct Prepared {
  const tandem_kernel* table = nullptr;
  void* handle = nullptr;
  tandem_kernel_report report{};
  KernelOwner owner;
  std::string algorithm;
  std::string given;          // the algorithm that it must take; "": none
  bool is_recorded = false;   // by an earlier run; else an earlier layer of this one measured it
  std::string hardware, key;  // the backend and the device, and the use's name; for tuning only
  StreamId stream;
  LayerBinding binding;
  tandem_status status = TANDEM_FAILED;
  std::string reason;

  // A kernel that refuses is not a failure of the machine, so the work itself succeeds.
  static tandem_status prepare(void* context, const tandem_call* call) {
    Prepared& self = *static_cast<Prepared*>(context);
    static_cast<void>(take_reason());
    self.report.struct_size = sizeof self.report;
    self.binding.raw.algorithm = self.given.empty() ? nullptr : self.given.c_str();
    const RunningNote note("prepare", self.owner.whole.c_str());
    self.status = self.table->prepare(&self.binding.raw, call, &self.handle, &self.report);
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
  // Now or in an earlier run.
  [[nodiscard]] bool has_measured() const { return report.is_measured == 1 && !algorithm.empty(); }
  void release() {
    if (handle == nullptr) return;
    const RunningNote note("release", owner.whole.c_str());
    table->release(handle);
    handle = nullptr;
  }
};

// A kernel that can measure must take the given algorithm or refuse.
void require_given(const Layer& layer, const Prepared& prepared) {
  const bool takes_another =
      prepared.report.is_measured == 1 && prepared.algorithm != prepared.given;
  if (prepared.given.empty() || !takes_another) return;
  throw error("{}: its kernel was to take the algorithm '{}' again, but took '{}'{}", layer.title(),
              prepared.given, prepared.algorithm, in_file(layer.location));
}

// What a kernel that refuses was to take.
std::string given_text(const Prepared& prepared) {
  if (prepared.given.empty()) return "";
  if (prepared.is_recorded) {
    return fmt::format("; the run's record says to take '{}' again: begin a new run to choose anew",
                       prepared.given);
  }
  return fmt::format("; an earlier layer like it measured '{}': run without --tune",
                     prepared.given);
}

// Of one buffer: more than any device addresses, and few enough that the offsets and sums of a
// memory plan do not overflow.
constexpr int64_t max_bytes = int64_t{1} << 48;

// What a kernel lacks is reported before the first step.
void require(const Layer& layer, const Prepared& prepared, int64_t statistics) {
  if (prepared.status != TANDEM_OK) {
    const std::string reason =
        prepared.reason.empty() ? fmt::format("its kernel refused with status {}", prepared.status)
                                : prepared.reason;
    const std::string message = fmt::format("{}: {}{}{}", layer.title(), reason,
                                            in_file(layer.location), given_text(prepared));
    if (prepared.status == TANDEM_UNSUPPORTED) throw Unsupported(message);
    throw Error(message);
  }
  require_given(layer, prepared);
  for (const auto& [bytes, what] : {std::pair{prepared.report.saved_bytes, "saved"},
                                    {prepared.report.scratch_bytes, "scratch"}}) {
    if (bytes >= 0 && bytes <= max_bytes) continue;
    const std::string limit =
        bytes < 0 ? std::string("the least is 0") : fmt::format("the most is {}", max_bytes);
    throw error("{}: its kernel asks for {} bytes of {} memory, but {}{}", prepared.owner.layer,
                bytes, what, limit, prepared.owner.place);
  }
  if (prepared.report.statistics < 0 || prepared.report.statistics > statistics) {
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
  int64_t& needed = plan.buffer(buffer).bytes;
  needed = std::max(needed, bytes);
}

// A net is made for the kernels of one kind of device.
void require_activation(const Layer& layer, const tandem_kernel& kernel, uint32_t fusible,
                        int32_t activation) {
  if (activation == TANDEM_ACTIVATION_NONE || (fusible >> activation & 1U) != 0) return;
  throw error(
      "{}: its kernel for {} devices does not fuse {}, but the net was made for one that does{}",
      layer.title(), kernel.device_kind, activation_name(activation), in_file(layer.location));
}

void require_sum(const Layer& layer, const tandem_kernel& kernel) {
  if (layer.addend < 0 || kernel.fuses_sum == 1) return;
  throw error(
      "{}: its kernel for {} devices adds no other layer's output, but the net was made for one "
      "that does{}",
      layer.title(), kernel.device_kind, in_file(layer.location));
}

KernelOwner owner_of(const Registry& registry, const Layer& layer, const std::string& device_kind) {
  const ModuleReport* module = registry.module_of_kernel(layer.type->name, device_kind);
  const bool is_named = module != nullptr && !module->built_in && !module->path.empty();
  const std::string place =
      in_file(layer.location) + (is_named ? fmt::format(", module {}", module->path.string()) : "");
  const bool is_third_party = module != nullptr && !module->built_in;
  return {layer.title(), place, layer.title() + place, is_third_party};
}

}  // namespace

struct Kernels::State {
  explicit State(Runtime& runtime) : runtime(runtime) {}
  ~State() {
    // Released on the stream's thread, where the device is current; directly if the machine has
    // failed and runs nothing any more.
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

  void bind_all(const Plan& plan, const Net& net, const Registry& registry) {
    kernels.resize(plan.bindings.size());
    std::map<int64_t, std::vector<Shape>> shapes;  // by rows
    for (size_t i = 0; i < kernels.size(); ++i) {
      const PlanBinding& binding = plan.bindings[i];
      const Layer& layer = net.layer(binding.layer);
      kernels[i].table = &registry.kernel(layer.type->name, runtime.machine().kind());
      const tandem_kernel& table = *kernels[i].table;
      require_activation(layer, table, table.fused_activations, binding.activation);
      require_activation(layer, table, table.gradients_before, binding.activation_before);
      require_sum(layer, table);
      kernels[i].owner = owner_of(registry, layer, runtime.machine().kind());
      kernels[i].stream = {binding.device, StreamKind::compute};
      const int64_t rows = binding.rows.count();
      if (shapes.count(rows) == 0) shapes[rows] = net.shapes(rows);
      kernels[i].binding = layer_binding(net, binding, shapes.at(rows));
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
      kernels[i].hardware = hardware[size_t(use.device)];
      kernels[i].key = choice_key(kernels[i].hardware, net, use);
    }
  }

  // The algorithm that the use must take: the one that is known for it, or where this may measure,
  // the measured one of an earlier layer that is alike. "": none.
  [[nodiscard]] std::string algorithm_to_take(const Prepared& use, const Tuning& tuning) const {
    const auto known = tuning.choices.find(use.key);
    if (known != tuning.choices.end()) return known->second;
    if (!tuning.measures) return {};
    for (const Prepared& earlier : kernels) {
      if (&earlier == &use) break;
      if (earlier.has_measured() && earlier.table == use.table &&
          earlier.hardware == use.hardware && are_alike(earlier.binding, use.binding)) {
        return earlier.algorithm;
      }
    }
    return {};
  }

  void submit(Prepared& prepared) const {
    runtime.stream(prepared.stream)
        .submit({sizeof(tandem_work), TANDEM_WORK_HOST, prepared.binding.raw.layer_name, 0,
                 &Prepared::prepare, &prepared});
  }

  void prepare(const Plan& plan) {
    for (Prepared& prepared : kernels) submit(prepared);
    for (int device = 0; device < plan.devices; ++device) {
      runtime.stream({device, StreamKind::compute}).synchronize();
    }
  }

  // One after the other: other work would change a measurement, also on another device of the same
  // GPU, and the second use of a kind, or of a layer alike, takes what the first has chosen.
  void prepare(const Plan& plan, const Net& net, Tuning& tuning) {
    name_uses(plan, net);
    for (Prepared& prepared : kernels) {
      prepared.is_recorded = tuning.choices.count(prepared.key) > 0;
      prepared.given = algorithm_to_take(prepared, tuning);
      if (!tuning.measures) continue;
      if (prepared.given.empty()) prepared.binding.raw.flags |= TANDEM_MAY_MEASURE;
      submit(prepared);
      runtime.stream(prepared.stream).synchronize();
      if (prepared.has_measured()) tuning.choices.emplace(prepared.key, prepared.algorithm);
    }
    if (!tuning.measures) prepare(plan);
  }

  Runtime& runtime;
  std::vector<Prepared> kernels;
};

Kernels::Kernels(Plan& plan, const Net& net, const Registry& registry, Runtime& runtime,
                 Tuning* tuning)
    : state_(std::make_unique<State>(runtime)) {
  state_->bind_all(plan, net, registry);
  if (tuning != nullptr && (tuning->measures || !tuning->choices.empty())) {
    state_->prepare(plan, net, *tuning);
  } else {
    state_->prepare(plan);
  }
  for (size_t i = 0; i < plan.bindings.size(); ++i) {
    const PlanBinding& binding = plan.bindings[i];
    const Prepared& prepared = state_->kernels[i];
    require(net.layer(binding.layer), prepared,
            plan.bytes(binding.forward_statistics) / buffers::float_bytes);
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
  return *state_->kernels[size_t(binding)].table;
}
void* Kernels::handle(int binding) const {
  return state_->kernels[size_t(binding)].handle;
}
const KernelOwner& Kernels::owner(int binding) const {
  return state_->kernels[size_t(binding)].owner;
}
const std::string& Kernels::algorithm(int binding) const {
  return state_->kernels[size_t(binding)].algorithm;
}

}  // namespace tandem
