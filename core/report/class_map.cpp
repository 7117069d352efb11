#include "core/report/class_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/model/passes/build_net.h"
#include "core/report/findings.h"
#include "core/session/session.h"

namespace tandem {
namespace {

// The end of a net that has class activation maps.
struct MapHead {
  int pooling = -1;  // the layer
  int linear = -1;   // the layer; -1: the pooled values are the scores
};

// Layers that pass on the values of one pixel, or keep their order.
bool passes_values(const Layer& layer) {
  static const std::set<std::string_view> types = {"Dropout", "Flatten", "Reshape", "Split",
                                                   "Softmax"};
  return types.count(layer.type->name) > 0;
}

bool pools_all(const Net& net, const Layer& layer) {
  if (!layer.is("Pooling") || layer.attributes->text("pool") != "AVE") return false;
  const Shape& from = net.tensor(layer.inputs[0]).shape;
  const Shape& to = net.tensor(layer.outputs[0]).shape;
  if (to.h != 1 || to.w != 1) return false;
  if (layer.attributes->is_set("global_pooling")) {
    const Attribute* global = layer.attributes->find("global_pooling");
    if (std::get<bool>(global->value)) return true;
  }
  return layer.attributes->is_set("kernel_size") &&
         layer.attributes->integer("kernel_size") == from.h && from.h == from.w;
}

// Each output is a weighted sum of all channels of one pixel.
bool is_linear(const Net& net, const Layer& layer) {
  const Shape& from = net.tensor(layer.inputs[0]).shape;
  if (from.h != 1 || from.w != 1 || layer.weights.empty()) return false;
  return layer.is("InnerProduct") ||
         (layer.is("Convolution") && layer.attributes->integer("group") == 1 &&
          layer.weight_shapes[0].h == 1 && layer.weight_shapes[0].w == 1);
}

std::optional<MapHead> find_head(const Net& net) {
  MapHead head;
  int producer = net.tensor(net.prediction).producer;
  while (producer >= 0) {
    const Layer& layer = net.layer(producer);
    if (pools_all(net, layer)) {
      head.pooling = producer;
      return head;
    }
    if (head.linear < 0 && is_linear(net, layer)) {
      head.linear = producer;
    } else if (!passes_values(layer)) {
      return std::nullopt;
    }
    producer = net.tensor(layer.inputs[0]).producer;
  }
  return std::nullopt;
}

// The layers that make what the layer `name` reads, as a net of their own, which predicts that.
NetDefinition without_end(const NetDefinition& whole, const std::string& name) {
  NetDefinition part = whole;
  part.layers.clear();
  std::set<std::string> wanted;
  bool is_found = false;
  for (size_t i = whole.layers.size(); i-- > 0;) {
    const LayerDefinition& layer = whole.layers[i];
    if (!layer.in_phase(TANDEM_TEST)) continue;
    const auto makes = [&](const std::string& top) { return wanted.count(top) > 0; };
    const bool is_made = std::any_of(layer.tops.begin(), layer.tops.end(), makes);
    if (is_found && !is_made) continue;
    if (!is_found && layer.name != name) continue;
    if (is_found) {
      part.layers.push_back(layer);
      for (const std::string& top : layer.tops) wanted.erase(top);
    }
    is_found = true;
    wanted.insert(layer.bottoms.begin(), layer.bottoms.end());
  }
  std::reverse(part.layers.begin(), part.layers.end());
  return part;
}

// The weights of `part` out of those of `whole`, by their names.
std::vector<float> weights_of(const Net& part, const Net& whole, const std::vector<float>& values) {
  std::vector<float> result(size_t(part.weight_floats));
  for (const WeightArray& target : part.weights) {
    const auto source =
        std::find_if(whole.weights.begin(), whole.weights.end(),
                     [&](const WeightArray& one) { return one.name == target.name; });
    if (source == whole.weights.end() || source->count != target.count) {
      throw error("the weights '{}' are not found", target.name);
    }
    std::copy_n(values.begin() + source->offset, target.count, result.begin() + target.offset);
  }
  return result;
}

void stretch(ClassMap& map) {
  const auto [least, most] = std::minmax_element(map.values.begin(), map.values.end());
  const float low = *least, range = *most - low;
  for (float& value : map.values) value = range > 0 ? (value - low) / range : 0;
}

// The shares of four neighboring cells at a place between them, of cubic B-splines: without the
// edges that lines between the cells' values have.
std::array<double, 4> spline(double t) {
  const double u = 1 - t;
  return {u * u * u / 6, (3 * t * t * t - 6 * t * t + 4) / 6, (3 * u * u * u - 6 * u * u + 4) / 6,
          t * t * t / 6};
}

}  // namespace

ClassMap smoothed(const ClassMap& map, int64_t width, int64_t height) {
  const auto pass = [](const ClassMap& from, int64_t to, bool is_across) {
    ClassMap result{is_across ? to : from.width, is_across ? from.height : to, {}};
    result.values.resize(size_t(result.width * result.height));
    const int64_t cells = is_across ? from.width : from.height;
    const int64_t lines = is_across ? from.height : from.width;
    for (int64_t i = 0; i < to; ++i) {
      const double at = (double(i) + 0.5) * double(cells) / double(to) - 0.5;
      const auto first = int64_t(std::floor(at));
      const std::array<double, 4> shares = spline(at - double(first));
      for (int64_t line = 0; line < lines; ++line) {
        double sum = 0;
        for (int64_t k = 0; k < 4; ++k) {
          const int64_t cell = std::clamp<int64_t>(first - 1 + k, 0, cells - 1);
          sum +=
              shares[size_t(k)] * double(from.values[size_t(is_across ? line * from.width + cell
                                                                      : cell * from.width + line)]);
        }
        result.values[size_t(is_across ? line * to + i : i * from.width + line)] = float(sum);
      }
    }
    return result;
  };
  ClassMap result = pass(pass(map, width, true), height, false);
  if (map.values.size() > 1) stretch(result);
  return result;
}

std::array<double, 3> map_color(double value) {
  constexpr std::array<std::array<double, 3>, 4> stops = {
      {{10, 10, 45}, {120, 25, 105}, {230, 85, 40}, {255, 235, 130}}};
  const double at = std::clamp(value, 0.0, 1.0) * (stops.size() - 1);
  const size_t low = std::min<size_t>(size_t(at), stops.size() - 2);
  std::array<double, 3> color{};
  for (size_t c = 0; c < 3; ++c) {
    color[c] = stops[low][c] + (at - double(low)) * (stops[low + 1][c] - stops[low][c]);
  }
  return color;
}

DrawnPicture map_picture(const ClassMap& map) {
  constexpr int64_t side = 64;
  const ClassMap drawn = smoothed(map, std::max(side, map.width), std::max(side, map.height));
  DrawnPicture picture{drawn.width, drawn.height, {}};
  for (const float value : drawn.values) {
    for (const double c : map_color(double(value))) {
      picture.pixels.push_back(static_cast<unsigned char>(std::lround(c)));
    }
  }
  return picture;
}

struct ClassMapper::State {
  static constexpr int64_t occlusions_per_pass = 16, places = 8;

