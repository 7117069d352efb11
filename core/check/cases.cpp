#include <algorithm>
#include <cmath>

#include "core/base/text/strings.h"
#include "core/check/subject.h"
#include "core/model/file/definition.h"
#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "core/plugin/host.h"
#include "core/plugin/layer_questions.h"

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
      {"Eltwise",
       {{"operation", "POW"}},
       {{3, 4, 3, 5}, {3, 4, 3, 5}},
       1,
       {Values::positive, Values::normal}},
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
    if (values == Values::indices) value = float((i * 3 + 1) % 7);
    if (values == Values::labels) {
      value = float(int64_t(i * 5 + 1) % std::max<int64_t>(1, classes));
    }
  }
  return tensor;
}

// The least number of outputs with which a layer of the type computes something.
uint32_t min_outputs(const tandem_layer_type& type) {
  return uint32_t(std::max(type.minimum_outputs, type.maximum_outputs < 0 ? 2 : 0));
}

class Maker {
 public:
  Maker(const Registry& registry, KernelDevice& device, const tandem_layer_type& type,
        const CaseOptions& options)
      : registry_(registry), device_(device), type_(type), options_(options) {}

  // Throws Error with the reason if the type or its kernel refuses the case.
  [[nodiscard]] Case make(const Parameters& parameters, const std::vector<Shape>& shapes,
                          uint32_t outputs, const std::vector<Values>& values = {},
                          std::shared_ptr<const Attributes> attributes = nullptr) const {
    Case one;
    LayerSetup& setup = one.setup;
    setup.type = type_.name;
    setup.parameters = parameters;
    setup.attributes = std::move(attributes);
    setup.output_count = outputs;
    setup.normaliser = float(shapes.empty() ? 1 : shapes[0].n);
    one.arguments = arguments_of(parameters, shapes, outputs);
    if (options_.trying && setup.attributes == nullptr) options_.trying(one.arguments);
    add_weights(setup, shapes);
    const int64_t classes = classes_of(setup, shapes);
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Values kind = i < values.size()    ? values[i]
                          : is_label(type_, i) ? Values::labels
                                               : Values::normal;
      setup.inputs.push_back(values_of(kind, shapes[i], classes, unsigned(i) + 1));
      const bool is_shape = input_role(type_, i) == TANDEM_INPUT_SHAPE;
      one.plain.push_back((kind == Values::normal || kind == Values::positive) && !is_shape);
    }
    const LayerRun run(setup, registry_, device_);
    for (const Shape& shape : run.output_shapes()) {
      if (element_count(shape) < 1) throw error("an output would be empty");
    }
    return one;
  }

 private:
  static std::string arguments_of(const Parameters& parameters, const std::vector<Shape>& shapes,
                                  uint32_t outputs) {
    std::string arguments;
    for (const auto& [name, value] : parameters) {
      arguments += fmt::format(" --set {}={}", name, value);
    }
    for (const Shape& shape : shapes) arguments += " --input " + to_string(shape);
    if (outputs > 1) arguments += fmt::format(" --outputs {}", outputs);
    return arguments;
  }

  // Labels are below the channels of input 0. Where a layer has a row of weights for each class, as
  // num_output says, they are below that, too.
  static int64_t classes_of(const LayerSetup& setup, const std::vector<Shape>& shapes) {
    int64_t classes = shapes.empty() ? 1 : shapes[0].c;
    for (const PlainTensor& weight : setup.weights) {
      if (weight.shape.n > 1) classes = std::min(classes, weight.shape.n);
    }
    double outputs = 0;
    for (const auto& [name, value] : setup.parameters) {
      if (name == "num_output" && parse_number(value, &outputs) && outputs >= 1) {
        classes = std::min(classes, int64_t(outputs));
      }
    }
    return classes;
  }

  void add_weights(LayerSetup& setup, const std::vector<Shape>& inputs) const {
    const Attributes attributes = attributes_of(type_, setup);
    std::vector<tandem_weight> weights;
    check(ask_weights(type_, query_of(setup, attributes, inputs), weights), type_.name);
    for (size_t i = 0; i < weights.size(); ++i) {
      PlainTensor tensor = random_tensor(weights[i].shape, 50 + unsigned(i), 0.5F);
      for (float& value : tensor.values) {
        if (weights[i].kind == TANDEM_STATE) value = 0.5F + std::abs(value);
      }
      setup.weights.push_back(std::move(tensor));
    }
  }

  const Registry& registry_;
  KernelDevice& device_;
  const tandem_layer_type& type_;
  const CaseOptions& options_;
};

