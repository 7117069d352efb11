#include "core/schedule/strategies/strategy_options.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/strings.h"

namespace tandem {
namespace {

using Reader = std::function<void(StrategyOptions&, const std::string&)>;
using Names = std::vector<std::string>;

// `access` gives the option's place in the options that it is called with.
template <class Access>
StrategyOption make(const char* name, Names strategies, const char* help, Access access,
                    Reader read) {
  StrategyOption option;
  option.name = name;
  option.strategies = std::move(strategies);
  option.help = help;
  option.set = std::move(read);
  option.is_explicit = [access](StrategyOptions options) {
    StrategyOptions standard;
    return access(options) != access(standard);
  };
  option.copy = [access](StrategyOptions from, StrategyOptions& to) { access(to) = access(from); };
  option.is_same = [access](StrategyOptions one, StrategyOptions other) {
    return access(one) == access(other);
  };
  return option;
}

template <class Access>
StrategyOption text(const char* name, Names strategies, const char* help, Access access) {
  return make(
      name, std::move(strategies), help, access,
      [access](StrategyOptions& options, const std::string& value) { access(options) = value; });
}

template <class Access>
StrategyOption word(const char* name, Names strategies, const char* help, Access access,
                    Names known) {
  return make(name, std::move(strategies), help, access,
              [=](StrategyOptions& options, const std::string& value) {
                if (std::find(known.begin(), known.end(), value) == known.end()) {
                  throw error("{} {}: it is none of {}{}", name, value, fmt::join(known, ", "),
                              did_you_mean(value, known));
                }
                access(options) = value;
              });
}

template <class Access>
StrategyOption count(const char* name, Names strategies, const char* help, Access access) {
  return make(name, std::move(strategies), help, access,
              [=](StrategyOptions& options, const std::string& value) {
                int64_t number = 0;
                if (!parse_integer(value, &number) || number < 1 || number > most_devices) {
                  throw error("{} {}: it must be a whole number of at least 1 and at most {}", name,
                              value, most_devices);
                }
                access(options) = static_cast<int>(number);
              });
}

template <class Access>
StrategyOption threshold(const char* name, const char* help, Access access) {
  return make(name, {"sequential", "two_phase"}, help, access,
              [=](StrategyOptions& options, const std::string& value) {
                double number = 0;
                if (!parse_number(value, &number) || !(number >= 0 && number <= 1)) {
                  throw error("{} {}: it must be a share from 0 to 1, e.g. 0.1", name, value);
                }
                access(options) = number;
              });
}

template <class Access>
StrategyOption flag(const char* name, Names strategies, const char* help, Access access,
                    bool meaning, const char* opposite = "") {
  StrategyOption option =
      make(name, std::move(strategies), help, access,
           [=](StrategyOptions& options, const std::string&) { access(options) = meaning; });
  option.is_flag = true;
  option.opposite = opposite;
  option.is_explicit = [access, meaning](StrategyOptions options) {
    StrategyOptions standard;
    return access(options) == meaning && access(standard) != meaning;
  };
  return option;
}

std::vector<StrategyOption> of_data_parallel_strategies() {
  return {
      text(
          "--split", {"sequential", "two_phase"},
          "first layer of the FC part (default: auto, the split with the smallest predicted "
          "step); in sequential it only names the stages",
          [](StrategyOptions & o) -> auto& { return o.split; }),
      flag(
          "--plain-broadcast", {"two_phase"},
          "send all new weights at the start of a step (default: --hidden-broadcast)",
          [](StrategyOptions & o) -> auto& { return o.hidden_broadcast; }, false,
          "--hidden-broadcast"),
      flag(
          "--hidden-broadcast", {"two_phase"},
          "send new weights back as soon as they exist (default)",
          [](StrategyOptions & o) -> auto& { return o.hidden_broadcast; }, true,
          "--plain-broadcast"),
      threshold(
          "--time-threshold", "AlexNet-like test: share of backward time (default: 0.1)",
          [](StrategyOptions & o) -> auto& { return o.time_threshold; }),
      threshold(
          "--weight-threshold", "AlexNet-like test: share of weights (default: 0.1)",
          [](StrategyOptions & o) -> auto& { return o.weight_threshold; }),
      word("--reduce", {"layerwise"},
           "how gradients are added up: serial (to the master), tree or ring (default)",
           [](StrategyOptions & o) -> auto& { return o.reduce; }, {"serial", "tree", "ring"}),
      make(
          "--bucket", {"layerwise"},
          "layers share a message until it has so many bytes (default: 4MiB, for a ring more where "
          "messages are slow to begin)",
          [](StrategyOptions & o) -> auto& { return o.bucket; },
          [](StrategyOptions& o, const std::string& value) {
            o.bucket = parse_size(value, "--bucket");
          }),
  };
}

StrategyOption freeing(StrategyOption option, Names names) {
  option.frees = std::move(names);
  return option;
}

std::vector<StrategyOption> of_strategies_with_roles() {
  return {
      freeing(count(
                  "--conv-devices", {"hybrid"},
                  "devices for the convolutions (default: the fastest pair on sim)",
                  [](StrategyOptions & o) -> auto& { return o.roles.conv_devices; }),
              {"--fc-devices"}),
      freeing(count(
                  "--fc-devices", {"hybrid"},
                  "devices for the fully connected layers (default: the fastest pair on sim)",
                  [](StrategyOptions & o) -> auto& { return o.roles.fc_devices; }),
              {"--conv-devices"}),
      word("--fc-memory", {"hybrid"},
           "where the FC devices keep the solver's state: device (default), or extended, a "
           "memory-mapped file in TMPDIR (cpu) or pinned host memory",
           [](StrategyOptions & o) -> auto& { return o.roles.fc_memory; }, {"device", "extended"}),
      freeing(text(
                  "--groups", {"asymmetric"},
                  "the devices that compute errors and those that compute weights, as E=0,2/W=1,3 "
                  "(default: by the topology, else the sizes that are fastest by the costs)",
                  [](StrategyOptions & o) -> auto& { return o.roles.groups; }),
              {"--slices"}),
      word("--slices", {"asymmetric"},
           "layers whose weights the devices of W divide among them, the others whole here and "
           "there: all, large or none (default: by the costs)",
           [](StrategyOptions & o) -> auto& { return o.roles.slices; }, {"all", "large", "none"}),
      count(
          "--quota", {"fc_parallel"},
          "error pieces that a round of the backward pass waits for (default: the fastest on "
          "sim)",
          [](StrategyOptions & o) -> auto& { return o.roles.quota; }),
      freeing(flag(
                  "--eager", {"fc_parallel"},
                  "send errors in every round of the backward pass, not once behind the last",
                  [](StrategyOptions & o) -> auto& { return o.roles.eager; }, true),
              {"--quota"}),
  };
}

bool is_strategy(const std::string& name) {
  return std::any_of(strategies().begin(), strategies().end(),
                     [&](const Strategy& strategy) { return strategy.name == name; });
}

std::string quoted(const Names& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + ("'" + names[i] + "'");
  }
  return text;
}

}  // namespace

