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
  throw error("{} has no '{}', which plugin ABI {} demands: set it, and rebuild the plugin", owner,
              field, TANDEM_ABI_MAJOR);
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
  // A default that its own range refuses is found now, and not in somebody's training.
  (void)default_attribute(*parameter, fmt::format("{} (default value)", owner));
  return parameter;
}

// Declared parameters of a layer type or a data set; `table` is replaced by a copy if one of them
// was smaller than ours.
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
  require(type->help != nullptr, owner, "help");
  require(type->shapes != nullptr, owner, "shapes");
  require(type->weights != nullptr, owner, "weights");
  require(type->cost != nullptr, owner, "cost");
  accept_parameters(type, owner, keeper);
  return type;
}

const tandem_kernel* accept(const tandem_kernel* table, Keeper& keeper) {
  const tandem_kernel* kernel = widen(table, keeper);
  const std::string owner = require_name(kernel->layer_type, "kernel for layer type");
  require(kernel->device_kind != nullptr, owner, "device_kind");
  require(kernel->prepare != nullptr, owner, "prepare");
  require(kernel->release != nullptr, owner, "release");
  require(kernel->forward != nullptr, owner, "forward");
  return kernel;
}

const tandem_backend* accept(const tandem_backend* table, Keeper& keeper) {
  const tandem_backend* backend = widen(table, keeper);
  const std::string owner = require_name(backend->kind, "backend");
  require(backend->help != nullptr, owner, "help");
  const std::pair<bool, const char*> functions[] = {
      {backend->count, "count"},
      {backend->describe, "describe"},
      {backend->open, "open"},
      {backend->close, "close"},
      {backend->device_info, "device_info"},
      {backend->allocate, "allocate"},
      {backend->free, "free"},
      {backend->create_stream, "create_stream"},
      {backend->destroy_stream, "destroy_stream"},
      {backend->create_event, "create_event"},
      {backend->destroy_event, "destroy_event"},
      {backend->submit, "submit"},
      {backend->copy, "copy"},
      {backend->wait, "wait"},
      {backend->record, "record"},
      {backend->synchronize, "synchronize"},
      {backend->event_time, "event_time"},
      {backend->fill, "fill"},
      {backend->add, "add"},
      {backend->update, "update"},
      {backend->check_finite, "check_finite"},
  };
  for (const auto& [present, field] : functions) require(present, owner, field);
  return backend;
}

const tandem_dataset_type* accept(const tandem_dataset_type* table, Keeper& keeper) {
  const tandem_dataset_type* dataset = widen(table, keeper);
  const std::string owner = require_name(dataset->name, "data set");
  require(dataset->help != nullptr, owner, "help");
  require(dataset->open != nullptr, owner, "open");
  require(dataset->close != nullptr, owner, "close");
  require(dataset->class_name != nullptr, owner, "class_name");
  require(dataset->sample_name != nullptr, owner, "sample_name");
  require(dataset->notes != nullptr, owner, "notes");
  require(dataset->get != nullptr, owner, "get");
  accept_parameters(dataset, owner, keeper);
  return dataset;
}

}  // namespace tandem
