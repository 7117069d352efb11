#include "core/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/overloaded.h"
#include "core/base/text/decimal_comma.h"
#include "core/base/text/strings.h"
#include "core/cli/other_programs.h"
#include "core/cli/print.h"
#include "core/run/folder/run_folder.h"

namespace tandem::cli {
namespace {

// CLI11 says of a mistyped command only that one is required. "" if there is such a command.
std::string unknown_command(const CLI::App& app, const std::string& name) {
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands({})) known.push_back(command->get_name());
  if (std::find(known.begin(), known.end(), name) != known.end()) return "";
  const std::string here = command_of_other_program(name);
  if (!here.empty()) return fmt::format("unknown command '{}': {}", name, here);
  return fmt::format("unknown command '{}'{}; there are {}", name, did_you_mean(name, known),
                     fmt::join(known, ", "));
}

bool has_option(const CLI::App& app, const std::string& name) {
  return app.get_option_no_throw(name) != nullptr;
}

// What an option of another program is here; "" if that is not known.
std::string option_here(const CLI::App& app, const std::string& name) {
  return option_of_other_program(name, [&](const char* here) { return has_option(app, here); });
}

// An option that `app` does not have, and the one that may be meant.
std::string unknown_option(const CLI::App& app, const std::string& argument) {
  const std::string given = argument.substr(0, argument.find('='));
  std::string name = given;
  // Caffe's options have one dash.
  const bool has_one_dash = name.size() > 2 && name[1] != '-';
  if (has_one_dash) name.insert(0, "-");
  const std::string here = option_here(app, name);
  if (!here.empty()) return fmt::format("'{}' ({})", given, here);
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& one : option->get_lnames()) known.push_back("--" + one);
  }
  const std::string nearest = did_you_mean(name, known);
  if (!nearest.empty()) return fmt::format("'{}'{}", given, nearest);
  std::vector<std::string> others;
  for (const auto& [other, here] : options_of_other_programs()) {
    if (has_option(app, here)) others.push_back(other);
  }
  return fmt::format("'{}'{}", given, did_you_mean(name, others));
}

// Replaces the names that options have in other programs where the command has no such option.
void take_other_names(const CLI::App& command, std::vector<std::string>& arguments) {
  for (std::string& argument : arguments) {
    const std::string name = argument.substr(0, argument.find('='));
    const auto found = options_of_other_programs().find(name);
    if (found == options_of_other_programs().end() || has_option(command, name)) continue;
    if (has_option(command, found->second)) argument.replace(0, name.size(), found->second);
  }
}

// An option with one value that is given several times; "" if there is none.
std::string repeated_option(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    const bool has_one = option->get_expected_max() == 1 && option->get_items_expected_max() == 1;
    if (!has_one || option->count() < 2) continue;
    return fmt::format("--{} is given {} times ({}): give it once", option->get_lnames().front(),
                       option->count(), fmt::join(option->results(), ", "));
  }
  return "";
}

// Data, or a solver or a net, that are given without their option.
std::string missing_data_option(const CLI::App& app, const std::string& word) {
  std::error_code code;
  if (!has_option(app, "--data") || app.count("--data") > 0) return "";
  if (!std::filesystem::exists(word, code)) return "";
  const bool is_prototxt = word.ends_with(".prototxt"),
             is_solver = word.find("solver") != word.npos;
  const char* option = is_prototxt && is_solver ? "--solver" : is_prototxt ? "--net" : "--data";
  if (!has_option(app, option)) return "";
  return fmt::format(" (did you mean '{} {}'?)", option, word);
}

// "data=flowers" in place of "--data flowers".
std::string assignment_here(const CLI::App& app, const std::string& word) {
  const size_t at = word.find('=');
  if (at == std::string::npos || at == 0) return "";
  std::string name = "--" + word.substr(0, at);
  const auto other = options_of_other_programs().find(name);
  if (other != options_of_other_programs().end()) name = other->second;
  const CLI::Option* option = app.get_option_no_throw(name);
  if (option == nullptr) {
    const std::string here = option_here(app, name);
    return here.empty() ? "" : fmt::format(" ({})", here);
  }
  if (option->get_items_expected_max() == 0) return fmt::format(" (did you mean '{}'?)", name);
  return fmt::format(" (did you mean '{} {}'?)", name, word.substr(at + 1));
}

// A run folder that is given without --run, where this is required.
std::string missing_run_option(const CLI::App& app) {
  if (!has_option(app, "--run") || app.count("--run") > 0) return "";
  std::vector<std::string> words = app.remaining();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() && option->count() > 0) words = option->results();
  }
  if (words.empty()) return "";
  const std::string& first = words.front();
  std::error_code code;
  if (first.find('=') != first.npos && !std::filesystem::exists(first, code)) {
    return fmt::format("; '{}'{}: options are written as '--run FOLDER'", first,
                       assignment_here(app, first));
  }
  if (!RunFolder::holds_run(first)) return "";
  return fmt::format(" (did you mean '--run {}'?)", first);
}

