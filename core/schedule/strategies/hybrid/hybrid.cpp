#include "core/schedule/strategies/hybrid/hybrid.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/schedule/strategies/common/collectives.h"
#include "core/schedule/strategies/common/ring_group.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/schedule/strategies/common/updates.h"
#include "core/schedule/strategies/composed/fc_chain.h"

namespace tandem {
namespace {

// Who does what.
struct Roles {
  std::vector<int> conv, fc;    // devices; as many conv devices for each FC device
  int last_conv = -1;           // layer: forward on conv devices, backward on FC devices
  bool extends_memory = false;  // the FC devices' solver state is in extended memory
  // The FC device that conv device number `i` works with.
  [[nodiscard]] int partner(size_t i) const { return fc[i / (conv.size() / fc.size())]; }
};

// Its backward can run on a device that has not run its forward.
bool can_hand_over(const Layer& layer) {
  return !layer.weights.empty() && layer.has(TANDEM_PER_SAMPLE) && layer.has(TANDEM_SAVES_NOTHING);
}

int find_last_conv(const Net& net) {
  const auto first_fc = std::find_if(net.layers.begin(), net.layers.end(), is_fully_connected);
  if (first_fc == net.layers.end()) {
    throw error(
        "strategy 'hybrid' needs convolutions followed by fully connected layers, and net '{}' has "
        "no fully connected layer",
        net.name);
  }
  for (auto layer = first_fc; layer != net.layers.begin();) {
    if (can_hand_over(*--layer)) return static_cast<int>(layer - net.layers.begin());
  }
  throw error(
      "strategy 'hybrid' needs convolutions followed by fully connected layers, and net '{}' has "
      "no convolution before {}",
      net.name, first_fc->title());
}

// Only the last convolution's output goes from one part to the other.
void require_one_boundary_layer(const Net& net, int last_conv) {
  const Layer& boundary = net.layer(last_conv);
  for (size_t i = size_t(last_conv) + 1; i < net.layers.size(); ++i) {
    for (const int input : net.layers[i].inputs) {
      const Tensor& tensor = net.tensor(input);
      if (tensor.producer < 0 || tensor.producer >= last_conv) continue;
      throw error(
          "{}: it takes '{}' from before the last convolution '{}'; strategy 'hybrid' needs a net "
          "in which everything passes through one last convolution{}",
          net.layers[i].title(), tensor.name, boundary.name, in_file(net.layers[i].location));
    }
  }
  for (const Scalar& scalar : net.scalars) {
    if (scalar.layer > last_conv) continue;
    const Layer& layer = net.layer(scalar.layer);
    throw error(
        "{}: it reports '{}' before the last convolution '{}'; strategy 'hybrid' needs all losses "
        "and metrics after it{}",
        layer.title(), scalar.name, boundary.name, in_file(layer.location));
  }
}

// -1, 0, 1: before the last convolution, it, after it.
int side_of(int layer, int last_conv) {
  return layer < last_conv ? -1 : (layer == last_conv ? 0 : 1);
}

void require_weights_on_one_side(const Net& net, int last_conv) {
  std::vector<int> first_user(net.weights.size(), -1);
  for (size_t i = 0; i < net.layers.size(); ++i) {
    for (const int weight : net.layers[i].weights) {
      int& first = first_user[size_t(weight)];
      if (first < 0) first = static_cast<int>(i);
      if (side_of(first, last_conv) == side_of(static_cast<int>(i), last_conv)) continue;
      throw error(
          "{}: it shares '{}' with layer '{}'; strategy 'hybrid' cannot share weights across the "
          "last convolution '{}'{}",
          net.layers[i].title(), net.weight(weight).name, net.layer(first).name,
          net.layer(last_conv).name, in_file(net.layers[i].location));
    }
  }
}

// The possible numbers of (conv, FC) devices.
std::vector<std::pair<int, int>> pairs_of(int devices) {
  std::vector<std::pair<int, int>> pairs;
  for (int fc = 1; 2 * fc <= devices; ++fc) {
    if ((devices - fc) % fc == 0) pairs.emplace_back(devices - fc, fc);
  }
  return pairs;
}

std::string to_text(const std::vector<std::pair<int, int>>& pairs) {
  std::string text;
  for (const auto& [conv, fc] : pairs) {
    text += fmt::format("{}{} and {}", text.empty() ? "" : ", ", conv, fc);
  }
  return text;
}

// Seconds of a step's passes on the busiest device.
double busiest(const StrategyInputs& in, int last_conv, std::pair<int, int> devices) {
  const auto seconds = [&](int layer, LayerPass pass, int among) {
    const int64_t rows = share(in.net->batch, among, 0).count();
    return in.costs->pass_seconds(*in.net, layer, pass, rows);
  };
  double conv = 0, fc = 0;
  for (int layer = 0; layer < static_cast<int>(in.net->layers.size()); ++layer) {
    const bool forward_by_conv = layer <= last_conv, backward_by_conv = layer < last_conv;
    (forward_by_conv ? conv : fc) +=
        seconds(layer, LayerPass::forward, forward_by_conv ? devices.first : devices.second);
    if (!in.net->layer(layer).has_backward()) continue;
    (backward_by_conv ? conv : fc) +=
        seconds(layer, LayerPass::backward, backward_by_conv ? devices.first : devices.second);
  }
  return std::max(conv, fc);
}

std::pair<int, int> choose_pair(const StrategyInputs& in, const HybridOptions& options,
                                int last_conv) {
  std::vector<std::pair<int, int>> pairs = pairs_of(in.devices);
  const int conv = options.conv_devices, fc = options.fc_devices;
  const std::vector<std::pair<int, int>> all = pairs;
  std::erase_if(pairs, [&](const auto& pair) {
    return (conv > 0 && pair.first != conv) || (fc > 0 && pair.second != fc);
  });
  if (pairs.empty()) {
    throw error(
        "{}{}{}: on {} devices strategy 'hybrid' can have {} (conv and FC devices: together all, "
        "and as many conv devices for each FC device)",
        conv > 0 ? fmt::format("--conv-devices {}", conv) : "", conv > 0 && fc > 0 ? " and " : "",
        fc > 0 ? fmt::format("--fc-devices {}", fc) : "", in.devices, to_text(all));
  }
  return *std::min_element(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
    return busiest(in, last_conv, a) < busiest(in, last_conv, b);
  });
}

Roles roles_of(const StrategyInputs& inputs, const HybridOptions& options) {
  if (inputs.devices < 2) {
    throw error(
        "strategy 'hybrid' needs at least 2 devices, one for the convolutions and one for the "
        "fully connected layers: use --devices cpu:2 or more");
  }
  const Net& net = *inputs.net;
  Roles roles;
  roles.extends_memory = options.fc_memory == "extended";
  roles.last_conv = find_last_conv(net);
  require_one_boundary_layer(net, roles.last_conv);
  require_weights_on_one_side(net, roles.last_conv);
  const auto [conv, fc] = choose_pair(inputs, options, roles.last_conv);
  if (net.batch < conv) {
    throw error(
        "batch {} is smaller than the {} conv devices: every one needs at least one row, so use a "
        "batch of {} or more",
        net.batch, conv, conv);
  }
  roles.conv.resize(size_t(conv));
  roles.fc.resize(size_t(fc));
  std::iota(roles.conv.begin(), roles.conv.end(), 0);
  std::iota(roles.fc.begin(), roles.fc.end(), conv);
  return roles;
}

// Rows of every device: conv devices share the batch, an FC device has those of its conv devices.
std::vector<Interval> rows_of(const Roles& roles, int64_t batch) {
  const int conv = static_cast<int>(roles.conv.size());
  std::vector<Interval> rows;
  for (int device = 0; device < conv; ++device) rows.push_back(share(batch, conv, device));
  const size_t each = roles.conv.size() / roles.fc.size();
  for (size_t i = 0; i < roles.fc.size(); ++i) {
    rows.push_back({rows[i * each].begin, rows[(i + 1) * each - 1].end});
  }
  return rows;
}

// "device 0", "devices 0 to 2"
std::string to_text(const std::vector<int>& devices) {
  return devices.size() == 1 ? fmt::format("device {}", devices.front())
                             : fmt::format("devices {} to {}", devices.front(), devices.back());
}

class Hybrid {
 public:
  Hybrid(const StrategyInputs& inputs, Roles roles)
      : roles_(std::move(roles)),
        builder_(inputs, "hybrid", PlanBuilder::Purpose::training,
                 rows_of(roles_, inputs.net->batch)),
        net_(builder_.net()),
        updates_(builder_),
        boundary_layer_(net_.layer(roles_.last_conv)),
        conv_ring_(builder_, device_order(inputs, roles_.conv)),
        fc_ring_(builder_, device_order(inputs, roles_.fc)) {}

