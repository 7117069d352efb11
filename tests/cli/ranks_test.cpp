// Training by several processes, as mpirun starts them: the bits of one process with all devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "plugins/processors.h"
#include "tests/cli/failing_disk.h"
#include "tests/cli/program.h"
#include "tests/cli/ranks.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::checkpoint;
using test::Desk;
using test::mpirun;
using test::Outcome;
using testing::HasSubstr;
using testing::StartsWith;

class Ranks : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = test::no_mpi(); !reason.empty()) GTEST_SKIP() << reason;
  }

  const std::string tiny =
      "train --net tiny.prototxt --data synthetic --data-option size=40 --batch 12 --seed 3 ";

  // Trains in the folder `name`; both files of its checkpoint.
  std::string trained(const Desk& desk, const std::string& name, const std::string& options,
                      int ranks) const {
    const Outcome outcome = desk.tandem(tiny + "--threads 1 --out " + name + " " + options,
                                        ranks > 1 ? mpirun(ranks) : "");
    EXPECT_EQ(outcome.code, 0) << options << " on " << ranks << " ranks\n"
                               << outcome.output << outcome.errors;
    return outcome.code == 0 ? checkpoint(desk, name) : name;
  }
};

TEST_F(Ranks, HaveTheBitsOfOneProcessForEveryStrategy) {
  const Desk desk;
  test::expect_bits_of_one_process(
      test::jobs_of_every_strategy(),
      [&](const std::string& name, const std::string& options, int ranks) {
        return trained(desk, name, options, ranks);
      },
      [](int devices) { return "cpu:" + std::to_string(devices); });
}

TEST_F(Ranks, ResumeWithAnyNumberOfRanks) {
  const Desk desk;
  const std::string options = "--strategy layerwise --steps ";
  (void)trained(desk, "run", options + "3 --devices cpu:1", 2);
  (void)trained(desk, "alone", options + "3 --devices cpu:2", 1);
  const std::string more = "train --resume --steps 6 --threads 1 --devices ";
  const Outcome two = desk.tandem(more + "cpu:2 --out run", mpirun(2));
  EXPECT_EQ(two.code, 0) << two.output << two.errors;
  EXPECT_THAT(two.output, HasSubstr("resumed after step 3"));
  EXPECT_EQ(desk.tandem(more + "cpu:4 --out alone").code, 0);
  EXPECT_TRUE(checkpoint(desk, "run") == checkpoint(desk, "alone"));
  EXPECT_EQ(desk.tandem("train --resume --steps 7 --threads 1 --out run").code, 0);
}

TEST_F(Ranks, UnfreezeTogetherAndGoOnWhereTheyStoppedBefore) {
  const Desk desk;
  (void)trained(desk, "first", "--steps 1 --devices cpu:1", 1);
  const std::string options =
      "--weights first/last.safetensors --recipe caffe --unfreeze-after 0.6 --ema 0.9 --strategy "
      "layerwise --steps 6 --devices ";
  const std::string two = trained(desk, "two", options + "cpu:1", 2);
  EXPECT_TRUE(two == trained(desk, "alone", options + "cpu:2", 1));
  EXPECT_THAT(desk.read("two/log.txt"), HasSubstr("after step 2 all layers learn"));
}

// The bits of this net depend on the number of threads.
const std::string threaded =
    "train --net cifar10_quick --data synthetic --batch 48 --steps 2 --seed 5 --strategy "
    "sequential --out ";

// `of_one`, `of_two`: shell text before one process with two devices, and before two ranks.
void expect_bits_of_one_process_without_threads(const std::string& of_one,
                                                const std::string& of_two,
                                                const std::string& option_of_one = "") {
  const Desk desk;
  const Outcome one = desk.tandem(threaded + "one --devices cpu:2" + option_of_one, of_one);
  const Outcome two = desk.tandem(threaded + "two --devices cpu:1", of_two);
  ASSERT_EQ(one.code, 0) << one.errors;
  ASSERT_EQ(two.code, 0) << two.output << two.errors;
  EXPECT_TRUE(checkpoint(desk, "one") == checkpoint(desk, "two")) << of_two;
}

TEST_F(Ranks, DivideTheCoresAsDevicesDo) {
  expect_bits_of_one_process_without_threads("", mpirun(2));
}

TEST_F(Ranks, ComputeWithTheCoresThatTheyAreBoundTo) {
  expect_bits_of_one_process_without_threads(
      "", test::replaced(mpirun(2), "--bind-to none", "--bind-to core:overload-allowed"),
      " --threads 2");
}

TEST_F(Ranks, DivideTheCoreOfTaskset) {
  const std::string bind = "taskset -c " + std::to_string(allowed_processors().front());
  expect_bits_of_one_process_without_threads(bind, mpirun(2) + " " + bind);
}

