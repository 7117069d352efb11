#include "core/session/diagnose.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "core/base/error.h"
#include "core/device/machine.h"
#include "core/model/net/loss_scale.h"
#include "core/model/passes/build_net.h"
#include "core/schedule/execution/executor.h"
#include "core/schedule/kernels/kernels.h"
#include "core/schedule/kernels/runtime.h"
#include "core/schedule/plan/buffers.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {
namespace {

// The values of a tensor; of float16 only whether each is finite. bfloat16 is the upper half of a
// float32.
std::vector<float> as_floats(const std::vector<uint8_t>& bytes, int32_t dtype) {
  const size_t width = size_t(dtype_bytes(dtype));
  std::vector<float> values(bytes.size() / width);
  auto* target = reinterpret_cast<uint8_t*>(values.data()) + sizeof(float) - width;
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(target + i * sizeof(float), bytes.data() + i * width, width);
    if (dtype != TANDEM_FLOAT16) continue;
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + i * width, width);
    values[i] = (half & 0x7c00) == 0x7c00 ? NAN : 0.0F;
  }
  return values;
}

bool all_finite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float one) { return std::isfinite(one); });
}

// Whether a layer, whose outputs have these values, is the one that is looked for.
using IsIt = std::function<bool(const Net&, const Layer&, const std::vector<std::vector<float>>&)>;

std::string first_in_outputs(const Net& net, const Plan& plan, const Executor& executor,
                             Runtime& runtime, const IsIt& is_it) {
  const Stream& stream = runtime.stream({0, StreamKind::copy});
  for (const PlanBinding& binding : plan.bindings) {
    const Layer& layer = net.layers[size_t(binding.layer)];
    std::vector<std::vector<float>> outputs;
    for (const Region& output : binding.outputs) {
      outputs.emplace_back();
      if (output.buffer < 0) continue;
      const int64_t bytes = plan.bytes(output);
      std::vector<uint8_t> memory(static_cast<size_t>(bytes));
      stream.copy("look", TANDEM_HOST, memory.data(), 0, executor.address(output, 0), bytes);
      stream.synchronize();
      outputs.back() = as_floats(memory, layer.dtype);
    }
    if (is_it(net, layer, outputs)) return layer.title();
  }
  return "";
}

// Follows which tensors differ between the rows of the batch.
class Differences {
 public:
  explicit Differences(const Net& net) : differs_(net.tensors.size(), true) {}

  // Whether the layer makes the same of rows that differ.
  bool ends_at(const Net& net, const Layer& layer, const std::vector<std::vector<float>>& outputs) {
    const bool reads_some = std::any_of(layer.inputs.begin(), layer.inputs.end(),
                                        [&](int input) { return differs_[size_t(input)]; });
    bool makes_some = false, makes_rows = false;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const auto tensor = size_t(layer.outputs[i]);
      const int64_t rows = net.tensors[tensor].shape.n;
      const bool has_rows = rows == net.batch && rows > 1 && !outputs[i].empty() &&
                            layer.dtype != TANDEM_FLOAT16;  // see as_floats()
      makes_rows = makes_rows || has_rows;
      differs_[tensor] = has_rows ? !are_equal(outputs[i], size_t(rows)) : reads_some;
      makes_some = makes_some || differs_[tensor];
    }
    return reads_some && makes_rows && !makes_some;
  }

 private:
  static bool are_equal(const std::vector<float>& values, size_t rows) {
    const auto row = static_cast<std::ptrdiff_t>(values.size() / rows);
    return std::equal(values.begin() + row, values.end(), values.begin());
  }

  std::vector<bool> differs_;
};

