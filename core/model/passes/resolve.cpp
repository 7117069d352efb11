#include "core/model/passes/passes.h"

#include <map>

#include "core/base/text/strings.h"
#include "core/model/file/attributes_reader.h"
#include "core/model/file/fields.h"
#include "core/model/file/forks.h"
#include "core/model/net/layer_calls.h"
#include "core/model/passes/results.h"

namespace tandem {

namespace {

const char* phase_name(int32_t phase) {
  return phase == TANDEM_TRAIN ? "TRAIN" : "TEST";
}

class Resolver {
 public:
  Resolver(const NetDefinition& definition, const Registry& registry, const NetOptions& options,
           int32_t phase)
      : definition_(definition), registry_(registry), options_(options) {
    draft_.registry = &registry;
    draft_.file = definition.file;
    draft_.net.name = definition.name;
    draft_.net.phase = phase;
    draft_.net.batch = options.batch;
  }

  Draft run() {
    add_net_inputs();
    for (size_t i = 0; i < definition_.layers.size(); ++i) {
      const LayerDefinition& layer = definition_.layers[i];
      if (layer.in_phase(draft_.net.phase) && !layer.is_data()) add_layer(layer, i);
    }
    if (draft_.net.layers.empty()) {
      throw error("net '{}' has no layers in the {} phase{}", draft_.net.name,
                  phase_name(draft_.net.phase), in_file({definition_.file, 0, 0}));
    }
    for (const auto& [name, layer] : layer_of_) draft_.layer_names.insert(name);
    relink(draft_);
    return std::move(draft_);
  }

 private:
  // Where the layer that feeds the net is of a type that is none here.
  void refuse_other_data() const {
    for (const LayerDefinition& layer : definition_.layers) {
      const std::string hint = layer.bottoms.empty() ? hint_of_type(layer.type) : "";
      if (hint.empty() || !layer.in_phase(draft_.net.phase)) continue;
      throw error("layer '{}': type '{}' is not supported: {}{}", layer.name, layer.type, hint,
                  in_file(layer.location));
    }
  }

  void add_net_inputs() {
    const std::vector<NetInput> inputs = definition_.net_inputs(draft_.net.phase);
    if (inputs.empty()) {
      refuse_other_data();
      throw error(
          "net '{}' has no data layer in the {} phase: add one, as layer {{ name: \"data\" type: "
          "\"Data\" top: \"data\" top: \"label\" }}{}{}",
          definition_.name, phase_name(draft_.net.phase), stages_hint(),
          in_file({definition_.file, 0, 0}));
    }
    for (const NetInput& input : inputs) {
      if (tensor_of_.count(input.name) > 0) {
        throw error("{}: '{}' is named twice{}", input.owner, input.name, in_file(input.location));
      }
      const int tensor = add_tensor(input.name, input_shape(input));
      if (input.role == NetInput::Role::data) draft_.net.data = tensor;
      if (input.role == NetInput::Role::label) draft_.net.label = tensor;
      if (input.role == NetInput::Role::more) draft_.net.more_inputs.push_back(tensor);
    }
    // With DummyData layers only, a step still counts samples.
    if (draft_.net.data < 0) draft_.net.data = add_tensor("", {options_.batch, 1, 1, 1});
  }

  // All data layers of the net may be of a stage that is not set.
  [[nodiscard]] std::string stages_hint() const {
    const std::string hint = stages_hint(definition_.left_out);
    return hint.empty() ? stages_hint(definition_.layers) : hint;
  }

  [[nodiscard]] std::string stages_hint(const std::vector<LayerDefinition>& layers) const {
    for (const LayerDefinition& layer : layers) {
      if (!layer.is_data()) continue;
      for (const StateRule& rule : layer.include) {
        if (rule.stages.empty() || rule.phase.value_or(draft_.net.phase) != draft_.net.phase) {
          continue;
        }
        return fmt::format("; {} is for the stage '{}', which is not set (--{}stage {})",
                           layer.title(), rule.stages.front(),
                           draft_.net.phase == TANDEM_TRAIN ? "" : "test-", rule.stages.front());
      }
    }
    return "";
  }

  [[nodiscard]] Shape input_shape(const NetInput& input) const {
    if (input.role == NetInput::Role::data) return data_shape();
    Shape shape = input.shape;
    if (shape.c == 0 || shape.h == 0 || shape.w == 0) {
      const Shape data = data_shape();
      if (shape.c == 0) shape.c = data.c;
      if (shape.h == 0) shape.h = data.h;
      if (shape.w == 0) shape.w = data.w;
    }
    shape.n = options_.batch;
    return shape;
  }