  Plan build() {
    if (roles_.extends_memory) updates_.extend(roles_.fc);
    note();
    emit_inputs();
    emit_forward();
    emit_backward_fc();
    emit_backward_conv();
    updates_.finish();
    return builder_.take();
  }

 private:
  void note() {
    builder_.plan().notes.push_back(fmt::format(
        "convolutions up to '{}' on {}; its backward pass and what comes after it on {}",
        boundary_layer_.name, to_text(roles_.conv), to_text(roles_.fc)));
    if (roles_.extends_memory) {
      builder_.plan().notes.push_back(
          fmt::format("the solver's state of {} in extended memory", to_text(roles_.fc)));
    }
    std::vector<int> conv, fc;
    std::vector<int> user(net_.weights.size(), -1);
    for (size_t i = 0; i < net_.layers.size(); ++i) {
      for (const int weight : net_.layers[i].weights) user[size_t(weight)] = static_cast<int>(i);
    }
    for (size_t weight = 0; weight < user.size(); ++weight) {
      (user[weight] > roles_.last_conv ? fc : conv).push_back(static_cast<int>(weight));
    }
    for (const auto& [device, weights] :
         {std::pair{roles_.conv.front(), conv}, std::pair{roles_.fc.front(), fc}}) {
      for (const Interval& range : weight_ranges(net_, weights)) {
        builder_.plan().weights_at.push_back({device, range});
      }
    }
  }

