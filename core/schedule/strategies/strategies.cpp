#include "core/schedule/strategies/strategies.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/schedule/plan/dependencies.h"
#include "core/schedule/plan/recompute.h"

namespace tandem {
namespace {

std::vector<std::string> names_of(const std::vector<Strategy>& list) {
  std::vector<std::string> names;
  for (const Strategy& strategy : list) names.push_back(strategy.name);
  return names;
}

std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + ("'" + names[i] + "'");
  }
  return text;
}

// nullptr: no strategy has an option of that key.
const KnownOption* find_key(const std::vector<KnownOption>& options, const std::string& key) {
  const auto at = std::find_if(options.begin(), options.end(),
                               [&](const KnownOption& known) { return known.option.key == key; });
  return at == options.end() ? nullptr : &*at;
}

// Like find_key(). Where several flags share the key, finds the flag that stands for the value.
const KnownOption* find_given(const std::vector<KnownOption>& options, const std::string& key,
                              const OptionValue& value) {
  for (const KnownOption& known : options) {
    const StrategyOption& option = known.option;
    if (option.key == key && option.is_flag && option.parse("") == value) return &known;
  }
  return find_key(options, key);
}

bool takes(const KnownOption& option, const std::string& strategy) {
  return std::find(option.strategies.begin(), option.strategies.end(), strategy) !=
         option.strategies.end();
}

OptionValue value_of(const StrategyOptions& options, const StrategyOption& option) {
  const auto found = options.find(option.key);
  return found == options.end() ? option.standard : found->second;
}

void require_weights_to_train(const Net& net) {
  for (const Layer& layer : net.layers) {
    for (const int weight : layer.weights) {
      if (net.weight(weight).trained()) return;
    }
  }
  throw error(
      "net '{}' has no weights to train: every lr_mult is 0, or no layer before the loss has any",
      net.name);
}

}  // namespace

std::string KnownOption::help_text() const {
  return fmt::format("{}: {}", fmt::join(strategies, ", "), option.help);
}

Strategies::Strategies(std::vector<Strategy> list) {
  for (Strategy& strategy : list) add(std::move(strategy));
}

void Strategies::add(Strategy strategy) {
  if (find(strategy.name) != nullptr) throw error("there is a strategy '{}'", strategy.name);
  for (const StrategyOption& option : strategy.options) {
    const auto known =
        std::find_if(options_.begin(), options_.end(),
                     [&](const KnownOption& other) { return other.option.name == option.name; });
    if (known == options_.end()) {
      options_.push_back({option, {strategy.name}});
      continue;
    }
    const StrategyOption& other = known->option;
    if (other.key != option.key || other.is_flag != option.is_flag ||
        other.standard != option.standard) {
      throw error("strategy '{}' has another {} than strategy '{}'", strategy.name, option.name,
                  known->strategies.front());
    }
    known->strategies.push_back(strategy.name);
  }
  list_.push_back(std::move(strategy));
}

const Strategy* Strategies::find(const std::string& name) const {
  const auto at = std::find_if(list_.begin(), list_.end(),
                               [&](const Strategy& strategy) { return strategy.name == name; });
  return at == list_.end() ? nullptr : &*at;
}

const Strategy& Strategies::at(const std::string& name) const {
  if (const Strategy* strategy = find(name)) return *strategy;
  throw error("unknown strategy '{}'{}; there are: {}, and auto", name,
              did_you_mean(name, names_of(list_)), names());
}

std::string Strategies::names() const {
  return fmt::format("{}", fmt::join(names_of(list_), ", "));
}

const StrategyOption* Strategies::find_option(const std::string& key) const {
  const KnownOption* known = find_key(options_, key);
  return known == nullptr ? nullptr : &known->option;
}

void Strategies::require_option_of(const std::string& strategy, const KnownOption& option) const {
  if (find(strategy) == nullptr || takes(option, strategy)) return;
  throw error("{} is an option of strateg{} {}; strategy '{}' has none of that name",
              option.option.name, option.strategies.size() == 1 ? "y" : "ies",
              quoted(option.strategies), strategy);
}