// The words after a misspelt option are its values, and are not listed.
std::string unexpected_arguments(const CLI::App& app) {
  std::vector<std::string> options, words;
  for (const std::string& argument : app.remaining()) {
    const bool is_option = argument.size() > 1 && argument[0] == '-';
    if (is_option) options.push_back(unknown_option(app, argument));
    std::string hint = assignment_here(app, argument);
    if (hint.empty() && words.empty()) hint = missing_data_option(app, argument);
    words.push_back("'" + argument + "'" + hint);
  }
  const std::vector<std::string>& listed = options.empty() ? words : options;
  return fmt::format("{}: {}{} {}", app.get_name(),
                     options.empty() ? "unexpected argument" : "unknown option",
                     listed.size() == 1 ? "" : "s", fmt::join(listed, ", "));
}

// CLI11 lists unexpected arguments in reverse.
std::string what_is_wrong(const CLI::App& app, const CLI::ParseError& failure) {
  const std::vector<CLI::App*> given = app.get_subcommands();
  const CLI::App& command = given.empty() ? app : *given.front();
  const auto is = [&](CLI::ExitCodes code) { return failure.get_exit_code() == int(code); };
  if (is(CLI::ExitCodes::ExtrasError)) return unexpected_arguments(command);
  // What is unknown says more than what is missing.
  const std::vector<std::string> unknown = command.remaining();
  const bool has_unknown = std::any_of(unknown.begin(), unknown.end(), [](const auto& argument) {
    return argument.size() > 1 && argument[0] == '-';
  });
  if (is(CLI::ExitCodes::RequiredError) && has_unknown) return unexpected_arguments(command);
  if (is(CLI::ExitCodes::ArgumentMismatch)) {
    const std::string repeated = repeated_option(command);
    if (!repeated.empty()) return repeated;
  }
  return failure.what() + (is(CLI::ExitCodes::RequiredError) ? missing_run_option(command) : "");
}

// Without arguments the help is printed; `help COMMAND` is `COMMAND --help`.
std::vector<std::string> read_arguments(int argc, char** argv) {
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const bool asks = !arguments.empty() && arguments.front() == "help";
  if (asks) arguments.erase(arguments.begin());
  if (asks || arguments.empty()) arguments.emplace_back("--help");
  return arguments;
}

// CLI11 reads whole numbers that begin with 0 as octal, and takes the nearest one for those that do
// not fit: it gets them in decimal, and those only that the target can hold.
template <class Integer>
void read_as_decimal(CLI::Option* option) {
  option->transform(CLI::Validator(
      [](std::string& text) {
        using Limits = std::numeric_limits<Integer>;
        using Wide = std::conditional_t<std::is_signed_v<Integer>, int64_t, uint64_t>;
        Wide value = 0;
        if (parse_integer(text, &value) && value >= Limits::min() && value <= Limits::max()) {
          text = fmt::format("{}", value);
          return std::string();
        }
        const size_t sign = text.find_first_of("+-") == 0 ? 1 : 0;
        const bool is_whole =
            text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string::npos;
        return is_whole
                   ? fmt::format("'{}' is not from {} to {}", text, Limits::min(), Limits::max())
                   : fmt::format("'{}' is not a whole number", text);
      },
      ""));
}

void refuse_decimal_comma(CLI::Option* option) {
  option->check([](const std::string& text) {
    const std::string hint = decimal_comma_hint(text);
    return hint.empty() ? hint : fmt::format("'{}' is no number{}", text, hint);
  });
}

// "--steps" for "--steps N", which `target` describes, without its rules.
CLI::Option* add_to(CLI::App& app, const std::string& name, const Target& target,
                    const std::string& help) {
  return std::visit(overloaded{[&](bool* flag) {
                                 return app.add_flag_callback(
                                     name, [flag] { *flag = true; }, help);
                               },
                               [&](const std::function<void()>& given) {
                                 return app.add_flag_callback(name, given, help);
                               },
                               [&](const std::function<void(const std::string&)>& read) {
                                 return app.add_option_function<std::string>(name, read, help);
                               },
                               [&](auto* place) {
                                 using Value = std::remove_pointer_t<decltype(place)>;
                                 CLI::Option* added = app.add_option(name, *place, help);
                                 if constexpr (std::is_same_v<Value, std::optional<uint64_t>>)
                                   read_as_decimal<uint64_t>(added);
                                 else if constexpr (std::is_integral_v<Value>)
                                   read_as_decimal<Value>(added);
                                 else if constexpr (std::is_same_v<Value, double> ||
                                                    std::is_same_v<Value, std::optional<double>>)
                                   refuse_decimal_comma(added);
                                 return added;
                               }},
                    target);
}

}  // namespace

void required(CLI::Option& option) {
  option.required();
}

void show_default(CLI::Option& option) {
  option.capture_default_str();
}

