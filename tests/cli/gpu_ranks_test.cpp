// Training by several processes with GPUs, on the stand-ins for CUDA and NCCL: messages go through
// pinned memory, or by links between GPUs, and the bits are those of one process with all devices.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <utility>

#include "tests/cli/program.h"
#include "tests/cli/ranks.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::checkpoint;
using test::Desk;
using test::Outcome;
using testing::HasSubstr;

class GpuRanks : public testing::Test {
 protected:
  inline static const std::string train =
      "train --net tiny.prototxt --data synthetic --data-option size=40 --batch 12 --seed 3 "
      "--graphs off ";

  void SetUp() override {
#if !defined(TANDEM_HAS_MPI) || !defined(TANDEM_HAS_CUDA)
    GTEST_SKIP() << "built without MPI or CUDA, or with a sanitizer, which would have to be loaded "
                    "before the stand-in";
#endif
  }

  // Text before a program. The processes see two GPUs.
  static std::string before(int ranks, const std::string& variables = "") {
    const std::string fake =
        variables + fmt::format(" LD_PRELOAD='{}' TANDEM_PLUGIN_PATH='{}' TANDEM_FAKE_GPUS=2 ",
                                (test::build_folder() / "lib/libtandem_fake_cuda.so").string(),
                                (test::build_folder() / "lib/tandem/fake_cuda").string());
    if (ranks == 1) return fake;
    return fake + test::mpirun(ranks);
  }
  // The same where each rank has GPUs of its own, as NCCL wants them. `of_rank_one`: variables that
  // rank 1 alone has.
  static std::string with_own_gpus(int ranks, const std::string& of_rank_one = "X=1") {
    return before(ranks) +
           " sh -c 'export CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_RANK; "
           "[ $OMPI_COMM_WORLD_RANK != 1 ] || export " +
           of_rank_one + "; exec \"$0\" \"$@\"'";
  }
  // Trains in the folder `name`; both files of its checkpoint.
  static std::string trained(const Desk& desk, const std::string& name, const std::string& options,
                             int ranks, bool own_gpus = false) {
    const Outcome outcome =
        desk.tandem(train + "--out " + name + " " + options,
                    own_gpus && ranks > 1 ? with_own_gpus(ranks) : before(ranks));
    EXPECT_EQ(outcome.code, 0) << options << " on " << ranks << " ranks\n"
                               << outcome.output << outcome.errors;
    if (own_gpus && ranks > 1) {
      EXPECT_THAT(outcome.output, HasSubstr("messages between devices: NCCL 2."));
    }
    return outcome.code == 0 ? checkpoint(desk, name) : name;
  }
};

// "cuda:0,0,0". One process asks GPUs how they are connected and orders a ring by it; ranks do not.
std::string devices_of_one_gpu(int devices) {
  std::string text = "cuda:0";
  for (int i = 1; i < devices; ++i) text += ",0";
  return text;
}

TEST_F(GpuRanks, HaveTheBitsOfOneProcessForEveryStrategy) {
  const Desk desk;
  test::expect_bits_of_one_process(
      test::jobs_of_every_strategy("--conv-devices 2", "--groups E=0,1/W=2,3"),
      [&](const std::string& name, const std::string& options, int ranks) {
        return trained(desk, name, options, ranks);
      },
      &devices_of_one_gpu);
}

TEST_F(GpuRanks, HaveTheBitsOfOneProcessInBfloat16) {
  const Desk desk;
  const Outcome tried =
      desk.tandem(train + "--out tried --precision bfloat16 --steps 1 --devices cuda:0", before(1));
  if (tried.errors.find("this CPU does not multiply bfloat16") != std::string::npos) {
    GTEST_SKIP() << "the stand-in for a GPU computes on this CPU, which does not multiply bfloat16";
  }
  test::expect_bits_of_one_process(
      {{2, 1, "--strategy layerwise --precision bfloat16"}},
      [&](const std::string& name, const std::string& options, int ranks) {
        return trained(desk, name, options, ranks);
      },
      &devices_of_one_gpu);
}

class LinkedGpus : public GpuRanks {
 protected:
  void SetUp() override {
    GpuRanks::SetUp();
#ifndef TANDEM_HAS_NCCL
    GTEST_SKIP() << "built without NCCL";
#endif
  }
};

