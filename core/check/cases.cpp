#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/text/strings.h"
#include "core/check/subject.h"
#include "core/model/file/definition.h"
#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/layer_questions.h"
#include "core/plugin/registry.h"

namespace tandem::checker {

namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

enum class Values { normal, positive, labels, indices, flags };

// Types whose inputs or parameters cannot be guessed from their declaration.
struct Known {
  std::string type;
  Parameters parameters;
  std::vector<Shape> inputs;  // empty: the generated ones
  uint32_t outputs = 0;
  std::vector<Values> values = {};
};

const std::vector<Known>& known_types() {
  static const std::vector<Known> known{
      {"Convolution", {{"num_output", "4"}, {"kernel_size", "3"}, {"pad", "1"}}, {}},
      {"Convolution",
       {{"num_output", "16"}, {"kernel_size", "3"}, {"stride", "2"}, {"group", "2"}},
       {{3, 16, 7, 5}}},
      {"Deconvolution", {{"num_output", "4"}, {"kernel_size", "2"}, {"stride", "2"}}, {}},
      {"InnerProduct", {{"num_output", "6"}}, {}},
      {"Pooling", {{"kernel_size", "3"}, {"stride", "2"}, {"pad", "1"}}, {}},
      {"Pooling", {{"kernel_size", "2"}, {"pool", "AVE"}}, {{3, 4, 3, 5}, {2, 16, 4, 3}}},
      {"Embed", {{"input_dim", "7"}, {"num_output", "4"}}, {{3, 2, 1, 1}}, 1, {Values::indices}},
      {"Slice", {}, {{3, 4, 3, 5}}, 2},
      {"Clip", {{"min", "-0.7"}, {"max", "0.7"}}, {}},
      {"Crop", {{"offset", "1"}}, {{3, 4, 5, 7}, {3, 4, 3, 4}}},
      {"Reshape", {{"dim", "0"}, {"dim", "-1"}, {"dim", "1"}, {"dim", "1"}}, {{3, 4, 3, 5}}},
      {"Tile", {{"tiles", "2"}}, {{3, 4, 3, 5}}},
      {"Log", {}, {{3, 4, 3, 5}}, 1, {Values::positive}},
      {"Power", {{"power", "1.5"}, {"scale", "2"}}, {{3, 4, 3, 5}}, 1, {Values::positive}},
      {"ContrastiveLoss",
       {},
       {{4, 6, 1, 1}, {4, 6, 1, 1}, {4, 1, 1, 1}},
       1,
       {Values::normal, Values::normal, Values::flags}},
      {"MultinomialLogisticLoss",
       {},
       {{4, 6, 1, 1}, {4, 1, 1, 1}},
       1,
       {Values::positive, Values::labels}},
      {"SigmoidCrossEntropyLoss",
       {},
       {{4, 6, 1, 1}, {4, 6, 1, 1}},
       1,
       {Values::normal, Values::flags}},
      {"Reduction", {{"axis", "1"}}, {}},
      {"Silence", {}, {{3, 4, 3, 5}}, 0},
  };
  return known;
}

PlainTensor values_of(Values values, const Shape& shape, int64_t classes, unsigned seed) {
  PlainTensor tensor = random_tensor(shape, seed);
  for (size_t i = 0; i < tensor.values.size(); ++i) {
    float& value = tensor.values[i];
    // Not close to zero, where many functions have a kink.
    if (values == Values::normal) value += value < 0 ? -0.1F : 0.1F;
    if (values == Values::positive) value = 0.2F + std::abs(value);
    if (values == Values::flags) value = i % 2 == 0 ? 1.0F : 0.0F;
    if (values == Values::indices) value = static_cast<float>((i * 3 + 1) % 7);
    if (values == Values::labels) {
      value = static_cast<float>(static_cast<int64_t>(i * 5 + 1) % std::max<int64_t>(1, classes));
    }
  }
  return tensor;
}

std::string written(const Shape& s) {
  return fmt::format("{}x{}x{}x{}", s.n, s.c, s.h, s.w);
}

// A case, or the reason why the type refuses it.
struct Made {
  std::optional<Case> made;
  std::string reason;
};

class Maker {
 public:
  Maker(const Registry& registry, KernelDevice& device, const tandem_layer_type& type)
      : registry_(registry), device_(device), type_(type) {}

  [[nodiscard]] bool has(uint64_t trait) const { return (type_.traits & trait) != 0; }

