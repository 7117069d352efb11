#include "core/run/plugin_trial.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <set>

#include "core/base/error.h"
#include "core/check/check.h"
#include "core/check/promises/data.h"
#include "core/device/parse.h"
#include "core/plugin/trial.h"
#include "core/run/setup/setup_data.h"

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
  std::string module_with_threads;  // one of them
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
    if (module->has_threads) foreign.module_with_threads = module->path.string();
    foreign.uses.push_back(std::move(use));
  }
  return foreign;
}

// What is remembered of a module: what of it was tried, and by which promises, so that a program
// that knows more of them, or leaves out none, tries it again.
std::string trial_text(const std::string& what, const std::vector<std::string>& without) {
  std::string text = "tried " + what;
  const auto add = [&](const char* name) {
    if (std::count(without.begin(), without.end(), name) == 0) text += fmt::format(" {}", name);
  };
  for (const checker::Promise& promise : checker::promises()) add(promise.name);
  for (const checker::DataPromise& promise : checker::data_promises()) add(promise.name);
  return text;
}

// What a check of some seconds found.
struct PluginTrial {
  std::vector<Finding> broken;
  std::vector<std::string> left_out;  // lines for the user
  size_t kept = 0;                    // promises
  bool is_complete = true;
  [[nodiscard]] std::string more() const {
    return broken.size() == 1 ? "" : fmt::format(", and {} more", broken.size() - 1);
  }
  [[nodiscard]] std::string way_out() const {
    return fmt::format("--plugin-check-without '{}' leaves this promise out, --no-plugin-check all",
                       broken.front().promise);
  }
  // `command` tries all promises.
  [[nodiscard]] std::string text(const std::string& what, const std::string& command) const {
    return fmt::format("plugins: {} kept {} promises before the first step{}", what, kept,
                       is_complete ? ""
                                   : fmt::format(", and {:g} s were not enough for the others "
                                                 "('{}' tries all)",
                                                 max_trial_seconds, command));
  }
};

PluginTrial plugin_trial_of(checker::CheckOptions options) {
  options.seconds = max_trial_seconds;
  PluginTrial trial;
  std::set<std::string> kept;
  trial.is_complete = checker::check_plugins(options, [&](const Finding& finding) {
    const Verdict verdict = finding.outcome.verdict;
    if (verdict == Verdict::broken) trial.broken.push_back(finding);
    if (verdict == Verdict::kept) kept.insert(finding.promise);
    if (verdict == Verdict::left_out && finding.outcome.detail != checker::left_out_by_user) {
      trial.left_out.push_back(fmt::format("plugins: {}: promise '{}' is left out: {}",
                                           finding.layer, finding.promise, finding.outcome.detail));
    }
  });
  trial.kept = kept.size();
  return trial;
}

// Whether a promise of this name is tried before training.
bool is_due(const std::string& name) {
  const auto is_it = [&](const auto& promise) {
    return promise.before_training && promise.name == name;
  };
  return std::any_of(checker::promises().begin(), checker::promises().end(), is_it) ||
         std::any_of(checker::data_promises().begin(), checker::data_promises().end(), is_it);
}

[[noreturn]] void refuse_layer(const PluginTrial& trial, const std::vector<checker::NetUse>& uses,
                               const std::set<fs::path>& modules, const std::string& net) {
  const Finding& first = trial.broken.front();
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
      "{}' tells more; {}",
      layer, first.layer, first.promise, first.outcome.detail, trial.more(), files, net, layer,
      trial.way_out());
}

using Lines = std::vector<std::string>;

Lines try_layers(const ForeignLayers& foreign, const TrainSetup& setup, const std::string& kind,
                 const std::vector<std::string>& without) {
  const std::string what =
      trial_text(fmt::format("{} {}", to_string(setup.record.data), write_net(setup.net)), without);
  const auto is_tried = [&](const fs::path& module) { return ModuleMark(module, what).is_set(); };
  if (std::all_of(foreign.modules.begin(), foreign.modules.end(), is_tried)) return {};
  checker::CheckOptions options;
  options.cases.uses = foreign.uses;
  options.device = kind;
  options.without = without;
  PluginTrial trial = plugin_trial_of(options);
  const std::string& net = setup.record.options.net;
  if (!trial.broken.empty()) refuse_layer(trial, foreign.uses, foreign.modules, net);
  for (const fs::path& module : foreign.modules) {
    if (trial.kept > 0) ModuleMark(module, what).set();
  }
  std::set<std::string> types;
  for (const checker::NetUse& use : foreign.uses) types.insert(use.type);
  Lines lines{trial.text(fmt::format("{}", fmt::join(types, ", ")),
                         fmt::format("tandem plugin check --net {}", net))};
  std::move(trial.left_out.begin(), trial.left_out.end(), std::back_inserter(lines));
  return lines;
}

