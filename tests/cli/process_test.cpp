// What the program does with its standard streams and with signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <sstream>

#include "tests/cli/failing_disk.h"
#include "tests/cli/program.h"
#include "tests/support/folders.h"

namespace tandem {
namespace {

using test::Desk;
using test::Outcome;
using test::RunningProgram;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string train_six_steps =
    "train --net tiny.prototxt --data synthetic --steps 6 --display 1 --out ";

// Without a stream of that number the first file that is opened would take it.
TEST(StandardStreams, ClosedOnesDoNotMixWithFiles) {
  const Desk desk;
  EXPECT_EQ(desk.tandem(train_six_steps + "closed <&- >&- 2>&-").code, 1) << "its output was lost";
  std::istringstream metrics(desk.read("closed/metrics.csv"));
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 10) << line;
  }
  EXPECT_GE(lines, 7);
  EXPECT_TRUE(std::filesystem::exists(desk / "closed/last.safetensors"));
}

TEST(StandardStreams, LostOutputIsAnError) {
  const Desk desk;
  desk.draw_two_classes("images");
  ASSERT_EQ(desk.tandem(train_six_steps + "run").code, 0);
  ASSERT_EQ(desk.tandem("train --net tiny.prototxt --data images --steps 4 --out seen").code, 0);
  for (const std::string& arguments :
       {train_six_steps + "other", std::string("net tiny.prototxt --json"), std::string("layers"),
        std::string("--help")}) {
    EXPECT_THAT(desk.refusal(arguments + " > /dev/full"),
                HasSubstr("standard output cannot be written: No space left on device"))
        << arguments;
  }
  // What the net saw of the images is said before.
  const Outcome predicted =
      desk.tandem("predict --run seen --json images/val/red/1.ppm > /dev/full");
  EXPECT_EQ(predicted.code, 1);
  EXPECT_THAT(predicted.errors,
              HasSubstr("\ntandem: standard output cannot be written: No space left on device\n"));
  EXPECT_TRUE(std::filesystem::exists(desk / "other/last.safetensors")) << "the run went on";
}

TEST(StandardStreams, AReaderThatEndsDoesNotEndTheWork) {
  const Desk desk;
  desk.draw_two_classes("images");
  (void)desk.tandem("pack images --out all.pack 2> why; echo $? > code; } | { true", "sleep 0.2;");
  EXPECT_EQ(desk.read("code"), "0\n");
  EXPECT_TRUE(std::filesystem::exists(desk / "all.pack")) << desk.read("why");
}

TEST(StandardStreams, AReaderThatEndsIsNoError) {
  const Desk desk;
  for (const char* command : {"layers", "net alexnet --json"}) {
    (void)desk.tandem(std::string(command) + " 2> why; echo $? > code; } | { true", "sleep 0.2;");
    EXPECT_EQ(desk.read("code"), "0\n") << command;
    EXPECT_EQ(desk.read("why"), "") << command;
  }
}

TEST(Messages, ControlNoTerminalAndStayShort) {
  const Desk desk;
  EXPECT_THAT(desk.refusal("net \"$(printf 'a\\033[31m\\nb\\302\\233c').prototxt\""),
              HasSubstr("'a\\x1b[31m\\x0ab\\xc2\\x9bc.prototxt'"));
  EXPECT_THAT(desk.refusal("net \"$(printf 'a\\342\\200\\256b\\342\\202\\254').prototxt\""),
              HasSubstr("'a\\xe2\\x80\\xaeb\xe2\x82\xac.prototxt'"));
  desk.write("long.prototxt",
             "name: \"x\" layer { name: \"" + std::string(1 << 20, 'n') + "\" type: \"None\" }");
  EXPECT_LT(desk.refusal("net long.prototxt").size(), 5000U);
}

