// What a solver file says, a run does: intervals, tests, snapshots, resuming.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/model/file/solver_definition.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

using testing::HasSubstr;

class SolverRun : public Runs {
 protected:
  class Watch : public Observer {
   public:
    explicit Watch(int64_t stop_after = -1) : stop_after_(stop_after) {}
    void on_message(const std::string& line) override { messages += line + "\n"; }
    void on_step(const StepReport& report) override {
      losses.push_back(report.loss);
      if (report.step == stop_after_) stop = true;
    }
    void on_evaluation(const Evaluation& evaluation) override { tests.push_back(evaluation); }
    std::string messages;
    std::vector<double> losses;
    std::vector<Evaluation> tests;
    std::atomic<bool> stop{false};

   private:
    int64_t stop_after_;
  };

  static TrainOptions with_solver(const std::string& text, int64_t steps = 6) {
    TrainOptions o = options(steps);
    o.solver = folder_->write("it_solver.prototxt", text);
    o.rate.reset();
    o.seed.reset();
    o.test_interval = 0;
    o.steps = 0;
    return o;
  }
};

constexpr const char* usual =
    "base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005 random_seed: 5 max_iter: 6 ";

TEST_F(SolverRun, TestsBeforeTheFirstStepAndAtTheIntervalAsCaffeDoes) {
  Watch watch;
  (void)train(with_solver(std::string(usual) + "test_interval: 3"), watch);
  ASSERT_EQ(watch.tests.size(), 3U);
  EXPECT_EQ(watch.tests[0].step, 0);
  EXPECT_FALSE(watch.tests[0].best);
  EXPECT_EQ(watch.tests[1].step, 3);
  EXPECT_EQ(watch.tests[2].step, 6);
  Watch without;
  (void)train(with_solver(std::string(usual) + "test_interval: 3 test_initialization: false"),
              without);
  ASSERT_EQ(without.tests.size(), 2U);
  EXPECT_EQ(without.tests[0].step, 3);
}

TEST_F(SolverRun, TakesAsManyTestSamplesAsTestIterSays) {
  Watch watch;
  TrainOptions o = with_solver(std::string(usual) + "test_interval: 6 test_iter: 1");
  const TrainResult result =
      train(o, watch);  // 15 images; the net has no test batch: the run's, 12
  EXPECT_EQ(result.last.samples, 12);
  EXPECT_EQ(result.last.skipped, 0);
  EXPECT_THAT(watch.messages, HasSubstr("the same 12 of the 15 validation images"));
}

TEST_F(SolverRun, ShowsTheLossAveragedOverTheLastSteps) {
  Watch plain, averaged;
  (void)train(with_solver(usual), plain);
  (void)train(with_solver(std::string(usual) + "average_loss: 3"), averaged);
  ASSERT_EQ(averaged.losses.size(), 6U);
  EXPECT_DOUBLE_EQ(averaged.losses[1], (plain.losses[0] + plain.losses[1]) / 2);
  EXPECT_DOUBLE_EQ(averaged.losses[5], (plain.losses[3] + plain.losses[4] + plain.losses[5]) / 3);
}

TEST_F(SolverRun, KeepsSnapshotsByTheirPrefixAndReportsWhere) {
  Watch watch;
  const TrainOptions o =
      with_solver(std::string(usual) + "snapshot: 2 snapshot_prefix: 'models/it'");
  (void)train(o, watch);
  for (const char* name : {"it_iter_2", "it_iter_4", "it_iter_6"}) {
    EXPECT_TRUE(std::filesystem::exists(o.out / (std::string(name) + ".safetensors"))) << name;
  }
  EXPECT_NE(weights_in(o.out / "it_iter_2.safetensors"), weights_in(o.out / "last.safetensors"));
  EXPECT_EQ(weights_in(o.out / "it_iter_6.safetensors"), weights_in(o.out / "last.safetensors"));
  EXPECT_THAT(watch.messages, HasSubstr("snapshots are 'it_iter_<step>.safetensors' in the run "
                                        "folder, not in 'models'"));
}

TEST_F(SolverRun, KeepsSnapshotsInTheRunFolderWhateverTheNetIsCalled) {
  Watch watch;
  TrainOptions o = options(2);
  o.snapshot = 2;
  NetDefinition net = test::small_net();
  net.name = "../../stolen";
  o.net_text = write_net(net);
  (void)train(o, watch);
  EXPECT_TRUE(std::filesystem::exists(o.out / "_._.._stolen_iter_2.safetensors"));
}