  [[nodiscard]] Shape data_shape() const {
    const Shape written = definition_.input_shape();
    Shape shape = options_.data;
    shape.n = options_.batch;
    if (shape.c == 0) shape.c = written.c > 0 ? written.c : 3;
    if (shape.h == 0) shape.h = written.h;
    if (shape.w == 0) shape.w = written.w;
    if (shape.c > 0 && shape.h > 0 && shape.w > 0) return shape;
    throw error(
        "net '{}': the size of its input is not known: write transform_param {{ crop_size: 227 }} "
        "in its data layer, or give data{}",
        definition_.name, in_file({definition_.file, 0, 0}));
  }

  int add_tensor(const std::string& name, const Shape& shape) {
    return tensor_of_[name] = tandem::add_tensor(draft_.net, name, shape);
  }

  void add_layer(const LayerDefinition& definition, size_t number) {
    Layer layer;
    layer.location = definition.location;
    layer.random_index = static_cast<uint32_t>(number);
    layer.name = new_name(definition.name);
    refuse_python(definition);
    layer.type = &find_type(registry_, definition.type, fmt::format("layer '{}'", definition.name),
                            definition.location);
    layer.attributes = with_axis_of_samples(definition, read_attributes(definition, *layer.type));
    for (const std::string& bottom : definition.bottoms) {
      layer.inputs.push_back(find_tensor(layer, bottom));
    }
    const std::vector<std::string> tops = tops_of(definition, layer);
    check_counts(layer, layer.inputs.size(), tops.size());
    layer.loss_weights = loss_weights(definition, layer, tops.size());

    layer.outputs.resize(tops.size());  // output_shapes() needs the count
    const std::vector<Shape> inputs = input_shapes(draft_.net, layer);
    const std::vector<Shape> shapes = output_shapes(layer, draft_.net.phase, inputs);
    for (size_t i = 0; i < tops.size(); ++i) {
      require_new_output(definition, layer, tops[i]);
      layer.outputs[i] = add_tensor(tops[i], shapes[i]);
      draft_.net.tensor(layer.outputs[i]).producer = static_cast<int>(draft_.net.layers.size());
    }
    DraftLayer& more = draft_.more.emplace_back();
    more.definition = static_cast<int>(number);
    more.declared = declare_weights(definition, layer, draft_.net.phase, inputs);
    if (layer.name != definition.name) require_no_weights(definition);
    more.takes_gradient = gradient_inputs(definition, layer);
    draft_.net.layers.push_back(std::move(layer));
  }

  // Caffe lets several layers have one name, and published nets do so. Here names are unique, so
  // the later layers get a number.
  [[nodiscard]] std::string new_name(const std::string& name) {
    const int number = static_cast<int>(draft_.net.layers.size());
    if (layer_of_.emplace(name, number).second) return name;
    for (int& copy = copies_.try_emplace(name, 2).first->second;; ++copy) {
      std::string result = fmt::format("{}_{}", name, copy);
      if (layer_of_.emplace(result, number).second) return result;
    }
  }

  // A weight is found by its layer's name, in files and in the other phase.
  void require_no_weights(const LayerDefinition& definition) const {
    const auto first = size_t(layer_of_.at(definition.name));
    if (draft_.more.back().declared.empty() && draft_.more[first].declared.empty()) return;
    throw error("{}: another layer has this name{}; names of layers with weights must differ{}",
                definition.title(), in_file(draft_.net.layers[first].location),
                in_file(definition.location));
  }

  static void refuse_python(const LayerDefinition& definition) {
    if (definition.type != "Python") return;
    throw error(
        "{}: Python layers are not run; write it in C++, which docs/guide/write_a_layer.md shows, "
        "or take a layer that exists ('tandem layers'){}",
        definition.title(), in_file(definition.location));
  }

  int find_tensor(const Layer& layer, const std::string& name) const {
    const auto found = tensor_of_.find(name);
    if (found != tensor_of_.end()) return found->second;
    for (const LayerDefinition& other : definition_.layers) {
      if (!other.in_phase(draft_.net.phase)) continue;
      if (!is_among(other.tops, name)) continue;
      throw layer_error(layer,
                        "its input '{}' is made {}, by {}{}: a layer must be below those whose "
                        "outputs it reads, and there can be no cycle",
                        name, other.name == layer.name ? "by itself" : "only below it",
                        other.title(), in_file(other.location));
    }
    std::vector<std::string> known;
    for (const auto& [known_name, tensor] : tensor_of_) {
      if (!known_name.empty()) known.push_back(known_name);
    }
    throw layer_error(layer, "no layer above it makes its input '{}'{}", name,
                      did_you_mean(name, known));
  }

