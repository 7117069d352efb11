#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/plugin/kinds.h"
#include "core/plugin/registry.h"
#include "core/plugin/tables.h"

namespace tandem {
namespace {

using namespace kinds;

// The tables of a module that need another version of Tandem: the title, as "layer type 'X'", and
// the reason.
using LeftOut = std::vector<std::pair<std::string, std::string>>;

// The tables of one kind that a module offers: accepted, checked against the registered names and,
// when the whole module is correct, registered.
template <class T, class Entries>
class Offers {
 public:
  Offers(const T* const* tables, uint32_t count, Entries& known, Keeper& keeper, LeftOut& left_out)
      : known_(known) {
    require_list(tables, count, fmt::format("its {}", kind_of<T>.plural));
    for (uint32_t i = 0; i < count; ++i) {
      try {
        const T* table = accept(tables[i], keeper);
        items_.emplace_back(name_of(*table), table);
      } catch (const NeedsNewer& reason) {  // thrown once the table has its name
        left_out.emplace_back(title_of(kind_of<T>, name_of(*tables[i])), reason.what());
      }
    }
  }

  // Leaves out those of types that were left out.
  void leave_out_of(const LeftOut& left_out) {
    std::erase_if(items_, [&](const auto& item) {
      const std::string title =
          title_of(kind_of<tandem_layer_type>, std::string(item.second->layer_type));
      return std::any_of(left_out.begin(), left_out.end(),
                         [&](const auto& one) { return one.first == title; });
    });
  }

  // Throws for a name that is taken, and records the conflict.
  void check(const std::vector<ModuleReport>& modules, const std::filesystem::path& path,
             std::map<std::string, std::string>& conflicts) const {
    std::map<Name, int> uses;
    for (const auto& [name, table] : items_) {
      if (++uses[name] > 1) throw error("it registers the {} twice", title_of(kind_of<T>, name));
    }
    const std::string fix =
        "remove one of the two files, or rename it (names of third parties carry a prefix, as "
        "acme.Swish)";
    std::string first;
    for (const auto& [name, table] : items_) {
      const auto found = known_.find(name);
      if (found == known_.end()) continue;
      const std::string title = title_of(kind_of<T>, name);
      const std::string holder = modules[found->second.module].path.string();
      conflicts[title] = fmt::format("the {} is registered by two plugins, {} and {}: {}", title,
                                     holder, path.string(), fix);
      if (first.empty()) {
        first = fmt::format("the {} is already registered by {}: {}", title, holder, fix);
      }
    }
    if (!first.empty()) throw Error(first);
  }

  void add(size_t module, std::vector<std::string>& offers) {
    for (const auto& [name, table] : items_) {
      known_[name] = {table, module};
      offers.push_back(offer_of(kind_of<T>, name));
    }
  }

 private:
  using Name = typename Entries::key_type;
  Entries& known_;
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
  Keeper keeper;
  LeftOut left_out;
  const auto part = [&](const auto* table, const char* what, int32_t major, int32_t minor) {
    return part_of(table, what, major, minor, report, left_out);
  };
  const tandem_layers of_layers =
      part(plugin.layers, "layers", TANDEM_LAYERS_MAJOR, TANDEM_LAYERS_MINOR);
  const tandem_datasets of_datasets =
      part(plugin.datasets, "data sets", TANDEM_DATASETS_MAJOR, TANDEM_DATASETS_MINOR);
  const tandem_backends of_backends =
      part(plugin.backends, "backends", TANDEM_BACKENDS_MAJOR, TANDEM_BACKENDS_MINOR);
  const tandem_transports of_transports =
      part(plugin.transports, "transports", TANDEM_TRANSPORTS_MAJOR, TANDEM_TRANSPORTS_MINOR);
  Offers layers(of_layers.types, of_layers.type_count, layer_types_, keeper, left_out);
  Offers kernels(of_layers.kernels, of_layers.kernel_count, kernels_, keeper, left_out);
  kernels.leave_out_of(left_out);
  Offers backends(of_backends.backends, of_backends.backend_count, backends_, keeper, left_out);
  Offers datasets(of_datasets.types, of_datasets.type_count, datasets_, keeper, left_out);
  Offers transports(of_transports.transports, of_transports.transport_count, transports_, keeper,
                    left_out);
  Offers device_transports(of_transports.device_transports, of_transports.device_transport_count,
                           device_transports_, keeper, left_out);
  const auto for_each = [&](const auto& visit) {
    visit(layers);
    visit(kernels);
    visit(backends);
    visit(datasets);
    visit(transports);
    visit(device_transports);
  };
  for_each([&](const auto& offers) { offers.check(modules_, report.path, refusals_); });
  for_each([&](auto& offers) { offers.add(modules_.size(), report.offers); });
  if (report.offers.empty() && !left_out.empty()) throw Error(left_out[0].second);
  for (const auto& [title, reason] : left_out) {
    report.left_out.push_back(reason);
    refusals_[title] = fmt::format("{}: {}", report.path.string(), reason);
  }
  widened_.insert(widened_.end(), keeper.begin(), keeper.end());
}

}  // namespace tandem
