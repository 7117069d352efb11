// The fields of JSON files that programs of Python write beside weights: a table of a name, a type
// and a range each. Other fields are not looked at.
#pragma once

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/formats/json_text.h"
#include "plugins/plain_text.h"

namespace tandem {

inline bool is_within(const nlohmann::json& value, double min, double max) {
  return value.is_number() && value.get<double>() >= min && value.get<double>() <= max;
}

// Also false of integers that int64_t cannot hold.
inline bool is_integer_within(const nlohmann::json& value, int64_t min, int64_t max) {
  return value.is_number_integer() &&
         is_within(value, static_cast<double>(min), static_cast<double>(max));
}

inline bool is_line(const nlohmann::json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return std::none_of(text.begin(), text.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

// The object that such a file must be, however an editor saved it. Error: "'FILE' cannot be read:
// ...", with `wrong` for the words in the middle.
inline nlohmann::json read_config(const std::filesystem::path& file,
                                  const char* wrong = "cannot be read") {
  try {
    nlohmann::json tree = parse_json(plain_text(read_text_file(file)));
    if (tree.is_object()) return tree;
    throw JsonMistake("it must be an object, and is " + kind_of(tree));
  } catch (const JsonMistake& mistake) {
    throw error("'{}' {}: {}", file.string(), wrong, mistake.what());
  }
}

// The fields of an object of a config file. Every mistake is an Error with the file, the field and
// what would be right.
class ConfigFields {
 public:
  ConfigFields(const nlohmann::json& tree, const std::filesystem::path& file)
      : tree_(tree), file_(file) {}

  // Null if there is no such field, or nothing in it.
  [[nodiscard]] const nlohmann::json* find(const char* name) const {
    const auto found = tree_.find(name);
    return found == tree_.end() || found->is_null() ? nullptr : &*found;
  }

  // Leaves `value` as it is if there is no such field. Error if it does not fit; `right`: what
  // would.
  template <class T, class Fits>
  void read(const char* name, T& value, const Fits& fits, const std::string& right) const {
    const nlohmann::json* field = find(name);
    if (field == nullptr) return;
    require(name, fits(*field), right);
    field->get_to(value);
  }

  // Of red, green and blue; one number, alone or in an array, is for all three.
  void read_colors(const char* name, double min, std::array<double, 3>& values,
                   double max = 1) const {
    const nlohmann::json* field = find(name);
    if (field == nullptr) return;
    const bool is_list = field->is_array() && (field->size() == 1 || field->size() == 3);
    for (size_t i = 0; i < values.size(); ++i) {
      const nlohmann::json& one = !is_list ? *field : field->at(field->size() == 1 ? 0 : i);
      require(name, is_within(one, min, max),
              fmt::format("three numbers from {:g} to {:g}, of red, green and blue", min, max));
      values[i] = one.get<double>();
    }
  }

  void read_line(const char* name, std::string& text) const {
    read(name, text, is_line, "a line of text");
  }

  void require(const char* name, bool fits, const std::string& right) const {
    if (fits) return;
    constexpr size_t max_shown = 60;
    const nlohmann::json* field = find(name);
    std::string value = field == nullptr ? "is missing" : field->dump();
    if (value.size() > max_shown) value = value.substr(0, max_shown) + "...";
    throw error("'{}': '{}' {}: it must be {}", file_.string(), name, value, right);
  }

 private:
  const nlohmann::json& tree_;
  const std::filesystem::path& file_;
};

}  // namespace tandem
