// JSON files of users, read into a tree of bounded depth: nlohmann's library copies and prints a
// value by recursion, so a small file of nested arrays would exhaust the stack.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tandem {

// Throws nlohmann::json::exception for a text that is not JSON, or in which arrays and objects are
// nested more than 64 deep.
[[nodiscard]] inline nlohmann::json parse_json(const std::string& text) {
  using nlohmann::json;
  constexpr int deepest = 64;  // as in the files of nets
  return json::parse(text, [](int depth, json::parse_event_t, const json&) {
    if (depth > deepest) {
      throw json::other_error::create(
          501, "arrays and objects are nested more than " + std::to_string(deepest) + " deep",
          nullptr);
    }
    return true;
  });
}

// Why a text or a value is refused, without the library's number of the exception. What was read
// last is part of it and may be long.
[[nodiscard]] inline std::string reason_of(const nlohmann::json::exception& failure) {
  constexpr size_t longest = 200;
  const std::string what = failure.what();
  const std::string reason = what.substr(what.find("] ") + 2);
  return reason.size() > longest ? reason.substr(0, longest) + "..." : reason;
}

}  // namespace tandem
