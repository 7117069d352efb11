#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/plugin/registry.h"
#include "core/plugin/tables.h"
#include "core/plugin/titles.h"

namespace tandem {
namespace {

// What of a module needs another version of Tandem: the title, as "layer type 'X'", and why.
using LeftOut = std::vector<std::pair<std::string, std::string>>;

std::string title_of(const tandem_layer_type& t) {
  return layer_title(t.name);
}
std::string title_of(const tandem_kernel& t) {
  return kernel_title({t.layer_type, t.device_kind});
}
std::string title_of(const tandem_backend& t) {
  return backend_title(t.kind);
}
std::string title_of(const tandem_dataset_type& t) {
  return dataset_title(t.name);
}
std::string title_of(const tandem_transport& t) {
  return transport_title(t.name);
}
std::string title_of(const tandem_device_transport& t) {
  return device_transport_title(t.device_kind);
}

// The tables of one kind that a module offers: accepted, checked against the registered names and,
// when the whole module is correct, registered.
template <class Name, class T>
class Offers {
 public:
  template <class NameOf>
  Offers(const T* const* tables, uint32_t count, const char* what, Keeper& keeper,
         LeftOut& left_out, NameOf name_of) {
    require_list(tables, count, fmt::format("its {}", what));
    for (uint32_t i = 0; i < count; ++i) {
      try {
        const T* table = accept(tables[i], keeper);
        items_.emplace_back(name_of(*table), table);
      } catch (const NeedsNewer& reason) {  // thrown once the table has its name
        left_out.emplace_back(title_of(*tables[i]), reason.what());
      }
    }
  }

  // Leaves out those of types that were left out.
  void leave_out_of(const LeftOut& left_out) {
    std::erase_if(items_, [&](const auto& item) {
      return std::any_of(left_out.begin(), left_out.end(), [&](const auto& one) {
        return one.first == layer_title(item.second->layer_type);
      });
    });
  }

  // Throws for a name that is taken, and records the conflict.
  template <class Map, class Title>
  void check(const Map& known, Title title, const std::vector<ModuleReport>& modules,
             const std::filesystem::path& path,
             std::map<std::string, std::string>& conflicts) const {
    std::map<Name, int> uses;
    for (const auto& [name, table] : items_) {
      if (++uses[name] > 1) throw error("it registers the {} twice", title(name));
    }
    const std::string fix =
        "remove one of the two files, or rename it (names of third parties carry a prefix, as "
        "acme.Swish)";
    std::string first;
    for (const auto& [name, table] : items_) {
      const auto found = known.find(name);
      if (found == known.end()) continue;
      const std::string holder = modules[found->second.module].path.string();
      conflicts[title(name)] = fmt::format("the {} is registered by two plugins, {} and {}: {}",
                                           title(name), holder, path.string(), fix);
      if (first.empty()) {
        first = fmt::format("the {} is already registered by {}: {}", title(name), holder, fix);
      }
    }
    if (!first.empty()) throw Error(first);
  }

  template <class Map, class Offer>
  void add(Map& known, size_t module, Offer offer, std::vector<std::string>& offers) const {
    for (const auto& [name, table] : items_) {
      known[name] = {table, module};
      offers.push_back(offer(name));
    }
  }

