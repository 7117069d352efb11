#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "core/base/error.h"
#include "core/cli/commands.h"
#include "core/cli/print.h"

namespace tandem::cli {
namespace {

// What a shell offers as an option's value.
enum class Offer { nothing, words, files, folders };

Offer offer_of(const OptionEntry& option) {
  if (option.value.find('|') != std::string::npos) return Offer::words;
  if (option.value == "FILE" || option.value == "PATH") return Offer::files;
  return option.value == "FOLDER" ? Offer::folders : Offer::nothing;
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

std::string words_of(const OptionEntry& option) {
  return replaced(option.value, "|", " ");
}

std::vector<std::string> option_names(const std::vector<OptionEntry>& options) {
  std::vector<std::string> names;
  for (const OptionEntry& option : options) {
    if (!option.is_positional()) names.push_back(option.name);
  }
  return names;
}

std::string bash_script(const CommandTable& table) {
  const char* files = "mapfile -t COMPREPLY < <(compgen -f -- \"$current\")";
  const char* folders = "mapfile -t COMPREPLY < <(compgen -d -- \"$current\")";
  std::string values, options, names;
  for (const CommandEntry& command : table.commands) {
    names += command.name + " ";
    std::string positional = ":";
    for (const OptionEntry& option : command.options) {
      const Offer offer = offer_of(option);
      const std::string reply = offer == Offer::words
                                    ? fmt::format("words=\"{}\"", words_of(option))
                                : offer == Offer::files   ? files
                                : offer == Offer::folders ? folders
                                                          : ":";
      if (option.is_positional()) {
        positional = reply;
      } else if (!option.value.empty()) {
        values += fmt::format("    {},{}) {} ;;\n", command.name, option.name, reply);
      }
    }
    options += fmt::format("    {},-*) words=\"{}\" ;;\n    {},*) {} ;;\n", command.name,
                           fmt::join(option_names(command.options), " "), command.name, positional);
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
                     table.name, names, fmt::join(option_names(table.options), " "), values,
                     options);
}

std::string zsh_script(const CommandTable& table) {
  const auto escaped = [](std::string text) {
    for (const char* special : {"[", "]", ":"}) {
      text = replaced(text, special, std::string("\\") + special);
    }
    return text;
  };
  std::string commands, cases;
  for (const CommandEntry& command : table.commands) {
    commands += fmt::format("    {}\n", shell_quoted(command.name + ":" + escaped(command.help)));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const OptionEntry& option : command.options) {
      const Offer offer = offer_of(option);
      const std::string values = offer == Offer::words     ? "(" + words_of(option) + ")"
                                 : offer == Offer::files   ? "_files"
                                 : offer == Offer::folders ? "_files -/"
                                                           : " ";
      std::string text = option.name;
      if (option.is_positional()) {
        text = fmt::format("*:{}:{}", option.name, values);
      } else {
        text += "[" + escaped(option.help) + "]";
        if (!option.value.empty()) text += fmt::format(":{}:{}", option.name.substr(2), values);
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
                     table.name, commands, fmt::join(option_names(table.options), " "), cases);
}

std::string fish_script(const CommandTable& table) {
  const auto quote = [](const std::string& text) {
    return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
  };
  std::string script = fmt::format("# fish completion of {0}\ncomplete -c {0} -f\n", table.name);
  const auto add = [&](const std::string& condition, const OptionEntry& option) {
    const Offer offer = offer_of(option);
    script += fmt::format("complete -c {} -n {}", table.name, quote(condition));
    if (!option.is_positional()) script += " -l " + option.name.substr(2);
    if (offer == Offer::words) script += " -x -a " + quote(words_of(option));
    if (offer == Offer::files) script += option.is_positional() ? " -F" : " -r -F";
    if (offer == Offer::folders) script += " -x -a '(__fish_complete_directories)'";
    if (offer == Offer::nothing && !option.value.empty()) script += " -x";
    script += fmt::format(" -d {}\n", quote(option.help));
  };
  for (const OptionEntry& option : table.options) add("__fish_use_subcommand", option);
  for (const CommandEntry& command : table.commands) {
    script += fmt::format("complete -c {} -n __fish_use_subcommand -a {} -d {}\n", table.name,
                          command.name, quote(command.help));
    for (const OptionEntry& option : command.options) {
      add("__fish_seen_subcommand_from " + command.name, option);
    }
  }
  return script;
}

// Text for roff, whose lines must not begin with a control character.
std::string roff(const std::string& text) {
  std::string result = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  result = replaced(replaced(result, "\n.", "\n\\&."), "\n'", "\n\\&'");
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

std::string roff_entry(const OptionEntry& option) {
  std::string text = fmt::format(".TP\n\\fB{}\\fR", roff(option.name));
  if (!option.value.empty() && !option.is_positional()) {
    text += fmt::format(" \\fI{}\\fR", roff(replaced(option.value, "|", " | ")));
  }
  text += "\n" + roff(option.help) + "\n";
  if (!option.standard.empty()) text += fmt::format("(default: {})\n", roff(option.standard));
  return text;
}

std::string manual_page(const CommandTable& table) {
  const size_t end = table.help.find('.');
  std::string page = fmt::format(
      ".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n"
      ".I COMMAND\n[\\fIOPTION\\fR]...\n.SH DESCRIPTION\n{}\n",
      upper_case(table.name), table.name, table.version, table.name,
      roff(table.help.substr(0, end)), table.name, roff(table.help));
  for (const OptionEntry& option : table.options) page += roff_entry(option);
  page += ".SH COMMANDS\n";
  for (const CommandEntry& command : table.commands) {
    page += fmt::format(".SS {} {}", table.name, command.name);
    for (const OptionEntry& option : command.options) {
      if (option.is_positional()) {
        const std::string name = upper_case(option.name);
        page += option.is_required ? " " + name : " [" + name + "]";
      }
    }
    page += fmt::format("\n{}.\n", roff(command.help));
    std::string group = command.options.front().group;
    for (const OptionEntry& option : command.options) {
      if (option.group != group) page += fmt::format(".PP\n\\fI{}\\fR\n", roff(option.group));
      group = option.group;
      page += roff_entry(option);
    }
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

int print_completion(const std::string& kind, const CommandTable& table) {
  if (kind != "bash" && kind != "zsh" && kind != "fish" && kind != "man") {
    throw error("completion {}: there are bash, zsh, fish and man", kind);
  }
  say("{}", kind == "bash"   ? bash_script(table)
            : kind == "zsh"  ? zsh_script(table)
            : kind == "fish" ? fish_script(table)
                             : manual_page(table));
  return 0;
}

}  // namespace

void add_completion(CommandLine& line) {
  auto kind = std::make_shared<std::string>();
  Command& command =
      line.add("completion", "Print the completion script of a shell, or the manual page (man)");
  command.option("kind bash|zsh|fish|man", kind.get(), "What to print").required();
  command.action([kind, &line] { return print_completion(*kind, line.table()); });
}

}  // namespace tandem::cli
