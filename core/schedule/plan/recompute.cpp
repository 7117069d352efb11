#include "core/schedule/plan/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/base/text/strings.h"
#include "core/model/net/net.h"
#include "core/schedule/plan/memory_plan.h"
#include "core/schedule/plan/ordering.h"

namespace tandem {
namespace {

// Operations for each byte of a float32 pass. Devices do many more in the time that a byte takes.
constexpr double max_operations = 4;

// A matrix or filter is used for many values of the output, whatever the layer's type counts.
bool has_vectors_only(const Net& net, const Layer& layer) {
  return std::all_of(layer.weights.begin(), layer.weights.end(), [&](int weight) {
    const Shape& shape = net.weight(weight).shape;
    return element_count(shape) == std::max({shape.n, shape.c, shape.h, shape.w});
  });
}

class Recomputation {
 public:
  // An input that would have to be computed again for a smaller output takes memory where it may be
  // at its peak, or not: which is better the memory plan tells.
  Recomputation(Plan& plan, const Net& net, bool repeats_larger_inputs)
      : plan_(plan),
        net_(net),
        repeats_larger_inputs_(repeats_larger_inputs),
        uses_(plan.buffers.size()),
        writes_(plan.buffers.size()) {
    for_each_access(plan, [this](const Access& access) {
      uses_[size_t(access.buffer)].push_back(access);
      if (access.writes) writes_[size_t(access.buffer)].push_back(access);
    });
  }

  void run() {
    // In the order of the forward pass, so that it is known which inputs are kept.
    std::vector<std::pair<int, int>> order;  // the first writer, buffer
    for (size_t i = 0; i < writes_.size(); ++i) {
      if (!writes_[i].empty()) order.emplace_back(writes_[i].front().task, static_cast<int>(i));
    }
    std::sort(order.begin(), order.end());
    for (const auto& [task, buffer] : order) {
      const std::optional<int> before = first_backward_use(buffer);
      if (before && repeat(buffer, *before)) dropped_[buffer] = *before;
    }
    rebuild();
  }

 private:
  [[nodiscard]] const LayerWork* pass_of(int task) const {
    return std::get_if<LayerWork>(&plan_.task(task).work);
  }
  [[nodiscard]] const PlanBinding& binding_of(int task) const {
    return plan_.bindings[size_t(pass_of(task)->binding)];
  }

  // Whether the task is a forward pass that writes this whole buffer and no other output.
  [[nodiscard]] bool is_repeatable(int task, int buffer) const {
    const LayerWork* pass = pass_of(task);
    if (pass == nullptr || pass->pass != LayerPass::forward || repeated_.contains(task)) {
      return false;
    }
    const PlanBinding& use = binding_of(task);
    if (use.slice.end >= 0 || use.input_slice.end >= 0 || use.adds_to_output) return false;
    if (use.outputs.size() != 1 || use.outputs[0].buffer != buffer ||
        plan_.bytes(use.outputs[0]) != plan_.buffer(buffer).bytes) {
      return false;
    }
    const Layer& layer = net_.layer(use.layer);
    if (!has_vectors_only(net_, layer)) return false;
    const tandem_layer_cost cost = net_.cost(use.layer, use.rows.count());
    return cost.forward_flops <= max_operations * cost.forward_bytes;
  }

  // Whether only passes of one stream of its device use the buffer, so that others take its memory
  // while it is free.
  [[nodiscard]] bool shares_memory(int buffer) const {
    const Buffer& b = plan_.buffer(buffer);
    if (b.kind != BufferKind::transient || b.slots != 1 || b.device < 0) return false;
    const auto& uses = uses_[size_t(buffer)];
    const std::vector<StreamId>& streams = plan_.task(uses.front().task).streams;
    return streams.size() == 1 && streams[0].device == b.device &&
           std::all_of(uses.begin(), uses.end(), [&](const Access& use) {
             return pass_of(use.task) != nullptr && plan_.task(use.task).streams == streams;
           });
  }

