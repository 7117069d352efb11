// The command line of a program as one table: commands and their options, each declared once.
// Parsing, --help, the shells' completion scripts and the manual page are all made from it.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace tandem::cli {

// Where the value of an option goes; a vector takes all values that are given.
using Target = std::variant<std::string*, std::filesystem::path*, int*, int64_t*, uint64_t*,
                            double*, std::optional<double>*, std::vector<std::string>*,
                            std::vector<std::filesystem::path>*>;

// An option of a command, to be qualified where it is declared.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& required();
  // --help shows the target's value as the default.
  Option& show_default();
  // A value outside is refused when the command line is read.
  Option& range(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
  // `check` throws Error for a value that is wrong.
  Option& check(std::function<void(const std::string& value)> check);
  // One argument holds several values with this character between them.
  Option& separator(char character);
  Option& excludes(const Option& other);

 private:
  CLI::Option* option_;
};

// A command with its options. Targets outlive the command.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // The options that follow have this title in --help; those for experts only in --help-all.
  void group(const std::string& title);
  void experts_group(const std::string& title);

  // `name`: "--steps N", an option and the word that stands for its value: FILE, FOLDER, PATH or
  // alternatives as "best|last", which shells complete, or any other. "--net,--model FILE": two
  // names. Without dashes, "paths PATH": a positional argument.
  Option option(const std::string& name, const Target& target, const std::string& help);
  // The same with a function that reads the value, which throws Error for one that is wrong.
  Option option(const std::string& name, const std::function<void(const std::string& value)>& read,
                const std::string& help);
  // An option without a value: `target` becomes `value`.
  Option flag(const std::string& name, bool& target, const std::string& help, bool value = true);
  Option flag(const std::string& name, std::function<void()> given, const std::string& help);
  // What the program does when the command is given; returns the exit code.
  void action(std::function<int()> action) { action_ = std::move(action); }

  // Whether the option ("--steps") was given; and the names of all that were.
  [[nodiscard]] bool given(const std::string& option) const;
  [[nodiscard]] std::vector<std::string> given() const;
  // With their values; "" of a flag. Several are joined by spaces, and those with a name
  // ("momentum=0.9") are in the order of their names.
  [[nodiscard]] std::map<std::string, std::string> given_values() const;

 private:
  friend class CommandLine;
  Option grouped(CLI::Option* option);
  void hide_options_for_experts();

  CLI::App* app_;
  std::string group_;
  bool for_experts_ = false;
  std::vector<CLI::Option*> options_for_experts_;
  std::function<int()> action_;
};

// What a command line consists of, as plain data.
struct OptionEntry {
  std::string name;   // "--steps"; without dashes: a positional argument
  std::string value;  // the word that stands for its value; "": it takes none
  std::string help;
  std::string standard;  // the default; "": not shown
  std::string group;     // the title above it in the help
  bool is_required = false, takes_several = false;

  [[nodiscard]] bool is_positional() const { return name.front() != '-'; }
};
struct CommandEntry {
  std::string name, help;
  std::vector<OptionEntry> options;
};
struct CommandTable {
  std::string name, version, help;
  std::vector<OptionEntry> options;  // of the program itself
  std::vector<CommandEntry> commands;
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& version, const std::string& help);
  ~CommandLine();

  Command& add(const std::string& name, const std::string& help);
  // Does what the command given does, or prints help or version; returns the exit code. Throws
  // Error with one message for a command line that is wrong.
  int run(int argc, char** argv);
  [[nodiscard]] CommandTable table();

 private:
  std::string version_;
  std::unique_ptr<CLI::App> app_;
  std::deque<Command> commands_;
};

}  // namespace tandem::cli
