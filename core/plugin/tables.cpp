#include "core/plugin/tables.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include "core/base/text/strings.h"
#include "core/plugin/attributes.h"

namespace tandem {

namespace {

template <class T>
const T* keep(const T& table, Keeper& keeper) {
  auto copy = std::make_shared<const T>(table);
  keeper.push_back(copy);
  return copy.get();
}

template <class T>
const T& present(const T* table, const std::string& what) {
  if (table == nullptr) throw error("{} is NULL", what);
  require_size(*table, what);
  return *table;
}

// The table itself, if it has all fields, or a copy with them.
template <class T>
const T* widen(const T* table, const std::string& what, Keeper& keeper) {
  const bool has_all = present(table, what).struct_size >= sizeof(T);
  return has_all ? table : keep(covered_part(*table), keeper);
}

void require(bool present, const std::string& owner, const char* field) {
  if (present) return;
  throw error("{} has no '{}', which plugin ABI {} requires: set it, and rebuild the plugin", owner,
              field, TANDEM_ABI_MAJOR);
}

void require_all(const std::string& owner,
                 std::initializer_list<std::pair<bool, const char*>> fields) {
  for (const auto& [present, field] : fields) require(present, owner, field);
}

// Names are parts of nets, options, lists and messages.
std::string require_name(const char* name, const char* what) {
  if (name == nullptr || *name == '\0') throw error("it offers a {} without a name", what);
  const std::string_view text(name);
  const bool is_word = std::all_of(text.begin(), text.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 0x80 && (std::isalnum(code) != 0 || c == '_' || c == '.' || c == '-');
  });
  if (!is_word) {
    throw error("it offers a {} with the name {}: a name has letters, digits, '_', '.' and '-'",
                what, quote(text));
  }
  return fmt::format("{} '{}'", what, name);
}

// `what` has a value that `part`, "plugin ABI 2.0", does not have.
NeedsNewer needs_newer(const std::string& what, const std::string& part) {
  return NeedsNewer(fmt::format("{}, which {} does not know; use a newer Tandem", what, part));
}

std::string layer_tables() {
  return fmt::format("version {}.{} of the layer tables", TANDEM_LAYERS_MAJOR, TANDEM_LAYERS_MINOR);
}

const tandem_parameter* accept_parameter(const tandem_parameter* parameter,
                                         const std::string& owner, Keeper& keeper) {
  parameter = widen(parameter, owner + ": one of its parameters", keeper);
  const bool is_of_no_block = parameter->block != nullptr && *parameter->block == '\0';
  if (parameter->help == nullptr || is_of_no_block) {
    tandem_parameter copy = *parameter;
    if (copy.help == nullptr) copy.help = "";
    if (is_of_no_block) copy.block = nullptr;
    parameter = keep(copy, keeper);
  }
  require(parameter->name != nullptr && *parameter->name != '\0', owner, "parameters' name");
  if (parameter->type < TANDEM_PARAMETER_INTEGER || parameter->type > TANDEM_PARAMETER_NUMBERS) {
    throw needs_newer(
        fmt::format("{}: parameter '{}' has type {}", owner, parameter->name, parameter->type),
        fmt::format("plugin ABI {}.{}", TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR));
  }
  // Finds a default outside its own range now, and not in a training.
  (void)default_attribute(*parameter, fmt::format("{} (default value)", owner));
  return parameter;
}

const tandem_input* accept_input(const tandem_input* input, const std::string& owner,
                                 Keeper& keeper) {
  input = widen(input, owner + ": one of its inputs", keeper);
  require(input->name != nullptr && *input->name != '\0', owner, "inputs' name");
  if (input->role < TANDEM_INPUT_DATA || input->role > TANDEM_INPUT_NON_DIFFERENTIABLE) {
    throw needs_newer(fmt::format("{}: input '{}' has role {}", owner, input->name, input->role),
                      layer_tables());
  }
  return input;
}

// Replaces a list by what `accept_one` makes of its elements, if that changes one of them.
template <class Element, class Accept>
void accept_list(const Element* const*& list, uint32_t count, Keeper& keeper,
                 const Accept& accept_one) {
  auto accepted = std::make_shared<std::vector<const Element*>>();
  for (uint32_t i = 0; i < count; ++i) accepted->push_back(accept_one(list[i]));
  if (std::equal(accepted->begin(), accepted->end(), list)) return;
  list = accepted->data();
  keeper.push_back(accepted);
}

// Accepts the declared parameters of a layer type or a data set.
template <class T>
void accept_parameters(T& table, const std::string& owner, Keeper& keeper) {
  require_list(table.parameters, table.parameter_count, owner + ": parameters");
  accept_list(table.parameters, table.parameter_count, keeper,
              [&](const auto* parameter) { return accept_parameter(parameter, owner, keeper); });
  std::set<std::string> names;
  for (uint32_t i = 0; i < table.parameter_count; ++i) {
    if (names.insert(table.parameters[i]->name).second) continue;
    throw error("{} declares the parameter '{}' twice", owner, table.parameters[i]->name);
  }
}

// The small table, as it is or widened.
template <class T>
void accept_part(const T*& part, const std::string& owner, const char* field, Keeper& keeper) {
  require(part != nullptr, owner, field);
  part = widen(part, fmt::format("{}: the table '{}'", owner, field), keeper);
}

void require_counts(const std::string& owner, const char* what, int32_t minimum, int32_t maximum) {
  if (minimum >= 0 && (maximum == -1 || maximum >= minimum)) return;
  throw error(
      "{} takes from {} to {} {}: the least is 0, and the most is -1 (any number) or not below the "
      "least",
      owner, minimum, maximum, what);
}

void require_traits(const std::string& owner, uint64_t traits) {
  if (const uint64_t unknown = traits & TANDEM_REQUIRED_TRAITS; unknown != 0) {
    throw needs_newer(fmt::format("{}: it has the traits {:#x}", owner, unknown), layer_tables());
  }
  if ((traits & TANDEM_LOSS) == 0 || (traits & TANDEM_METRIC) == 0) return;
  throw error("{} is both TANDEM_LOSS and TANDEM_METRIC: a type is one of them", owner);
}

}  // namespace

