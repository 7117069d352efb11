// Completion scripts and the manual page: each has every command and option that --help prints, and
// its reader accepts it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/cli/program.h"

namespace tandem {
namespace {

using test::Desk;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// By command, the long options that its --help-all prints.
std::map<std::string, std::set<std::string>> printed_options(const Desk& desk) {
  std::map<std::string, std::set<std::string>> options;
  std::istringstream lines(desk.tandem("--help").output);
  bool are_commands = false;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (are_commands && std::regex_search(line, match, std::regex("^  ([a-z]+) "))) {
      const std::string help = desk.tandem(match[1].str() + " --help-all").output;
      const std::regex option("(?:^|\n)  (?:-h,)?(--[a-z0-9-]+)");
      for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at) {
        options[match[1]].insert((*at)[1]);
      }
    }
    are_commands = are_commands || line.starts_with("Subcommands");
  }
  return options;
}

bool is_installed(const std::string& program) {
  return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}

int status(const Desk& desk, const std::string& command) {
  return std::system(
      fmt::format("cd '{}' && {} > out.txt 2> err.txt", (desk / "").string(), command).c_str());
}

// What bash offers for these words; the last of them is being typed.
std::string offered_by_bash(const Desk& desk, const std::string& words) {
  desk.write("complete.sh", fmt::format("source ./bash\nCOMP_WORDS=({})\n"
                                        "COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
                                        "_tandem\necho \" ${{COMPREPLY[*]}} \"\n",
                                        words));
  EXPECT_EQ(status(desk, "bash complete.sh"), 0) << desk.read("err.txt");
  return desk.read("out.txt");
}

class Completion : public testing::Test {
 protected:
  Completion() {
    for (const char* kind : {"bash", "zsh", "fish", "man"}) {
      desk_.write(kind, desk_.tandem(std::string("completion ") + kind).output);
    }
  }
  Desk desk_;
};

TEST_F(Completion, HasEveryCommandAndOptionOfTheHelp) {
  const auto options = printed_options(desk_);
  EXPECT_GT(options.size(), 10U);
  EXPECT_GT(options.at("train").size(), 40U);
  const std::string bash = desk_.read("bash"), zsh = desk_.read("zsh"), fish = desk_.read("fish");
  const std::string man = std::regex_replace(desk_.read("man"), std::regex("\\\\-"), "-");
  for (const auto& [command, names] : options) {
    EXPECT_THAT(bash, HasSubstr(" " + command + ",-*)"));
    EXPECT_THAT(zsh, HasSubstr("'" + command + ":"));
    EXPECT_THAT(fish, HasSubstr("-a " + command + " "));
    EXPECT_THAT(man, HasSubstr(".SS tandem " + command));
    for (const std::string& name : names) {
      EXPECT_TRUE(
          std::regex_search(bash, std::regex(command + R"(,-\*\) words="[^"]*)" + name + "[ \"]")))
          << command << " " << name;
      EXPECT_THAT(zsh, HasSubstr("'" + name + "[")) << command;
      EXPECT_THAT(fish, HasSubstr(fmt::format("'__fish_seen_subcommand_from {}' -l {} ", command,
                                              name.substr(2))));
      EXPECT_THAT(man, HasSubstr("\\fB" + name + "\\fR")) << command;
    }
  }
}

TEST_F(Completion, OfBashOffersCommandsOptionsAndValues) {
  EXPECT_THAT(offered_by_bash(desk_, "tandem ''"),
              AllOf(HasSubstr(" train "), HasSubstr(" devices "), HasSubstr(" --version ")));
  EXPECT_THAT(offered_by_bash(desk_, "tandem tr"), " train \n");
  EXPECT_THAT(offered_by_bash(desk_, "tandem train --prec"), " --precision \n");
  EXPECT_THAT(offered_by_bash(desk_, "tandem train --precision bf"), " bfloat16 \n");
  EXPECT_THAT(offered_by_bash(desk_, "tandem plan --strategy a"),
              AllOf(HasSubstr(" asymmetric "), HasSubstr(" auto "), HasSubstr(" all ")));
  EXPECT_THAT(offered_by_bash(desk_, "tandem train --net tiny"), " tiny.prototxt \n");
  desk_.make_folder("run");
  EXPECT_THAT(offered_by_bash(desk_, "tandem predict --run ''"), " run \n");
  EXPECT_THAT(offered_by_bash(desk_, "tandem train --steps ''"), "  \n");
  EXPECT_THAT(offered_by_bash(desk_, "tandem completion ''"), " bash zsh fish man \n");
}

TEST_F(Completion, IsAcceptedByEachShellThatIsInstalled) {
  const std::map<std::string, std::string> checks = {
      {"bash", "bash -n bash"}, {"zsh", "zsh -n zsh"}, {"fish", "fish --no-execute fish"}};
  for (const auto& [shell, check] : checks) {
    if (!is_installed(shell)) continue;
    EXPECT_EQ(status(desk_, check), 0) << shell << ": " << desk_.read("err.txt");
  }
}

TEST_F(Completion, AnotherShellIsRefused) {
  EXPECT_THAT(desk_.refusal("completion tcsh"),
              AllOf(HasSubstr("tcsh"), HasSubstr("bash, zsh, fish and man")));
}

TEST_F(Completion, TheManualPageHasNoWarnings) {
  if (!is_installed("groff")) GTEST_SKIP() << "groff is not installed";
  EXPECT_EQ(status(desk_, "groff -man -Tascii -P-cbou -ww man"), 0);
  EXPECT_EQ(desk_.read("err.txt"), "");
  EXPECT_THAT(desk_.read("out.txt"),
              AllOf(HasSubstr("tandem train"), HasSubstr("EXIT STATUS"), Not(HasSubstr("\\f"))));
}

}  // namespace
}  // namespace tandem