// A control group that exists for one test, with a quota of one core.
class OneCoreGroup {
 public:
  OneCoreGroup() {
    for (const auto& [root, file, text] :
         {std::tuple{"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "100000"},
          std::tuple{"/sys/fs/cgroup", "cpu.max", "100000 100000"}}) {
      folder_ = std::filesystem::path(root) / ("tandem-test-" + std::to_string(::getpid()));
      std::error_code failure;
      if (!std::filesystem::create_directory(folder_, failure)) continue;
      if (std::filesystem::exists(folder_ / file) && std::ofstream(folder_ / file)
                                                         << text << std::flush)
        return;
      ::rmdir(folder_.c_str());
    }
    folder_.clear();
  }
  ~OneCoreGroup() { ::rmdir(folder_.c_str()); }
  OneCoreGroup(const OneCoreGroup&) = delete;
  OneCoreGroup& operator=(const OneCoreGroup&) = delete;

  [[nodiscard]] bool exists() const { return !folder_.empty(); }
  // Shell text that enters it.
  [[nodiscard]] std::string entry() const {
    return "echo $$ > " + (folder_ / "cgroup.procs").string() + " &&";
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(Ranks, DivideTheQuotaOfAControlGroup) {
  const OneCoreGroup group;
  if (!group.exists()) GTEST_SKIP() << "no control group for processors can be made here";
  expect_bits_of_one_process_without_threads(group.entry(), group.entry() + " " + mpirun(2));
  EXPECT_THAT(Desk().tandem("devices", group.entry()).output, HasSubstr("(a quota of 1)"));
}

TEST_F(Ranks, SayThatTheyAreBoundToFewerCoresThanThereAre) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "this machine has one core";
  const Desk desk;
  const std::string core = std::to_string(allowed_processors().front());
  const Outcome two =
      desk.tandem(tiny + "--steps 1 --devices cpu:1 --out two", mpirun(2) + " taskset -c " + core);
  EXPECT_THAT(two.output, testing::ContainsRegex(
                              "cores: rank 0 has 1 of this machine's [0-9]+ \\(bound to 1\\)"));
  const Outcome one =
      desk.tandem(tiny + "--steps 1 --devices cpu:1 --out one", "taskset -c " + core);
  EXPECT_THAT(one.output,
              testing::ContainsRegex("cores: 1 of this machine's [0-9]+ \\(bound to 1\\)"));
  EXPECT_THAT(desk.tandem("devices", "taskset -c " + core).output, HasSubstr("(bound to 1)"));
}

TEST_F(Ranks, ValidateEveryImageOnceAndOnlyTheFirstOneSpeaks) {
  const Desk desk;
  desk.draw_two_classes("data");
  const std::string options =
      "train --net tiny.prototxt --data data --batch 5 --epochs 2 --threads 1 --out ";
  const Outcome two = desk.tandem(options + "two --devices cpu:1", mpirun(2));
  const Outcome one = desk.tandem(options + "one --devices cpu:2");
  ASSERT_EQ(two.code, 0) << two.output << two.errors;
  ASSERT_EQ(one.code, 0) << one.errors;
  const auto validation = [](const std::string& text) {
    const size_t at = text.find("best validation");
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_THAT(validation(two.output), StartsWith("best validation"));
  EXPECT_EQ(validation(two.output), validation(one.output));
  EXPECT_EQ(two.errors, "");
  const auto count = [](const std::string& text, const std::string& part) {
    int times = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++times;
    }
    return times;
  };
  EXPECT_EQ(count(two.output, "run folder: two"), count(one.output, "run folder: one"));
  EXPECT_THAT(two.output, HasSubstr("2 ranks of cpu:1 (2 ranks on "));
}

TEST_F(Ranks, TestEveryImageOnceWithTheFiguresOfOneProcess) {
  const Desk desk;
  desk.draw_two_classes("data");
  desk.draw("more/val/blue", 17, 30, 30, 210);
  desk.draw("more/val/red", 16, 210, 30, 30);
  desk.write("more/val/red/2.ppm", "P6 10 10 255\n");  // damaged
  desk.write("more/val/blue/9.ppm", "P6 10 10 255\n");
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data data --batch 5 --steps 3 --out run").code,
            0);
  const std::string test = "test --run run --data more --batch 7 --json ";
  for (const auto& [ranks, devices] : {std::pair{2, 2}, std::pair{3, 1}}) {
    const std::string each = "--devices cpu:" + std::to_string(devices);
    const std::string all = "--devices cpu:" + std::to_string(ranks * devices);
    const Outcome together = desk.tandem(test + each, mpirun(ranks));
    EXPECT_EQ(together.code, 0) << together.errors;
    EXPECT_EQ(together.output, desk.tandem(test + "--no-report " + all).output)
        << ranks << " ranks of " << devices;
    EXPECT_THAT(together.output, HasSubstr("\"images\": 31"));
    EXPECT_THAT(together.output, HasSubstr("\"skipped\": 2"));
    EXPECT_THAT(together.errors, HasSubstr("testing on " + std::to_string(ranks) + " ranks of "));
  }
  EXPECT_THAT(desk.read("run/report.html"), HasSubstr("on the split 'test' of 'more'"));
}

TEST_F(Ranks, TestOnlyTheDataOfTheFirstOne) {
  const Desk desk;
  desk.draw_two_classes("data");
  desk.draw_two_classes("first/data");
  desk.draw_two_classes("second/data");
  desk.draw("second/data/val/red", 9, 210, 30, 30);
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data data --batch 5 --steps 3 --out run").code,
            0);
  desk.write("each", R"(case "$OMPI_COMM_WORLD_RANK" in 0) cd first ;; *) cd second ;; esac
exec "$@")");
  const Outcome outcome = desk.tandem("test --run ../run --data data", mpirun(2) + " sh each");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("): the data in 'data' are not those of "
                                        "rank 0: 11 images here, 4 there"));
}

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

