#include <fmt/ranges.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/numbers/shape.h"
#include "core/base/text/strings.h"
#include "core/check/subject.h"
#include "core/cli/arguments.h"
#include "core/cli/commands.h"
#include "core/cli/print.h"
#include "core/device/parse.h"
#include "core/plugin/registry.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

// What a trait says, for people.
struct TraitText {
  uint64_t trait;
  const char* name;
  const char* text;
};
const std::vector<TraitText>& trait_texts() {
  static const std::vector<TraitText> texts{
      {TANDEM_PER_SAMPLE, "PER_SAMPLE", "a row of the outputs depends on that row of the inputs"},
      {TANDEM_IN_PLACE, "IN_PLACE", "output 0 may use the memory of input 0"},
      {TANDEM_SLICED_OUTPUTS, "SLICED_OUTPUTS", "a device may compute a part of the channels"},
      {TANDEM_SLICED_INPUTS, "SLICED_INPUTS", "a device may sum a part of the input"},
      {TANDEM_BATCH_STATISTICS, "BATCH_STATISTICS", "needs sums over the whole batch"},
      {TANDEM_LOSS, "LOSS", "the net trains on its output"},
      {TANDEM_METRIC, "METRIC", "its output is shown; it has no backward pass"},
      {TANDEM_BACKWARD_READS_INPUTS, "BACKWARD_READS_INPUTS", "backward passes read the inputs"},
      {TANDEM_BACKWARD_READS_OUTPUTS, "BACKWARD_READS_OUTPUTS", "backward passes read the outputs"},
      {TANDEM_RANDOM, "RANDOM", "draws random numbers in training"},
      {TANDEM_SAVES_NOTHING, "SAVES_NOTHING", "backward passes need no memory of forward"},
  };
  return texts;
}

// What an input's role says, for people.
struct RoleText {
  int32_t role;
  const char* name;
  const char* text;
};
const RoleText& role_text(int32_t role) {
  static const std::vector<RoleText> texts{
      {TANDEM_INPUT_DATA, "data", ""},
      {TANDEM_INPUT_LABEL, "label", "a label, below zero where a row holds no sample"},
      {TANDEM_INPUT_TARGETS, "targets", "a label, or a value for each class"},
      {TANDEM_INPUT_SHAPE, "shape", "only its shape is used"},
      {TANDEM_INPUT_NON_DIFFERENTIABLE, "non_differentiable", "no gradient flows into it"}};
  return *std::find_if(texts.begin(), texts.end(),
                       [role](const RoleText& text) { return text.role == role; });
}

// The names of its weights in a usual case; empty if that cannot be found out.
std::vector<std::string> weight_names(const Registry& registry, const tandem_layer_type& type) {
  std::vector<std::string> names;
  try {
    checker::BackendDevice device(registry.backend(default_kind));
    const auto cases = checker::cases_of(registry, device, type.name, {});
    const checker::LayerRun run(cases.front().setup, registry, device);
    for (const tandem_weight& weight : run.declared_weights()) {
      names.push_back(weight.kind == TANDEM_STATE ? fmt::format("{} (not trained)", weight.name)
                                                  : weight.name);
    }
  } catch (const Error&) {
    names.clear();
  }
  return names;
}

const char* kind_of(int32_t type) {
  for (const auto& [known, name] : {std::pair{TANDEM_PARAMETER_INTEGER, "integer"},
                                    {TANDEM_PARAMETER_NUMBER, "number"},
                                    {TANDEM_PARAMETER_BOOLEAN, "boolean"},
                                    {TANDEM_PARAMETER_TEXT, "text"},
                                    {TANDEM_PARAMETER_INTEGERS, "integers"},
                                    {TANDEM_PARAMETER_FILLER, "filler"},
                                    {TANDEM_PARAMETER_NUMBERS, "numbers"}}) {
    if (type == known) return name;
  }
  return "unknown";
}

json parameter_json(const tandem_parameter& p) {
  json entry = {{"name", p.name}, {"type", kind_of(p.type)}, {"required", p.required != 0}};
  if (p.block != nullptr) entry["block"] = p.block;
  if (p.help != nullptr) entry["help"] = p.help;
  if (p.default_value != nullptr) entry["default"] = p.default_value;
  if (p.minimum <= p.maximum) {
    entry["minimum"] = p.minimum;
    entry["maximum"] = p.maximum;
  }
  if (p.choices != nullptr) entry["choices"] = split(p.choices, '|');
  return entry;
}

