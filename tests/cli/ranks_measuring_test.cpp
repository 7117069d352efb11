// What several processes measure: kernels, steps, links, and a timeline on one clock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <utility>

#include "tests/cli/program.h"
#include "tests/cli/ranks.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::Desk;
using test::mpirun;
using test::Outcome;
using test::Ranks;
using testing::HasSubstr;

// Two ranks of cpu:2 train with the probe's kernel, which takes another algorithm each time that it
// measures in a process. Returns the names that the run's record has, after it went on with them.
std::multiset<std::string> measured_names(const std::string& strategy) {
  const Desk desk;
  desk.write("probe.prototxt", test::replaced(test::tiny_net(), "name: \"relu1\" type: \"ReLU\"",
                                              "name: \"relu1\" type: \"probe.Double\""));
  desk.write("plugins/README", "");
  std::filesystem::copy(test::build_folder() / "lib/tandem/test_plugins/tandem_probe.so",
                        desk / "plugins/tandem_probe.so");
  const std::string options =
      "train --net probe.prototxt --data synthetic --data-option size=40 --batch 5 --tune "
      "--threads 1 --lr 1e-9 --devices cpu:2 --out run --strategy " +
      strategy;
  const std::string with_plugins = "TANDEM_PLUGIN_PATH=plugins " + mpirun(2);
  const Outcome outcome = desk.tandem(options + " --steps 2", with_plugins);
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  const auto choices = [&] { return nlohmann::json::parse(desk.read("run/run.json"))["choices"]; };
  const nlohmann::json first = choices();
  const Outcome more = desk.tandem("train --resume --steps 4 --out run", with_plugins);
  EXPECT_EQ(more.code, 0) << more.output << more.errors;
  EXPECT_EQ(choices(), first);
  std::multiset<std::string> names;
  for (const nlohmann::json& algorithm : first.at("algorithms")) names.insert(algorithm);
  EXPECT_THAT(outcome.output,
              HasSubstr("algorithms chosen by measuring: " + std::to_string(names.size()) + ";"));
  return names;
}

// Rank 0 has 2 rows and 1, rank 1 has 1 and 1.
TEST_F(Ranks, MeasureInTurnAndTakeWhatOthersHaveChosen) {
  for (const char* strategy : {"two_phase", "mixed --divide all=2"}) {
    EXPECT_EQ(measured_names(strategy),
              (std::multiset<std::string>{"measured: number 1", "measured: number 2",
                                          "measured: number 3", "measured: number 4"}))
        << strategy << ": training with 2 rows and with 1, and testing; all of rank 0";
  }
}

// The layer after the last convolution is trained by the last device alone, with 5 rows, on rank 1.
// Rank 0 tests with 2 rows and with 1.
TEST_F(Ranks, MeasureWhatOnlyTheyHaveAndTellTheOthers) {
  EXPECT_EQ(measured_names("hybrid --conv-devices 3"),
            (std::multiset<std::string>{"measured: number 1", "measured: number 1",
                                        "measured: number 2"}));
}

// The tasks of a timeline, by what the process is called that has them.
std::map<std::string, std::vector<nlohmann::json>> tasks_of(const std::string& timeline) {
  const nlohmann::json tree = nlohmann::json::parse(timeline);
  std::map<int, std::string> names;
  std::map<std::string, std::vector<nlohmann::json>> tasks;
  for (const auto& event : tree.at("traceEvents")) {
    if (event["name"] == "process_name") {
      const std::string name = event["args"]["name"];
      names[event["pid"]] = name.substr(0, name.find(" on "));
    } else if (event["ph"] == "X") {
      tasks[names.at(event["pid"])].push_back(event);
    }
  }
  return tasks;
}

// A message is not received before it is sent, as far as the clocks agree.
TEST_F(Ranks, AreAllInTheTimelineOnOneClock) {
  const Desk desk;
  (void)trained(desk, "run", "--strategy layerwise --steps 4 --devices cpu:1", 2);
  const std::string timeline = desk.read("run/timeline.json");
  auto tasks = tasks_of(timeline);
  ASSERT_THAT(tasks, testing::UnorderedElementsAre(testing::Key("rank 0"), testing::Key("rank 1")));
  const nlohmann::json clocks = nlohmann::json::parse(timeline).at("otherData").at("clocks");
  ASSERT_EQ(clocks.size(), 2U);
  const double uncertain = clocks[1].at("uncertainty_seconds").get<double>() * 1e6;
  EXPECT_GT(uncertain, 0);
  int messages = 0, loads = 0;
  for (const auto& [sender, receiver] : {std::pair("rank 0", "rank 1"), {"rank 1", "rank 0"}}) {
    for (const nlohmann::json& sent : tasks[sender]) {
      const std::string name = sent["name"];
      loads += sent["cat"] == "loading" ? 1 : 0;
      if (!name.starts_with("send ") || name.find(" to rank ") == std::string::npos) continue;
      const std::string copy = name.substr(5, name.rfind(" to rank ") - 5);
      for (const nlohmann::json& received : tasks[receiver]) {
        if (received["name"] != "receive " + copy + " from " + sender) continue;
        if (received["args"]["step"] != sent["args"]["step"]) continue;
        EXPECT_GT(received["ts"].get<double>() + received["dur"].get<double>() + uncertain,
                  sent["ts"].get<double>())
            << copy;
        ++messages;
      }
    }
  }
  EXPECT_GT(messages, 0);
  EXPECT_GT(loads, 0);
}

