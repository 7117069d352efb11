// What programs do when a call fails: an allocation, a thread, a file. A sample of the calls; all
// of them are gone through by scripts/faults.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "tests/cli/program.h"
#include "tests/support/emulation.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string failing_calls =
    "ASAN_OPTIONS=verify_asan_link_order=0 LD_PRELOAD=" TANDEM_FAILING_CALLS;

class Shortage : public testing::Test {
 protected:
  void SetUp() override {
    desk.draw_two_classes("tree");
    const Outcome made = desk.tandem(training("base"));
    ASSERT_EQ(made.code, 0) << made.errors;
  }

  [[nodiscard]] static std::string training(const std::string& out, int steps = 2) {
    return fmt::format(
        "train --data tree --net tiny.prototxt --steps {} --devices cpu:2 --threads 2 --seed 1 "
        "--out {}",
        steps, out);
  }
  [[nodiscard]] static std::string prediction() {
    return "predict --run base --json tree/val/red/1.ppm";
  }

  // How many calls of the kind the command makes.
  [[nodiscard]] int64_t calls(const std::string& kind, const std::string& command) const {
    const Outcome whole = desk.tandem(
        command, failing_calls + " FAIL_KIND=" + kind + " FAIL_COUNT=" + (desk / "count").string());
    EXPECT_EQ(whole.code, 0) << whole.errors;
    return std::atoll(desk.read("count").c_str());
  }

  [[nodiscard]] Outcome with_failure(const std::string& kind, int64_t number,
                                     const std::string& command) const {
    return desk.tandem(command,
                       fmt::format("{} FAIL_KIND={} FAIL_AT={}", failing_calls, kind, number));
  }

  // Exit code 0, or 1 and one line besides notes.
  static void expect_well_ended(const Outcome& outcome, const std::string& what) {
    if (outcome.code == 0) return;
    EXPECT_EQ(outcome.code, 1) << what << "\n" << outcome.errors;
    int lines = 0;
    for (size_t at = 0; at < outcome.errors.size();) {
      const size_t end = std::min(outcome.errors.find('\n', at), outcome.errors.size());
      const std::string line = outcome.errors.substr(at, end - at);
      if (line.rfind("tandem: ", 0) == 0) ++lines;
      EXPECT_EQ(line.find("terminate"), std::string::npos) << what << "\n" << outcome.errors;
      at = end + 1;
    }
    EXPECT_EQ(lines, 1) << what << "\n" << outcome.errors;
  }

  void try_some(const std::string& kind, const std::string& command, int count) const {
    const int64_t all = calls(kind, command);
    ASSERT_GT(all, 0);
    std::set<int64_t> numbers{1, all};
    for (int i = 1; i < count; ++i) numbers.insert(1 + all * i / count);
    for (const int64_t number : numbers) {
      std::filesystem::remove_all(desk / "out");
      expect_well_ended(with_failure(kind, number, command),
                        fmt::format("{} {} of {}: {}", kind, number, all, command));
    }
  }

  Desk desk;
};

TEST_F(Shortage, AFileOperationThatFailsEndsPredictionWithOneLineOrChangesNothing) {
  const std::string right = desk.tandem(prediction()).output;
  const int64_t all = calls("io", prediction());
  for (int i = 0; i < 12; ++i) {
    const int64_t number = 1 + all * i / 12;
    const Outcome outcome = with_failure("io", number, prediction());
    expect_well_ended(outcome, fmt::format("io {} of {}", number, all));
    if (outcome.code == 0) {
      EXPECT_EQ(outcome.output, right) << number;
    }
  }
}

TEST_F(Shortage, AFileOperationThatFailsEndsTrainingWithOneLineOrChangesNothing) {
  const std::string right = desk.read("base/last.safetensors");
  const int64_t all = calls("io", training("out"));
  for (int i = 0; i < 16; ++i) {
    const int64_t number = 1 + all * i / 16;
    std::filesystem::remove_all(desk / "out");
    const Outcome outcome = with_failure("io", number, training("out"));
    expect_well_ended(outcome, fmt::format("io {} of {}", number, all));
    if (outcome.code == 0) {
      EXPECT_EQ(desk.read("out/last.safetensors"), right) << number;
    }
  }
}

