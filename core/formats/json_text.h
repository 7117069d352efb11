// JSON files of users: a tree of bounded depth, and its fields with the types that a reader
// expects. nlohmann's library copies and prints a value by recursion, so a small file of nested
// arrays would exhaust the stack; and its own texts are no messages for users.
#pragma once

#include <concepts>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tandem {

// What is wrong in a text, and where: "line 3, column 7: unexpected ','", "'options.batch' is a
// text, not an integer". The end of a message that names the file.
class JsonMistake : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// JsonMistake for a text that is not JSON, or in which arrays and objects are nested more than 64
// deep.
[[nodiscard]] nlohmann::json parse_json(const std::string& text);

// "a text", "a number", "an object": what a value is.
[[nodiscard]] std::string kind_of(const nlohmann::json& value);

namespace json_values {

// Each sets `value`, or returns false for a value of another type or range.
inline bool read(const nlohmann::json& tree, bool& value) {
  if (tree.is_boolean()) value = tree.get<bool>();
  return tree.is_boolean();
}
inline bool read(const nlohmann::json& tree, std::string& value) {
  if (tree.is_string()) value = tree.get<std::string>();
  return tree.is_string();
}
template <std::floating_point T>
bool read(const nlohmann::json& tree, T& value) {
  if (tree.is_number()) value = tree.get<T>();
  return tree.is_number();
}
template <std::integral T>
bool read(const nlohmann::json& tree, T& value) {
  const auto take = [&](auto number) {
    if (std::in_range<T>(number)) value = static_cast<T>(number);
    return std::in_range<T>(number);
  };
  if (tree.is_number_unsigned()) return take(tree.get<uint64_t>());
  return tree.is_number_integer() && take(tree.get<int64_t>());
}
template <class T>
bool read(const nlohmann::json& tree, std::vector<T>& values) {
  if (!tree.is_array()) return false;
  values.clear();
  for (const nlohmann::json& one : tree) {
    T value{};
    if (!read(one, value)) return false;
    values.push_back(std::move(value));
  }
  return true;
}
template <class T>
bool read(const nlohmann::json& tree, std::set<T>& values) {
  std::vector<T> list;
  if (!read(tree, list)) return false;
  values = {list.begin(), list.end()};
  return true;
}

template <class T>
struct Expected {
  static constexpr const char* text = std::is_same_v<T, bool>          ? "true or false"
                                      : std::is_integral_v<T>          ? "an integer in its range"
                                      : std::is_floating_point_v<T>    ? "a number"
                                      : std::is_same_v<T, std::string> ? "a text"
                                                                       : "";
};
template <class T>
struct Expected<std::vector<T>> {
  static constexpr const char* text =
      std::is_arithmetic_v<T> ? "a list of numbers" : "a list of texts";
};
template <class T>
struct Expected<std::set<T>> : Expected<std::vector<T>> {};

}  // namespace json_values

// The fields of an object. Each function throws JsonMistake, which names the field by its path.
class JsonFields {
 public:
  // `place`: the path of the object, "" for the whole file. The tree must outlive it.
  explicit JsonFields(const nlohmann::json& tree, std::string place = "");

  // Null if there is no such field.
  [[nodiscard]] const nlohmann::json* find(const std::string& key) const;
  // The field must be there.
  [[nodiscard]] const nlohmann::json& at(const std::string& key) const;
  [[nodiscard]] JsonFields object(const std::string& key) const;
  template <class T>
  [[nodiscard]] T get(const std::string& key) const {
    T value{};
    if constexpr (requires { typename T::mapped_type; }) {
      const JsonFields fields = object(key);
      for (const auto& field : fields.tree_.items()) {
        value[field.key()] = fields.get<typename T::mapped_type>(field.key());
      }
    } else if (!json_values::read(at(key), value)) {
      wrong(key, json_values::Expected<T>::text);
    }
    return value;
  }
  // Throws JsonMistake: "'options.batch' is a text, not EXPECTED".
  [[noreturn]] void wrong(const std::string& key, const std::string& expected) const;

 private:
  [[nodiscard]] std::string path_of(const std::string& key) const;

  const nlohmann::json& tree_;
  std::string place_;
};

}  // namespace tandem