TEST_F(LinkedGpus, HaveTheBitsOfOneProcessForEveryStrategy) {
  const Desk desk;
  test::expect_bits_of_one_process(
      test::jobs_of_every_strategy("--conv-devices 2", "--groups E=0,1/W=2,3"),
      [&](const std::string& name, const std::string& options, int ranks) {
        return trained(desk, name, options, ranks, true);
      },
      &devices_of_one_gpu);
}

TEST_F(LinkedGpus, TrainThroughTheHostAndSayWhyWhereARankHasNoLinks) {
  const Desk desk;
  const std::string options = train + "--strategy layerwise --steps 2 --devices cuda:0 --out ";
  desk.write("broken/tandem_messages_cuda.so", "no module");
  const std::string fake = (test::build_folder() / "lib/tandem/fake_cuda").string();
  const std::vector<std::pair<std::string, std::string>> cases{
      {before(2), "NCCL: ncclCommInitRankConfig: invalid usage"},  // one GPU for both
      {with_own_gpus(2, "TANDEM_MESSAGES=host"), "rank 1: TANDEM_MESSAGES is host"},
      {with_own_gpus(2, "TANDEM_PLUGIN_PATH=$PWD/broken:" + fake),
       "rank 1: transport between devices 'cuda' is not loaded: "}};
  for (size_t i = 0; i < cases.size(); ++i) {
    const Outcome outcome = desk.tandem(options + "run" + std::to_string(i), cases[i].first);
    EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
    EXPECT_THAT(
        outcome.output,
        HasSubstr("messages between devices go through the host's memory: " + cases[i].second));
  }
}

// `tandem train`, `profile`, `test` and tandem-alexnet, with NCCL and through the host's memory.
TEST_F(LinkedGpus, SayWhichWayMessagesGoWithEveryCommandOfRanks) {
  const Desk desk;
  const std::string host = "TANDEM_MESSAGES=host ";
  const std::string alexnet =
      "--size 67 --classes 10 --batch 4 --steps 1 --warm-up 1 --devices cuda:0 --strategy ";
  for (const std::string& variables : {std::string(), host}) {
    const std::string before = variables + with_own_gpus(2);
    const std::string line =
        variables.empty()
            ? "messages between devices: NCCL 2."
            : "messages between devices go through the host's memory: TANDEM_MESSAGES is host\n";
    const auto expect_line = [&](const Outcome& outcome, const std::string& output) {
      EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
      const size_t at = output.find(line);
      EXPECT_NE(at, std::string::npos) << output;
      EXPECT_EQ(output.find("messages between devices", at + 1), std::string::npos) << "twice";
    };
    const std::string run = variables.empty() ? "linked" : "staged";
    Outcome outcome = desk.tandem(train + "--steps 2 --devices cuda:0 --out " + run, before);
    expect_line(outcome, outcome.output);
    outcome =
        desk.tandem("test --run " + run + " --split train --no-report --devices cuda:0", before);
    expect_line(outcome, outcome.errors);
    outcome = desk.tandem(
        "profile --net tiny.prototxt --steps 1 --warm-up 1 --graphs off --devices cuda:0", before);
    expect_line(outcome, outcome.output);
    outcome = desk.alexnet(alexnet + (variables.empty() ? "layerwise" : "all"), before);
    expect_line(outcome, outcome.output);
  }
}

// Rank 1 loses a connection (0), is stopped or dies. No kernel of rank 0 ends by itself then.
TEST_F(LinkedGpus, EndTheJobWhenTheOtherRankIsGone) {
  for (const int signal : {0, SIGSTOP, SIGKILL}) {
    const Desk desk;
    const Outcome outcome = desk.tandem(
        train + "--strategy layerwise --steps 40 --devices cuda:0 --out run --watchdog " +
            (signal == SIGSTOP ? "4" : "600"),
        with_own_gpus(
            2, "TANDEM_FAKE_NCCL_FAILS=30 TANDEM_FAKE_NCCL_SIGNAL=" + std::to_string(signal)));
    EXPECT_NE(outcome.code, 0) << outcome.output;
    const auto names = [&](const char* text) {
      EXPECT_THAT(outcome.errors, HasSubstr(text)) << signal;
    };
    if (signal != SIGKILL) names("rank 1");
    if (signal == 0) names("NCCL: nccl");
  }
}