// Names of files and folders come with the data, those of layers with a net's file.
TEST(Messages, NamesInResultsControlNoTerminal) {
  const Desk desk;
  desk.draw_two_classes("images");
  for (const char* split : {"images/train/", "images/val/"}) {
    std::filesystem::rename(desk / (std::string(split) + "red"),
                            desk / (std::string(split) + "re\x1b[31md"));
  }
  desk.write("net.prototxt", test::replaced(desk.read("tiny.prototxt"), "name: \"score\"",
                                            "name: \"sc\\033[31more\""));
  ASSERT_EQ(desk.tandem("train --net net.prototxt --data images --steps 2 --out run").code, 0);
  for (const std::string arguments :
       {"net net.prototxt", "data images", "predict --run run images/val/blue/1.ppm",
        "predict --run run images/val/re*/1.ppm", "test --run run",
        "plan --net net.prototxt --devices sim:2", "export --run run 'w\x1b[31m.safetensors'"}) {
    const Outcome outcome = desk.tandem(arguments);
    EXPECT_EQ(outcome.code, 0) << arguments;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("\\x1b[31m"), Not(HasSubstr("\x1b")))) << arguments;
  }
}

TEST(Messages, AreJsonAlsoWhereANetIsInLatin1) {
  const Desk desk;
  desk.write("net.prototxt",
             test::replaced(desk.read("tiny.prototxt"), "name: \"score\"", "name: \"caf\xE9\""));
  for (const char* command :
       {"net net.prototxt --json", "plan --net net.prototxt --devices sim:2 --json",
        "profile --net net.prototxt --batch 2 --steps 1 --warm-up 1 --json"}) {
    const Outcome outcome = desk.tandem(command);
    EXPECT_EQ(outcome.code, 0) << command << outcome.errors;
    EXPECT_THAT(outcome.output, HasSubstr("caf\xEF\xBF\xBD")) << command;
  }
}

TEST(Messages, HoldNoTextOfALibrary) {
  const Desk desk;
  ASSERT_EQ(desk.tandem(train_six_steps + "run").code, 0);
  const std::string record = desk.read("run/run.json");
  const std::map<std::string, std::string> reasons{
      {"{ no JSON", "line 1, column 4: unexpected 'o'"},
      {"{\n  \"options\": 1,,\n}", "line 2, column 16: unexpected ','"},
      {"", "line 1, column 1: it ends too early"},
      {"{}", "'options' is missing"},
      {R"({"options": 3})", "'options' is the number 3, not an object"},
      {test::replaced(record, "\"batch\": ", "\"batch\": \"4\", \"other\": "),
       "'options.batch' is a text, not an integer in its range"},
      {test::replaced(record,
                      "\"data_parameters\": ", "\"data_parameters\": {\"mirror\": 3}, \"other\": "),
       "'data_parameters.mirror' is the number 3, not a text"},
      {test::replaced(record, "\"data_parameters\": ", "\"data_parameters\": 3, \"other\": "),
       "'data_parameters' is the number 3, not an object"},
      {record.substr(0, record.size() - 3), ": it ends too early"}};
  for (const auto& [text, reason] : reasons) {
    desk.write("run/run.json", text);
    EXPECT_THAT(desk.refusal("predict --run run tiny.prototxt"),
                testing::AllOf(HasSubstr("run/run.json' is not a run's record: "),
                               testing::EndsWith(reason)));
  }
}

// OpenMP's library would print a line of its own.
TEST(Messages, NameANumberOfThreadsThatIsNone) {
  const Desk desk;
  const auto note = [](const std::string& program, const std::string& value) {
    return program + ": note: OMP_NUM_THREADS is '" + value +
           "', which is no number of threads: it is left out (--threads says how many cores the "
           "cpu devices share)\n";
  };
  for (const char* value : {"many", "2,0", "-5", "99999999999", " "}) {
    const Outcome outcome =
        desk.tandem("net tiny.prototxt", std::string("OMP_NUM_THREADS='") + value + "'");
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    EXPECT_EQ(outcome.errors, note("tandem", value));
  }
  const Outcome alexnet = desk.alexnet(
      "--size 67 --classes 10 --batch 1 --steps 1 --warm-up 1 --devices cpu", "OMP_NUM_THREADS=-5");
  EXPECT_EQ(alexnet.code, 0) << alexnet.errors;
  EXPECT_EQ(alexnet.errors, note("tandem-alexnet", "-5"));
  EXPECT_EQ(desk.tandem("net tiny.prototxt", "OMP_NUM_THREADS=' 4, 2'").errors, "");
  EXPECT_EQ(desk.tandem("net tiny.prototxt", "OMP_NUM_THREADS=''").errors, "");
}