  // FC devices take what the step and the losses need; the data, where one of their layers does.
  [[nodiscard]] bool fc_reads_data() const {
    for (size_t i = size_t(roles_.last_conv); i < net_.layers.size(); ++i) {
      for (const int input : net_.layers[i].inputs) {
        if (net_.tensor(input).producer < 0 && input != net_.label) return true;
      }
    }
    return false;
  }
  void emit_inputs() {
    for (const int device : roles_.conv) builder_.emit_input(device);
    for (const int device : roles_.fc) builder_.emit_input(device, fc_reads_data());
  }

  void send_tensor(int tensor) {
    const std::string& name = net_.tensor(tensor).name;
    for (size_t i = 0; i < roles_.conv.size(); ++i) {
      const int from = roles_.conv[i], to = roles_.partner(i);
      builder_.emit_transfer(
          fmt::format("send {}", name), stages::send_activations, roles_.last_conv, from, to,
          {{builder_.tensor(from, tensor), builder_.tensor(to, tensor, builder_.rows(from))}},
          When::every_micro_batch, full_duplex);
    }
  }

  void emit_forward() {
    for (int layer = 0; layer < roles_.last_conv; ++layer) {
      stages::emit_forward(builder_, roles_.conv, layer, StreamKind::control);
    }
    // The last convolution's input is on its way while it is computed.
    for (const int input : boundary_layer_.inputs) {
      if (net_.tensor(input).producer >= 0 && boundary_layer_.has_backward()) send_tensor(input);
    }
    stages::emit_forward(builder_, roles_.conv, roles_.last_conv, StreamKind::control);
    for (const int output : boundary_layer_.outputs) send_tensor(output);
    const int layers = static_cast<int>(net_.layers.size());
    for (int layer = roles_.last_conv + 1; layer < layers; ++layer) {
      stages::emit_forward(builder_, roles_.fc, layer, StreamKind::control);
    }
    stages::emit_report(builder_, roles_.fc, true, StreamKind::control);
    std::vector<int> devices = roles_.fc;
    devices.insert(devices.end(), roles_.conv.begin(), roles_.conv.end());
    updates_.emit_found_inf(roles_.fc.front(), devices);
  }

