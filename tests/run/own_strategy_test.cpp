// A strategy of a program's own, from this file alone: it is planned, simulated, trained, recorded
// and resumed as those that are built in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/schedule/builder/plan_builder.h"
#include "core/schedule/strategies/common/stages.h"
#include "core/session/choose_strategy.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::Contains;
using testing::HasSubstr;

struct MessagesOptions {
  int messages = 2;
};

const OptionTable<MessagesOptions>& messages_options() {
  static const auto table = OptionTable<MessagesOptions>().add(
      count_option("--messages", "in how many messages gradients are sent (default: 2)"),
      &MessagesOptions::messages);
  return table;
}

constexpr Stage own_backward{9, "backward", "#fb8072"}, own_messages{21, "messages", "#b3de69"},
    own_update{22, "update", "#8dd3c7"};

// As `sequential`, but the gradients are sent in several messages.
Plan build_in_messages(const StrategyInputs& inputs) {
  const int64_t count = messages_options().read(inputs.options).messages;
  PlanBuilder builder(inputs, "in_messages", PlanBuilder::Purpose::training);
  const Net& net = builder.net();
  std::vector<int> trained;
  for (size_t i = 0; i < net.weights.size(); ++i) trained.push_back(static_cast<int>(i));
  stages::emit_inputs(builder);
  stages::emit_broadcast(builder, "weights", -1, {all_weights(net)}, When::first_micro_batch);
  stages::emit_forward(builder);
  stages::emit_report(builder, true);
  stages::emit_backward(builder, 0, static_cast<int>(net.layers.size()), own_backward);
  constexpr int64_t line = 64;
  const int64_t lines = (all_weights(net).end + line - 1) / line;
  for (int64_t i = 0; i < count; ++i) {
    const Interval part = share(lines, static_cast<int>(count), static_cast<int>(i));
    const Interval bytes{part.begin * line, std::min(part.end * line, all_weights(net).end)};
    if (bytes.is_empty()) continue;
    stages::emit_reduction(builder, "message " + std::to_string(i), {bytes}, own_messages,
                           own_messages);
  }
  builder.emit_norms("norms @0", own_update, 0, trained);
  builder.emit_update("update @0", own_update, 0, trained);
  return builder.take();
}

const Strategies& with_own() {
  static const Strategies all = [] {
    Strategy strategy;
    strategy.name = "in_messages";
    strategy.summary = "gradients are sent in several messages";
    strategy.options = messages_options().options();
    strategy.build = &build_in_messages;
    strategy.lossless_cases = [](int) {
      return std::vector<StrategyOptions>{{}, {{"messages", 3}}};
    };
    Strategies result = built_in_strategies();
    result.add(std::move(strategy));
    return result;
  }();
  return all;
}

class OwnStrategy : public testing::Test {
 protected:
  TrainOptions run_of(const std::string& strategy, int64_t steps,
                      const StrategyOptions& options = {}) {
    TrainOptions o = synthetic_run(folder_, steps);
    o.devices = "cpu:2";
    o.strategy = strategy;
    o.strategy_options = options;
    return o;
  }
  static std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static nlohmann::json record_of(const TrainOptions& o) {
    return nlohmann::json::parse(text_of(o.out / "run.json"));
  }

 private:
  TempFolder folder_;
};

TEST_F(OwnStrategy, HasItsOptionOnACommandLine) {
  const std::vector<KnownOption>& options = with_own().options();
  const KnownOption& own = options.back();
  EXPECT_EQ(own.option.name, "--messages");
  EXPECT_EQ(own.help_text(), "in_messages: in how many messages gradients are sent (default: 2)");
  EXPECT_EQ(own.option.parse("3"), OptionValue(3));
  EXPECT_THAT(with_own().option_table(), HasSubstr("| `--messages` | in_messages |"));
  EXPECT_THROW(with_own().require_options_of("two_phase", {{"messages", 3}}), Error);
  // Those that are built in do not know it.
  EXPECT_EQ(built_in_strategies().find("in_messages"), nullptr);
  EXPECT_THROW(built_in_strategies().require_options_of("sequential", {{"messages", 3}}), Error);
}

TEST_F(OwnStrategy, IsForecastWithTheOthers) {
  Registry registry = Registry::with_defaults();
  SessionOptions options;
  options.devices = "sim:2";
  options.batch = 8;
  options.strategies = &with_own();
  const NetDefinition net = small_net();
  options.data = net.input_shape();
  options.data.n = 1;
  options.costs.emplace(Roofline{1e9, 1e9});
  std::vector<std::string> inspected;
  ForecastOptions how;
  how.inspect = [&](const Forecast& forecast) {
    EXPECT_FALSE(forecast.plan.tasks.empty()) << forecast.name;
    EXPECT_FALSE(forecast.measured.events.empty()) << forecast.name;
    inspected.push_back(forecast.name);
  };
  const ForecastList list = forecast_strategies(registry, net, options, how);
  std::vector<std::string> names;
  for (const Forecast& forecast : list.forecasts) {
    if (forecast.refusal.empty()) names.push_back(forecast.name);
    EXPECT_TRUE(forecast.plan.tasks.empty()) << "the plans of all would take much memory";
  }
  EXPECT_THAT(inspected, testing::UnorderedElementsAreArray(names));
  EXPECT_THAT(names, Contains("in_messages"));
  EXPECT_THAT(names, Contains("sequential"));
  EXPECT_FALSE(list.is_stopped());

  options.watch = [](const LongWork& work) { return work.done < 2; };
  const ForecastList some = forecast_strategies(registry, net, options, ForecastOptions{});
  EXPECT_TRUE(some.is_stopped());
  EXPECT_EQ(some.forecasts.size(), 2U);
  EXPECT_THAT(forecast_table(some),
              testing::HasSubstr("stopped after 2 of " + std::to_string(some.wanted)));
}

TEST_F(OwnStrategy, IsTrainedRecordedAndResumed) {
  const Weights whole = run(run_of("in_messages", 6, {{"messages", 3}}), with_own());
  EXPECT_EQ(whole, run(run_of("sequential", 6)));
  const TrainOptions first = run_of("in_messages", 3, {{"messages", 3}});
  (void)run(first, with_own());
  EXPECT_EQ(record_of(first)["options"]["strategy"], "in_messages");
  EXPECT_EQ(record_of(first)["options"]["strategy_options"], nlohmann::json({{"messages", 3}}));
  EXPECT_THAT(text_of(first.out / "plan.txt"), HasSubstr("send message 2 @1->@0"));
  TrainOptions rest;
  rest.out = first.out;
  rest.resume = true;
  rest.steps = 6;
  EXPECT_EQ(run(rest, with_own()), whole);
  EXPECT_EQ(record_of(first)["options"]["strategy_options"]["messages"], 3);
  // Given anew, it changes.
  rest.steps = 7;
  rest.strategy_options = {{"messages", 4}};
  (void)run(rest, with_own());
  EXPECT_EQ(record_of(first)["options"]["strategy_options"]["messages"], 4);
  EXPECT_THAT(text_of(first.out / "plan.txt"), HasSubstr("send message 3 @1->@0"));
}

TEST_F(OwnStrategy, GivesTheWeightsOfOneDeviceInEachOfItsCases) {
  const Weights expected = run(run_of("sequential", 4));
  for (const StrategyOptions& options : with_own().at("in_messages").lossless_cases(2)) {
    EXPECT_EQ(run(run_of("in_messages", 4, options), with_own()), expected);
  }
}

}  // namespace
}  // namespace tandem::test