const std::vector<StrategyOption>& strategy_options() {
  static const std::vector<StrategyOption> all = [] {
    std::vector<StrategyOption> options = of_data_parallel_strategies();
    for (StrategyOption& option : of_strategies_with_roles()) options.push_back(std::move(option));
    return options;
  }();
  return all;
}

bool StrategyOption::is_of(const std::string& strategy) const {
  return !is_strategy(strategy) ||
         std::find(strategies.begin(), strategies.end(), strategy) != strategies.end();
}

std::string StrategyOption::help_text() const {
  return fmt::format("{}: {}", fmt::join(strategies, ", "), help);
}

void require_option_of(const std::string& strategy, const StrategyOption& option) {
  if (option.is_of(strategy)) return;
  throw error("{} is an option of strateg{} {}; strategy '{}' has none of that name", option.name,
              option.strategies.size() == 1 ? "y" : "ies", quoted(option.strategies), strategy);
}

void require_options_of(const std::string& strategy, const StrategyOptions& options) {
  for (const StrategyOption& option : strategy_options()) {
    if (option.is_explicit(options)) require_option_of(strategy, option);
  }
}

StrategyOptions options_of(const std::string& strategy, const StrategyOptions& options) {
  StrategyOptions result;
  for (const StrategyOption& option : strategy_options()) {
    if (option.is_of(strategy)) option.copy(options, result);
  }
  return result;
}

std::set<std::string> explicit_names(const StrategyOptions& options, std::set<std::string> named) {
  for (const StrategyOption& option : strategy_options()) {
    if (option.is_explicit(options)) named.insert(option.name);
  }
  return named;
}

void overlay(const StrategyOptions& told, const std::set<std::string>& names,
             const std::set<std::string>& kept, StrategyOptions& options) {
  std::set<std::string> freed;
  for (const StrategyOption& option : strategy_options()) {
    if (!names.contains(option.name) || option.is_same(told, options)) continue;
    option.copy(told, options);
    freed.insert(option.frees.begin(), option.frees.end());
  }
  for (const StrategyOption& option : strategy_options()) {
    const bool is_open = freed.contains(option.name) && !kept.contains(option.name);
    if (is_open && !names.contains(option.name)) option.copy(StrategyOptions{}, options);
  }
}

std::string strategy_option_table() {
  std::string table = "| option | of | does |\n|---|---|---|\n";
  for (const StrategyOption& option : strategy_options()) {
    table += fmt::format("| `{}` | {} | {} |\n", option.name, fmt::join(option.strategies, ", "),
                         option.help);
  }
  return table;
}

}  // namespace tandem