void print_parameter(const tandem_parameter& p) {
  std::string range;
  if (p.choices != nullptr) range = p.choices;
  if (p.minimum <= p.maximum) range = fmt::format("{:g} to {:g}", p.minimum, p.maximum);
  const std::string fallback =
      p.default_value != nullptr ? p.default_value : (p.required != 0 ? "required" : "-");
  const std::string place = p.block != nullptr ? fmt::format("{}.{}", p.block, p.name) : p.name;
  say("  {:<42} {:<9} {:<10} {:<22} {}\n", place, kind_of(p.type), fallback, range,
      p.help != nullptr ? p.help : "");
}

// A kernel of a layer for a kind of device, with the dtypes of tensors that it takes; none if two
// plugins register the kernel, so that it cannot be used.
struct KernelOffer {
  std::string device;
  std::vector<std::string> dtypes;
};

std::vector<KernelOffer> offers_of(const Registry& registry, const std::string& type) {
  std::vector<KernelOffer> offers;
  for (const std::string& kind : kinds_with_kernel(registry, type)) {
    offers.push_back({kind, {}});
    try {
      const uint32_t dtypes = registry.kernel(type, kind).dtypes;
      offers.back().dtypes.push_back(dtype_name(TANDEM_FLOAT32));
      for (const int32_t dtype : {TANDEM_BFLOAT16, TANDEM_FLOAT16}) {
        if ((dtypes >> dtype & 1U) != 0) offers.back().dtypes.push_back(dtype_name(dtype));
      }
    } catch (const Error&) {
      continue;
    }
  }
  return offers;
}

std::string to_text(const std::vector<KernelOffer>& offers, bool with_dtypes) {
  std::vector<std::string> texts;
  for (const KernelOffer& offer : offers) {
    std::string text = offer.device;
    if (offer.dtypes.empty()) {
      text += " (not usable: two plugins register it)";
    } else if (with_dtypes) {
      text += fmt::format(" ({})", fmt::join(offer.dtypes, ", "));
    }
    texts.push_back(text);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

void print_one(const Registry& registry, const tandem_layer_type& type,
               const std::vector<KernelOffer>& offers) {
  say("  dtypes: {}\n", offers.empty() ? "no kernel" : to_text(offers, true));
  const auto arity = [](int low, int high) {
    return high < 0      ? fmt::format("{} or more", low)
           : low == high ? fmt::format("{}", low)
                         : fmt::format("{} to {}", low, high);
  };
  say("  inputs: {}, outputs: {}\n", arity(type.minimum_inputs, type.maximum_inputs),
      arity(type.minimum_outputs, type.maximum_outputs));
  for (uint32_t i = 0; i < type.input_count; ++i) {
    say("  input {:<16} {}\n", type.inputs[i]->name, role_text(type.inputs[i]->role).text);
  }
  if (const auto names = weight_names(registry, type); !names.empty()) {
    say("  weights: {}\n", fmt::join(names, ", "));
  }
  for (const TraitText& trait : trait_texts()) {
    if ((type.traits & trait.trait) == 0) continue;
    say("  {:<22} {}\n", trait.name, trait.text);
  }
  for (const ModuleReport& module : registry.modules()) {
    std::vector<std::string> parts;
    for (const std::string& offer : module.offers) {
      if (offer == fmt::format("layer {}", type.name)) parts.emplace_back("the type");
      const std::string prefix = fmt::format("kernel {}/", type.name);
      if (offer.starts_with(prefix)) {
        parts.push_back(fmt::format("the {} kernel", offer.substr(prefix.size())));
      }
    }
    if (parts.empty()) continue;
    say("  {} of plugin ABI {}.{} has {}\n", module.path.string(), module.abi_major,
        module.abi_minor, fmt::join(parts, " and "));
  }
  if (type.parameter_count == 0) return;
  say("  {:<42} {:<9} {:<10} {:<22} {}\n", "parameter", "type", "default", "range", "");
  for (uint32_t i = 0; i < type.parameter_count; ++i) print_parameter(*type.parameters[i]);
}

json layer_json(const tandem_layer_type& type, const std::vector<KernelOffer>& offers) {
  json entry = {{"name", type.name},          {"help", type.help},       {"devices", json::array()},
                {"dtypes", json::object()},   {"inputs", json::array()}, {"traits", json::array()},
                {"parameters", json::array()}};
  for (uint32_t i = 0; i < type.input_count; ++i) {
    const tandem_input& input = *type.inputs[i];
    entry["inputs"].push_back({{"name", input.name}, {"role", role_text(input.role).name}});
  }
  for (const TraitText& trait : trait_texts()) {
    if ((type.traits & trait.trait) != 0) entry["traits"].push_back(trait.name);
  }
  for (const KernelOffer& offer : offers) {
    if (offer.dtypes.empty()) continue;
    entry["devices"].push_back(offer.device);
    entry["dtypes"][offer.device] = offer.dtypes;
  }
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    entry["parameters"].push_back(parameter_json(*type.parameters[i]));
  }
  return entry;
}

// Null for a type that two plugins register, after printing why.
const tandem_layer_type* usable_type(const Registry& registry, const std::string& name,
                                     bool as_json) {
  try {
    return &registry.layer_type(name);
  } catch (const Error& failure) {
    if (!as_json) say("{:<18} not usable: {}\n", name, failure.what());
    return nullptr;
  }
}

int list_layers(const std::string& name, bool as_json) {
  Registry registry = Registry::with_defaults();
  registry.load_kernels();
  std::vector<std::string> names = registry.layer_types();
  if (!name.empty()) names = {registry.layer_type(name).name};
  json tree = json::array();
  for (const std::string& each : names) {
    const tandem_layer_type* type = usable_type(registry, each, as_json);
    if (type == nullptr) continue;
    const std::vector<KernelOffer> offers = offers_of(registry, each);
    if (as_json) {
      tree.push_back(layer_json(*type, offers));
      continue;
    }
    say("{:<18} {} [{}]\n", type->name, type->help, to_text(offers, false));
    if (!name.empty()) print_one(registry, *type, offers);
  }
  if (as_json) print_json(tree);
  return 0;
}

json dataset_json(const tandem_dataset_type& type, const ModuleReport& module) {
  json entry = {{"name", type.name},
                {"help", type.help},
                {"module", module.path.string()},
                {"abi", fmt::format("{}.{}", module.abi_major, module.abi_minor)},
                {"recognizes", type.recognizes != nullptr},
                {"bytes", type.get_bytes != nullptr},
                {"inputs", type.get_inputs != nullptr},
                {"pack", type.pack != nullptr},
                {"parameters", json::array()}};
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    entry["parameters"].push_back(parameter_json(*type.parameters[i]));
  }
  return entry;
}

