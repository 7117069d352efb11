#include "datasets/image_folder/label_cells.h"

#include <algorithm>

#include "datasets/image_folder/list_file.h"
#include "datasets/image_folder/list_lines.h"

namespace tandem::image_folder {
namespace {

constexpr std::string_view opening = "[({", closing = "])}";

bool is_number_text(const std::string& text) {
  double ignored = 0;
  return read_number(text, &ignored);
}
bool are_number_texts(const std::vector<std::string>& parts) {
  return !parts.empty() && std::all_of(parts.begin(), parts.end(), is_number_text);
}

// Numbers that are no bounds of a range: some are not whole, or all are 0 or 1.
bool are_values(const std::vector<std::string>& parts) {
  if (!are_number_texts(parts)) return false;
  const auto is_bit = [](const std::string& part) { return part == "0" || part == "1"; };
  const auto is_whole = [](const std::string& part) {
    return part.find_first_not_of("0123456789") == std::string::npos;
  };
  constexpr size_t several = 3;
  return !std::all_of(parts.begin(), parts.end(), is_whole) ||
         (parts.size() >= several && std::all_of(parts.begin(), parts.end(), is_bit));
}

// Reads a quoted text from `at` on, which becomes the place behind it. False: it has no end.
bool read_quoted(std::string_view text, size_t& at, std::string& result) {
  const char mark = text[at++];
  result.clear();
  for (; at < text.size(); ++at) {
    if (text[at] == mark) return ++at, true;
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    result += text[at];
  }
  return false;
}

// The values inside brackets. A quoted one may be followed by another without a comma (numpy).
class Inside {
 public:
  explicit Inside(std::string_view text) : text_(text) {}

  Cell read() {
    while (true) {
      at_ = std::min(text_.find_first_not_of(", \t", at_), text_.size());
      if (at_ == text_.size()) return finish();
      if (opening.find(text_[at_]) != std::string_view::npos) return {Cell::Form::nested, true, {}};
      if (text_[at_] == '"' || text_[at_] == '\'') {
        std::string part;
        if (!read_quoted(text_, at_, part)) return {};
        cell_.parts.push_back(std::move(part));
        has_quotes_ = true;
        const size_t next = std::min(text_.find_first_not_of(" \t", at_), text_.size());
        if (next < text_.size() && text_[next] == ':') return {Cell::Form::nested, true, {}};
        if (next == at_ && next < text_.size() && text_[next] != ',') return {};
      } else {
        const size_t end = std::min(text_.find(',', at_), text_.size());
        cell_.parts.emplace_back(trimmed(text_.substr(at_, end - at_)));
        at_ = end;
      }
    }
  }
  [[nodiscard]] bool has_quotes() const { return has_quotes_; }

 private:
  Cell finish() {
    cell_.form = Cell::Form::list;
    // Numbers as numpy prints them: [0. 1. 0.]
    if (!has_quotes_ && cell_.parts.size() == 1) {
      std::vector<std::string> words = parts_between(cell_.parts[0], ' ');
      std::erase(words, "");
      if (are_number_texts(words)) cell_.parts = std::move(words);
    }
    cell_.is_sure = has_quotes_ || cell_.parts.size() > 1;
    return std::move(cell_);
  }

  std::string_view text_;
  size_t at_ = 0;
  Cell cell_;
  bool has_quotes_ = false;
};

// {"choices": ["a", "b"]}, as Label Studio writes several choices; "": anything else.
std::string_view list_of_one_key(std::string_view inside) {
  size_t at = inside.find_first_not_of(" \t");
  if (at == std::string_view::npos || (inside[at] != '"' && inside[at] != '\'')) return "";
  std::string key;
  if (!read_quoted(inside, at, key)) return "";
  at = inside.find_first_not_of(" \t", at);
  if (at == std::string_view::npos || inside[at] != ':') return "";
  const std::string_view value = trimmed(inside.substr(at + 1));
  return value.starts_with('[') && value.find(']') == value.size() - 1 ? value : "";
}

}  // namespace

Cell read_cell(std::string_view text) {
  text = trimmed(text);
  const size_t kind = text.size() < 2 ? std::string_view::npos : opening.find(text.front());
  if (kind == std::string_view::npos || text.back() != closing[kind]) return {};
  const std::string_view inner = text.substr(1, text.size() - 2);
  if (text.front() == '{') {
    if (const std::string_view list = list_of_one_key(inner); !list.empty()) {
      Cell cell = read_cell(list);
      cell.is_sure = true;
      return cell;
    }
  }
  Inside inside(inner);
  Cell cell = inside.read();
  // "(black, white)", "(25, 32)" and "{x}" may be names.
  const bool may_be_name = text.front() == '(' ? !inside.has_quotes() && !are_values(cell.parts)
                                               : text.front() == '{' && !cell.is_sure;
  if (cell.form == Cell::Form::list && may_be_name && !cell.parts.empty()) return {};
  return cell;
}

std::vector<std::string> parts_between(std::string_view text, char mark) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(mark, at), text.size());
    parts.emplace_back(trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  return parts;
}

std::vector<std::string> split_at(const std::string& text, char separator) {
  std::vector<std::string> all{text};
  if (separator == '[') {
    Cell cell = read_cell(text);
    all = cell.form == Cell::Form::list ? std::move(cell.parts) : parts_between(text, ',');
  } else if (separator != '\0') {
    all = parts_between(text, separator);
  }
  std::vector<std::string> parts;
  for (std::string& part : all) {
    const bool is_new = std::find(parts.begin(), parts.end(), part) == parts.end();
    if (!part.empty() && is_new) parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace tandem::image_folder