Lines try_data(Registry& registry, const TrainSetup& setup, const std::string& module,
               const std::vector<std::string>& without) {
  const std::string source = data_source(registry, setup.record);
  const Dataset& data = *setup.training_data;
  const RunRecord& record = setup.record;
  checker::CheckOptions options;
  options.targets = {module};
  options.layer = data.type_name();
  options.data = source;
  options.data_shape = record.data;
  options.class_names = record.class_names;
  options.validates = setup.validation_data != nullptr;
  options.without = without;
  std::string given;
  for (const auto& [name, value] : record.data_parameters) {
    options.data_parameters[name] = value;
    given += fmt::format(" --data-option {}={}", name, value);
  }
  const ModuleMark mark(module, trial_text(fmt::format("{} {}{} {}", data.type_name(), source,
                                                       given, to_string(record.data)),
                                           without));
  if (mark.is_set()) return {};
  const PluginTrial trial = plugin_trial_of(options);
  const std::string what = fmt::format("data set '{}'", data.type_name());
  const std::string command = fmt::format("tandem plugin check {} --layer {} --data {}{}", module,
                                          data.type_name(), source, given);
  if (trial.broken.empty()) {
    if (trial.kept > 0) mark.set();
    return {trial.text(what, command)};
  }
  throw error("{} ({}) breaks the promise '{}': {}{}. '{}' tells more; {}", what, module,
              trial.broken.front().promise, trial.broken.front().outcome.detail, trial.more(),
              command, trial.way_out());
}

// Where nothing is tried; "": it is. A process of MPI, or of a GPU's driver, must not be forked,
// and a copy lacks the threads of a module.
std::string where_not_tried(const Registry& registry, const ForeignLayers& foreign,
                            const TrainSetup& setup, bool has_ranks, const std::string& kind) {
  if (has_ranks) return "of several ranks";
  if (!is_host_addressable(registry.backend(kind))) return "on " + kind;
  const ModuleReport* data = registry.module_of_dataset(setup.training_data->type_name());
  const bool has_threads = data != nullptr && !data->built_in && data->has_threads;
  const std::string module = has_threads ? data->path.string() : foreign.module_with_threads;
  if (module.empty()) return "";
  return fmt::format("as {} has threads of its own, which a child process lacks", module);
}

}  // namespace

std::vector<std::string> try_plugins(Registry& registry, const TrainSetup& setup,
                                     const std::vector<std::string>& without, bool has_ranks) {
  checker::require_promises(without);
  const std::string kind = parse_devices(setup.record.options.devices, registry).kind;
  const ForeignLayers foreign = foreign_layers(registry, setup, kind);
  const std::string module = foreign_module(registry, setup.training_data->type_name());
  Lines lines;
  if (!without.empty()) {
    const bool has_any = !foreign.uses.empty() || !module.empty();
    lines.push_back(fmt::format("plugins: left out by --plugin-check-without: {}{}",
                                fmt::join(without, ", "),
                                has_any ? "" : "; but there is no plugin of a third party to try"));
  }
  for (const std::string& name : without) {
    if (is_due(name)) continue;
    lines.push_back(fmt::format(
        "plugins: --plugin-check-without '{}' has no effect: it is not tried before training",
        name));
  }
  if (foreign.uses.empty() && module.empty()) return lines;
  const std::string where = where_not_tried(registry, foreign, setup, has_ranks, kind);
  if (!where.empty()) {
    if (!foreign.uses.empty()) {
      lines.push_back(fmt::format(
          "note: layers of plugins are not tried before the first step {}; 'tandem plugin check "
          "--net {} --device {}' does so",
          where, setup.record.options.net, kind));
    }
    if (!module.empty()) {
      lines.push_back(fmt::format(
          "note: data set '{}' is not tried before the first step {}; 'tandem plugin check {}' "
          "does so",
          setup.training_data->type_name(), where, module));
    }
    return lines;
  }
  const auto add = [&](Lines more) {
    std::move(more.begin(), more.end(), std::back_inserter(lines));
  };
  if (!foreign.uses.empty()) add(try_layers(foreign, setup, kind, without));
  if (!module.empty()) add(try_data(registry, setup, module, without));
  return lines;
}

}  // namespace tandem
