// What the stand-in for CUDA reports about four GPUs, from the backend to plans and records: links,
// and measured algorithms. Skipped without the stand-in, whose reports tests can set.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "core/device/topology.h"
#include "core/run/folder/run_folder.h"
#include "core/session/session.h"
#include "tests/cuda/machines.h"
#include "tests/support/run_support.h"

namespace tandem::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// 0 - 2 - 1 - 3 - 0 by NVLink, the rest by PCIe.
constexpr const char* ring_links = "02n0 12n0 13n0 03n0 01p1 23p1";

class FourGpus : public testing::Test {
 protected:
  void SetUp() override {
    const char* count = std::getenv("TANDEM_FAKE_GPUS");
    if (count == nullptr || std::string(count) != "4") GTEST_SKIP() << "no stand-in for 4 GPUs";
  }
  void TearDown() override {
    unsetenv("TANDEM_FAKE_LINKS");
    unsetenv("TANDEM_FAKE_PCI");
  }
  static void tell_links(const char* links) { setenv("TANDEM_FAKE_LINKS", links, 1); }
  // GPUs 0 and 1 under one switch, 2 and 3 under another.
  void tell_switches() {
    for (int gpu = 0; gpu < 4; ++gpu) {
      const std::string host = "pci0000:00", side = gpu < 2 ? "1" : "2";
      const fs::path at = folder_.path() / host / ("0000:00:0" + side + ".0") /
                          ("0000:" + side + "0:00.0") / fmt::format("0000:{}1:0{}.0", side, gpu) /
                          fmt::format("00fa:0{}:00.0", gpu);
      fs::create_directories(at);
      fs::create_directory_symlink(at, folder_.path() / at.filename());
    }
    setenv("TANDEM_FAKE_PCI", folder_.path().c_str(), 1);
  }

  static TrainOptions options(const std::string& devices, const std::string& strategy) {
    TrainOptions o = synthetic_run(folder_, 4);
    o.devices = devices;
    o.strategy = strategy;
    return o;
  }
  static TrainOptions rest_of(const TrainOptions& o, int64_t steps) {
    TrainOptions rest;
    rest.out = o.out;
    rest.resume = true;
    rest.steps = steps;
    return rest;
  }
  static std::string file_of(const TrainOptions& o, const char* name) {
    std::ifstream stream(o.out / name);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  }
  static RunRecord record_of(const TrainOptions& o) { return RunFolder::open(o.out).record(); }

  static Session session(const std::string& strategy) {
    SessionOptions o;
    o.devices = "cuda:0,1,2,3";
    o.strategy = strategy;
    if (strategy == "layerwise") o.strategy_options["reduce"] = "ring";
    o.batch = 12;
    o.data = {1, 3, 20, 20};
    o.testing = false;
    static Registry registry = Registry::with_defaults();
    return {registry, small_net(), o};
  }

  static TempFolder folder_;
};
TempFolder FourGpus::folder_;

// The pairs of devices between which gradients are copied.
std::set<std::pair<int, int>> pairs_of(const Plan& plan) {
  std::set<std::pair<int, int>> pairs;
  for (const Task& task : plan.tasks) {
    const auto* copy = std::get_if<CopyWork>(&task.work);
    if (copy == nullptr || task.streams.front().kind == StreamKind::control) continue;
    for (const CopySegment& segment : copy->segments) {
      const int source = plan.buffers[static_cast<size_t>(segment.source.buffer)].device;
      const int target = plan.buffers[static_cast<size_t>(segment.target.buffer)].device;
      if (source >= 0 && target >= 0 && source != target) pairs.insert({source, target});
    }
  }
  return pairs;
}

TEST_F(FourGpus, HaveTheLinksThatCudaReports) {
  tell_links(ring_links);
  const Machine machine(all_modules().backend("cuda"), {"cuda", {0, 1, 2, 3}}, {});
  const auto topology = find_topology(machine);
  ASSERT_NE(topology, nullptr);
  const std::string table = links_table(*topology);
  EXPECT_THAT(table, AllOf(HasSubstr("cuda:0 -> cuda:2 (9 NVLinks, estimated"),
                           HasSubstr("cuda:0 -> host (PCIe x16, estimated)")));
  EXPECT_GT(topology->bandwidth(0, 2), topology->bandwidth(0, 1));
}

TEST_F(FourGpus, HaveNoLinksForOneDevice) {
  const Machine machine(all_modules().backend("cuda"), {"cuda", {2}}, {});
  EXPECT_EQ(find_topology(machine), nullptr);
}

TEST_F(FourGpus, FormARingOverNvlinks) {
  tell_links(ring_links);
  const std::set<std::pair<int, int>> ring{{0, 2}, {2, 1}, {1, 3}, {3, 0}};
  EXPECT_EQ(pairs_of(session("layerwise").training().plan), ring);
  tell_links("01n0 12n0 23n0 03n0 02p1 13p1");
  const std::set<std::pair<int, int>> plain{{0, 1}, {1, 2}, {2, 3}, {3, 0}};
  EXPECT_EQ(pairs_of(session("layerwise").training().plan), plain);
}