// The value of a required parameter; "" if none can be guessed.
std::string guess(const tandem_parameter& p) {
  const auto within = [&](double value) {
    return p.minimum <= p.maximum ? std::clamp(value, p.minimum, p.maximum) : value;
  };
  switch (p.type) {
    case TANDEM_PARAMETER_INTEGER:
    case TANDEM_PARAMETER_INTEGERS:
      return fmt::format("{}", int64_t(within(2)));
    case TANDEM_PARAMETER_NUMBER:
    case TANDEM_PARAMETER_NUMBERS:
      return fmt::format("{:g}", within(0.5));
    case TANDEM_PARAMETER_BOOLEAN:
      return "true";
    case TANDEM_PARAMETER_TEXT:
      return p.choices == nullptr ? "" : split(p.choices, '|').front();
    case TANDEM_PARAMETER_FILLER:
      return "xavier";
    default:
      return "";
  }
}

// All orders of so many axes, from `first` on, as texts.
std::vector<std::vector<std::string>> orders(int64_t first, int64_t count) {
  std::vector<std::string> axes;
  for (int64_t axis = first; axis < first + count; ++axis) axes.push_back(fmt::format("{}", axis));
  std::vector<std::vector<std::string>> result;
  do {
    result.push_back(axes);
  } while (std::next_permutation(axes.begin(), axes.end()));
  return result;
}

bool names_axes(const tandem_parameter& p) {
  const std::string name = p.name;
  return name.find("ax") != std::string::npos || name.find("order") != std::string::npos ||
         name.find("perm") != std::string::npos;
}

// Other values of a parameter than its usual one, each as what is written of it: a list has
// several.
std::vector<std::vector<std::string>> other_values(const tandem_parameter& p) {
  const std::string usual = p.required != 0              ? guess(p)
                            : p.default_value == nullptr ? ""
                                                         : p.default_value;
  double number = 0;
  const bool is_number = parse_number(usual, &number), is_bounded = p.minimum <= p.maximum;
  std::vector<std::vector<std::string>> values;
  const auto add = [&](const std::string& value) {
    const std::vector<std::string> one{value};
    if (value == usual || std::count(values.begin(), values.end(), one) > 0) return;
    values.push_back(one);
  };
  const auto add_integer = [&](double value) {
    if (!is_bounded || (value >= p.minimum && value <= p.maximum)) {
      add(fmt::format("{}", int64_t(value)));
    }
  };
  constexpr double large = 100;
  const bool is_list = p.type == TANDEM_PARAMETER_INTEGERS || p.type == TANDEM_PARAMETER_NUMBERS;
  if (p.type == TANDEM_PARAMETER_BOOLEAN) add(usual == "true" ? "false" : "true");
  if (p.type == TANDEM_PARAMETER_TEXT && p.choices != nullptr) {
    for (const std::string& word : split(p.choices, '|')) add(word);
  }
  if (p.type == TANDEM_PARAMETER_INTEGER) {
    add_integer(number + 1);
    add_integer(is_bounded && p.maximum < large ? p.maximum : large);
    add_integer(is_bounded ? p.minimum : 0);
    for (const double axis : {-1, 0, 1, 2, 3}) {
      if (names_axes(p)) add_integer(axis);
    }
  }
  if (p.type == TANDEM_PARAMETER_NUMBER && is_number) {
    const double other = number == 0 ? 0.5 : 1.5 * number;
    add(fmt::format("{:g}", is_bounded ? std::clamp(other, p.minimum, p.maximum) : other));
  }
  if (p.type == TANDEM_PARAMETER_INTEGERS && names_axes(p)) {
    for (const auto& [first, count] : {std::pair{0, 4}, {1, 3}, {1, 2}}) {
      for (std::vector<std::string>& order : orders(first, count)) values.push_back(order);
    }
  }
  if (is_list) {
    for (const int64_t first : {0, 1, 3}) add_integer(double(first));
    add(guess(p));
    values.push_back({guess(p), guess(p)});
  }
  return values;
}

// The given parameters with another value of each parameter in turn, and each pair of switches and
// words.
std::vector<Parameters> variants(const tandem_layer_type& type, const Parameters& base) {
  std::vector<Parameters> result;
  std::vector<std::pair<std::string, std::string>> switches;
  const auto without = [&](const std::string& name) {
    Parameters others = base;
    std::erase_if(others, [&](const auto& one) { return one.first == name; });
    return others;
  };
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    const tandem_parameter& p = *type.parameters[i];
    const bool is_given =
        std::any_of(base.begin(), base.end(), [&](const auto& one) { return one.first == p.name; });
    if (is_given && p.required == 0) continue;
    for (const std::vector<std::string>& values : other_values(p)) {
      result.push_back(without(p.name));
      for (const std::string& value : values) result.back().emplace_back(p.name, value);
      const bool is_switch = p.type == TANDEM_PARAMETER_BOOLEAN || p.type == TANDEM_PARAMETER_TEXT;
      if (is_switch) switches.emplace_back(p.name, values.front());
    }
  }
  for (size_t a = 0; a < switches.size(); ++a) {
    for (size_t b = a + 1; b < switches.size(); ++b) {
      if (switches[a].first == switches[b].first) continue;
      result.push_back(base);
      std::erase_if(result.back(), [&](const auto& one) {
        return one.first == switches[a].first || one.first == switches[b].first;
      });
      result.back().insert(result.back().end(), {switches[a], switches[b]});
    }
  }
  return result;
}