  // What a layer has completed is summed over the ring and updated by each of its devices.
  void emit_layer_update(int layer, RingGroup& ring, Stage sending, Stage updating) {
    const std::vector<int> weights = weights_completed_by(net_, layer);
    if (weights.empty()) return;
    const std::string& name = net_.layer(layer).name;
    ring.emit_all_reduce({name + " gradients", layer, sending, updating},
                         weight_ranges(net_, weights));
    for (int i = 0; i < ring.size(); ++i) updates_.add(ring.member(i), updating, name, weights);
  }

  // The conv devices wait for the gradients of the last convolution's inputs. So these go before
  // the sums of the FC devices' gradients, but for sums that are done before they exist, by the
  // costs. Of the others those that the next step needs first are first.
  void emit_backward_fc() {
    std::vector<double> left(net_.layers.size() + 1, 0);  // of backward, after each layer's
    for (size_t layer = size_t(roles_.last_conv); layer < net_.layers.size(); ++layer) {
      left[layer + 1] = left[layer] + backward_seconds(static_cast<int>(layer));
    }
    std::vector<int> late;
    double sums = 0;  // seconds until the sums so far are done, after those of backward so far
    for (int layer = static_cast<int>(net_.layers.size()); layer-- > roles_.last_conv;) {
      stages::emit_backward(builder_, roles_.fc, layer, stages::backward_fc, StreamKind::control);
      sums = std::max(0.0, sums - backward_seconds(layer));
      const double seconds = sum_seconds(layer);
      if (seconds > 0 && sums + seconds > left[size_t(layer)]) {
        late.push_back(layer);
        continue;
      }
      sums += seconds;
      emit_layer_update(layer, fc_ring_, stages::send_fc_gradients, stages::update_fc);
    }
    send_input_gradients();
    for (auto layer = late.rbegin(); layer != late.rend(); ++layer) {
      emit_layer_update(*layer, fc_ring_, stages::send_fc_gradients, stages::update_fc);
      if (*layer == roles_.last_conv) send_averaged_gradients();
    }
    if (late.empty() || late.back() != roles_.last_conv) send_averaged_gradients();
  }

  [[nodiscard]] double backward_seconds(int layer) const {
    if (!net_.layer(layer).has_backward()) return 0;
    return builder_.inputs().costs->pass_seconds(net_, layer, LayerPass::backward,
                                                 builder_.rows(roles_.fc.front()).count());
  }
  // Of the sum of the layer's gradients around the ring of the FC devices.
  [[nodiscard]] double sum_seconds(int layer) const {
    const int64_t bytes = total_bytes(weight_ranges(net_, weights_completed_by(net_, layer)));
    if (fc_ring_.size() < 2 || bytes == 0) return 0;
    return 2 * (fc_ring_.size() - 1) *
           transfer_seconds(builder_.inputs(), fc_ring_.member(0), fc_ring_.member(1),
                            bytes / fc_ring_.size());
  }

  void send_input_gradients() {
    for (size_t i = 0; i < roles_.conv.size(); ++i) {
      const int from = roles_.partner(i), to = roles_.conv[i];
      std::vector<CopySegment> inputs;
      for (size_t number = 0; number < boundary_layer_.inputs.size(); ++number) {
        const int input = boundary_layer_.inputs[number];
        const bool is_wanted = boundary_layer_.wants_backward_data &&
                               boundary_layer_.may_take_gradient(number) &&
                               net_.tensor(input).has_gradient;
        if (!is_wanted) continue;
        inputs.push_back({builder_.tensor_gradient(from, input, builder_.rows(to)),
                          builder_.tensor_gradient(to, input)});
      }
      if (!inputs.empty()) {
        builder_.emit_transfer(fmt::format("send {} activation gradients", boundary_layer_.name),
                               stages::send_activation_gradients, roles_.last_conv, from, to,
                               std::move(inputs), When::every_micro_batch, full_duplex);
      }
    }
  }