const tandem_layer_type* accept(const tandem_layer_type* table, Keeper& keeper) {
  tandem_layer_type type = covered_part(present(table, "one of its layer types"));
  const std::string owner = require_name(type.name, "layer type");
  require_all(owner, {{type.help != nullptr, "help"}, {type.shapes != nullptr, "shapes"}});
  require_counts(owner, "inputs", type.minimum_inputs, type.maximum_inputs);
  require_counts(owner, "outputs", type.minimum_outputs, type.maximum_outputs);
  require_traits(owner, type.traits);
  require_list(type.inputs, type.input_count, owner + ": inputs");
  accept_list(type.inputs, type.input_count, keeper,
              [&](const auto* input) { return accept_input(input, owner, keeper); });
  accept_parameters(type, owner, keeper);
  return keep(type, keeper);
}

const tandem_kernel* accept(const tandem_kernel* table, Keeper& keeper) {
  const tandem_kernel* kernel = widen(table, "one of its kernels", keeper);
  const std::string owner = require_name(kernel->layer_type, "kernel for layer type");
  const bool has_kind = kernel->device_kind != nullptr && *kernel->device_kind != '\0';
  require_all(owner, {{has_kind, "device_kind"},
                      {kernel->prepare != nullptr, "prepare"},
                      {kernel->release != nullptr, "release"},
                      {kernel->forward != nullptr, "forward"}});
  return kernel;
}