TEST_F(Ranks, StopTogetherWhereASignalReachesAnyOfThem) {
  const Desk desk;
  desk.write("each", "echo $$ > pid$OMPI_COMM_WORLD_RANK; exec \"$@\"");
  test::RunningProgram program(
      desk, tiny + "--steps 1000000 --snapshot 5 --threads 1 --devices cpu:1 --out run",
      mpirun(2) + " sh each");
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  ASSERT_EQ(::kill(std::stoi(desk.read("pid1")), SIGTERM), 0);
  const Outcome outcome = program.stop(0);
  EXPECT_EQ(outcome.code, 130) << outcome.errors;
  EXPECT_THAT(desk.read("run/log.txt"), HasSubstr("and saved; go on with"));
}

TEST_F(Ranks, OfAnotherNumberAreRefused) {
  const Desk desk;
  EXPECT_THAT(desk.refusal(tiny + "--ranks 2"),
              HasSubstr("--ranks 2: this process was started alone; start the job with: mpirun"));
  const Outcome outcome = desk.tandem(tiny + "--ranks 3", mpirun(2));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors, HasSubstr("--ranks 3: the job was started with 2 processes"));
}

TEST_F(Ranks, SayOnceWhatNoneOfThemCanDo) {
  const Desk desk;
  desk.write("strange.prototxt", test::replaced(test::tiny_net(), "\"ReLU\"", "\"Strange\""));
  const auto lines = [&](const std::string& options) {
    const std::string errors = desk.tandem("train --data synthetic " + options, mpirun(3)).errors;
    int count = 0;
    for (size_t at = errors.find("tandem: "); at != std::string::npos;
         at = errors.find("tandem: ", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(lines("--net tiny.prototxt --batch 2"), 1) << "fewer rows than devices";
  EXPECT_EQ(lines("--net strange.prototxt"), 1);
  EXPECT_EQ(lines("--net tiny.prototxt --ranks 4"), 1);
}

// Devices 0 and 2 are near each other, and 1 and 3, so that a ring has another order.
TEST_F(Ranks, FollowATopologyOfTheDevicesOfAllRanks) {
  const Desk desk;
  desk.write("links.txt", R"(device { name: "a" name: "b" name: "c" name: "d" }
switch { name: "left" } switch { name: "right" }
link { between: "a" between: "c" and: "left" bandwidth: "10GB/s" }
link { between: "b" between: "d" and: "right" bandwidth: "10GB/s" }
link { between: "left" and: "right" bandwidth: "1GB/s" }
)");
  const std::string options = "--strategy layerwise --reduce ring --steps 4 --topology links.txt ";
  EXPECT_TRUE(trained(desk, "ranks", options + "--devices cpu:2", 2) ==
              trained(desk, "alone", options + "--devices cpu:4", 1));
  const Outcome three = desk.tandem(tiny + options + "--devices cpu:1", mpirun(3));
  EXPECT_NE(three.code, 0);
  EXPECT_THAT(three.errors, HasSubstr("has 4 devices, but 3 ranks of cpu:1 have 3"));
}

TEST_F(Ranks, ChooseAStrategyByWhatRankZeroMeasures) {
  const Desk desk;
  const Outcome outcome = desk.tandem(
      tiny + "--strategy auto --devices cpu:2 --threads 1 --steps 3 --out run", mpirun(2));
  ASSERT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("measured between ranks"));
  EXPECT_THAT(outcome.output, HasSubstr("chosen: "));
  const Outcome more =
      desk.tandem("train --resume --steps 6 --threads 1 --out run --devices cpu:2", mpirun(2));
  EXPECT_EQ(more.code, 0) << more.output << more.errors;
  EXPECT_THAT(more.output, HasSubstr("resumed after step 3"));
}

// Two ranks, of which one is stopped when it reads or writes a file whose path ends so.
Outcome with_stopped_rank(const Desk& desk, int rank, const std::string& file,
                          const std::string& options, int watchdog = 10) {
  desk.write("each", R"(if [ "$OMPI_COMM_WORLD_RANK" = "$1" ]; then
  export STOPPING_FILE="$2" )" +
                         test::failing_disk +
                         R"(
  [ -n "$2" ] || kill -STOP $$
fi
shift 2
exec "$@")");
  return desk.tandem(
      "train --net tiny.prototxt --batch 5 --threads 1 --devices cpu:1 --out run "
      "--watchdog " +
          std::to_string(watchdog) + " " + options,
      mpirun(2) + " sh each " + std::to_string(rank) + " '" + file + "'");
}

testing::Matcher<std::string> names_rank(int rank, const std::string& what) {
  return testing::AllOf(
      HasSubstr("seconds (--watchdog) for rank " + std::to_string(rank) + " (host "),
      HasSubstr(") to " + what + ": it is stopped, stuck or slow"));
}

TEST_F(Ranks, ThatAreStoppedBeforeTheFirstStepAreNamed) {
  const Desk desk;
  desk.draw_two_classes("data");
  const Outcome outcome =
      with_stopped_rank(desk, 1, "train/red/1.ppm", "--data data --strategy layerwise --steps 2");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, StartsWith("tandem: waited 10 seconds"));
  EXPECT_THAT(outcome.errors, names_rank(1, "come to the first step"));
}