  std::string method;
  Shape sample;
  std::vector<float> classifier;  // rows of one weight for each feature map; empty: the identity
  bool occludes = false, are_probabilities = false;
  std::unique_ptr<Session> session;
  int64_t number = 0;

  // The prediction of a batch of samples, at most as many as the session's batch; until the next
  // call.
  const float* predict(const std::vector<std::vector<float>>& samples) {
    Phase& phase = session->testing();
    const BatchLayout layout = make_batch_layout(session->options().batch, sample);
    const Loader::Allocator allocator = session->allocator();
    const std::unique_ptr<void, std::function<void(void*)>> held(allocator.allocate(layout.bytes),
                                                                 allocator.free);
    auto* memory = static_cast<std::byte*>(held.get());
    std::memset(memory, 0, size_t(layout.bytes));
    const tandem_step step{0, static_cast<uint64_t>(number), 0.0F, float(layout.rows), 0, 0};
    std::memcpy(memory, &step, sizeof(step));
    for (size_t i = 0; i < samples.size(); ++i) {
      std::memcpy(memory + layout.data_offset + int64_t(i) * layout.sample_bytes, samples[i].data(),
                  size_t(layout.sample_bytes));
    }
    phase.executor->issue(number, {{phase.batch_buffer, memory}});
    phase.executor->drain();
    return phase.predictions(number++);
  }

  ClassMap activation_map(const std::vector<float>& pixels, int64_t label) {
    const Net& net = session->testing().net;
    const Shape& shape = net.tensor(net.prediction).shape;
    const float* features = predict({pixels});
    const int64_t plane = shape.h * shape.w;
    ClassMap map{shape.w, shape.h, std::vector<float>(size_t(plane))};
    for (int64_t c = 0; c < shape.c; ++c) {
      const float weight =
          classifier.empty() ? float(c == label) : classifier.at(size_t(label * shape.c + c));
      for (int64_t i = 0; i < plane; ++i) {
        map.values[size_t(i)] += weight * features[c * plane + i];
      }
    }
    return map;
  }