Rule in_range(int64_t low, int64_t high) {
  return [low, high](CLI::Option& option) {
    option.check([low, high](const std::string& text) {
      int64_t value = 0;
      if (parse_integer(text, &value) && value >= low && value <= high) return std::string();
      return high == std::numeric_limits<int64_t>::max()
                 ? fmt::format("'{}' is not a whole number of at least {}", text, low)
                 : fmt::format("'{}' is not a whole number from {} to {}", text, low, high);
    });
  };
}

Rule checked_by(std::function<void(const std::string&)> check) {
  return [check = std::move(check)](CLI::Option& option) {
    option.check([check](const std::string& text) {
      check(text);  // its Error has the whole message, and CLI11 leaves it as it is
      return std::string();
    });
  };
}

Rule checked_first_by(std::function<void(const std::string&)> check) {
  return [check = std::move(check)](CLI::Option& option) {
    option.transform(CLI::Validator(
        [check](std::string& text) {
          check(text);
          return std::string();
        },
        ""));
  };
}

Rule separated_by(char character) {
  return [character](CLI::Option& option) { option.delimiter(character); };
}

Rule excludes(const std::string& other) {
  return [other](CLI::Option& option) { option.excludes(other); };
}

void Command::group(const std::string& title) {
  group_ = title;
  for_experts_ = false;
}

void Command::experts_group(const std::string& title) {
  group_ = title;
  for_experts_ = true;
}

// Only before help is printed: CLI11's messages do not name hidden options.
void Command::hide_options_for_experts() {
  for (CLI::Option* option : options_for_experts_) option->group("");
}

void Command::add(const std::vector<Option>& options) {
  for (const Option& each : options) {
    const size_t space = std::min(each.name.find(' '), each.name.size());
    CLI::Option* option = add_to(*app_, each.name.substr(0, space), each.target, each.help);
    if (space < each.name.size()) option->type_name(each.name.substr(space + 1));
    if (for_experts_) options_for_experts_.push_back(option);
    if (!group_.empty()) option->group(group_);
    for (const Rule& rule : each.rules) rule(*option);
  }
}

bool Command::given(const std::string& option) const {
  return app_->count(option) > 0;
}

std::vector<std::string> Command::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() > 0) names.push_back(option->get_name());
  }
  return names;
}

std::map<std::string, std::string> Command::given_values() const {
  std::map<std::string, std::string> values;
  for (const CLI::Option* option : app_->get_options()) {
    if (option->count() == 0) continue;
    const bool is_flag = option->get_expected_max() == 0;
    std::vector<std::string> given = is_flag ? std::vector<std::string>() : option->results();
    const auto name_of = [](const std::string& pair) { return pair.substr(0, pair.find('=')); };
    std::stable_sort(given.begin(), given.end(), [&](const auto& a, const auto& b) {
      return a.find('=') != a.npos && b.find('=') != b.npos && name_of(a) < name_of(b);
    });
    values["--" + option->get_single_name()] = fmt::format("{}", fmt::join(given, " "));
  }
  return values;
}

CommandLine::CommandLine(const std::string& name, const std::string& version,
                         const std::string& help)
    : app_(std::make_unique<CLI::App>(help)) {
  app_->name(name);
  app_->set_version_flag("--version", name + " " + version, "Print the version");
  app_->set_help_flag("-h,--help", "Print the options");
  app_->require_subcommand(1);
  app_->footer(name +
               " help COMMAND prints the options of a command, COMMAND --help-all also those for "
               "experts.");
}

CommandLine::~CommandLine() = default;

Command& CommandLine::add(const std::string& name, const std::string& help) {
  CLI::App* command = app_->add_subcommand(name, help);
  command->set_help_all_flag("--help-all", "Print all options, also those for experts");
  return commands_.emplace_back(command);
}

int CommandLine::run(int argc, char** argv) {
  std::vector<std::string> arguments = read_arguments(argc, argv);
  if (arguments.front()[0] != '-') {
    const std::string unknown = unknown_command(*app_, arguments.front());
    if (!unknown.empty()) throw error("{} (see '{} --help')", unknown, app_->get_name());
    take_other_names(*app_->get_subcommand(arguments.front()), arguments);
  }
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForAllHelp&) {
    say("{}", app_->get_subcommands().front()->help(app_->get_name()));
    return 0;
  } catch (const CLI::Success& asked) {  // --help, --version
    for (Command& command : commands_) command.hide_options_for_experts();
    return app_->exit(asked);
  } catch (const CLI::ParseError& failure) {
    const std::vector<CLI::App*> given = app_->get_subcommands();
    throw error("{} (see '{}{} --help')", what_is_wrong(*app_, failure), app_->get_name(),
                given.empty() ? "" : " " + given.front()->get_name());
  }
  for (const Command& command : commands_) {
    if (command.app_->parsed()) return command.action_();
  }
  return 1;
}

}  // namespace tandem::cli
