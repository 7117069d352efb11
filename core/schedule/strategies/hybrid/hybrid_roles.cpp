#include "core/schedule/strategies/hybrid/hybrid_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/base/strings.h"
#include "core/schedule/strategies/common/fc_chain.h"
#include "core/schedule/strategies/strategies.h"

namespace tandem {

namespace {

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

std::string place(const Layer& layer) {
  return layer.location.file.empty() ? "" : fmt::format(" ({})", to_string(layer.location));
}

// Only the last convolution's output goes from one part to the other.
void require_one_boundary_layer(const Net& net, int last_conv) {
  const Layer& boundary = net.layers[size_t(last_conv)];
  for (size_t i = size_t(last_conv) + 1; i < net.layers.size(); ++i) {
    for (const int input : net.layers[i].inputs) {
      const Tensor& tensor = net.tensors[size_t(input)];
      if (tensor.producer < 0 || tensor.producer >= last_conv) continue;
      throw error(
          "{}: it takes '{}' from before the last convolution '{}'; strategy 'hybrid' needs a net "
          "in which everything passes through one last convolution{}",
          net.layers[i].title(), tensor.name, boundary.name, place(net.layers[i]));
    }
  }
  for (const Scalar& scalar : net.scalars) {
    if (scalar.layer > last_conv) continue;
    const Layer& layer = net.layers[size_t(scalar.layer)];
    throw error(
        "{}: it reports '{}' before the last convolution '{}'; strategy 'hybrid' needs all losses "
        "and metrics behind it{}",
        layer.title(), scalar.name, boundary.name, place(layer));
  }
}

// -1, 0, 1: before the last convolution, it, behind it.
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
          net.layers[i].title(), net.weights[size_t(weight)].name, net.layers[size_t(first)].name,
          net.layers[size_t(last_conv)].name, place(net.layers[i]));
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
    if (!in.net->layers[size_t(layer)].has_backward()) continue;
    (backward_by_conv ? conv : fc) +=
        seconds(layer, LayerPass::backward, backward_by_conv ? devices.first : devices.second);
  }
  return std::max(conv, fc);
}

std::pair<int, int> choose(const StrategyInputs& in, int last_conv) {
  std::vector<std::pair<int, int>> pairs = pairs_of(in.devices);
  const int conv = in.options.roles.conv_devices, fc = in.options.roles.fc_devices;
  if (conv < 0 || fc < 0) {
    throw error("--conv-devices {} and --fc-devices {}: there must be at least 1 of each", conv,
                fc);
  }
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

}  // namespace

std::vector<StrategyVariant> hybrid_variants(const StrategyInputs& inputs) {
  const RoleOptions& told = inputs.options.roles;
  std::vector<StrategyVariant> variants;
  if (told.conv_devices == 0 && told.fc_devices == 0) {
    for (const auto& [conv, fc] : pairs_of(inputs.devices)) {
      variants.push_back({fmt::format("{} conv, {} FC", conv, fc), inputs.options});
      variants.back().options.roles.conv_devices = conv;
      variants.back().options.roles.fc_devices = fc;
    }
  }
  if (variants.empty()) variants.push_back({"", inputs.options});
  return variants;
}

namespace {

bool extends_memory(const std::string& memory) {
  const std::vector<std::string> known{"device", "extended"};
  if (memory.empty() || memory == known[0]) return false;
  if (memory == known[1]) return true;
  throw error("--fc-memory {}: unknown memory{}; there are: {}", memory,
              did_you_mean(memory, known), fmt::join(known, ", "));
}

}  // namespace

double hybrid_least_seconds(const StrategyInputs& inputs) {
  const HybridRoles roles = hybrid_roles(inputs);
  const auto conv = static_cast<int>(roles.conv.size()), fc = static_cast<int>(roles.fc.size());
  return busiest(inputs, roles.last_conv, {conv, fc});
}

HybridRoles hybrid_roles(const StrategyInputs& inputs) {
  if (inputs.devices < 2) {
    throw error(
        "strategy 'hybrid' needs at least 2 devices, one for the convolutions and one for the "
        "fully connected layers: use --devices cpu:2 or more");
  }
  const Net& net = *inputs.net;
  HybridRoles roles;
  roles.extends_memory = extends_memory(inputs.options.roles.fc_memory);
  roles.last_conv = find_last_conv(net);
  require_one_boundary_layer(net, roles.last_conv);
  require_weights_on_one_side(net, roles.last_conv);
  const auto [conv, fc] = choose(inputs, roles.last_conv);
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

}  // namespace tandem
