#include "core/formats/onnx_reader/nodes.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/base/error.h"

namespace tandem {
namespace {

// ---- fused operators

// A fused operator: the operator of its first inputs with its attributes, "" for none; the input
// that is added then; and the activation, "" for the one that the node names.
struct Fused {
  const char* name;
  const char* operation;
  size_t inputs, added;
  const char* activation;
};
constexpr Fused fused_operators[] = {
    {"BiasGelu", "", 1, 1, "Gelu"},  {"FastGelu", "", 1, 1, "GELUTanh"},
    {"FusedConv", "Conv", 3, 3, ""}, {"FusedGemm", "Gemm", 3, 3, ""},
    {"Gelu", "", 1, 1, "Gelu"},      {"QuickGelu", "", 1, 1, "Swish"},
};

// Activations and the attributes that their parameters are, in their order.
struct Activation {
  const char* name;
  std::vector<const char*> parameters;
};
const std::vector<Activation>& activations() {
  static const std::vector<Activation> known{
      {"Relu", {}},
      {"Sigmoid", {}},
      {"Tanh", {}},
      {"LeakyRelu", {"alpha"}},
      {"Clip", {"min", "max"}},
      {"HardSigmoid", {"alpha", "beta"}},
  };
  return known;
}

class Division {
 public:
  Division(OnnxFile& file, const OnnxNode& node, const Fused& fused)
      : file_(file), node_(node), fused_(fused), value_(node.inputs.at(0)) {}

  // False for an activation that is not known.
  bool run() {
    if (fused_.operation[0] != '\0') {
      OnnxNode& main = add(fused_.operation, {});
      const size_t count = std::min(fused_.inputs, node_.inputs.size());
      main.inputs.assign(node_.inputs.begin(), node_.inputs.begin() + int64_t(count));
      main.attributes = node_.attributes;
    }
    if (node_.has_input(fused_.added)) add("Add", {node_.inputs[fused_.added]});
    if (!activate()) return false;
    nodes_.back().outputs = node_.outputs;
    return true;
  }
  std::vector<OnnxNode> nodes_;

 private:
  // A node of what was made last and these inputs.
  OnnxNode& add(const std::string& operation, const std::vector<std::string>& more) {
    OnnxNode& made = nodes_.emplace_back();
    made.name = node_.name;
    made.operation = operation;
    made.inputs = {value_};
    made.inputs.insert(made.inputs.end(), more.begin(), more.end());
    value_ = fmt::format("{}/{}", node_.outputs.at(0), operation);
    made.outputs = {value_};
    return made;
  }

  bool activate() {
    const std::string fixed = fused_.activation;
    if (fixed == "Swish") {
      std::string beta = node_.outputs.at(0) + "/alpha";
      while (file_.constants.contains(beta)) beta += "'";
      auto constant = std::make_shared<OnnxTensor>();
      constant->floats = {static_cast<float>(node_.number("alpha", 1.702F))};
      file_.constants[beta] = std::move(constant);
      add(fixed, {beta}).domain = "tandem";
    } else if (fixed == "GELUTanh") {
      add(fixed, {}).domain = "tandem";
    } else if (!fixed.empty()) {
      add(fixed, {});
    }
    if (!fixed.empty()) return true;
    const std::string named = node_.text("activation", "");
    if (named.empty()) return !nodes_.empty();
    for (const Activation& known : activations()) {
      if (named == known.name) return add_known(known);
    }
    return false;
  }

  bool add_known(const Activation& known) {
    std::vector<float> values;
    const auto found = node_.attributes.find("activation_params");
    if (found != node_.attributes.end()) {
      if (const auto* written = std::get_if<std::vector<float>>(&found->second)) values = *written;
    }
    if (values.size() != known.parameters.size()) return false;
    OnnxNode& made = add(known.name, {});
    for (size_t i = 0; i < values.size(); ++i) made.attributes[known.parameters[i]] = values[i];
    return true;
  }