  void send_averaged_gradients() {
    const std::vector<int> weights = weights_completed_by(net_, roles_.last_conv);
    for (size_t i = 0; i < roles_.conv.size() && !weights.empty(); ++i) {
      const int from = roles_.partner(i), to = roles_.conv[i];
      builder_.emit_transfer(
          fmt::format("send averaged {} gradients", boundary_layer_.name),
          stages::send_conv_gradients, roles_.last_conv, from, to,
          builder_.copies(&PlanRegions::gradients, from, to, weight_ranges(net_, weights)),
          When::last_micro_batch, full_duplex);
    }
    for (const int device : roles_.conv) {
      updates_.add(device, stages::update_conv, boundary_layer_.name, weights);
    }
  }

  void emit_backward_conv() {
    for (int layer = roles_.last_conv; layer-- > 0;) {
      stages::emit_backward(builder_, roles_.conv, layer, stages::backward_conv,
                            StreamKind::control);
      emit_layer_update(layer, conv_ring_, stages::send_conv_gradients, stages::update_conv);
    }
  }

  Roles roles_;
  PlanBuilder builder_;
  const Net& net_;
  Updates updates_;
  const Layer& boundary_layer_;
  RingGroup conv_ring_, fc_ring_;
};

std::vector<StrategyVariant> hybrid_variants(const StrategyInputs& inputs) {
  HybridOptions options = hybrid_options().read(inputs.options);
  std::vector<StrategyVariant> result;
  if (options.conv_devices == 0 && options.fc_devices == 0) {
    for (const auto& [conv, fc] : pairs_of(inputs.devices)) {
      options.conv_devices = conv;
      options.fc_devices = fc;
      result.push_back({fmt::format("{} conv, {} FC", conv, fc), hybrid_options().write(options)});
    }
  }
  if (result.empty()) result.push_back({"", inputs.options});
  return result;
}

std::vector<StrategyOptions> hybrid_lossless_cases(int devices) {
  std::vector<StrategyOptions> cases;
  for (const auto& [conv, fc] : pairs_of(devices)) {
    for (const char* memory : {"", "extended"}) {
      cases.push_back(hybrid_options().write({conv, fc, memory}));
    }
  }
  return cases;
}

double hybrid_least_seconds(const StrategyInputs& inputs) {
  const Roles roles = roles_of(inputs, hybrid_options().read(inputs.options));
  const auto conv = static_cast<int>(roles.conv.size()), fc = static_cast<int>(roles.fc.size());
  return busiest(inputs, roles.last_conv, {conv, fc});
}

Plan build_hybrid(const StrategyInputs& inputs) {
  HybridOptions options = hybrid_options().read(inputs.options);
  const Roles roles = roles_of(inputs, options);
  Plan plan = Hybrid(inputs, roles).build();
  options.conv_devices = static_cast<int>(roles.conv.size());
  options.fc_devices = static_cast<int>(roles.fc.size());
  plan.options = hybrid_options().write(options);
  return plan;
}

// Of devices for one kind of layers; the other's number follows.
StrategyOption devices_option(const char* name, const char* help, const std::string& other) {
  StrategyOption option = count_option(name, help);
  option.resets = {key_of(other)};
  option.fits_devices = true;
  return option;
}

}  // namespace

const OptionTable<HybridOptions>& hybrid_options() {
  static const auto table = [] {
    StrategyOption memory = word_option(
        "--fc-memory",
        "memory of the FC devices' solver state: device (default), or extended (a mapped file in "
        "TMPDIR, or pinned host memory)",
        {"device", "extended"});
    memory.fits_devices = true;
    return OptionTable<HybridOptions>()
        .add(devices_option("--conv-devices",
                            "devices for the convolutions (default: the fastest pair on sim)",
                            "--fc-devices"),
             &HybridOptions::conv_devices)
        .add(devices_option(
                 "--fc-devices",
                 "devices for the fully connected layers (default: the fastest pair on sim)",
                 "--conv-devices"),
             &HybridOptions::fc_devices)
        .add(std::move(memory), &HybridOptions::fc_memory);
  }();
  return table;
}

Strategy hybrid_strategy() {
  return {.name = "hybrid",
          .summary = "some devices have the convolutions, others the fully connected layers",
          .options = hybrid_options().options(),
          .build = &build_hybrid,
          .variants = &hybrid_variants,
          .defaults_to_fastest_variant = true,
          .min_seconds = &hybrid_least_seconds,
          .lossless_cases = &hybrid_lossless_cases};
}

}  // namespace tandem