const std::string endless =
    test::replaced(train_six_steps, "--steps 6 --display 1", "--steps 1000000") +
    "run --snapshot 5 --test-delays 3 --test-delay-ms 20";

TEST(Signals, ATerminalThatClosesStopsAsCtrlCDoes) {
  const Desk desk;
  RunningProgram program(desk, endless);
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  EXPECT_EQ(program.stop(SIGHUP).code, 130);
  EXPECT_THAT(desk.read("run/log.txt"), HasSubstr("and saved; go on with"));
}

TEST(Signals, ASecondCtrlCStillSaves) {
  const Desk desk;
  RunningProgram program(desk, endless);
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  program.send(SIGINT);
  ASSERT_TRUE(program.wait_for_message("tandem: stopping after this step"));
  EXPECT_EQ(program.stop(SIGINT).code, 130);
  EXPECT_THAT(desk.read("run/log.txt"), HasSubstr("and saved; go on with"));
}

TEST(Signals, CtrlCBeforeTheFirstStepLeavesNothing) {
  const Desk desk;
  RunningProgram program(desk, endless, test::failing_disk + " STOPPING_FILE=run/plan.txt.new");
  ASSERT_TRUE(program.wait_for_pause());
  program.send(SIGINT);
  const Outcome outcome = program.stop(SIGCONT);
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.output, HasSubstr("stopped before the first step: nothing is kept"));
  EXPECT_FALSE(std::filesystem::exists(desk / "run"));
}

TEST(Process, TrainsWhereProcIsNotMounted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer finds a program's stack and symbols by /proc";
#endif
  // Without /proc the loader finds no library beside the program.
  const std::string hidden = "LD_LIBRARY_PATH=" + (test::build_folder() / "lib").string() +
                             " unshare -m sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh";
  if (std::system((hidden + " true 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "this user may not hide /proc";
  }
  const Desk desk;
  const Outcome outcome = desk.tandem(train_six_steps + "run", hidden);
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
}

// With room for some lines; afterwards the program waits for a reader.
TEST(Signals, StopARunWhoseOutputNobodyReads) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_GE(::fcntl(ends[1], F_SETPIPE_SZ, 8192), 0);
  const Desk desk;
  RunningProgram program(
      desk, test::replaced(endless, " --test-delays 3 --test-delay-ms 20", " --display 1"),
      "sh -c 'exec \"$@\" >&" + std::to_string(ends[1]) + "' sh");
  ASSERT_TRUE(program.wait_for_file(desk / "run/last.safetensors"));
  pollfd full{ends[1], POLLOUT, 0};
  for (int i = 0; i < 6000 && ::poll(&full, 1, 0) != 0; ++i) ::usleep(10000);
  ::usleep(200000);
  const Outcome outcome = program.stop(SIGTERM);
  EXPECT_EQ(outcome.code, 130);
  EXPECT_THAT(outcome.errors, AllOf(HasSubstr("tandem: stopping after this step"),
                                    HasSubstr("nobody reads the pipe")));
  EXPECT_THAT(desk.read("run/log.txt"), HasSubstr("and saved; go on with"));
  ::close(ends[0]);
  ::close(ends[1]);
}

// As a shell starts what it puts in the background.
TEST(Signals, LeaveAnIgnoredCtrlCIgnored) {
  const Desk desk;
  const Outcome outcome =
      desk.tandem(train_six_steps + "run & p=$!; sleep 1; kill -INT $p; wait $p", "trap '' INT; ");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(desk.read("run/metrics.csv"), HasSubstr("\n6,"));
}

TEST(Signals, UnderNohupAClosedTerminalStopsNothing) {
  const Desk desk;
  const Outcome outcome =
      desk.tandem(train_six_steps + "run & p=$!; sleep 1; kill -HUP $p; wait $p", "trap '' HUP; ");
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(desk.read("run/metrics.csv"), HasSubstr("\n6,"));
}

}  // namespace
}  // namespace tandem