  // A file may omit the output of a loss, which then has the layer's name.
  static std::vector<std::string> tops_of(const LayerDefinition& definition, const Layer& layer) {
    std::vector<std::string> tops = definition.tops;
    const bool reports = layer.has(TANDEM_LOSS) || layer.has(TANDEM_METRIC);
    if (tops.empty() && reports && layer.type->minimum_outputs > 0) tops.push_back(layer.name);
    return tops;
  }

  static void check_counts(const Layer& layer, size_t inputs, size_t outputs) {
    const auto check = [&layer](size_t count, int32_t minimum, int32_t maximum, const char* verb,
                                const char* what) {
      const auto have = static_cast<int64_t>(count);
      if (have >= minimum && (maximum < 0 || have <= maximum)) return;
      const std::string range = maximum < 0          ? fmt::format("at least {}", minimum)
                                : minimum == maximum ? fmt::format("{}", minimum)
                                                     : fmt::format("{} to {}", minimum, maximum);
      throw layer_error(layer, "{} {} {}, but {} {} named", verb, range, what, have,
                        have == 1 ? "is" : "are");
    };
    check(inputs, layer.type->minimum_inputs, layer.type->maximum_inputs, "takes",
          "input(s) (bottom)");
    check(outputs, layer.type->minimum_outputs, layer.type->maximum_outputs, "makes",
          "output(s) (top)");
  }

  static std::vector<double> loss_weights(const LayerDefinition& definition, const Layer& layer,
                                          size_t outputs) {
    std::vector<double> weights(outputs, 0.0);
    if (definition.loss_weights.empty()) {
      if (layer.has(TANDEM_LOSS) && outputs > 0) weights[0] = 1;
      return weights;
    }
    if (definition.loss_weights.size() > outputs) {
      throw layer_error(layer, "has {} loss_weight for {} outputs", definition.loss_weights.size(),
                        outputs);
    }
    for (size_t i = 0; i < definition.loss_weights.size(); ++i) {
      weights[i] = definition.loss_weights[i];
      if (weights[i] == 0 || !layer.has(TANDEM_METRIC)) continue;
      throw layer_error(layer, "loss_weight is {}, but a metric has no gradient", weights[i]);
    }
    return weights;
  }

  // Only an in-place layer, which reads a tensor of that name, makes another one.
  void require_new_output(const LayerDefinition& definition, const Layer& layer,
                          const std::string& name) const {
    const auto found = tensor_of_.find(name);
    if (found == tensor_of_.end()) return;
    const Net& net = draft_.net;
    const int producer = net.tensor(found->second).producer;
    const bool is_itself = producer == static_cast<int>(net.layers.size());
    if (!is_itself && is_among(definition.bottoms, name)) return;
    const std::string maker =
        is_itself      ? "itself"
        : producer < 0 ? "the data"
                       : net.layer(producer).title() + in_file(net.layer(producer).location);
    throw layer_error(layer, "its output '{}' is made already, by {}", name, maker);
  }

  static std::vector<bool> gradient_inputs(const LayerDefinition& definition, const Layer& layer) {
    std::vector<bool> takes(layer.inputs.size());
    for (size_t i = 0; i < takes.size(); ++i) takes[i] = layer.may_take_gradient(i);
    const size_t written = definition.propagate_down.size();
    if (written != 0 && written != takes.size()) {
      throw layer_error(layer, "has {} propagate_down for {} inputs", written, takes.size());
    }
    for (size_t i = 0; i < written; ++i) {
      if (!definition.propagate_down[i]) takes[i] = false;
    }
    return takes;
  }

  const NetDefinition& definition_;
  const Registry& registry_;
  const NetOptions& options_;
  Draft draft_;
  std::map<std::string, int> tensor_of_;  // the latest tensor of each name
  std::map<std::string, int> layer_of_;   // by its name in the net
  std::map<std::string, int> copies_;     // of names that occur again: the number to try next
};

}  // namespace

Draft resolve(const NetDefinition& definition, const Registry& registry, const NetOptions& options,
              int32_t phase) {
  return Resolver(definition, registry, options, phase).run();
}

}  // namespace tandem
