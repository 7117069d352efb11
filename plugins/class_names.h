// Files of class names, as people have them: a name on each line, perhaps in quotes or with its
// number ("0 cat", "0: cat", "0,cat", "cat,0"); lists and dictionaries of JSON and Python; `names`
// of a YAML file of Ultralytics. Of both sides, so that imports and data sets find the same names.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/cells.h"
#include "plugins/composed.h"

namespace tandem {

struct ClassNames {
  std::vector<std::string> names;  // of the classes 0, 1, ...
  std::vector<std::string> notes;  // what is no name, and what was taken for a number
  std::string mistake;             // why the text names no classes; "": it does
  size_t line = 0;                 // of the mistake; 0: of the whole text
};

namespace class_names {

constexpr size_t most_digits = 6;

inline bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= most_digits &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

inline std::string_view unquoted(std::string_view text) {
  const bool is_quoted = text.size() > 1 && text.front() == text.back() &&
                         (text.front() == '"' || text.front() == '\'');
  return is_quoted ? text.substr(1, text.size() - 2) : text;
}

// Scalars, lists and dictionaries between brackets, of JSON, Python and YAML.
class Flow {
 public:
  explicit Flow(std::string_view text) : text_(text) {}

  // Pairs of a dictionary, or the values of a list with "" as keys. False for any other text.
  bool read(std::vector<std::pair<std::string, std::string>>& pairs, int depth = 0) {
    skip();
    const char open = next();
    if (open != '[' && open != '{') return false;
    const char close = open == '[' ? ']' : '}';
    for (skip(); !text_.empty() && text_.front() != close; skip()) {
      std::string key, value;
      if (open == '{') {
        if (!scalar(key)) return false;
        skip();
        if (next() != ':') return false;
        skip();
      }
      if (!(text_.starts_with('[') ? last_of_list(value, depth) : scalar(value))) return false;
      pairs.emplace_back(std::move(key), std::move(value));
      skip();
      if (text_.starts_with(',')) text_.remove_prefix(1);
    }
    return next() == close;
  }

 private:
  char next() {
    if (text_.empty()) return '\0';
    const char one = text_.front();
    text_.remove_prefix(1);
    return one;
  }
  void skip() {
    while (!text_.empty() && (std::string_view(" \t\n").find(text_.front()) != text_.npos)) next();
  }
  bool scalar(std::string& value) {
    if (text_.starts_with('"') || text_.starts_with('\'')) {
      const char quote = next();
      while (!text_.empty() && text_.front() != quote) {
        if (text_.front() == '\\' && text_.size() > 1) next();
        value += next();
      }
      return next() == quote;
    }
    const size_t end = std::min(text_.find_first_of(",:]}\n"), text_.size());
    value = std::string(without_blanks(text_.substr(0, end)));
    text_.remove_prefix(end);
    return !value.empty();
  }
  // As "n01440764", "tench": the last one is for people.
  bool last_of_list(std::string& value, int depth) {
    std::vector<std::pair<std::string, std::string>> inner;
    if (depth > 0 || !read(inner, depth + 1) || inner.empty()) return false;
    value = inner.back().second;
    return true;
  }

  std::string_view text_;
};

// Names by their numbers, all from 0 or all from 1 on; then the class 0 is called "0".
inline bool by_numbers(const std::vector<std::pair<std::string, std::string>>& pairs,
                       std::vector<std::string>& names) {
  std::vector<std::string> found(pairs.size() + 1);
  for (const auto& [number, name] : pairs) {
    if (!is_number(number) || name.empty()) return false;
    const size_t at = std::stoul(number);
    if (at >= found.size() || !found[at].empty()) return false;
    found[at] = name;
  }
  if (found[0].empty()) {
    found[0] = "0";
  } else {
    found.pop_back();
  }
  names = std::move(found);
  return true;
}

// The names of pairs: by the numbers before or behind them, or in order.
inline bool from_pairs(std::vector<std::pair<std::string, std::string>> pairs, ClassNames& result) {
  if (pairs.empty()) return false;
  const bool is_list =
      std::all_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.first.empty(); });
  if (is_list) {
    for (auto& pair : pairs) result.names.push_back(std::move(pair.second));
    return true;
  }
  if (by_numbers(pairs, result.names)) return true;
  for (auto& pair : pairs) std::swap(pair.first, pair.second);
  return by_numbers(pairs, result.names);
}

struct Line {
  size_t number;
  std::string_view text;  // without blanks at its ends
  size_t indented;
};

inline std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end), line = without_blanks(whole);
    lines.push_back(
        {number, line, line.empty() ? 0 : static_cast<size_t>(line.data() - whole.data())});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && lines.back().text.empty()) lines.pop_back();
  return lines;
}