TEST_F(Ranks, ThatAreStoppedBeforeTheyJoinTheJobAreReported) {
  const Outcome outcome = with_stopped_rank(Desk(), 1, "", "--data synthetic --steps 2", 2);
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors,
              StartsWith("tandem: waited 2 seconds (--watchdog) for all 2 ranks to open transport "
                         "'mpi': one is stopped or stuck"));
}

TEST_F(Ranks, ThatAreStoppedInAnEvaluationAreNamed) {
  const Desk desk;
  desk.draw_two_classes("data");
  desk.draw("data/val/red", 200, 210, 30, 30);  // more than are looked at when data are compared
  const Outcome outcome = with_stopped_rank(desk, 1, "val/red/1.ppm", "--data data --epochs 1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.errors, names_rank(1, "send the labels of a batch"));
}

TEST_F(Ranks, ThatAreStoppedWhileTheyWriteACheckpointAreNamed) {
  const Desk desk;
  const Outcome outcome =
      with_stopped_rank(desk, 0, "last.safetensors.new", "--data synthetic --steps 4 --snapshot 2");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(
      outcome.errors,
      testing::ContainsRegex("tandem: rank 1 of 2 .host .*.: (step [0-9]+: )?waited 11 seconds"));
  EXPECT_THAT(outcome.errors, names_rank(0, "send the size of a batch"));
}

// Rank 1 meets the signal when rank 0 has written a step.
Outcome with_signal(const std::string& signal) {
  const Desk desk;
  desk.write("each", R"sh([ "$OMPI_COMM_WORLD_RANK" = 0 ] || {
  (for i in $(seq 300); do
    [ "$(wc -l 2> /dev/null < run/metrics.csv)" -gt 1 ] 2> /dev/null && break
    sleep 0.1
  done; kill -)sh" + signal +
                         R"sh( $$) &
}
exec "$@")sh");
  return desk.tandem(
      "train --net tiny.prototxt --data synthetic --batch 4 --lr 1e-6 --threads 1 --devices cpu:1 "
      "--steps 100000000 --out run",
      mpirun(2) + " sh each");
}

TEST_F(Ranks, ThatCrashSayTheirHostAndStep) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer reports the signal itself";
#endif
  const Outcome outcome = with_signal("SEGV");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors,
              testing::ContainsRegex("tandem: rank 1 of 2 .host [^ ]+.: .* step [0-9]+.*SIGSEGV"));
}

// The task or the agreement on a batch waits for the other rank.
TEST_F(Ranks, ThatAreKilledAreNamedByOneThatWaitsForThem) {
  const Outcome outcome = with_signal("KILL");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors, testing::ContainsRegex(
                                  "tandem: rank 0 of 2 .host [^ ]+.: (step [0-9]+: )?.*rank 1.*: "
                                  "the process of rank 1 has ended\n"));
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

TEST_F(Ranks, RefuseWhatOnlyOneProcessCanDo) {
  const Desk desk;
  const Outcome outcome = desk.tandem(tiny + "--link bandwidth=1GB/s --devices cpu:2", mpirun(2));
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.errors,
              HasSubstr("tandem: --link is for one process, not for several ranks"));
}

}  // namespace
}  // namespace tandem