// Runs one batch forward, in memory that nothing shares.
std::string first_of_batch(Registry& registry, const std::vector<float>& weights,
                           const DiagnoseInputs& inputs, Net net, const IsIt& is_it) {
  net.separate_fusions();
  for (Layer& layer : net.layers) layer.runs_in_place = false;
  for (Tensor& tensor : net.tensors)
    tensor.alias_of = tensor.view_of = tensor.gradient_view_of = -1;

  const DeviceSpec& all = inputs.devices;
  Machine machine(registry.backend(all.kind), {all.kind, {all.ordinals.front()}, all.is_counted},
                  MachineOptions{});
  Runtime runtime(machine);
  const CostTable costs;
  StrategyInputs strategy;
  strategy.net = &net;
  strategy.costs = &costs;
  Plan plan = build_testing_plan(strategy);
  Kernels kernels(plan, net, registry, runtime);
  const MemoryPlan memory = plan_memory(plan, false);
  runtime.reserve(plan, memory, inputs.loading.batch);
  Executor executor(plan, memory, net, runtime, &kernels, &costs, UpdateRule{}, ExecutorOptions{});
  runtime.write_persistent(buffers::weights, 0, weights.data(),
                           static_cast<int64_t>(weights.size()) * buffers::float_bytes);

  LoaderOptions loading = inputs.loading;
  loading.first_batch = inputs.number;
  loading.batch_count = 1;
  loading.slots = 1;
  if (loading.pixels == PixelForm::bytes) loading.pixels = PixelForm::rounded;  // as the plan is
  Loader loader(*inputs.dataset, loading,
                {[](int64_t bytes) { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); },
                 [](void* address) { std::free(address); }});
  const Batch batch = loader.next();
  const tandem_step step{
      loading.seed, inputs.step, 0.0F, static_cast<float>(batch.samples), inputs.first_row, 0};
  std::memcpy(batch.memory, &step, sizeof(step));
  executor.issue(0, {{plan.find_buffer(buffers::batch, TANDEM_HOST), batch.memory}});
  executor.drain();
  return first_in_outputs(net, plan, executor, runtime, is_it);
}

Net net_of(Registry& registry, const NetDefinition& definition, const DiagnoseInputs& inputs) {
  return build_net(
      definition, registry,
      {TANDEM_TRAIN, inputs.loading.batch, inputs.data, inputs.devices.kind, inputs.precision});
}

}  // namespace

std::string first_not_finite(Registry& registry, const NetDefinition& definition,
                             const std::vector<float>& weights, const DiagnoseInputs& inputs) {
  Net net = net_of(registry, definition, inputs);
  for (const WeightArray& weight : net.weights) {
    // The state that a layer keeps includes the failed step, but its cause is wanted.
    if (weight.kind == TANDEM_STATE) continue;
    const auto begin = weights.begin() + weight.offset;
    if (!all_finite({begin, begin + weight.count}))
      return fmt::format("the weights '{}'", weight.name);
  }
  return first_of_batch(registry, weights, inputs, std::move(net),
                        [](const Net&, const Layer&, const auto& outputs) {
                          return !std::all_of(outputs.begin(), outputs.end(), all_finite);
                        });
}

std::string first_constant(Registry& registry, const NetDefinition& definition,
                           const std::vector<float>& weights, const DiagnoseInputs& inputs) {
  Net net = net_of(registry, definition, inputs);
  Differences differences(net);
  return first_of_batch(registry, weights, inputs, std::move(net),
                        [&](const Net& net, const Layer& layer, const auto& outputs) {
                          return differences.ends_at(net, layer, outputs);
                        });
}

std::string how_it_stops(const std::string& last_good_run) {
  return last_good_run.empty()
             ? "and the run stops"
             : fmt::format("and the run stops; the last good checkpoint is in '{}'", last_good_run);
}

std::string advice_after_not_finite(const Net& net, bool weights,
                                    std::optional<double> learning_rate,
                                    const std::string& last_good_run) {
  const std::string stop = how_it_stops(last_good_run) + ".";
  if (!learning_rate) {
    return fmt::format(
        "{} No update came before, so that the learning rate is not the cause: look at the first "
        "weights (weight_filler, --weights) and at the scale of the pixels",
        stop);
  }
  if (!weights || !computes_in_float16(net)) {
    return fmt::format("{} Try a smaller learning rate (--lr, here {:.3g})", stop, *learning_rate);
  }
  constexpr double max_float16 = 65504;
  const double scale = loss_scale(net);
  return fmt::format(
      "{} Gradients above {:.0f} overflow float16, as they are times {:.0f}: {} {}--precision "
      "bfloat16, or begin with a smaller learning rate (--lr, here {:.3g}) if float32 fails, too",
      stop, max_float16 / scale, scale,
      last_good_run.empty() ? "begin again with" : "go on with --resume and",
      scale > 1 ? "a smaller --loss-scale or " : "", *learning_rate);
}

}  // namespace tandem