TEST_F(FourGpus, UnderOneSwitchAreInDifferentGroups) {
  tell_switches();
  tell_links("01p0 02p0 03p0 12p0 13p0 23p0");
  EXPECT_EQ(session("asymmetric").training().plan.options.at("groups"), OptionValue("E=0,2/W=1,3"));
}

TEST_F(FourGpus, KeepTheirRingInAResumedRun) {
  tell_links(ring_links);
  TrainOptions half = options("cuda:0,1,2,3", "layerwise"), whole = half;
  half.strategy_options["reduce"] = whole.strategy_options["reduce"] = "ring";
  whole.out += "_whole";
  whole.steps = 8;
  const Weights never_stopped = run(whole);
  run(half);
  const std::string plan = file_of(half, "plan.txt");
  tell_links("01n0 12n0 23n0 03n0 02p1 13p1");  // as if the driver reported something else now
  EXPECT_EQ(run(rest_of(half, 8)), never_stopped);
  EXPECT_EQ(file_of(half, "plan.txt"), plan);
  TrainOptions fresh = options("cuda:0,1,2,3", "layerwise");
  fresh.strategy_options["reduce"] = "ring";
  run(fresh);
  EXPECT_NE(file_of(fresh, "plan.txt"), plan) << "a new run has another ring";
}

TEST_F(FourGpus, ContinueAnOlderRunWithoutLinks) {
  tell_links(ring_links);
  TrainOptions half = options("cuda:0,1,2,3", "layerwise");
  half.strategy_options["reduce"] = "ring";
  run(half);
  const RunFolder folder = RunFolder::open(half.out);
  RunRecord record = folder.record();
  ASSERT_NE(record.machine.topology, nullptr);
  record.machine.topology = nullptr;
  folder.write(record, folder.net(), folder.solver());
  run(rest_of(half, 8));
  EXPECT_EQ(record_of(half).machine.topology, nullptr);
}

TEST_F(FourGpus, AskForTheLinksAgainWithOtherDevices) {
  tell_links(ring_links);
  const TrainOptions half = options("cuda:0,1,2,3", "layerwise");
  run(half);
  TrainOptions rest = rest_of(half, 8);
  rest.devices = "cuda:0,2";
  run(rest);
  const auto topology = record_of(half).machine.topology;
  ASSERT_NE(topology, nullptr);
  EXPECT_EQ(topology->device_count(), 2);
  EXPECT_THAT(links_table(*topology), HasSubstr("cuda:0 -> cuda:2 (9 NVLinks"));
}

TEST_F(FourGpus, ThatMeasureRecordTheAlgorithms) {
  TrainOptions tuned = options("cuda:0,1", "layerwise");
  tuned.tune = true;
  run(tuned);
  const KernelChoices choices = record_of(tuned).algorithms;
  // Two convolutions, in training and in testing; both devices have as many rows.
  ASSERT_EQ(choices.size(), 4U);
  EXPECT_EQ(choices.begin()->first, "cuda stand-in for a GPU: conv1, testing, 6 rows, float32");
  EXPECT_THAT(choices.begin()->second, testing::StartsWith("measured: cuDNN forward engine "));
}

TEST_F(FourGpus, ThatMeasureHaveAllTheirMemoryForIt) {
  TrainOptions tuned = options("cuda:0,1", "layerwise");
  tuned.tune = true;
  run(tuned);
  for (const auto& [use, algorithm] : record_of(tuned).algorithms) {
    EXPECT_THAT(algorithm, testing::Not(testing::EndsWith("; by a model"))) << use;
  }
}

TEST_F(FourGpus, ThatContinueUseTheRecordedAlgorithmsAndMeasureOnlyOtherUses) {
  TrainOptions tuned = options("cuda:0,1", "layerwise");
  tuned.tune = true;
  run(tuned);
  const KernelChoices choices = record_of(tuned).algorithms;
  run(rest_of(tuned, 8));
  EXPECT_EQ(record_of(tuned).algorithms, choices);
  TrainOptions rest = rest_of(tuned, 12);
  rest.devices = "cuda:0,1,2";
  run(rest);
  const KernelChoices more = record_of(tuned).algorithms;
  EXPECT_EQ(more.size(), 8U) << "4 rows instead of 6";
  for (const auto& [use, algorithm] : choices) EXPECT_EQ(more.at(use), algorithm);
}

TEST_F(FourGpus, ThatDoNotMeasureRecordNothing) {
  const TrainOptions plain = options("cuda:0,1", "layerwise");
  run(plain);
  EXPECT_TRUE(record_of(plain).algorithms.empty());
}

TEST_F(FourGpus, ReportTheLayerWhoseRecordedAlgorithmIsGone) {
  TrainOptions tuned = options("cuda:0", "sequential");
  tuned.tune = true;
  run(tuned);
  const RunFolder folder = RunFolder::open(tuned.out);
  RunRecord record = folder.record();
  for (auto& [use, algorithm] : record.algorithms) {
    algorithm = "measured: cuDNN forward engine 777";
  }
  folder.write(record, folder.net(), folder.solver());
  EXPECT_THAT(message_of([&] { run(rest_of(tuned, 8)); }),
              AllOf(HasSubstr("layer 'conv1'"), HasSubstr("no forward engine 777"),
                    HasSubstr("begin a new run to choose anew")));
}

}  // namespace
}  // namespace tandem::test
