// Costs as a file has them: one line for each, and comments that say what was measured.
#include "core/schedule/cost/cost_table.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/base/files/plain_text_file.h"
#include "core/base/text/strings.h"
#include "plugins/plain_text.h"

namespace tandem {
namespace {

constexpr const char* title = "# costs of tasks, measured";
constexpr const char* header = "key,seconds,rows,bytes";
constexpr const char* example = "conv1 forward,0.061,128,0";

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"#") == std::string::npos) return field;
  std::string result = "\"";
  for (const char c : field) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + "\"";
}

// The fields of a line. A field may be quoted, with quotes inside it doubled. False: an open quote.
bool split_fields(std::string_view line, std::vector<std::string>& fields) {
  fields.assign(1, "");
  bool is_quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool is_quote = line[i] == '"';
    if (is_quote && is_quoted && i + 1 < line.size() && line[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (is_quote) {
      is_quoted = !is_quoted;
    } else if (line[i] == ',' && !is_quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
    }
  }
  return !is_quoted;
}

MeasuredCost parse_cost(const std::vector<std::string>& fields, const Location& where) {
  MeasuredCost cost;
  const auto require = [&](bool is_right, size_t field, const char* what) {
    if (is_right) return;
    throw error("{}: '{}' is not a number of {} (0 or more); a line is as in \"{}\"",
                to_string(where), fields[field], what, example);
  };
  const auto is_amount = [&](size_t field, double* value) {
    return parse_number(fields[field], value) && std::isfinite(*value) && *value >= 0;
  };
  require(is_amount(1, &cost.seconds), 1, "seconds");
  require(is_amount(2, &cost.rows), 2, "rows");
  require(parse_integer(fields[3], &cost.bytes) && cost.bytes >= 0, 3, "bytes");
  return cost;
}

// "# net lenet ... precision bfloat16" -> "bfloat16"; "" if the comment ends otherwise.
std::string precision_of(const std::string& comment) try {
  constexpr std::string_view key = " precision ";
  const size_t at = comment.rfind(key);
  if (at == std::string::npos) return "";
  return dtype_name(parse_precision(comment.substr(at + key.size())));
} catch (const Error&) {
  return "";
}

// "# net lenet batch 64 ..." -> "lenet"; "" of another comment.
std::string net_of(const std::string& comment) {
  constexpr std::string_view key = "# net ";
  const size_t end = comment.find(" batch ");
  if (!comment.starts_with(key) || end == std::string::npos || end < key.size()) return "";
  return comment.substr(key.size(), end - key.size());
}

constexpr std::string_view layer_comment = "# layer ";

// "# layer conv1: Convolution ..." -> "conv1", "Convolution ..."; the text after the name has no
// colon followed by a space.
std::pair<std::string, std::string> extents_in(const std::string& comment) {
  const size_t end = comment.rfind(": ");
  if (!comment.starts_with(layer_comment) || end == std::string::npos ||
      end < layer_comment.size()) {
    return {};
  }
  return {comment.substr(layer_comment.size(), end - layer_comment.size()),
          comment.substr(end + 2)};
}

void require_precision(const std::string& comment, const std::string& wanted,
                       const Location& where) {
  const std::string found = precision_of(comment);
  if (wanted.empty() || found.empty() || found == wanted) return;
  throw error(
      "{}: these costs were measured in {}, not in {}: use --precision {}, or measure them "
      "again",
      to_string(where), found, wanted, found);
}

// No file, or a cost table, which a user may have edited.
bool may_replace(const std::filesystem::path& path) {
  if (!path_status(path).is_file()) return true;
  std::istringstream file(read_text_file(path, "costs file"));
  std::string line;
  if (!std::getline(file, line)) return true;
  return line == title || line == header;
}

}  // namespace

std::string CostTable::text(const std::vector<std::string>& comments) const {
  std::string text = fmt::format("{}\n", title);
  for (const std::string& comment : comments) text += fmt::format("# {}\n", comment);
  for (const auto& [layer, extents] : extents_) {
    text += fmt::format("{}{}: {}\n", layer_comment, layer, extents);
  }
  text += fmt::format("{}\n", header);
  for (const auto& [key, cost] : measured_) {
    text += fmt::format("{},{},{},{}\n", quoted(key), cost.seconds, cost.rows, cost.bytes);
  }
  return text;
}

void CostTable::write(const std::filesystem::path& path,
                      const std::vector<std::string>& comments) const {
  if (!may_replace(path)) {
    throw error("costs file '{}' exists and is another kind of file: choose another name",
                path.string());
  }
  write_text_file(path, text(comments));
}

CostTable CostTable::read(const std::filesystem::path& path, const Roofline& roofline,
                          const std::string& precision) {
  std::string text;
  try {
    text = read_plain_text(path, "costs file");
  } catch (const Error& failure) {
    throw error("{}; `tandem profile --costs FILE` writes one", failure.what());
  }
  return parse(text, path.string(), roofline, precision);
}

CostTable CostTable::parse(const std::string& text, const std::string& source,
                           const Roofline& roofline, const std::string& precision) {
  std::istringstream file(text);
  CostTable table(roofline);
  Location where{source, 0, 0};
  bool has_header = false;
  std::vector<std::string> fields;
  for (std::string line; std::getline(file, line);) {
    ++where.line;
    line = without_blanks(line);
    if (line.starts_with('#')) {
      require_precision(line, precision, where);
      if (table.net_.empty()) table.net_ = net_of(line);
      if (const auto [layer, extents] = extents_in(line); !layer.empty()) {
        table.set_extents(layer, extents);
      }
    }
    if (line.empty() || line.front() == '#') continue;
    if (!has_header) {
      if (line != header) {
        throw error("{}: expected the header \"{}\", found \"{}\"", to_string(where), header, line);
      }
      has_header = true;
      continue;
    }
    if (!split_fields(line, fields) || fields.size() != 4 || fields[0].empty()) {
      throw error("{}: expected the 4 fields \"{}\", as in \"{}\", found \"{}\"", to_string(where),
                  header, example, line);
    }
    const MeasuredCost cost = parse_cost(fields, where);
    if (table.find(fields[0]) != nullptr) {
      throw error("{}: '{}' occurs twice; each key has one line", to_string(where), fields[0]);
    }
    table.set(fields[0], cost);
  }
  if (!has_header) {
    throw error("{}: no header line \"{}\"; is it a costs file?", source, header);
  }
  return table;
}

}  // namespace tandem