  // The task before which the buffer would be written again, if something runs while it is free.
  [[nodiscard]] std::optional<int> first_backward_use(int buffer) const {
    if (!shares_memory(buffer)) return std::nullopt;
    int last = -1;
    for (const Access& use : uses_[size_t(buffer)]) {
      if (is_forward(pass_of(use.task)->pass)) {
        last = use.task;
        continue;
      }
      for (int task = last + 1; task < use.task; ++task) {
        const LayerWork* pass = pass_of(task);
        if (pass != nullptr && pass->pass == LayerPass::forward) return use.task;
      }
      return std::nullopt;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool is_written_between(const Region& region, int first, int last) const {
    const auto& writes = writes_[size_t(region.buffer)];
    const Interval bytes{region.offset, region.offset + plan_.bytes(region)};
    auto write = std::upper_bound(writes.begin(), writes.end(), first,
                                  [](int task, const Access& use) { return task < use.task; });
    for (; write != writes.end() && write->task < last; ++write) {
      if (write->bytes.overlaps(bytes)) return true;
    }
    return false;
  }

  static bool is_among(const Region& region, const std::vector<Region>& regions) {
    return std::any_of(regions.begin(), regions.end(), [&](const Region& other) {
      return other.buffer == region.buffer && other.offset == region.offset;
    });
  }

  // The layer's values that are kept from step to step, which the pass may change.
  [[nodiscard]] std::vector<Region> states_of(int task) const {
    const PlanBinding& use = binding_of(task);
    std::vector<Region> states;
    for (size_t i = 0; i < use.weights.size(); ++i) {
      if (use.weights[i].buffer < 0) continue;
      if (net_.weight(net_.layer(use.layer).weights[i]).kind == TANDEM_STATE) {
        states.push_back(use.weights[i]);
      }
    }
    return states;
  }

  // Whether a pass that runs again before the task `before` reads what it read the first time. Its
  // kept values are copied before they change.
  [[nodiscard]] bool reads_the_same(int task, int buffer, int before) const {
    const std::vector<Region> states = states_of(task);
    const auto& reads = plan_.task(task).reads;
    return std::all_of(reads.begin(), reads.end(), [&](const Region& region) {
      return region.buffer < 0 || region.buffer == buffer || is_among(region, states) ||
             !is_written_between(region, task, before);
    });
  }

  // Whether an input of what makes `buffer` is in memory at the task `before` anyhow. If not, it is
  // computed again, too, unless it is too large, or the backward pass has use for it itself: then
  // all of it would depend on the first one.
  [[nodiscard]] bool has_input(int input, int buffer, int before) {
    if (!shares_memory(input)) return true;
    const bool is_used_later = uses_[size_t(input)].back().task >= before;
    const auto dropped = dropped_.find(input);
    if (dropped != dropped_.end()) return is_used_later && dropped->second <= before;
    if (is_used_later) return true;
    const bool is_larger = plan_.buffer(input).bytes > plan_.buffer(buffer).bytes;
    return (repeats_larger_inputs_ || !is_larger) && repeat(input, before);
  }

  // Whether the buffer's writers can run again before the task `before`; if so, they will.
  bool repeat(int buffer, int before) {
    std::vector<int>& planned = again_[before];
    const size_t known = planned.size();
    for (const Access& write : writes_[size_t(buffer)]) {
      if (write.task < before && can_repeat(write.task, buffer, before)) {
        planned.push_back(write.task);
        repeated_.insert(write.task);
        continue;
      }
      for (size_t i = known; i < planned.size(); ++i) repeated_.erase(planned[i]);
      planned.resize(known);
      return false;
    }
    return true;
  }

  // What its inputs need for it is planned meanwhile.
  [[nodiscard]] bool can_repeat(int writer, int buffer, int before) {
    if (!is_repeatable(writer, buffer) || !reads_the_same(writer, buffer, before)) return false;
    const bool is_first = writer == writes_[size_t(buffer)].front().task;
    std::vector<Region> inputs = binding_of(writer).inputs;
    inputs.push_back(binding_of(writer).addend);
    return std::all_of(inputs.begin(), inputs.end(), [&](const Region& input) {
      if (input.buffer < 0) return true;
      return input.buffer == buffer ? !is_first : has_input(input.buffer, buffer, before);
    });
  }

  // Replaces regions of the layer's kept values by those of their copies.
  using Copies = std::vector<CopySegment>;
  static void replace(std::vector<Region>& regions, const Copies& copies) {
    for (Region& region : regions) {
      for (const CopySegment& copy : copies) {
        const bool is_it =
            region.buffer == copy.source.buffer && region.offset == copy.source.offset;
        if (is_it) region = copy.target;
      }
    }
  }

  // "norm1 @0" of "forward norm1 @0"
  [[nodiscard]] std::string name_of(int task) const {
    const std::string& label = plan_.task(task).label;
    return label.substr(label.find(' ') + 1);
  }

  // Copies of what the pass keeps from step to step, from before it changes: the pass that runs
  // again begins with them, and changes them in place of the net's.
  [[nodiscard]] Copies copies_of(int task) {
    Copies copies;
    Buffer buffer;
    buffer.name = "state of " + plan_.task(task).label;
    buffer.device = binding_of(task).device;
    for (const Region& state : states_of(task)) {
      const int64_t bytes = plan_.bytes(state);
      copies.push_back({state, {static_cast<int>(plan_.buffers.size()), buffer.bytes, bytes}});
      buffer.bytes += aligned(bytes);
    }
    if (!copies.empty()) plan_.buffers.push_back(std::move(buffer));
    return copies;
  }

  // Not on the copy stream, where the next batch would wait behind it.
  [[nodiscard]] Task copy_task(int task, const Copies& copies) const {
    const StreamId stream{binding_of(task).device, StreamKind::control};
    Task copy{
        "copy state of " + name_of(task), Stage::store_state, plan_.task(task).layer, {stream}};
    for (const CopySegment& segment : copies) {
      copy.reads.push_back(segment.source);
      copy.writes.push_back(segment.target);
    }
    copy.work = CopyWork{copies};
    return copy;
  }

  [[nodiscard]] Task again(int task, Stage stage, const Copies& copies) {
    Task result = plan_.task(task);
    result.label = "recompute " + name_of(task);
    result.stage = stage;
    replace(result.reads, copies);
    replace(result.writes, copies);
    auto& work = std::get<LayerWork>(result.work);
    work.repeats = true;
    if (copies.empty()) return result;
    PlanBinding use = binding_of(task);
    replace(use.weights, copies);
    work.binding = static_cast<int>(plan_.bindings.size());
    plan_.bindings.push_back(std::move(use));
    return result;
  }

  void rebuild() {
    std::map<int, Copies> copies;  // by task
    for (const int task : repeated_) copies[task] = copies_of(task);
    std::vector<Task> tasks;
    tasks.reserve(plan_.tasks.size() + 2 * repeated_.size());
    for (size_t i = 0; i < plan_.tasks.size(); ++i) {
      const int index = static_cast<int>(i);
      if (const auto found = copies.find(index); found != copies.end() && !found->second.empty()) {
        tasks.push_back(copy_task(index, found->second));
      }
      if (const auto found = again_.find(index); found != again_.end()) {
        for (const int task : found->second) {
          tasks.push_back(again(task, plan_.tasks[i].stage, copies[task]));
        }
      }
      // Not moved: it may run again.
      tasks.push_back(plan_.tasks[i]);
    }
    plan_.tasks = std::move(tasks);
  }

  Plan& plan_;
  const Net& net_;
  bool repeats_larger_inputs_;
  std::vector<std::vector<Access>> uses_, writes_;  // by buffer, in the order of the tasks
  std::map<int, std::vector<int>> again_;           // forward passes, by the task that they precede
  std::set<int> repeated_;                          // all of them
  std::map<int, int> dropped_;  // buffers that the backward pass finds written again; before what
};

}  // namespace

void recompute_activations(Plan& plan, const Net& net, double min_share) {
  const auto bytes_of = [](const Plan& some) {
    const std::vector<int64_t> bytes = plan_memory(some).transient_bytes;
    return std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
  };
  const int64_t whole = bytes_of(plan);
  int64_t least = whole - static_cast<int64_t>(min_share * static_cast<double>(whole));
  Plan best;
  for (const bool repeats_larger_inputs : {false, true}) {
    Plan changed = plan;
    Recomputation(changed, net, repeats_larger_inputs).run();
    const int64_t bytes = bytes_of(changed);
    if (bytes >= least) continue;
    least = bytes;
    best = std::move(changed);
  }
  if (best.tasks.empty()) {
    plan.recomputation = fmt::format(
        "--recompute: no pass runs again, since that would save less than {:.3g} % of the "
        "memory",
        100 * min_share);
    return;
  }
  plan = std::move(best);
  plan.recomputation = fmt::format(
      "--recompute: {} forward passes of layers run again in a step, which takes {} less memory",
      std::count_if(plan.tasks.begin(), plan.tasks.end(), &repeats), human_bytes(whole - least));
}

}  // namespace tandem