const tandem_backend* accept(const tandem_backend* table, Keeper& keeper) {
  tandem_backend backend = covered_part(present(table, "one of its backends"));
  const std::string owner = require_name(backend.kind, "backend");
  require_all(owner, {{backend.help != nullptr, "help"},
                      {backend.count != nullptr, "count"},
                      {backend.describe != nullptr, "describe"},
                      {backend.open != nullptr, "open"},
                      {backend.close != nullptr, "close"},
                      {backend.device_info != nullptr, "device_info"}});
  accept_part(backend.buffers, owner, "buffers", keeper);
  require_all(owner, {{backend.buffers->allocate != nullptr, "buffers->allocate"},
                      {backend.buffers->free != nullptr, "buffers->free"}});
  accept_part(backend.streams, owner, "streams", keeper);
  const tandem_streams& streams = *backend.streams;
  require_all(owner, {{streams.create_stream != nullptr, "streams->create_stream"},
                      {streams.destroy_stream != nullptr, "streams->destroy_stream"},
                      {streams.create_event != nullptr, "streams->create_event"},
                      {streams.destroy_event != nullptr, "streams->destroy_event"},
                      {streams.submit != nullptr, "streams->submit"},
                      {streams.copy != nullptr, "streams->copy"},
                      {streams.wait != nullptr, "streams->wait"},
                      {streams.record != nullptr, "streams->record"},
                      {streams.synchronize != nullptr, "streams->synchronize"},
                      {streams.event_time != nullptr, "streams->event_time"}});
  accept_part(backend.arithmetic, owner, "arithmetic", keeper);
  const tandem_arithmetic& arithmetic = *backend.arithmetic;
  require_all(owner, {{arithmetic.fill != nullptr, "arithmetic->fill"},
                      {arithmetic.add != nullptr, "arithmetic->add"},
                      {arithmetic.update != nullptr, "arithmetic->update"},
                      {arithmetic.check_finite != nullptr, "arithmetic->check_finite"},
                      {arithmetic.sum_of_squares != nullptr, "arithmetic->sum_of_squares"}});
  if (backend.links != nullptr) {
    accept_part(backend.links, owner, "links", keeper);
    require(backend.links->find_topology != nullptr, owner, "links->find_topology");
  }
  if (backend.capture != nullptr) {
    accept_part(backend.capture, owner, "capture", keeper);
    require_all(owner, {{backend.capture->begin != nullptr, "capture->begin"},
                        {backend.capture->end != nullptr, "capture->end"},
                        {backend.capture->launch != nullptr, "capture->launch"},
                        {backend.capture->destroy_graph != nullptr, "capture->destroy_graph"}});
  }
  return keep(backend, keeper);
}

const tandem_dataset_type* accept(const tandem_dataset_type* table, Keeper& keeper) {
  tandem_dataset_type dataset = covered_part(present(table, "one of its data sets"));
  const std::string owner = require_name(dataset.name, "data set");
  require_all(owner, {{dataset.help != nullptr, "help"},
                      {dataset.open != nullptr, "open"},
                      {dataset.close != nullptr, "close"},
                      {dataset.class_name != nullptr, "class_name"},
                      {dataset.sample_name != nullptr, "sample_name"},
                      {dataset.notes != nullptr, "notes"},
                      {dataset.get != nullptr, "get"}});
  accept_parameters(dataset, owner, keeper);
  return keep(dataset, keeper);
}

const tandem_transport* accept(const tandem_transport* table, Keeper& keeper) {
  const tandem_transport* transport = widen(table, "one of its transports", keeper);
  const std::string owner = require_name(transport->name, "transport");
  require_all(owner, {{transport->help != nullptr, "help"},
                      {transport->open != nullptr, "open"},
                      {transport->close != nullptr, "close"},
                      {transport->rank != nullptr, "rank"},
                      {transport->size != nullptr, "size"},
                      {transport->send != nullptr, "send"},
                      {transport->receive != nullptr, "receive"},
                      {transport->broadcast != nullptr, "broadcast"},
                      {transport->abort != nullptr, "abort"}});
  return transport;
}

const tandem_device_transport* accept(const tandem_device_transport* table, Keeper& keeper) {
  const tandem_device_transport* transport =
      widen(table, "one of its transports between devices", keeper);
  const std::string owner = require_name(transport->device_kind, "transport between devices");
  require_all(owner, {{transport->help != nullptr, "help"},
                      {transport->make_key != nullptr, "make_key"},
                      {transport->open != nullptr, "open"},
                      {transport->transfer != nullptr, "transfer"},
                      {transport->check != nullptr, "check"},
                      {transport->abort != nullptr, "abort"},
                      {transport->close != nullptr, "close"}});
  return transport;
}

}  // namespace tandem