  // A square of a quarter of the picture's side, in the mean color, at each of places x places.
  ClassMap occlusion_map(const std::vector<float>& pixels, int64_t label) {
    const Net& net = session->testing().net;
    const int64_t classes = element_count(net.tensor(net.prediction).shape) / net.batch;
    const int64_t plane = sample.h * sample.w;
    std::vector<float> means;
    for (int64_t c = 0; c < sample.c; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < plane; ++i) sum += double(pixels[size_t(c * plane + i)]);
      means.push_back(float(sum / double(plane)));
    }
    const auto covered = [&](int64_t place) {
      std::vector<float> one = pixels;
      const auto range = [&](int64_t at, int64_t side) {
        const int64_t middle = (2 * at + 1) * side / (2 * places),
                      half = std::max<int64_t>(1, side / 8);
        return Interval{std::max<int64_t>(0, middle - half), std::min(side, middle + half)};
      };
      const Interval rows = range(place / places, sample.h),
                     columns = range(place % places, sample.w);
      for (int64_t c = 0; c < sample.c; ++c) {
        for (int64_t y = rows.begin; y < rows.end; ++y) {
          const auto row = one.begin() + c * plane + y * sample.w;
          std::fill(row + columns.begin, row + columns.end, means[size_t(c)]);
        }
      }
      return one;
    };
    ClassMap map{places, places, {}};
    for (int64_t first = 0; first < places * places; first += occlusions_per_pass) {
      std::vector<std::vector<float>> samples;
      for (int64_t i = 0; i < occlusions_per_pass; ++i) samples.push_back(covered(first + i));
      const float* scores = predict(samples);
      for (int64_t i = 0; i < occlusions_per_pass; ++i) {
        const auto p = probabilities(scores + i * classes, classes, are_probabilities);
        map.values.push_back(float(-std::log(p.at(size_t(label)) + 1e-12)));
      }
    }
    return map;
  }
};

ClassMapper::~ClassMapper() = default;
ClassMapper::ClassMapper(ClassMapper&&) noexcept = default;

const std::string& ClassMapper::method() const {
  return state_->method;
}

ClassMapper::ClassMapper(Registry& registry, const NetDefinition& definition, const Shape& sample,
                         const std::vector<float>& weights, bool may_occlude)
    : state_(new State) {
  State& s = *state_;
  s.sample = sample;
  NetOptions options;
  options.phase = TANDEM_TEST;
  options.data = sample;
  options.device_kind = "";
  const Net whole = build_net(definition, registry, options);
  if (whole.prediction < 0) throw error("the net gives no class scores");
  if (!whole.more_inputs.empty()) throw error("the net reads more than images");
  const std::optional<MapHead> head = find_head(whole);
  if (!head && !may_occlude) {
    throw error(
        "this net has no global average pooling before its classifier, so it has no class "
        "activation maps; 'tandem predict --explain' covers parts of a picture instead");
  }
  SessionOptions session;
  session.devices = default_kind;
  session.training = false;
  session.finds_links = false;
  session.data = sample;
  session.batch = head ? 1 : State::occlusions_per_pass;
  if (!head) {
    s.method = "occlusion: how much the probability falls where a part is covered";
    s.occludes = true;
    s.are_probabilities = gives_probabilities(whole);
    s.session = std::make_unique<Session>(registry, definition, session);
    s.session->set_weights(weights);
    return;
  }
  const Layer& pooling = whole.layer(head->pooling);
  s.method = fmt::format("class activation maps of '{}'", whole.tensor(pooling.inputs[0]).name);
  if (head->linear >= 0) {
    const WeightArray& array = whole.weight(whole.layer(head->linear).weights[0]);
    s.classifier.assign(weights.begin() + array.offset,
                        weights.begin() + array.offset + array.count);
  }
  s.session = std::make_unique<Session>(registry, without_end(definition, pooling.name), session);
  s.session->set_weights(weights_of(s.session->net(), whole, weights));
}

ClassMap ClassMapper::map(const std::vector<float>& pixels, int64_t label) {
  State& s = *state_;
  ClassMap map = s.occludes ? s.occlusion_map(pixels, label) : s.activation_map(pixels, label);
  stretch(map);
  return map;
}

}  // namespace tandem
