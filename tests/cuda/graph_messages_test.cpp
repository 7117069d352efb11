// The messages of a training run about steps that should have run as graphs, and their order.
#include <gmock/gmock.h>

#include <cstdlib>

#include "tests/cuda/graph_rig.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct Lines : Observer {
  void on_message(const std::string& line) override { lines.push_back(line); }
  void on_step(const StepReport& report) override {
    lines.push_back(fmt::format("step {}", report.step));
  }
  // The position of the only line that begins with `begin`; -1: there is none, or there are
  // several.
  [[nodiscard]] int64_t position_of(const std::string& begin) const {
    const auto matches = [&](const std::string& line) { return line.starts_with(begin); };
    const auto found = std::find_if(lines.begin(), lines.end(), matches);
    if (std::count_if(lines.begin(), lines.end(), matches) != 1) return -1;
    return found - lines.begin();
  }
  std::vector<std::string> lines;
};

class MessagesOfTrainingByGraphs : public OnDevices {
 protected:
  void TearDown() override { unsetenv("TANDEM_FAKE_ALLOCATES"); }
  TrainOptions options(GraphUse use) {
    TrainOptions o = synthetic_run(folder_, 12);
    o.devices = "cuda:0";
    o.strategy = "sequential";
    o.test_interval = 4;
    o.timeline = false;
    o.graphs = use;
    return o;
  }

 private:
  TempFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(Devices, MessagesOfTrainingByGraphs, testing::Values("cuda:0,0"),
                         device_name);

TEST_P(MessagesOfTrainingByGraphs, ReportOncePerPhaseThatStepsRunTaskByTask) {
  if (!runs_on_stand_in()) GTEST_SKIP() << "the layers of a GPU can always be captured";
  setenv("TANDEM_FAKE_ALLOCATES", "1", 1);
  Lines said;
  const TrainOptions o = options(GraphUse::automatic);
  const Weights weights = weights_in(train(o, said).run / "last.safetensors");
  const int64_t training =
      said.position_of("training steps run task by task, not as graphs: a capture: ");
  const int64_t testing_phase = said.position_of("testing steps run task by task, not as graphs: ");
  ASSERT_GE(training, 0);
  EXPECT_THAT(said.lines[static_cast<size_t>(training)],
              AllOf(HasSubstr("task '"), HasSubstr(": it allocates in every pass")));
  EXPECT_LT(training, said.position_of("step 2")) << "the third step is the first to be captured";
  ASSERT_GE(testing_phase, 0);
  EXPECT_LT(testing_phase, said.position_of("step 9")) << "the second test captures";
  EXPECT_EQ(weights, run(options(GraphUse::off)));
}

TEST_P(MessagesOfTrainingByGraphs, ReportItAlsoForARunThatFails) {
  if (!runs_on_stand_in()) GTEST_SKIP() << "the layers of a GPU can always be captured";
  setenv("TANDEM_FAKE_ALLOCATES", "1", 1);
  Lines said;
  TrainOptions o = options(GraphUse::automatic);
  o.rate = 1e30;
  EXPECT_THAT(message_of([&] { train(o, said); }), HasSubstr("not finite"));
  EXPECT_GE(said.position_of("training steps run task by task"), 0);
}

}  // namespace
}  // namespace tandem::test