void print_dataset(const tandem_dataset_type& type, const ModuleReport& module) {
  for (const auto& [has, text] :
       {std::pair{type.recognizes != nullptr, "is found by the files of --data"},
        {type.get_bytes != nullptr, "has pixels as bytes"},
        {type.get_inputs != nullptr, "fills further inputs of a net"},
        {type.pack != nullptr, "can be written to one file (tandem pack)"}}) {
    if (has) say("  {}\n", text);
  }
  say("  {} of plugin ABI {}.{}\n", module.path.string(), module.abi_major, module.abi_minor);
  if (type.parameter_count == 0) return;
  say("  {:<42} {:<9} {:<10} {:<22} {}\n", "--data-option", "type", "default", "range", "");
  for (uint32_t i = 0; i < type.parameter_count; ++i) {
    tandem_parameter parameter = *type.parameters[i];
    parameter.block = nullptr;
    print_parameter(parameter);
  }
}

const ModuleReport& module_with(const Registry& registry, const std::string& offer) {
  for (const ModuleReport& module : registry.modules()) {
    const auto& offers = module.offers;
    if (std::find(offers.begin(), offers.end(), offer) != offers.end()) return module;
  }
  throw error("no module offers the {}", offer);
}

int list_datasets(const std::string& name, bool as_json) {
  Registry registry = Registry::with_defaults();
  registry.load_all();
  json tree = json::array();
  for (const std::string& each :
       name.empty() ? registry.datasets() : std::vector<std::string>{name}) {
    const tandem_dataset_type& type = registry.dataset(each);
    const ModuleReport& module = module_with(registry, "dataset " + each);
    if (as_json) {
      tree.push_back(dataset_json(type, module));
      continue;
    }
    say("{:<18} {}\n", type.name, type.help);
    if (!name.empty()) print_dataset(type, module);
  }
  if (as_json) print_json(tree);
  return 0;
}

}  // namespace

void add_datasets(CommandLine& line) {
  auto name = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  Command& command =
      line.add("datasets", "List the kinds of data sets, or one with its parameters");
  command.option("name", name.get(), "A kind of data set");
  add_json_option(command, *as_json);
  command.action([name, as_json] { return list_datasets(*name, *as_json); });
}

void add_layers(CommandLine& line) {
  auto name = std::make_shared<std::string>();
  auto as_json = std::make_shared<bool>(false);
  Command& command = line.add("layers", "List the layer types, or one with its parameters");
  command.option("name", name.get(), "A layer type");
  add_json_option(command, *as_json);
  command.action([name, as_json] { return list_layers(*name, *as_json); });
}

}  // namespace tandem::cli