// As of a folder of plugins or models whose entries cannot be listed to the end.
TEST_F(Shortage, ALookUpThatFailsIsToldInOurWords) {
  const std::string command = "net tiny.prototxt";
  const int64_t all = calls("lookup", command);
  ASSERT_GT(all, 0);
  int listings = 0;
  for (int64_t number = 1; number <= all; ++number) {
    const Outcome outcome = with_failure("lookup", number, command);
    const std::string what = fmt::format("look-up {} of {}", number, all);
    expect_well_ended(outcome, what);
    EXPECT_THAT(outcome.errors, Not(HasSubstr("filesystem error"))) << what;
    if (outcome.errors.find("' cannot be listed: Input/output error") != std::string::npos) {
      ++listings;
    }
  }
  EXPECT_GT(listings, 1);
}

// What cannot be looked up must not count as absent: a class of images, a checkpoint, a recipe.
TEST_F(Shortage, ALookUpThatFailsEndsTrainingWithOneLineOrChangesNothing) {
  const std::string right = desk.read("base/last.safetensors");
  const int64_t all = calls("lookup", training("out"));
  for (int64_t number = 1; number <= all; number += 1 + all / 24) {
    std::filesystem::remove_all(desk / "out");
    const Outcome outcome = with_failure("lookup", number, training("out"));
    expect_well_ended(outcome, fmt::format("look-up {} of {}", number, all));
    if (outcome.code == 0) {
      EXPECT_EQ(desk.read("out/last.safetensors"), right) << number;
    }
  }
}

// A program with a sanitizer has its malloc, not the one that ends the program, and its
// pthread_create, which may wait for ever after a thread that could not be started.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Shortage, AnAllocationThatFailsEndsANetsDescriptionWithOneLine) {
  try_some("memory", "net tiny.prototxt", 12);
}

TEST_F(Shortage, AnAllocationThatFailsEndsTrainingWithOneLine) {
  try_some("memory", training("out"), 10);
}

TEST_F(Shortage, AThreadThatCannotBeStartedEndsTrainingWithOneLine) {
  try_some("thread", training("out"), 5);
}

TEST_F(Shortage, MemoryThatCannotBeMappedEndsTrainingWithOneLine) {
  try_some("map", training("out"), 6);
}

TEST_F(Shortage, LittleAddressSpaceEndsACommandWithOneLine) {
  TANDEM_SKIP_IF_EMULATED("its memory counts, too");
  for (const std::string& command :
       {std::string("net googlenet"), prediction(), std::string("test --run base"),
        std::string("export --run base base.onnx"), training("out")}) {
    for (const int kibibytes : {150000, 204800, 250000, 350000, 450000, 600000}) {
      for (const char* made : {"out", "base.onnx"}) std::filesystem::remove_all(desk / made);
      const Outcome outcome = desk.tandem(command, fmt::format("ulimit -v {};", kibibytes));
      expect_well_ended(outcome, fmt::format("ulimit -v {}: {}", kibibytes, command));
    }
  }
}

// Such as those that read images, which begin near the end of a short run's calls. Not every try
// meets two at once.
TEST_F(Shortage, ThreadsThatFailTogetherEndTrainingWithOneLine) {
  const std::string command = training("out", 20);
  const int64_t all = calls("memory", command);
  for (int i = 0; i < 24; ++i) {
    const int64_t number = all - 10500 - 100 * i;
    std::filesystem::remove_all(desk / "out");
    expect_well_ended(
        desk.tandem(command, fmt::format("{} FAIL_KIND=memory FAIL_AT={} FAIL_ALL=1 FAIL_SLOWLY=1",
                                         failing_calls, number)),
        fmt::format("from {} of {} on", number, all));
  }
}

TEST_F(Shortage, TheMessageOfAFailedAllocationSaysHowManyBytes) {
  const std::string message =
      desk.refusal("net tiny.prototxt", failing_calls + " FAIL_KIND=memory FAIL_AT=1000");
  EXPECT_THAT(message, StartsWith("out of memory: "));
  EXPECT_THAT(message, HasSubstr(" bytes cannot be allocated"));
}
#endif

}  // namespace
}  // namespace tandem