 private:
  std::vector<std::pair<Name, const T*>> items_;
};

// The part of that kind that a module offers; empty if it offers none, or one of another major
// version, of which nothing else may be read.
template <class Part>
Part part_of(const Part* part, const char* what, int32_t major, int32_t minor, ModuleReport& report,
             LeftOut& left_out) {
  if (part == nullptr) return {};
  report.parts.push_back(fmt::format("{} {}.{}", what, part->major, part->minor));
  if (part->major != major) {
    left_out.emplace_back(
        what, fmt::format("its {} were built for version {}.{} of plugins/abi.h, and this Tandem "
                          "has {}.{} of them: rebuild it with the plugins/abi.h of this Tandem",
                          what, part->major, part->minor, major, minor));
    return {};
  }
  require_size(*part, fmt::format("the table of its {}", what));
  if (part->minor < 0) {
    throw error("its {} say that they were built for version {}.{}: the least minor version is 0",
                what, part->major, part->minor);
  }
  return covered_part(*part);
}

}  // namespace

void Registry::register_tables(const tandem_plugin& plugin, ModuleReport& report) const {
  using Text = std::string;
  Keeper keeper;
  const auto name_of = [](const auto& t) { return Text(t.name); };
  LeftOut left_out;
  const tandem_layers layer_part =
      part_of(plugin.layers, "layers", TANDEM_LAYERS_MAJOR, TANDEM_LAYERS_MINOR, report, left_out);
  const tandem_datasets dataset_part = part_of(plugin.datasets, "data sets", TANDEM_DATASETS_MAJOR,
                                               TANDEM_DATASETS_MINOR, report, left_out);
  const tandem_backends backend_part = part_of(plugin.backends, "backends", TANDEM_BACKENDS_MAJOR,
                                               TANDEM_BACKENDS_MINOR, report, left_out);
  const tandem_transports transport_part =
      part_of(plugin.transports, "transports", TANDEM_TRANSPORTS_MAJOR, TANDEM_TRANSPORTS_MINOR,
              report, left_out);
  const Offers<Text, tandem_layer_type> layers(layer_part.types, layer_part.type_count,
                                               "layer types", keeper, left_out, name_of);
  Offers<KernelName, tandem_kernel> kernels(
      layer_part.kernels, layer_part.kernel_count, "kernels", keeper, left_out,
      [](const auto& t) { return KernelName(t.layer_type, t.device_kind); });
  kernels.leave_out_of(left_out);
  const Offers<Text, tandem_backend> backends(backend_part.backends, backend_part.backend_count,
                                              "backends", keeper, left_out,
                                              [](const auto& t) { return Text(t.kind); });
  const Offers<Text, tandem_dataset_type> datasets(dataset_part.types, dataset_part.type_count,
                                                   "data sets", keeper, left_out, name_of);
  const Offers<Text, tandem_transport> transports(transport_part.transports,
                                                  transport_part.transport_count, "transports",
                                                  keeper, left_out, name_of);
  const Offers<Text, tandem_device_transport> device_transports(
      transport_part.device_transports, transport_part.device_transport_count,
      "transports between devices", keeper, left_out,
      [](const auto& t) { return Text(t.device_kind); });
  layers.check(layer_types_, layer_title, modules_, report.path, refusals_);
  kernels.check(kernels_, kernel_title, modules_, report.path, refusals_);
  backends.check(backends_, backend_title, modules_, report.path, refusals_);
  datasets.check(datasets_, dataset_title, modules_, report.path, refusals_);
  transports.check(transports_, transport_title, modules_, report.path, refusals_);
  device_transports.check(device_transports_, device_transport_title, modules_, report.path,
                          refusals_);

  const size_t module = modules_.size();
  layers.add(
      layer_types_, module, [](const Text& n) { return "layer " + n; }, report.offers);
  kernels.add(
      kernels_, module, [](const KernelName& n) { return "kernel " + n.first + "/" + n.second; },
      report.offers);
  backends.add(
      backends_, module, [](const Text& n) { return "backend " + n; }, report.offers);
  datasets.add(
      datasets_, module, [](const Text& n) { return "dataset " + n; }, report.offers);
  transports.add(
      transports_, module, [](const Text& n) { return "transport " + n; }, report.offers);
  device_transports.add(
      device_transports_, module, [](const Text& n) { return "messages " + n; }, report.offers);
  if (report.offers.empty() && !left_out.empty()) throw Error(left_out[0].second);
  for (const auto& [title, reason] : left_out) {
    report.left_out.push_back(reason);
    refusals_[title] = fmt::format("{}: {}", report.path.string(), reason);
  }
  widened_.insert(widened_.end(), keeper.begin(), keeper.end());
}

}  // namespace tandem