void Strategies::require_options_of(const std::string& strategy,
                                    const StrategyOptions& options) const {
  for (const auto& [key, value] : options) {
    const KnownOption* known = find_given(options_, key, value);
    if (known == nullptr) {
      std::vector<std::string> keys;
      for (const KnownOption& other : options_) keys.push_back(other.option.key);
      throw error("no strategy has an option '{}'{}", key, did_you_mean(key, keys));
    }
    require_option_of(strategy, *known);
    if (value != known->option.standard) known->option.validate(value);
  }
}

StrategyOptions Strategies::options_of(const std::string& strategy,
                                       const StrategyOptions& options) const {
  if (find(strategy) == nullptr) return options;
  StrategyOptions result;
  for (const auto& [key, value] : options) {
    const KnownOption* known = find_key(options_, key);
    if (known != nullptr && takes(*known, strategy)) result[key] = value;
  }
  return result;
}

StrategyOptions Strategies::explicit_options(const StrategyOptions& options) const {
  StrategyOptions result;
  for (const auto& [key, value] : options) {
    const StrategyOption* option = find_option(key);
    if (option == nullptr || value != option->standard) result[key] = value;
  }
  return result;
}

void Strategies::overlay(const StrategyOptions& given, const std::set<std::string>& kept,
                         StrategyOptions& options) const {
  std::set<std::string> freed;
  for (const auto& [key, value] : given) {
    const StrategyOption* option = find_option(key);
    if (option == nullptr || value == value_of(options, *option)) continue;
    options[key] = value;
    if (value == option->standard) options.erase(key);
    freed.insert(option->resets.begin(), option->resets.end());
  }
  for (const std::string& key : freed) {
    if (!kept.contains(key) && !given.contains(key)) options.erase(key);
  }
}

void Strategies::check_options(const Net& net, const StrategyOptions& options) const {
  for (const auto& [key, value] : options) {
    const StrategyOption* option = find_option(key);
    if (option != nullptr && option->check) option->check(net, value);
  }
}

std::string Strategies::option_table() const {
  std::string table = "| option | of | does |\n|---|---|---|\n";
  for (const KnownOption& known : options_) {
    table += fmt::format("| `{}` | {} | {} |\n", known.option.name,
                         fmt::join(known.strategies, ", "), known.option.help);
  }
  return table;
}

std::string to_text(const Strategy& strategy, const StrategyOptions& options) {
  std::string text;
  for (const StrategyOption& option : strategy.options) {
    if (!option.is_explicit(options)) continue;
    text += (text.empty() ? "" : " ") + option.to_text(options.at(option.key));
  }
  return text;
}

namespace {

// On several devices each has some rows of the batch only.
void require_rows_or_statistics(const Net& net) {
  for (const Layer& layer : net.layers) {
    const bool is_sum = layer.has(TANDEM_LOSS) || layer.has(TANDEM_METRIC);
    if (is_sum || layer.has(TANDEM_PER_SAMPLE) || layer.has(TANDEM_BATCH_STATISTICS)) continue;
    throw error(
        "{}: its type has neither TANDEM_PER_SAMPLE nor TANDEM_BATCH_STATISTICS, so its results "
        "may "
        "depend on rows of the batch that another device has: train on one device{}",
        layer.title(), in_file(layer.location));
  }
}

}  // namespace

Plan build_plan(const std::string& strategy, const StrategyInputs& inputs,
                const Strategies& known) {
  Plan plan = build_plan_without_waits(strategy, inputs, known);
  derive_dependencies(plan);
  validate(plan);
  return plan;
}

Plan build_plan_without_waits(const std::string& strategy, const StrategyInputs& inputs,
                              const Strategies& known) {
  static const CostTable unmeasured;
  const Strategy& wanted = known.at(strategy);
  known.require_options_of(strategy, inputs.options);
  known.check_options(*inputs.net, inputs.options);
  require_weights_to_train(*inputs.net);
  if (inputs.devices > 1) require_rows_or_statistics(*inputs.net);
  StrategyInputs completed = inputs;
  if (completed.costs == nullptr) completed.costs = &unmeasured;
  Plan plan = wanted.build(completed);
  if (inputs.recomputes) recompute_activations(plan, *inputs.net);
  return plan;
}

}  // namespace tandem