TEST_F(Ranks, AreMeasuredTogether) {
  const Desk desk;
  const std::string options =
      "profile --net tiny.prototxt --batch 4 --steps 2 --warm-up 1 --threads 1 "
      "--strategy layerwise --devices cpu:1 --trace trace.json ";
  const Outcome outcome = desk.tandem(options, mpirun(2));
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("stages of one step (layerwise on 2 ranks of cpu:1, on the "
                                        "clock of rank 0 within"));
  EXPECT_EQ(outcome.output.find("stages of one step"), outcome.output.rfind("stages of one step"))
      << "one rank speaks";
  EXPECT_THAT(outcome.output, testing::ContainsRegex("forward +0  compute"));
  EXPECT_THAT(outcome.output, testing::ContainsRegex("forward +1  compute"));
  EXPECT_THAT(outcome.output, HasSubstr("exposed communication"));
  EXPECT_THAT(tasks_of(desk.read("trace.json")),
              testing::UnorderedElementsAre(testing::Key("rank 0"), testing::Key("rank 1")));
  const Outcome refused = desk.tandem(options + "--link bandwidth=1GB/s", mpirun(2));
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.errors, HasSubstr("--link and --topology are for one process"));
}

// As Open MPI lists what it has from the environment.
TEST_F(Ranks, SetWhatMakesLargeMessagesFastUnlessTheUserHas) {
  const Desk desk;
  const std::string command = "devices --devices cpu:1 --threads 1 --measure ",
                    list = "OMPI_MCA_mpi_show_mca_params=enviro ";
  const auto settings = [&](const std::string& file, const std::string& variables) {
    const Outcome outcome = desk.tandem(command + file, list + variables + mpirun(2));
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
    return outcome.output + outcome.errors;
  };
  const std::string ours = settings("ours.txt", "");
  if (ours.find("(environment)") == std::string::npos) GTEST_SKIP() << "this MPI lists no settings";
  EXPECT_THAT(ours, HasSubstr("pml_ob1_send_pipeline_depth=32 "));
  EXPECT_THAT(settings("users.txt", "OMPI_MCA_pml_ob1_send_pipeline_depth=5 "),
              HasSubstr("pml_ob1_send_pipeline_depth=5 "));
}

// How often threads of the programs that have ended by now went to sleep, those of ranks included.
int64_t sleeps() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_nvcsw;
}

// A rank that waits for a message does not look for it again and again.
TEST_F(Ranks, SleepWhileTheyWait) {
  const Desk desk;
  const std::string command =
      "profile --net tiny.prototxt --batch 2 --devices cpu:1 --threads 1 --warm-up 1 ";
  ASSERT_EQ(desk.tandem(command + "--steps 1 --costs costs.csv").code, 0);
  const std::string costs = desk.read("costs.csv");
  desk.write("slow.csv", std::regex_replace(costs, std::regex("(conv1 forward,)[^,]*"), "$011.0"));
  const auto sleeps_of = [&](const std::string& steps) {
    const int64_t before = sleeps();
    const Outcome outcome = desk.tandem(
        command + "--strategy layerwise --paced slow.csv --no-communication-check --steps " + steps,
        mpirun(2));
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
    // At least the half second that conv1 is made to take, longer on a busy machine.
    EXPECT_THAT(outcome.output, testing::ContainsRegex("step: ([5-9][0-9][0-9] ms|[1-9])"));
    return sleeps() - before;
  };
  const int64_t seconds = 4, ranks = 2;
  const int64_t of_start = sleeps_of("1"), of_all = sleeps_of("9");
  EXPECT_LT(of_all - of_start, 300 * seconds * ranks);
}

TEST_F(Ranks, MeasureTheirLinksIntoATopologyOfAllDevices) {
  const Desk desk;
  const Outcome measured =
      desk.tandem("devices --measure links.txt --devices cpu:2 --threads 1", mpirun(2));
  ASSERT_EQ(measured.code, 0) << measured.errors;
  EXPECT_THAT(measured.output, HasSubstr("copies between the devices of a rank: "));
  EXPECT_THAT(measured.output, HasSubstr("messages between ranks on "));
  const Outcome plan = desk.tandem(
      "plan --net tiny.prototxt --batch 8 --devices sim:4 --strategy layerwise --topology "
      "links.txt");
  EXPECT_EQ(plan.code, 0) << plan.errors;
  const Outcome many =
      desk.tandem("devices --measure many.txt --devices cpu:2 --threads 5000", mpirun(2));
  EXPECT_NE(many.code, 0);
  EXPECT_THAT(many.errors, HasSubstr("5000 threads; there can be 1 to 4096"));
  const Outcome again = desk.tandem("devices --measure links.txt --devices cpu:2", mpirun(2));
  EXPECT_NE(again.code, 0);
  EXPECT_THAT(again.errors, HasSubstr("--measure links.txt: the file exists already"));
}

TEST_F(Ranks, ShowTheStagesOfAlexNetOnAllDevices) {
  const Desk desk;
  const Outcome outcome = desk.alexnet(
      "--size 67 --classes 10 --batch 4 --steps 2 --warm-up 1 --devices cpu:1", mpirun(2));
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  for (const char* stage :
       {"broadcast", "forward", "backward_fc", "backward_conv", "send_fc_gradients", "update_fc",
        "send_conv_gradients", "update_conv"}) {
    EXPECT_THAT(outcome.output, testing::ContainsRegex(std::string(stage) + " +[01]  "));
  }
  EXPECT_THAT(outcome.output, testing::ContainsRegex("backward_conv +0  "));
  EXPECT_THAT(outcome.output, testing::ContainsRegex("backward_conv +1  "));
  EXPECT_EQ(outcome.output.find("peak memory"), outcome.output.rfind("peak memory"));
  EXPECT_THAT(tasks_of(desk.read("alexnet_timeline.json")),
              testing::UnorderedElementsAre(testing::Key("rank 0"), testing::Key("rank 1")));
}

}  // namespace
}  // namespace tandem
