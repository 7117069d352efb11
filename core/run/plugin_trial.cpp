#include "core/run/plugin_trial.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "core/base/error.h"
#include "core/check/check.h"
#include "core/device/parse.h"
#include "core/plugin/trial.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using checker::Finding;
using Verdict = checker::Outcome::Verdict;

constexpr double max_trial_seconds = 2;

// Layers of the net whose kernels come from files that are not Tandem's own, and these files.
struct ForeignLayers {
  std::vector<checker::NetUse> uses;
  std::set<fs::path> modules;
};

ForeignLayers foreign_layers(const Registry& registry, const TrainSetup& setup,
                             const std::string& kind) {
  const auto module_of = [&](const std::string& type) {
    const ModuleReport* module = registry.module_of_kernel(type, kind);
    const bool is_foreign = module != nullptr && !module->built_in && !module->path.empty();
    return is_foreign ? module : nullptr;
  };
  ForeignLayers foreign;
  const bool any =
      std::any_of(setup.net.layers.begin(), setup.net.layers.end(),
                  [&](const LayerDefinition& layer) { return module_of(layer.type) != nullptr; });
  if (!any) return foreign;
  NetOptions options;
  options.batch = setup.record.options.batch;
  options.data = setup.record.data;
  for (checker::NetUse& use : checker::uses_in_net(registry, setup.net, options)) {
    const ModuleReport* module = module_of(use.type);
    if (module == nullptr) continue;
    foreign.modules.insert(module->path);
    foreign.uses.push_back(std::move(use));
  }
  return foreign;
}

// What is remembered of a module: that its layers of this net were tried.
std::string net_text(const TrainSetup& setup) {
  return fmt::format("tried {} {}", to_string(setup.record.data), write_net(setup.net));
}

[[noreturn]] void refuse_layer(const std::vector<Finding>& broken,
                               const std::vector<checker::NetUse>& uses,
                               const std::set<fs::path>& modules, const std::string& net) {
  const Finding& first = broken.front();
  const std::string of_case = " --layer ";
  const size_t at = first.arguments.find(of_case);
  std::string layer;
  for (const checker::NetUse& use : uses) {
    const bool is_it = at != std::string::npos
                           ? first.arguments.substr(at + of_case.size()) == use.layer
                           : use.type == first.layer;
    if (is_it && layer.empty()) layer = use.layer;
  }
  std::string files;
  for (const fs::path& module : modules) files += (files.empty() ? "" : ", ") + module.string();
  throw error(
      "layer '{}' ({}) breaks the promise '{}': {}{} ({}). 'tandem plugin check --net {} --layer "
      "{}' tells more; --no-plugin-check trains nevertheless",
      layer, first.layer, first.promise, first.outcome.detail,
      broken.size() == 1 ? "" : fmt::format(", and {} more", broken.size() - 1), files, net, layer);
}

}  // namespace

std::string try_plugins(Registry& registry, const TrainSetup& setup, bool has_ranks) {
  const std::string kind = parse_devices(setup.record.options.devices, registry).kind;
  const ForeignLayers foreign = foreign_layers(registry, setup, kind);
  if (foreign.uses.empty()) return "";
  // A process of MPI, or of a GPU's driver, must not be forked.
  if (has_ranks || !is_host_addressable(registry.backend(kind))) {
    return fmt::format(
        "note: layers of plugins are not tried before the first step {}; 'tandem plugin check "
        "--net "
        "{} --device {}' does so",
        has_ranks ? "of several ranks" : "on " + kind, setup.record.options.net, kind);
  }
  const std::string what = net_text(setup);
  const auto is_tried = [&](const fs::path& module) { return ModuleMark(module, what).is_set(); };
  if (std::all_of(foreign.modules.begin(), foreign.modules.end(), is_tried)) return "";

  checker::CheckOptions options;
  options.cases.uses = foreign.uses;
  options.device = kind;
  options.seconds = max_trial_seconds;
  std::vector<Finding> broken;
  std::set<std::string> kept;
  const bool is_complete = checker::check_plugins(options, [&](const Finding& finding) {
    const Verdict verdict = finding.outcome.verdict;
    if (verdict == Verdict::broken) broken.push_back(finding);
    if (verdict == Verdict::kept) kept.insert(finding.promise);
  });
  if (!broken.empty())
    refuse_layer(broken, foreign.uses, foreign.modules, setup.record.options.net);
  for (const fs::path& module : foreign.modules) {
    if (!kept.empty()) ModuleMark(module, what).set();
  }
  std::set<std::string> types;
  for (const checker::NetUse& use : foreign.uses) types.insert(use.type);
  return fmt::format(
      "plugins: {} kept {} promises before the first step{}", fmt::join(types, ", "), kept.size(),
      is_complete ? ""
                  : fmt::format(", and {:g} s were not enough for the others ('tandem plugin check "
                                "--net {}' tries all)",
                                max_trial_seconds, setup.record.options.net));
}

}  // namespace tandem
