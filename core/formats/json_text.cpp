#include "core/formats/json_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem {
namespace {

using nlohmann::json;

// `byte`: the number of bytes that were read when the parser gave up, the last of them unexpected.
JsonMistake mistake_at(const std::string& text, size_t byte) {
  const size_t at = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto begin = text.begin(), end = begin + static_cast<std::ptrdiff_t>(at);
  const auto line = 1 + std::count(begin, end, '\n');
  const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
  const size_t column = before == std::string::npos ? at + 1 : at - before;
  const auto what = [&]() -> std::string {
    if (at == text.size()) return "it ends too early";
    const auto next = static_cast<unsigned char>(text[at]);
    if (next == '\n') return "unexpected end of the line";
    if (next >= ' ' && next < 0x7f) return fmt::format("unexpected '{}'", text[at]);
    return fmt::format("unexpected byte 0x{:02x}", next);
  };
  return JsonMistake(fmt::format("line {}, column {}: {}", line, column, what()));
}

// Not left to the parser's callbacks: with them it looks through an object from its beginning at
// the end of each object in it, which takes hours for a weight file of many arrays.
void require_shallow(const std::string& text) {
  constexpr int max_depth = 64;  // as in the files of nets
  int depth = 0;
  bool is_in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_string) {
      i += c == '\\' ? 1 : 0;
      is_in_string = c != '"';
    } else if (c == '"') {
      is_in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth <= max_depth) continue;
      throw JsonMistake(fmt::format("arrays and objects are nested more than {} deep", max_depth));
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
}

}  // namespace

json parse_json(const std::string& text) {
  require_shallow(text);
  try {
    return json::parse(text);
  } catch (const json::parse_error& failure) {
    throw mistake_at(text, failure.byte);
  } catch (const json::out_of_range&) {
    throw JsonMistake("a number in it is too large");
  }
}

std::string kind_of(const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "a text";
    case json::value_t::boolean:
      return value.get<bool>() ? "true" : "false";
    case json::value_t::null:
      return "null";
    default:
      return fmt::format("the number {}", value.dump());
  }
}

JsonFields::JsonFields(const json& tree, std::string place)
    : tree_(tree), place_(std::move(place)) {
  if (tree_.is_object()) return;
  const std::string name = place_.empty() ? "it" : fmt::format("'{}'", place_);
  throw JsonMistake(fmt::format("{} is {}, not an object", name, kind_of(tree_)));
}

const json* JsonFields::find(const std::string& key) const {
  const auto found = tree_.find(key);
  return found == tree_.end() ? nullptr : &*found;
}

const json& JsonFields::at(const std::string& key) const {
  if (const json* found = find(key)) return *found;
  throw JsonMistake(fmt::format("'{}' is missing", path_of(key)));
}

JsonFields JsonFields::object(const std::string& key) const {
  return JsonFields(at(key), path_of(key));
}

void JsonFields::wrong(const std::string& key, const std::string& expected) const {
  const json& value = at(key);
  const bool holds_others = value.is_structured() && expected.find(" of ") != std::string::npos;
  throw JsonMistake(
      holds_others ? fmt::format("'{}' is not {}", path_of(key), expected)
                   : fmt::format("'{}' is {}, not {}", path_of(key), kind_of(value), expected));
}

std::string JsonFields::path_of(const std::string& key) const {
  return place_.empty() ? key : place_ + "." + key;
}

}  // namespace tandem
