#include "core/cli/plugin_template.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <string_view>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/device/parse.h"
#include "plugins/abi.h"

namespace tandem::cli {

namespace {

// Of plugins/templates: layer.cpp has these parts; each source but those here is one of its own.
const std::vector<std::string> parts_of_layer{"weights", "two-inputs", "random"};
constexpr std::string_view without_part[] = {"layer.cpp", "CMakeLists.txt", "README.md",
                                             "net.prototxt"};

std::string template_text(std::string_view name) {
  for (const PluginTemplate& one : plugin_templates()) {
    if (one.name == name) return std::string(one.text);
  }
  throw error("the template {} is missing", name);
}

// The sources that are parts of their own, by part: "loss" has "loss.cpp".
std::map<std::string, std::string> whole_sources() {
  std::map<std::string, std::string> result;
  for (const PluginTemplate& one : plugin_templates()) {
    if (std::ranges::count(without_part, one.name) > 0) continue;
    result[std::filesystem::path(one.name).stem().string()] = one.name;
  }
  return result;
}

std::vector<std::string> known_parts() {
  std::vector<std::string> result = parts_of_layer;
  for (const auto& [part, source] : whole_sources()) result.push_back(part);
  return result;
}

struct Names {
  std::string type;    // acme.Swish
  std::string module;  // acme_swish
  std::string word;    // Swish; classes have names that begin with it, as SwishLayer
};

constexpr size_t max_name = 100;  // of a file's name the systems take 255 bytes
constexpr const char* of_words = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

bool is_word(const std::string& text) {
  return text.find_first_of("0123456789") != 0 && !text.empty() &&
         text.find_first_not_of(of_words) == std::string::npos;
}

// A name that would do: "acme.my_layer" for "my-layer", "own.x" for "own.1x".
std::string similar_name(const std::string& type) {
  const std::string prefix = type.substr(0, type.find('.'));
  std::string word = type.substr(type.rfind('.') + 1, max_name / 2);
  for (size_t at = 0; (at = word.find_first_not_of(of_words, at)) != word.npos;) word[at] = '_';
  word.erase(0, std::min(word.find_first_not_of("_0123456789"), word.size()));
  const bool keeps_prefix = prefix.size() < type.size() && is_word(prefix);
  return (keeps_prefix ? prefix : "acme") + "." + (is_word(word) ? word : "Swish");
}

Names names_of(const std::string& type) {
  const size_t dot = type.find('.');
  if (dot == std::string::npos || !is_word(type.substr(0, dot)) || !is_word(type.substr(dot + 1))) {
    throw error(
        "'{}' is no name for a layer type: write a prefix of your own, a dot and a word, each of "
        "letters, digits and '_' and not beginning with a digit, as {}",
        type, similar_name(type));
  }
  if (type.size() > max_name) {
    throw error("the name {}... has {} characters: a name has {} at most", type.substr(0, 20),
                type.size(), max_name);
  }
  Names names{type, type, type.substr(dot + 1)};
  names.word[0] = char(std::toupper(names.word[0]));
  for (char& c : names.module) c = c == '.' ? '_' : char(std::tolower(c));
  if (names.module.starts_with("tandem_")) {
    throw error("'{}': the prefix tandem is that of Tandem's own modules: write one of your own",
                type);
  }
  return names;
}

// The names, and the texts {%part: text%} of the given parts, {%!part: text%} of those that are not
// given.
std::string filled(std::string text, const Names& names, const std::vector<std::string>& parts,
                   const std::string& extension) {
  for (size_t end = text.find("%}"); end != std::string::npos; end = text.find("%}")) {
    const size_t begin = text.rfind("{%", end), colon = text.find(':', begin);
    std::string part = text.substr(begin + 2, colon - begin - 2);
    const bool is_without = part.front() == '!';
    if (is_without) part.erase(0, 1);
    const bool is_kept = (std::ranges::count(parts, part) > 0) != is_without;
    text.replace(begin, end + 2 - begin,
                 is_kept ? text.substr(colon + 1, end - colon - 1) : std::string());
  }
  for (const auto& [mark, value] :
       {std::pair<std::string, std::string>{"@TYPE@", names.type},
        {"@MODULE@", names.module},
        {"@WORD@", names.word},
        {"@EXTENSION@", extension},
        {"@ABI@", fmt::format("{}.{}", TANDEM_ABI_MAJOR, TANDEM_ABI_MINOR)},
        {"@DEVICE@", default_kind}}) {
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
      text.replace(at, mark.size(), value);
    }
  }
  return text;
}

void require_known(const std::vector<std::string>& parts) {
  const std::vector<std::string> known = known_parts();
  for (const std::string& part : parts) {
    if (std::ranges::count(known, part) == 0) {
      throw error("--with {}: unknown{}; there are: {}", part, did_you_mean(part, known),
                  fmt::join(known, ", "));
    }
    if (parts.size() > 1 && std::ranges::count(parts_of_layer, part) == 0) {
      throw error("--with {}: '{}' goes with no other part", fmt::join(parts, ","), part);
    }
  }
}

}  // namespace

std::string plugin_template_parts() {
  return fmt::format("{}", fmt::join(known_parts(), ", "));
}

std::string write_plugin_template(const std::string& name, const std::vector<std::string>& parts) {
  const Names names = names_of(name);
  require_known(parts);
  const std::filesystem::path folder = names.module;
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored)) {
    throw error("{} exists already: give another name, or remove it", folder.string());
  }
  make_folders(folder);
  std::string source = "layer.cpp";
  for (const auto& [part, file] : whole_sources()) {
    if (std::ranges::count(parts, part) > 0) source = file;
  }
  const std::string extension = source.substr(source.rfind('.') + 1);
  for (const auto& [file, from] :
       {std::pair<std::string, std::string>{names.module + "." + extension, source},
        {names.module + ".prototxt", "net.prototxt"},
        {"CMakeLists.txt", "CMakeLists.txt"},
        {"README.md", "README.md"}}) {
    write_text_file(folder / file, filled(template_text(from), names, parts, extension));
  }
  return folder.string();
}

}  // namespace tandem::cli
