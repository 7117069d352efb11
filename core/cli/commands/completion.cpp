#include <CLI/App.hpp>
#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "core/cli/commands.h"

namespace tandem::cli {
namespace {

using Options = std::vector<const CLI::Option*>;

// "--steps", or "paths" of a positional argument.
std::string name_of(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return names.empty() ? option.get_name() : "--" + names.front();
}

// The word that stands for its value; "": it takes none.
std::string value_of(const CLI::Option& option) {
  return option.get_type_size() == 0 ? "" : option.get_type_name();
}

// What a shell offers as an option's value: the texts that a script has for these.
struct Offers {
  std::string words, files, folders, nothing;
};
const std::string& offer_of(const CLI::Option& option, const Offers& offers) {
  const std::string value = value_of(option);
  if (value.find('|') != std::string::npos) return offers.words;
  if (value == "FILE" || value == "PATH") return offers.files;
  return value == "FOLDER" ? offers.folders : offers.nothing;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::string upper_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// 'text' for a shell.
std::string shell_quoted(const std::string& text) {
  return "'" + replaced(text, "'", "'\\''") + "'";
}

// The alternatives of its value: "best last".
std::string words_of(const CLI::Option& option) {
  return replaced(value_of(option), "|", " ");
}

std::string option_names(const CLI::App& app) {
  std::string names;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) names += (names.empty() ? "" : " ") + name_of(*option);
  }
  return names;
}

std::string bash_script(const CLI::App& app) {
  std::string values, options, names;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    names += name + " ";
    std::string positional = ":";
    for (const CLI::Option* option : command->get_options()) {
      const std::string reply =
          offer_of(*option, {fmt::format("words=\"{}\"", words_of(*option)),
                             "mapfile -t COMPREPLY < <(compgen -f -- \"$current\")",
                             "mapfile -t COMPREPLY < <(compgen -d -- \"$current\")", ":"});
      if (option->get_positional()) {
        positional = reply;
      } else if (!value_of(*option).empty()) {
        values += fmt::format("    {},{}) {} ;;\n", name, name_of(*option), reply);
      }
    }
    options += fmt::format("    {0},-*) words=\"{1}\" ;;\n    {0},*) {2} ;;\n", name,
                           option_names(*command), positional);
  }
  return fmt::format(R"(# bash completion of {0}
_{0}() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{1}{2}"
  else
    compopt -o filenames 2> /dev/null
    case ${{COMP_WORDS[1]}},$previous in
{3}    *) case ${{COMP_WORDS[1]}},$current in
{4}    esac ;;
    esac
  fi
  [ -z "$words" ] || mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}}
complete -F _{0} {0}
)",
                     app.get_name(), names, option_names(app), values, options);
}

std::string zsh_script(const CLI::App& app) {
  const auto escaped = [](std::string text) {
    for (const char* special : {"[", "]", ":"}) {
      text = replaced(text, special, std::string("\\") + special);
    }
    return text;
  };
  std::string commands, cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string& name = command->get_name();
    commands +=
        fmt::format("    {}\n", shell_quoted(name + ":" + escaped(command->get_description())));
    cases += fmt::format("    {}) _arguments", name);
    for (const CLI::Option* option : command->get_options()) {
      const std::string values =
          offer_of(*option, {"(" + words_of(*option) + ")", "_files", "_files -/", " "});
      std::string text = name_of(*option);
      if (option->get_positional()) {
        text = fmt::format("*:{}:{}", text, values);
      } else {
        const std::string value = text.substr(2);
        text += "[" + escaped(option->get_description()) + "]";
        if (!value_of(*option).empty()) text += fmt::format(":{}:{}", value, values);
      }
      cases += " \\\n      " + shell_quoted(text);
    }
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef {0}
_{0}() {{
  local -a commands
  commands=(
{1}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    compadd -- {2}
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
{3}  esac
}}
_{0} "$@"
)",
                     app.get_name(), commands, option_names(app), cases);
}