  OnnxFile& file_;
  const OnnxNode& node_;
  const Fused& fused_;
  std::string value_;
};

// ---- order

class Sorting {
 public:
  explicit Sorting(OnnxFile& file)
      : file_(file), next_input_(file.nodes.size(), 0), states_(file.nodes.size(), State::open) {
    for (const auto& [name, constant] : file.constants) makers_[name] = none;
    for (const OnnxFile::Input& input : file.inputs) makers_[input.name] = none;
    for (size_t node = 0; node < file.nodes.size(); ++node) {
      for (const std::string& output : file.nodes[node].outputs) {
        if (output.empty() || makers_.emplace(output, node).second) continue;
        throw refusal(
            fmt::format("{} makes '{}', which there is already", file.nodes[node].title(), output));
      }
    }
  }

  void run() {
    for (size_t node = 0; node < states_.size(); ++node) place_with_makers(node);
    for (const std::string& output : file_.outputs) {
      if (makers_.contains(output)) continue;
      throw refusal(fmt::format("its output '{}' is made by no node", output));
    }
    std::vector<OnnxNode> sorted;
    for (const size_t node : placed_) sorted.push_back(std::move(file_.nodes[node]));
    file_.nodes = std::move(sorted);
  }

 private:
  enum class State { open, waits, placed };
  static constexpr size_t none = -1;

  [[nodiscard]] Error refusal(const std::string& why) const {
    return error("ONNX file '{}' cannot be used: {}", file_.path.string(), why);
  }

  // The node that must come before this one; none if all have their places.
  size_t next_maker(size_t node) {
    const OnnxNode& reader = file_.nodes[node];
    while (next_input_[node] < reader.inputs.size()) {
      const std::string& input = reader.inputs[next_input_[node]++];
      if (input.empty()) continue;
      const auto found = makers_.find(input);
      if (found == makers_.end()) {
        throw refusal(fmt::format("{} reads '{}', which is missing", reader.title(), input));
      }
      if (found->second == none || states_[found->second] == State::placed) continue;
      if (states_[found->second] == State::open) return found->second;
      throw refusal(fmt::format("{} reads '{}', which depends on what it makes (a cycle)",
                                reader.title(), input));
    }
    return none;
  }

  // Without recursion: a file may have any number of nodes in a row.
  void place_with_makers(size_t node) {
    std::vector<size_t> waiting;
    const auto wait = [&](size_t one) {
      states_[one] = State::waits;
      waiting.push_back(one);
    };
    if (states_[node] == State::open) wait(node);
    while (!waiting.empty()) {
      const size_t last = waiting.back(), maker = next_maker(last);
      if (maker != none) {
        wait(maker);
        continue;
      }
      states_[last] = State::placed;
      placed_.push_back(last);
      waiting.pop_back();
    }
  }

  OnnxFile& file_;
  std::unordered_map<std::string, size_t> makers_;  // none: an input or a constant
  std::vector<size_t> next_input_;
  std::vector<State> states_;
  std::vector<size_t> placed_;
};

}  // namespace

void divide_fused_nodes(OnnxFile& file) {
  std::vector<OnnxNode> nodes;
  for (OnnxNode& node : file.nodes) {
    const auto* fused = std::find_if(
        std::begin(fused_operators), std::end(fused_operators),
        [&](const Fused& known) { return node.operation == std::string_view(known.name); });
    const bool may_be = node.domain == "com.microsoft" && fused != std::end(fused_operators) &&
                        !node.inputs.empty() && node.outputs.size() == 1;
    if (may_be) {
      Division division(file, node, *fused);
      if (division.run()) {
        std::move(division.nodes_.begin(), division.nodes_.end(), std::back_inserter(nodes));
        continue;
      }
    }
    nodes.push_back(std::move(node));
  }
  file.nodes = std::move(nodes);
}

void sort_nodes(OnnxFile& file) {
  Sorting(file).run();
}

}  // namespace tandem