  Made make(const Parameters& parameters, const std::vector<Shape>& shapes, uint32_t outputs,
            const std::vector<Values>& values = {},
            std::shared_ptr<const Attributes> attributes = nullptr) const {
    Made result;
    Case one;
    LayerSetup& setup = one.setup;
    setup.type = type_.name;
    setup.parameters = parameters;
    setup.attributes = std::move(attributes);
    setup.output_count = outputs;
    setup.normaliser = static_cast<float>(shapes.empty() ? 1 : shapes[0].n);
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Values kind = i < values.size()    ? values[i]
                          : is_label(type_, i) ? Values::labels
                                               : Values::normal;
      setup.inputs.push_back(values_of(kind, shapes[i], shapes[0].c, static_cast<unsigned>(i) + 1));
      const bool is_shape = input_role(type_, i) == TANDEM_INPUT_SHAPE;
      one.plain.push_back((kind == Values::normal || kind == Values::positive) && !is_shape);
    }
    try {
      add_weights(setup);
      LayerRun run(setup, registry_, device_);
      for (const Shape& shape : run.output_shapes()) {
        if (element_count(shape) < 1) throw error("an output would be empty");
      }
    } catch (const Error& refusal) {
      result.reason = refusal.what();
      return result;
    }
    for (const auto& [name, value] : parameters) {
      one.arguments += fmt::format(" --set {}={}", name, value);
    }
    for (const Shape& shape : shapes) one.arguments += " --input " + written(shape);
    if (outputs > 1) one.arguments += fmt::format(" --outputs {}", outputs);
    result.made = std::move(one);
    return result;
  }

 private:
  void add_weights(LayerSetup& setup) const {
    const Attributes attributes =
        setup.attributes != nullptr ? *setup.attributes : layer_attributes(type_, setup.parameters);
    std::vector<Shape> shapes;
    for (const PlainTensor& input : setup.inputs) shapes.push_back(input.shape);
    const tandem_layer_query query{
        sizeof(tandem_layer_query),           setup.phase,       attributes.handle(), shapes.data(),
        static_cast<uint32_t>(shapes.size()), setup.output_count};
    std::vector<tandem_weight> weights;
    tandem::check(ask_weights(type_, query, weights), type_.name);
    for (size_t i = 0; i < weights.size(); ++i) {
      PlainTensor tensor = random_tensor(weights[i].shape, 50 + static_cast<unsigned>(i), 0.5F);
      for (float& value : tensor.values) {
        if (weights[i].kind == TANDEM_STATE) value = 0.5F + std::abs(value);
      }
      setup.weights.push_back(std::move(tensor));
    }
  }

  const Registry& registry_;
  KernelDevice& device_;
  const tandem_layer_type& type_;
};

// The value of a required parameter; "" if none can be guessed.
std::string guess(const tandem_parameter& p) {
  const auto within = [&](double value) {
    return p.minimum <= p.maximum ? std::clamp(value, p.minimum, p.maximum) : value;
  };
  switch (p.type) {
    case TANDEM_PARAMETER_INTEGER:
    case TANDEM_PARAMETER_INTEGERS:
      return fmt::format("{}", static_cast<int64_t>(within(2)));
    case TANDEM_PARAMETER_NUMBER:
    case TANDEM_PARAMETER_NUMBERS:
      return fmt::format("{:g}", within(0.5));
    case TANDEM_PARAMETER_BOOLEAN:
      return "true";
    case TANDEM_PARAMETER_TEXT:
      return p.choices == nullptr ? "" : split(p.choices, '|').front();
    default:
      return "";
  }
}

// The given parameters with one more, each choice and each switch in turn.
std::vector<Parameters> variants(const tandem_layer_type& type, const Parameters& base) {
  std::vector<Parameters> result;
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    const tandem_parameter& p = *type.parameters[i];
    const bool is_given =
        std::any_of(base.begin(), base.end(), [&](const auto& one) { return one.first == p.name; });
    if (is_given) continue;
    const std::string usual = p.default_value == nullptr ? "" : p.default_value;
    std::vector<std::string> values;
    if (p.type == TANDEM_PARAMETER_BOOLEAN) values = {usual == "true" ? "false" : "true"};
    if (p.type == TANDEM_PARAMETER_TEXT && p.choices != nullptr) values = split(p.choices, '|');
    for (const std::string& value : values) {
      if (value == usual) continue;
      result.push_back(base);
      result.back().emplace_back(p.name, value);
    }
  }
  return result;
}

// Inputs of a type: as many as it needs, of one shape, or with a label.
std::vector<std::vector<Shape>> input_sets(const tandem_layer_type& type, const Shape& first,
                                           int count) {
  std::vector<Shape> same(static_cast<size_t>(count), first);
  std::vector<std::vector<Shape>> result;
  // A label for each row, or for each pixel.
  for (const Shape& label : {Shape{first.n, 1, 1, 1}, Shape{first.n, 1, first.h, first.w}}) {
    std::vector<Shape> labelled = same;
    bool has_label = false;
    for (size_t i = 0; i < labelled.size(); ++i) {
      if (!is_label(type, i)) continue;
      labelled[i] = label;
      has_label = true;
    }
    if (has_label) result.push_back(std::move(labelled));
  }
  result.push_back(same);
  return result;
}

const std::vector<Shape> usual_shapes{
    {3, 4, 3, 5}, {1, 1, 3, 3}, {2, 16, 3, 2}, {4, 5, 1, 1}, {3, 16, 33, 35}};

class Generator {
 public:
  Generator(const Maker& maker, const tandem_layer_type& type) : maker_(maker), type_(type) {}