std::string fish_script(const CLI::App& app) {
  const auto quote = [](const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
  };
  const std::string& name = app.get_name();
  std::string script = fmt::format("# fish completion of {0}\ncomplete -c {0} -f\n", name);
  const auto add = [&](const std::string& condition, const Options& options) {
    for (const CLI::Option* option : options) {
      const bool is_positional = option->get_positional();
      script += fmt::format("complete -c {} -n {}", name, quote(condition));
      if (!is_positional) script += " -l " + name_of(*option).substr(2);
      script +=
          offer_of(*option, {" -x -a " + quote(words_of(*option)), is_positional ? " -F" : " -r -F",
                             " -x -a '(__fish_complete_directories)'",
                             value_of(*option).empty() ? "" : " -x"});
      script += fmt::format(" -d {}\n", quote(option->get_description()));
    }
  };
  add("__fish_use_subcommand", app.get_options());
  for (const CLI::App* command : app.get_subcommands({})) {
    script += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", name,
                          command->get_name(), quote(command->get_description()));
    add("__fish_seen_subcommand_from " + command->get_name(), command->get_options());
  }
  return script;
}

// Text for roff, whose lines must not begin with a control character.
std::string roff(const std::string& text) {
  std::string result = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  result = replaced(replaced(result, "\n.", "\n\\&."), "\n'", "\n\\&'");
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

// The options with a heading for each group but the first.
std::string roff_entries(const Options& options) {
  std::string text, group = options.front()->get_group();
  for (const CLI::Option* option : options) {
    if (option->get_group() != group) {
      group = option->get_group();
      text += fmt::format(".PP\n\\fI{}\\fR\n", roff(group));
    }
    text += fmt::format(".TP\n\\fB{}\\fR", roff(name_of(*option)));
    const std::string value = option->get_positional() ? "" : value_of(*option);
    if (!value.empty()) text += fmt::format(" \\fI{}\\fR", roff(replaced(value, "|", " | ")));
    text += "\n" + roff(option->get_description()) + "\n";
    const std::string standard = option->get_default_str();
    if (!standard.empty()) text += fmt::format("(default: {})\n", roff(standard));
  }
  return text;
}

std::string manual_page(const CLI::App& app) {
  const std::string &name = app.get_name(), help = app.get_description();
  std::string page = fmt::format(
      ".TH {} 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n"
      ".I COMMAND\n[\\fIOPTION\\fR]...\n.SH DESCRIPTION\n{}\n{}.SH COMMANDS\n",
      upper_case(name), app.version(), name, roff(help.substr(0, help.find('.'))), name, roff(help),
      roff_entries(app.get_options()));
  for (const CLI::App* command : app.get_subcommands({})) {
    page += fmt::format(".SS {} {}", name, command->get_name());
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_positional()) continue;
      const std::string argument = upper_case(name_of(*option));
      page += option->get_required() ? " " + argument : " [" + argument + "]";
    }
    page += fmt::format("\n{}.\n{}", roff(command->get_description()),
                        roff_entries(command->get_options()));
  }
  page += fmt::format(
      ".SH ENVIRONMENT\n.TP\n\\fBTANDEM_PLUGIN_PATH\\fR\nFolders to load plugins from, before the "
      "built\\-in ones, with colons between them.\n.TP\n\\fBTANDEM_TRUST_PLUGINS\\fR\nIf it is "
      "1, plugins that every user may write to, or to whose folder, are loaded, "
      "too.\n.TP\n\\fBTANDEM_PLAIN\\fR\nIf it is set, "
      "training prints lines also on a terminal, not a progress bar.\n.SH EXIT STATUS\n0: done. "
      "1: an error, with one line on standard error. 130: training was interrupted, and is "
      "saved. 128 + a signal: the program crashed; one line says where.\n");
  return page;
}

struct CompletionArguments {
  std::string kind;
  const CommandLine* line = nullptr;
};

int print_completion(CompletionArguments& a) {
  for (const auto& [kind, text_of] : {std::pair{"bash", &bash_script},
                                      {"zsh", &zsh_script},
                                      {"fish", &fish_script},
                                      {"man", &manual_page}}) {
    if (a.kind != kind) continue;
    say("{}", text_of(a.line->app()));
    return 0;
  }
  throw error("completion {}: there are bash, zsh, fish and man", a.kind);
}

}  // namespace

void add_completion(CommandLine& line) {
  Command& command =
      line.add("completion", "Print the completion script of a shell, or the manual page (man)");
  CompletionArguments& a = command.runs(print_completion);
  a.line = &line;
  command.add({{"kind bash|zsh|fish|man", &a.kind, "What to print", required}});
}

}  // namespace tandem::cli