// Inputs of a type: as many as it needs, of one shape, or with a label.
std::vector<std::vector<Shape>> input_sets(const tandem_layer_type& type, const Shape& first,
                                           int count) {
  const std::vector<Shape> same(size_t(count), first);
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

// The same with further inputs that have one value for each channel, pixel or row of the first.
std::vector<std::vector<Shape>> narrower_sets(const tandem_layer_type& type, const Shape& first,
                                              int count) {
  std::vector<std::vector<Shape>> result;
  for (const Shape& narrow : {Shape{first.n, first.c, 1, 1}, Shape{first.n, 1, first.h, first.w},
                              Shape{first.n, 1, 1, 1}, Shape{1, first.c, 1, 1}}) {
    std::vector<Shape> shapes(size_t(count), narrow);
    shapes[0] = first;
    for (size_t i = 1; i < shapes.size(); ++i) {
      if (is_label(type, i)) shapes[i] = {first.n, 1, 1, 1};
    }
    if (count > 1) result.push_back(std::move(shapes));
  }
  return result;
}

const std::vector<Shape> usual_shapes{{3, 4, 3, 5},   {1, 1, 3, 3},   {2, 16, 3, 2},
                                      {4, 5, 1, 1},   {1, 1, 1, 1},   {2, 3, 1, 11},
                                      {2, 300, 1, 1}, {300, 2, 1, 1}, {3, 16, 33, 35}};

class Generator {
 public:
  Generator(const Maker& maker, const tandem_layer_type& type) : maker_(maker), type_(type) {}

  std::vector<Case> all() {
    bool is_known = false;
    for (const Known& known : known_types()) {
      if (known.type != type_.name) continue;
      is_known = true;
      const uint32_t outputs = known.outputs > 0 ? known.outputs : min_outputs(type_);
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
  // A list may be shorter than the number of inputs.
  [[nodiscard]] bool has_list(const Parameters& parameters) const {
    return std::any_of(parameters.begin(), parameters.end(), [&](const auto& one) {
      return std::any_of(type_.parameters, type_.parameters + type_.parameter_count,
                         [&](const tandem_parameter* p) {
                           return p->name == one.first && (p->type == TANDEM_PARAMETER_INTEGERS ||
                                                           p->type == TANDEM_PARAMETER_NUMBERS);
                         });
    });
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
  // False if the type or its kernel refuses the case.
  bool add(const Parameters& parameters, const std::vector<Shape>& shapes, uint32_t outputs,
           const std::vector<Values>& values = {}) {
    try {
      cases_.push_back(maker_.make(parameters, shapes, outputs, values));
      return true;
    } catch (const Error& refusal) {
      if (reason_.empty()) reason_ = refusal.what();
      return false;
    }
  }
  void generate(const Parameters& parameters) {
    const int max_inputs =
        type_.maximum_inputs < 0 ? type_.minimum_inputs + 2 : type_.maximum_inputs;
    std::vector<int> counts{std::max(1, type_.minimum_inputs)};
    if (max_inputs > counts[0]) counts.push_back(counts[0] + 1);
    for (const int count : counts) {
      for (const Shape& shape : usual_shapes) {
        for (const auto& shapes : input_sets(type_, shape, count)) {
          if (add(parameters, shapes, min_outputs(type_))) break;
        }
      }
    }
    if (cases_.empty()) {
      for (const Shape& shape : usual_shapes) {
        for (const auto& shapes : narrower_sets(type_, shape, counts[0])) {
          if (add(parameters, shapes, min_outputs(type_))) break;
        }
      }
    }
    const bool is_scalar = (type_.traits & (TANDEM_LOSS | TANDEM_METRIC)) != 0;
    if (!is_scalar && type_.maximum_outputs > int32_t(min_outputs(type_))) {
      add(parameters, std::vector<Shape>(size_t(counts[0]), usual_shapes[0]),
          uint32_t(type_.maximum_outputs));
    }
    if (max_inputs > counts.back()) {
      const std::vector<Shape> same(size_t(counts.back() + 1), usual_shapes[0]);
      add(parameters, same, min_outputs(type_));
    }
    for (const Parameters& variant : variants(type_, parameters)) {
      if (max_inputs > counts.back() && has_list(variant)) {
        add(variant, std::vector<Shape>(size_t(counts.back() + 1), usual_shapes[0]),
            min_outputs(type_));
      }
      bool is_taken = false;
      for (const auto& shapes : input_sets(type_, usual_shapes[0], counts[0])) {
        is_taken = add(variant, shapes, min_outputs(type_)) || is_taken;
      }
      if (is_taken) continue;
      for (const auto& shapes : narrower_sets(type_, usual_shapes[0], counts[0])) {
        if (add(variant, shapes, min_outputs(type_))) break;
      }
    }
  }

  const Maker& maker_;
  const tandem_layer_type& type_;
  std::vector<Case> cases_;
  std::string reason_;
};

// The values that a known type needs where it has so many inputs: a logarithm and the base of a
// power positive ones, an index whole numbers.
std::vector<Values> values_of(const std::string& type, size_t inputs) {
  std::vector<Values> values;
  for (const Known& known : known_types()) {
    if (known.type == type && known.values.size() == inputs) values = known.values;
  }
  return values;
}

}  // namespace

std::vector<NetUse> uses_in_net(const Registry& registry, const NetDefinition& definition,
                                NetOptions options) {
  options.batch = std::min<int64_t>(options.batch, 3);
  options.device_kind = "";
  options.precision = TANDEM_FLOAT32;
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
    std::vector<Shape> inputs;
    for (const int tensor : layer.inputs) inputs.push_back(shapes[size_t(tensor)]);
    uses.push_back({layer.name, layer.type->name, layer.attributes, std::move(inputs),
                    uint32_t(layer.outputs.size())});
  }
  return uses;
}

std::vector<NetUse> uses_in_net(const Registry& registry, const std::string& file) {
  NetOptions options;
  options.batch = 3;
  return uses_in_net(registry, read_net(file), options);
}

namespace {

constexpr int64_t max_small = 5000;

bool is_large(const std::vector<Shape>& shapes) {
  return std::any_of(shapes.begin(), shapes.end(),
                     [](const Shape& shape) { return element_count(shape) > max_small; });
}

// Small enough for finite differences, with the same channels if these are few.
std::vector<Shape> cropped(std::vector<Shape> shapes) {
  constexpr int64_t max_side = 6, max_channels = 64;
  for (Shape& shape : shapes) {
    shape.h = std::min(shape.h, max_side);
    shape.w = std::min(shape.w, max_side - 1);
  }
  if (!is_large(shapes)) return shapes;
  for (Shape& shape : shapes) shape.c = std::min(shape.c, max_channels);
  return shapes;
}

// First, so that what a layer keeps of its first use is too small for the others.
void prepare_one_row(const Maker& maker, std::vector<Shape> inputs, const NetUse& use,
                     const std::vector<Values>& values) {
  const int64_t rows = inputs.empty() ? 1 : inputs[0].n;
  for (Shape& shape : inputs) shape.n = shape.n == rows ? 1 : shape.n;
  try {
    static_cast<void>(maker.make({}, inputs, use.outputs, values, use.attributes));
  } catch (const Error&) {  // it needs more of them
  }
}

}  // namespace

std::vector<Case> cases_of(const Registry& registry, KernelDevice& device, const std::string& type,
                           const CaseOptions& options) {
  const tandem_layer_type& table = registry.layer_type(type);
  const Maker maker(registry, device, table, options);
  std::vector<Case> of_net;
  for (const NetUse& use : options.uses) {
    if (use.type != type) continue;
    const std::vector<Values> values = values_of(type, use.inputs.size());
    const auto add = [&](const std::vector<Shape>& inputs) {
      if (options.trying) options.trying(" --layer " + use.layer);
      prepare_one_row(maker, inputs, use, values);
      of_net.push_back(maker.make({}, inputs, use.outputs, values, use.attributes));
      of_net.back().arguments = " --layer " + use.layer;
    };
    const bool large = is_large(use.inputs);
    if (large && options.sizes != CaseSizes::large) {
      try {
        add(cropped(use.inputs));
      } catch (const Error&) {  // its parameters need the shapes of the net
      }
    }
    if (options.sizes == (large ? CaseSizes::small : CaseSizes::large)) continue;
    try {
      add(use.inputs);
    } catch (const Error& refusal) {
      throw error("layer '{}': {}", use.layer, refusal.what());
    }
  }
  if (!of_net.empty() || options.sizes != CaseSizes::all) return of_net;
  if (!options.inputs.empty()) {
    const uint32_t outputs = options.outputs > 0 ? options.outputs : min_outputs(table);
    return {maker.make(options.parameters, options.inputs, outputs,
                       values_of(type, options.inputs.size()))};
  }
  return Generator(maker, table).all();
}

}  // namespace tandem::checker
