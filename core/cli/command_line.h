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

// Where the value of an option goes, or a function that reads it and throws Error for one that is
// wrong; a vector takes all values that are given. An option without a value is a flag: its bool
// becomes true, or its function is called.
using Target =
    std::variant<std::string*, std::filesystem::path*, int*, int64_t*, uint64_t*, double*,
                 std::optional<double>*, std::optional<uint64_t>*, std::vector<std::string>*,
                 std::vector<std::filesystem::path>*, std::function<void(const std::string& value)>,
                 bool*, std::function<void()>>;

// What else holds for an option.
using Rule = std::function<void(CLI::Option&)>;
void required(CLI::Option& option);
void show_default(CLI::Option& option);  // --help shows the target's value as the default
// A value outside is refused when the command line is read.
[[nodiscard]] Rule in_range(int64_t low, int64_t high = std::numeric_limits<int64_t>::max());
// `check` throws Error for a value that is wrong.
[[nodiscard]] Rule checked_by(std::function<void(const std::string& value)> check);
// The same, before the type of the value is looked at.
[[nodiscard]] Rule checked_first_by(std::function<void(const std::string& value)> check);
// One argument holds several values with this character between them.
[[nodiscard]] Rule separated_by(char character);
[[nodiscard]] Rule excludes(const std::string& other);  // "--json", which comes before

// `name`: "--steps N", the option and the word that stands for its value: FILE, FOLDER, PATH or
// alternatives as "best|last", which shells complete, or any other. "--net,--model FILE": two
// names. Without dashes, "paths PATH": a positional argument.
struct Option {
  template <class... Rules>
  Option(std::string option, Target place, std::string text, Rules... more)
      : name(std::move(option)),
        target(std::move(place)),
        help(std::move(text)),
        rules{std::move(more)...} {}

  std::string name;
  Target target;
  std::string help;
  std::vector<Rule> rules;
};

// A command with its options. Targets outlive the command.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // The options that follow have this title in --help; those for experts only in --help-all.
  void group(const std::string& title);
  void experts_group(const std::string& title);

  void add(const std::vector<Option>& options);
  // What the program does when the command is given: `run` returns the exit code. The arguments are
  // what the options' targets are in, and live as long as the command.
  template <class Arguments>
  Arguments& runs(int (*run)(Arguments&, const Command&)) {
    auto arguments = std::make_shared<Arguments>();
    action_ = [this, arguments, run] { return run(*arguments, *this); };
    return *arguments;
  }
  template <class Arguments>
  Arguments& runs(int (*run)(Arguments&)) {
    auto arguments = std::make_shared<Arguments>();
    action_ = [arguments, run] { return run(*arguments); };
    return *arguments;
  }

  // Whether the option ("--steps") was given; and the names of all that were.
  [[nodiscard]] bool given(const std::string& option) const;
  [[nodiscard]] std::vector<std::string> given() const;
  // With their values; "" of a flag. Several are joined by spaces, and those with a name
  // ("momentum=0.9") are in the order of their names.
  [[nodiscard]] std::map<std::string, std::string> given_values() const;

 private:
  friend class CommandLine;
  void hide_options_for_experts();

  CLI::App* app_;
  std::string group_;
  bool for_experts_ = false;
  std::vector<CLI::Option*> options_for_experts_;
  std::function<int()> action_;
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& version, const std::string& help);
  ~CommandLine();

  Command& add(const std::string& name, const std::string& help);
  // Does what the command given does, or prints help or version; returns the exit code. Throws
  // Error with one message for a command line that is wrong.
  int run(int argc, char** argv);
  // With the commands and their options as CLI11 describes them.
  [[nodiscard]] const CLI::App& app() const { return *app_; }

 private:
  std::unique_ptr<CLI::App> app_;
  std::deque<Command> commands_;
};

}  // namespace tandem::cli
