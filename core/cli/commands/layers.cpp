#include <fmt/ranges.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/base/numbers/shape.h"
#include "core/base/text/strings.h"
#include "core/check/cases/subject.h"
#include "core/cli/commands.h"
#include "core/device/parse.h"
#include "core/plugin/registry.h"

namespace tandem::cli {
namespace {

// What a constant of the plugin interface says, for people.
struct Meaning {
  uint64_t value;
  const char* name;
  const char* text;
};
const std::vector<Meaning>& traits() {
  static const std::vector<Meaning> all{
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
      {TANDEM_TESTS_OTHERWISE, "TESTS_OTHERWISE", "testing differs from training on purpose"},
      {TANDEM_NO_DERIVATIVE, "NO_DERIVATIVE", "gradients are no derivatives of forward on purpose"},
  };
  return all;
}

const Meaning& role_of(const tandem_input& input) {
  static const std::vector<Meaning> roles{
      {TANDEM_INPUT_DATA, "data", ""},
      {TANDEM_INPUT_LABEL, "label", "a label, below zero where a row holds no sample"},
      {TANDEM_INPUT_TARGETS, "targets", "a label, or a value for each class"},
      {TANDEM_INPUT_SHAPE, "shape", "only its shape is used"},
      {TANDEM_INPUT_NON_DIFFERENTIABLE, "non_differentiable", "no gradient flows into it"}};
  return *std::find_if(roles.begin(), roles.end(),
                       [&](const Meaning& role) { return role.value == uint64_t(input.role); });
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

using Parameters = std::vector<const tandem_parameter*>;
// Of a layer type or a data set.
template <class Type>
Parameters parameters_of(const Type& type) {
  return {type.parameters, type.parameters + type.parameter_count};
}

json parameters_json(const Parameters& parameters) {
  json list = json::array();
  for (const tandem_parameter* p : parameters) {
    json& entry = list.emplace_back(
        json{{"name", p->name}, {"type", kind_of(p->type)}, {"required", p->required != 0}});
    if (p->block != nullptr) entry["block"] = p->block;
    if (p->help != nullptr) entry["help"] = p->help;
    if (p->default_value != nullptr) entry["default"] = p->default_value;
    if (p->minimum <= p->maximum) {
      entry["minimum"] = p->minimum;
      entry["maximum"] = p->maximum;
    }
    if (p->choices != nullptr) entry["choices"] = split(p->choices, '|');
  }
  return list;
}

// `title`: of the column of names, which have their blocks before them if `with_blocks`.
void print_parameters(const char* title, const Parameters& parameters, bool with_blocks) {
  constexpr auto row = "  {:<42} {:<9} {:<10} {:<22} {}\n";
  if (!parameters.empty()) say(row, title, "type", "default", "range", "");
  for (const tandem_parameter* p : parameters) {
    std::string range = p->choices != nullptr ? p->choices : "";
    if (p->minimum <= p->maximum) range = fmt::format("{:g} to {:g}", p->minimum, p->maximum);
    const char* missing = p->required != 0 ? "required" : "-";
    say(row, with_blocks && p->block != nullptr ? fmt::format("{}.{}", p->block, p->name) : p->name,
        kind_of(p->type), p->default_value != nullptr ? p->default_value : missing, range,
        p->help != nullptr ? p->help : "");
  }
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
    say("  input {:<16} {}\n", type.inputs[i]->name, role_of(*type.inputs[i]).text);
  }
  if (const auto names = weight_names(registry, type); !names.empty()) {
    say("  weights: {}\n", fmt::join(names, ", "));
  }
  for (const Meaning& trait : traits()) {
    if ((type.traits & trait.value) == 0) continue;
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
  print_parameters("parameter", parameters_of(type), true);
}

json layer_json(const tandem_layer_type& type, const std::vector<KernelOffer>& offers) {
  json entry = {{"name", type.name},
                {"help", type.help},
                {"devices", json::array()},
                {"dtypes", json::object()},
                {"inputs", json::array()},
                {"traits", json::array()},
                {"parameters", parameters_json(parameters_of(type))}};
  for (uint32_t i = 0; i < type.input_count; ++i) {
    const tandem_input& input = *type.inputs[i];
    entry["inputs"].push_back({{"name", input.name}, {"role", role_of(input).name}});
  }
  for (const Meaning& trait : traits()) {
    if ((type.traits & trait.value) != 0) entry["traits"].push_back(trait.name);
  }
  for (const KernelOffer& offer : offers) {
    if (offer.dtypes.empty()) continue;
    entry["devices"].push_back(offer.device);
    entry["dtypes"][offer.device] = offer.dtypes;
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

struct ListArguments {
  std::string name;
  bool as_json = false;
};

int list_layers(ListArguments& a) {
  Registry registry = Registry::with_defaults();
  registry.load_kernels();
  std::vector<std::string> names = registry.layer_types();
  if (!a.name.empty()) names = {registry.layer_type(a.name).name};
  json tree = json::array();
  for (const std::string& each : names) {
    const tandem_layer_type* type = usable_type(registry, each, a.as_json);
    if (type == nullptr) continue;
    const std::vector<KernelOffer> offers = offers_of(registry, each);
    if (a.as_json) {
      tree.push_back(layer_json(*type, offers));
      continue;
    }
    say("{:<18} {} [{}]\n", type->name, type->help, to_text(offers, false));
    if (!a.name.empty()) print_one(registry, *type, offers);
  }
  return a.as_json ? print_json(tree) : 0;
}

json dataset_json(const tandem_dataset_type& type, const ModuleReport& module) {
  return {{"name", type.name},
          {"help", type.help},
          {"module", module.path.string()},
          {"abi", fmt::format("{}.{}", module.abi_major, module.abi_minor)},
          {"recognizes", type.recognizes != nullptr},
          {"bytes", type.get_bytes != nullptr},
          {"inputs", type.get_inputs != nullptr},
          {"pack", type.pack != nullptr},
          {"parameters", parameters_json(parameters_of(type))}};
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
  print_parameters("--data-option", parameters_of(type), false);
}

const ModuleReport& module_with(const Registry& registry, const std::string& offer) {
  for (const ModuleReport& module : registry.modules()) {
    const auto& offers = module.offers;
    if (std::find(offers.begin(), offers.end(), offer) != offers.end()) return module;
  }
  throw error("no module offers the {}", offer);
}

int list_datasets(ListArguments& a) {
  Registry registry = Registry::with_defaults();
  registry.load_all();
  json tree = json::array();
  for (const std::string& each :
       a.name.empty() ? registry.datasets() : std::vector<std::string>{a.name}) {
    const tandem_dataset_type& type = registry.dataset(each);
    const ModuleReport& module = module_with(registry, "dataset " + each);
    if (a.as_json) {
      tree.push_back(dataset_json(type, module));
      continue;
    }
    say("{:<18} {}\n", type.name, type.help);
    if (!a.name.empty()) print_dataset(type, module);
  }
  return a.as_json ? print_json(tree) : 0;
}

void add_list(Command& command, ListArguments& a, const std::string& what) {
  command.add({{"name", &a.name, what}, json_option(a.as_json)});
}

}  // namespace

void add_datasets(CommandLine& line) {
  Command& command =
      line.add("datasets", "List the kinds of data sets, or one with its parameters");
  add_list(command, command.runs(list_datasets), "A kind of data set");
}

void add_layers(CommandLine& line) {
  Command& command = line.add("layers", "List the layer types, or one with its parameters");
  add_list(command, command.runs(list_layers), "A layer type");
}

}  // namespace tandem::cli