  std::vector<Case> all() {
    bool is_known = false;
    for (const Known& known : known_types()) {
      if (known.type != type_.name) continue;
      is_known = true;
      const uint32_t outputs = known.outputs > 0 ? known.outputs : least_outputs();
      if (known.inputs.empty()) {
        generate(known.parameters);
      } else if (type_.minimum_inputs == 1 && type_.maximum_inputs == 1) {
        for (const Shape& shape : known.inputs) {
          add(known.parameters, {shape}, outputs, known.values);
        }
      } else {
        add(known.parameters, known.inputs, outputs, known.values);
      }
    }
    if (!is_known) generate(required());
    if (cases_.empty()) {
      throw error("no generated case is accepted ({}): give one with --set and --input", reason_);
    }
    return std::move(cases_);
  }

 private:
  [[nodiscard]] uint32_t least_outputs() const {
    return static_cast<uint32_t>(
        std::max(type_.minimum_outputs, type_.maximum_outputs < 0 ? 2 : 0));
  }
  [[nodiscard]] Parameters required() const {
    Parameters result;
    for (uint32_t i = 0; i < type_.parameter_count; ++i) {
      const tandem_parameter& p = *type_.parameters[i];
      if (p.required == 0) continue;
      const std::string value = guess(p);
      if (!value.empty()) result.emplace_back(p.name, value);
    }
    return result;
  }
  void add(const Parameters& parameters, const std::vector<Shape>& shapes, uint32_t outputs,
           const std::vector<Values>& values = {}) {
    Made made = maker_.make(parameters, shapes, outputs, values);
    if (made.made.has_value()) {
      cases_.push_back(std::move(*made.made));
    } else if (reason_.empty()) {
      reason_ = made.reason;
    }
  }
  void generate(const Parameters& parameters) {
    const int most = type_.maximum_inputs < 0 ? type_.minimum_inputs + 2 : type_.maximum_inputs;
    std::vector<int> counts{std::max(1, type_.minimum_inputs)};
    if (most > counts[0]) counts.push_back(std::min(most, counts[0] + 1));
    for (const int count : counts) {
      for (const Shape& shape : usual_shapes) {
        for (const auto& shapes : input_sets(type_, shape, count)) {
          const size_t before = cases_.size();
          add(parameters, shapes, least_outputs());
          if (cases_.size() > before) break;
        }
      }
    }
    for (const Parameters& variant : variants(type_, parameters)) {
      for (const auto& shapes : input_sets(type_, usual_shapes[0], counts[0])) {
        add(variant, shapes, least_outputs());
      }
    }
  }

  const Maker& maker_;
  const tandem_layer_type& type_;
  std::vector<Case> cases_;
  std::string reason_;
};

// The values that a known type needs where it has so many inputs: a logarithm positive ones, an
// index whole numbers.
std::vector<Values> values_of(const std::string& type, size_t inputs) {
  std::vector<Values> values;
  for (const Known& known : known_types()) {
    if (known.type == type && known.values.size() == inputs) values = known.values;
  }
  return values;
}

}  // namespace

std::vector<NetUse> uses_in_net(const Registry& registry, const std::string& file) {
  const NetDefinition definition = read_net(file);
  NetOptions options;
  options.batch = 3;
  options.device_kind = "";
  const auto build = [&]() -> Net {
    try {
      return build_net(definition, registry, options);
    } catch (const Error&) {  // of a net that only tests, the reason is the same again
      options.phase = TANDEM_TEST;
      return build_net(definition, registry, options);
    }
  };
  const Net net = build();
  const std::vector<Shape> shapes = net.shapes(options.batch);
  std::vector<NetUse> uses;
  for (const Layer& layer : net.layers) {
    NetUse use{layer.name,
               layer.type->name,
               layer.attributes,
               {},
               static_cast<uint32_t>(layer.outputs.size())};
    for (const int tensor : layer.inputs) use.inputs.push_back(shapes[static_cast<size_t>(tensor)]);
    uses.push_back(std::move(use));
  }
  return uses;
}

std::vector<Case> cases_of(const Registry& registry, KernelDevice& device, const std::string& type,
                           const CaseOptions& options) {
  const tandem_layer_type& table = registry.layer_type(type);
  const Maker maker(registry, device, table);
  std::vector<Case> of_net;
  for (const NetUse& use : options.uses) {
    if (use.type != type) continue;
    Made made =
        maker.make({}, use.inputs, use.outputs, values_of(type, use.inputs.size()), use.attributes);
    if (!made.made.has_value()) throw error("layer '{}': {}", use.layer, made.reason);
    of_net.push_back(std::move(*made.made));
    of_net.back().arguments = " --layer " + use.layer;
  }
  if (!of_net.empty()) return of_net;
  if (!options.inputs.empty()) {
    const uint32_t outputs = options.outputs > 0
                                 ? options.outputs
                                 : static_cast<uint32_t>(std::max(
                                       table.minimum_outputs, table.maximum_outputs < 0 ? 2 : 0));
    Made made = maker.make(options.parameters, options.inputs, outputs,
                           values_of(type, options.inputs.size()));
    if (!made.made.has_value()) throw error("{}", made.reason);
    return {std::move(*made.made)};
  }
  return Generator(maker, table).all();
}

}  // namespace tandem::checker