TEST_F(SolverRun, ReportsWhatTheCommandLineChanges) {
  Watch watch;
  TrainOptions o = with_solver(std::string(usual) + "display: 7");
  o.rate = 0.02;
  o.steps = 3;
  o.solver_fields = {{"momentum", "0.5"}};
  (void)train(o, watch);
  EXPECT_THAT(watch.messages,
              testing::AllOf(HasSubstr("the command line changes solver '"),
                             HasSubstr("base_lr 0.02 instead of 0.01, max_iter 3 instead of 6, "
                                       "momentum 0.5")));
}

TEST_F(SolverRun, AddsUpTheBatchesOfAnUpdate) {
  Watch watch;
  TrainOptions o = with_solver(std::string(usual) + "iter_size: 3", 4);
  o.batch = 4;
  const TrainResult result = train(o, watch);
  EXPECT_EQ(result.steps, 6);
  EXPECT_EQ(watch.losses.size(), 6U);
  EXPECT_THAT(watch.messages,
              HasSubstr("iter_size 3: every step adds up 3 batches of 4, 12 images"));
}

TEST_F(SolverRun, OfAdamResumesBitByBitWithClippingAndSeveralBatches) {
  const std::string adam =
      "type: 'Adam' base_lr: 0.003 momentum: 0.9 clip_gradients: 2 iter_size: 2 "
      "random_seed: 5 max_iter: 12 lr_policy: 'cosine' warmup_iter: 3";
  TrainOptions whole = with_solver(adam);
  whole.batch = 6;
  const Weights expected = run(whole);
  TrainOptions o = with_solver(adam);
  o.batch = 6;
  Watch watch(5);
  o.stop = &watch.stop;
  const TrainResult half = train(o, watch);
  EXPECT_TRUE(half.stopped);
  EXPECT_LT(half.steps, 12);
  TrainOptions rest;
  rest.out = o.out;
  rest.resume = true;
  EXPECT_EQ(run(rest), expected);
}

TEST_F(SolverRun, OfEveryTypeLowersTheLoss) {
  for (const std::string& type : solver_types()) {
    TrainOptions o = options(40);
    o.rate.reset();
    o.solver_type = type;
    if (type == "LARS") o.solver_fields["base_lr"] = "10";
    Watch watch;
    (void)train(o, watch);
    const double first = (watch.losses[0] + watch.losses[1] + watch.losses[2]) / 3;
    const double last = (watch.losses[37] + watch.losses[38] + watch.losses[39]) / 3;
    EXPECT_LT(last, 0.9 * first) << type;
  }
}

TEST_F(SolverRun, RefusesTheStateOfAnotherSolver) {
  TrainOptions o = options(2);
  (void)run(o);
  std::ifstream file(o.out / "solver.prototxt");
  std::stringstream text;
  text << file.rdbuf();
  std::string changed = text.str();
  changed.replace(changed.find("\"SGD\""), 5, "\"Adam\"");
  std::ofstream(o.out / "solver.prototxt") << changed;
  TrainOptions rest;
  rest.out = o.out;
  rest.resume = true;
  rest.steps = 4;
  try {
    (void)run(rest);
    FAIL() << "no error";
  } catch (const Error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("it is of another solver"));
  }
}

TEST_F(SolverRun, BeginsWithTheWeightsThatTheSolverNames) {
  const TrainOptions first = options(3);
  const Weights trained = run(first);
  TrainOptions o = options(1);
  o.solver_fields["weights"] = (first.out / "last.safetensors").string();
  o.rate = 0.0;
  EXPECT_EQ(run(o), trained);
  o.out += "b";
  o.solver_fields["weights"] = "nowhere.caffemodel";
  try {
    (void)run(o);
    FAIL() << "no error";
  } catch (const Error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("--weights 'nowhere.caffemodel' does not exist"));
  }
}

TEST_F(SolverRun, FindsANetRelativeToAFolderAboveTheSolver) {
  const TempFolder root;
  std::filesystem::create_directories(root.path() / "models" / "small");
  std::filesystem::create_directories(root.path() / "solvers");
  (void)root.write("models/small/net.prototxt", write_net(small_net()));
  TrainOptions o = options(1);
  o.net_text.clear();
  o.steps = 1;
  o.solver = root.write("solvers/solver.prototxt",
                        std::string("net: 'models/small/net.prototxt' ") + usual);
  EXPECT_FALSE(run(o).empty());
}

}  // namespace
}  // namespace tandem::test
