#include "core/plugin/tables.h"

#include <set>
#include <string>

#include "core/base/attributes.h"

namespace tandem {

namespace {

template <class T>
const T* keep(const T& table, Keeper& keeper) {
  auto copy = std::make_shared<const T>(table);
  keeper.push_back(copy);
  return copy.get();
}

template <class T>
const T* widen(const T* table, Keeper& keeper) {
  if (table == nullptr) throw Error("one of its tables is NULL");
  return table->struct_size >= sizeof(T) ? table : keep(covered_part(*table), keeper);
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

std::string require_name(const char* name, const char* what) {
  if (name == nullptr || *name == '\0') throw error("it offers a {} without a name", what);
  return fmt::format("{} '{}'", what, name);
}

const tandem_parameter* accept_parameter(const tandem_parameter* parameter,
                                         const std::string& owner, Keeper& keeper) {
  if (parameter == nullptr) throw error("{}: one of its parameters is NULL", owner);
  if (parameter->struct_size < sizeof(tandem_parameter)) {
    tandem_parameter copy = covered_part(*parameter);
    if (parameter->struct_size < offsetof(tandem_parameter, choices)) {
      copy.minimum = 1;  // no range
      copy.maximum = 0;
    }
    parameter = keep(copy, keeper);
  }
  if (parameter->help == nullptr) {
    tandem_parameter copy = *parameter;
    copy.help = "";
    parameter = keep(copy, keeper);
  }
  require(parameter->name != nullptr && *parameter->name != '\0', owner, "parameters' name");
  if (parameter->type < TANDEM_PARAMETER_INTEGER || parameter->type > TANDEM_PARAMETER_NUMBERS) {
    throw error(
        "{}: parameter '{}' has type {}, which plugin ABI {}.{} does not know; use a newer "
        "Tandem",
        owner, parameter->name, parameter->type, TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR);
  }
  // Finds a default outside its own range now, and not in a training.
  (void)default_attribute(*parameter, fmt::format("{} (default value)", owner));
  return parameter;
}

// Accepts the declared parameters of a layer type or a data set. Replaces `table` by a copy if one
// of them was smaller than ours.
template <class T>
void accept_parameters(const T*& table, const std::string& owner, Keeper& keeper) {
  if (table->parameter_count == 0) return;
  require(table->parameters != nullptr, owner, "parameters");
  auto accepted = std::make_shared<std::vector<const tandem_parameter*>>();
  std::set<std::string> names;
  bool changed = false;
  for (uint32_t i = 0; i < table->parameter_count; ++i) {
    accepted->push_back(accept_parameter(table->parameters[i], owner, keeper));
    changed |= accepted->back() != table->parameters[i];
    if (!names.insert(accepted->back()->name).second) {
      throw error("{} declares the parameter '{}' twice", owner, accepted->back()->name);
    }
  }
  if (!changed) return;
  T copy = *table;
  copy.parameters = accepted->data();
  keeper.push_back(accepted);
  table = keep(copy, keeper);
}

}  // namespace

const tandem_layer_type* accept(const tandem_layer_type* table, Keeper& keeper) {
  const tandem_layer_type* type = widen(table, keeper);
  const std::string owner = require_name(type->name, "layer type");
  require_all(owner, {{type->help != nullptr, "help"},
                      {type->shapes != nullptr, "shapes"},
                      {type->weights != nullptr, "weights"},
                      {type->cost != nullptr, "cost"}});
  accept_parameters(type, owner, keeper);
  return type;
}

const tandem_kernel* accept(const tandem_kernel* table, Keeper& keeper) {
  const tandem_kernel* kernel = widen(table, keeper);
  const std::string owner = require_name(kernel->layer_type, "kernel for layer type");
  require_all(owner, {{kernel->device_kind != nullptr, "device_kind"},
                      {kernel->prepare != nullptr, "prepare"},
                      {kernel->release != nullptr, "release"},
                      {kernel->forward != nullptr, "forward"}});
  return kernel;
}

const tandem_backend* accept(const tandem_backend* table, Keeper& keeper) {
  const tandem_backend* backend = widen(table, keeper);
  const std::string owner = require_name(backend->kind, "backend");
  require_all(owner, {{backend->help != nullptr, "help"},
                      {backend->count != nullptr, "count"},
                      {backend->describe != nullptr, "describe"},
                      {backend->open != nullptr, "open"},
                      {backend->close != nullptr, "close"},
                      {backend->device_info != nullptr, "device_info"},
                      {backend->allocate != nullptr, "allocate"},
                      {backend->free != nullptr, "free"},
                      {backend->create_stream != nullptr, "create_stream"},
                      {backend->destroy_stream != nullptr, "destroy_stream"},
                      {backend->create_event != nullptr, "create_event"},
                      {backend->destroy_event != nullptr, "destroy_event"},
                      {backend->submit != nullptr, "submit"},
                      {backend->copy != nullptr, "copy"},
                      {backend->wait != nullptr, "wait"},
                      {backend->record != nullptr, "record"},
                      {backend->synchronize != nullptr, "synchronize"},
                      {backend->event_time != nullptr, "event_time"},
                      {backend->fill != nullptr, "fill"},
                      {backend->add != nullptr, "add"},
                      {backend->update != nullptr, "update"},
                      {backend->check_finite != nullptr, "check_finite"}});
  return backend;
}

const tandem_dataset_type* accept(const tandem_dataset_type* table, Keeper& keeper) {
  const tandem_dataset_type* dataset = widen(table, keeper);
  const std::string owner = require_name(dataset->name, "data set");
  require_all(owner, {{dataset->help != nullptr, "help"},
                      {dataset->open != nullptr, "open"},
                      {dataset->close != nullptr, "close"},
                      {dataset->class_name != nullptr, "class_name"},
                      {dataset->sample_name != nullptr, "sample_name"},
                      {dataset->notes != nullptr, "notes"},
                      {dataset->get != nullptr, "get"}});
  accept_parameters(dataset, owner, keeper);
  return dataset;
}

const tandem_transport* accept(const tandem_transport* table, Keeper& keeper) {
  const tandem_transport* transport = widen(table, keeper);
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

}  // namespace tandem