// `names` of YAML: between brackets, or on the lines below, "- cat" or "0: cat".
inline bool from_yaml(std::string_view text, const std::vector<Line>& lines, ClassNames& result) {
  const auto key = std::find_if(lines.begin(), lines.end(), [](const Line& line) {
    return line.indented == 0 && line.text.starts_with("names:");
  });
  if (key == lines.end()) return false;
  const std::string_view rest = without_blanks(key->text.substr(std::string_view("names:").size()));
  std::vector<std::pair<std::string, std::string>> pairs;
  if (rest.starts_with('[') || rest.starts_with('{')) {
    const auto at = static_cast<size_t>(rest.data() - text.data());
    return Flow(text.substr(at)).read(pairs) && from_pairs(std::move(pairs), result);
  }
  for (auto line = key + 1; line != lines.end(); ++line) {
    std::string_view one = line->text;
    if (one.empty() || one.starts_with('#')) continue;
    const bool is_item = one.starts_with("- ");
    if (line->indented == 0 && !is_item) break;
    one = without_blanks(one.substr(0, one.find(" #")));
    const size_t colon = one.find(':');
    if (!is_item && colon == std::string_view::npos) return false;
    const std::string_view number = is_item ? "" : unquoted(without_blanks(one.substr(0, colon)));
    const std::string_view name = without_blanks(one.substr(is_item ? 2 : colon + 1));
    pairs.emplace_back(number, unquoted(name));
  }
  return from_pairs(std::move(pairs), result);
}

// A number before the name and what divides the two, or behind it and a comma, semicolon or tab.
inline std::pair<std::string, std::string> numbered(std::string_view line) {
  const size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  const size_t begin = line.find_first_not_of(" \t,:;", digits);
  if (digits > 0 && begin != std::string_view::npos && begin > digits) {
    return {std::string(line.substr(0, digits)), std::string(unquoted(line.substr(begin)))};
  }
  const size_t mark = line.find_last_of(",;\t");
  if (mark == std::string_view::npos) return {};
  const std::string_view number = without_blanks(line.substr(mark + 1));
  return {std::string(number), std::string(unquoted(without_blanks(line.substr(0, mark))))};
}

inline bool from_numbered(const std::vector<std::string_view>& texts, ClassNames& result) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string_view text : texts) pairs.push_back(numbered(text));
  const bool has_heading = pairs.size() > 2 && !is_number(pairs[0].first) &&
                           texts[0].find_first_of("0123456789") == std::string_view::npos &&
                           texts[0].find_first_of(",;\t") != std::string_view::npos;
  const std::vector<std::pair<std::string, std::string>> below(
      pairs.begin() + (has_heading ? 1 : 0), pairs.end());
  if (!by_numbers(below, result.names)) return false;
  result.notes.push_back("the numbers beside the names are taken as those of the classes");
  return true;
}

// Lines of names alone.
inline void from_lines(const std::vector<Line>& lines, ClassNames& result) {
  const auto is_comment = [](const Line& line) { return line.text.starts_with('#'); };
  const auto comments = std::count_if(lines.begin(), lines.end(), is_comment);
  const bool has_comments = comments < static_cast<std::ptrdiff_t>(lines.size());
  std::vector<std::string_view> texts;
  size_t empty = 0;
  for (const Line& line : lines) {
    if (has_comments && is_comment(line)) continue;
    if (!line.text.empty()) {
      texts.push_back(line.text);
    } else if (empty == 0) {
      empty = line.number;
    }
  }
  if (has_comments && comments > 0) {
    result.notes.push_back(std::to_string(comments) +
                           (comments == 1 ? " line begins" : " lines begin") +
                           " with '#': no class");
  }
  if (from_numbered(texts, result)) return;
  if (std::all_of(texts.begin(), texts.end(),
                  [](std::string_view text) { return text.find('=') != std::string_view::npos; })) {
    result.mistake = "has settings, as the .data files of Darknet; give the file of its 'names'";
    return;
  }
  if (empty > 0) {
    result.mistake = "is empty, but every line names a class";
    result.line = empty;
    return;
  }
  // As copied out of a list of Python.
  const bool have_commas =
      texts.size() > 1 && std::all_of(texts.begin(), texts.end() - 1,
                                      [](std::string_view text) { return text.ends_with(','); });
  for (std::string_view& text : texts) {
    if (have_commas && text.ends_with(',')) text = without_blanks(text.substr(0, text.size() - 1));
  }
  const bool are_quoted = std::all_of(texts.begin(), texts.end(), [](std::string_view text) {
    return unquoted(text).size() < text.size();
  });
  for (const std::string_view text : texts) {
    result.names.emplace_back(are_quoted ? unquoted(text) : text);
  }
}

}  // namespace class_names

// `text`: plain_text().
[[nodiscard]] inline ClassNames read_class_names(const std::string& text) {
  ClassNames result;
  const std::vector<class_names::Line> lines = class_names::lines_of(text);
  const auto first =
      std::find_if(lines.begin(), lines.end(), [](const auto& line) { return !line.text.empty(); });
  if (first == lines.end()) {
    result.mistake = "the file is empty";
    return result;
  }
  std::vector<std::pair<std::string, std::string>> pairs;
  if (first->text.starts_with('{') || first->text.starts_with('[')) {
    if (!class_names::Flow(text).read(pairs) ||
        !class_names::from_pairs(std::move(pairs), result)) {
      result.mistake =
          "is neither a list of names nor a dictionary of names and numbers from 0 or 1 on";
    }
  } else if (!class_names::from_yaml(text, lines, result)) {
    class_names::from_lines(lines, result);
  }
  for (std::string& name : result.names) name = name_of_cell(plain_name(name));
  return result;
}

}  // namespace tandem