TEST_F(LinkedGpus, EndWithTheRankThatIsWaitedForWhereATransferStaysInProgress) {
  const Desk desk;
  const Outcome outcome =
      desk.tandem(train + "--strategy layerwise --steps 40 --devices cuda:0 --out run --watchdog 3",
                  "TANDEM_FAKE_NCCL_STAYS=30 " + with_own_gpus(2));
  EXPECT_EQ(outcome.code, 1) << outcome.output;
  EXPECT_THAT(outcome.errors, HasSubstr("waited 3 seconds (--watchdog) for rank 1 (host "));
  EXPECT_THAT(outcome.errors,
              HasSubstr("a message between devices: it is stopped, stuck or slow, or cannot be "
                        "reached\n"));
}

TEST_F(GpuRanks, ResumeWithAnyNumberOfRanks) {
  const Desk desk;
  const std::string options = "--strategy layerwise --solver-type Adam --steps ";
  (void)trained(desk, "run", options + "3 --devices cuda:0", 2);
  (void)trained(desk, "alone", options + "3 --devices cuda:0,0", 1);
  const std::string more = "train --resume --steps 6 --graphs off --devices ";
  const Outcome two = desk.tandem(more + "cuda:0,0 --out run", before(2));
  EXPECT_EQ(two.code, 0) << two.output << two.errors;
  EXPECT_THAT(two.output, HasSubstr("resumed after step 3"));
  EXPECT_EQ(desk.tandem(more + "cuda:0,0,0,0 --out alone", before(1)).code, 0);
  EXPECT_TRUE(checkpoint(desk, "run") == checkpoint(desk, "alone"));
}

TEST_F(GpuRanks, EvaluateAndTestWithTheFiguresOfOneProcess) {
  const Desk desk;
  desk.draw_two_classes("data");
  const std::string options =
      "train --net tiny.prototxt --data data --batch 5 --epochs 2 --graphs off --out ";
  const Outcome two = desk.tandem(options + "two --devices cuda:0", before(2));
  const Outcome one = desk.tandem(options + "one --devices cuda:0,1", before(1));
  ASSERT_EQ(two.code, 0) << two.output << two.errors;
  ASSERT_EQ(one.code, 0) << one.errors;
  const auto validation = [](const std::string& text) {
    const size_t at = text.find("best validation");
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(validation(two.output), validation(one.output));
  EXPECT_TRUE(checkpoint(desk, "two") == checkpoint(desk, "one"));
  const std::string test = "test --run one --data data --json --no-report --devices ";
  const Outcome together = desk.tandem(test + "cuda:1", before(2));
  EXPECT_EQ(together.code, 0) << together.errors;
  EXPECT_EQ(together.output, desk.tandem(test + "cuda:0,1", before(1)).output);
}

TEST_F(GpuRanks, ChooseAStrategyForTheDevicesOfAllRanks) {
  const Desk desk;
  const Outcome outcome = desk.tandem(
      "train --net tiny.prototxt --data synthetic --data-option size=40 --batch 12 --steps 2 "
      "--strategy auto --devices cuda:0,1 --out run",
      before(2));
  EXPECT_EQ(outcome.code, 0) << outcome.output << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("chosen: "));
}

// The way that they will go is the one that is measured.
TEST_F(LinkedGpus, ChooseAStrategyByTheWayThatMessagesGo) {
  const Desk desk;
  const std::string options =
      "train --net tiny.prototxt --data synthetic --data-option size=40 --batch 12 --steps 1 "
      "--graphs off --strategy auto --devices cuda:0 --out ";
  const Outcome linked = desk.tandem(options + "linked", with_own_gpus(2));
  EXPECT_EQ(linked.code, 0) << linked.output << linked.errors;
  EXPECT_THAT(linked.output,
              HasSubstr("measured between ranks (messages between devices: NCCL 2."));
  const Outcome staged = desk.tandem(options + "staged", before(2));
  EXPECT_EQ(staged.code, 0) << staged.output << staged.errors;
  EXPECT_THAT(staged.output, HasSubstr("measured between ranks (messages between devices go "
                                       "through the host's memory: NCCL: "));
}

}  // namespace
}  // namespace tandem
