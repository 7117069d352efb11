// What commands print to terminals and logs.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>

#include "include/tandem/process.h"

namespace tandem::cli {

using nlohmann::json;

// A text for a terminal or a log: bytes that would control it are written as \x1b, except those in
// `kept`. Names of files and values in them may hold any.
[[nodiscard]] std::string printable(const std::string& text, const std::string& kept = "");

// Prints. Unlike fmt::print it does not throw where output is lost, so that a command ends its
// work; main() tells of the loss.
template <class... Args>
void say(std::FILE* stream, fmt::format_string<Args...> format, Args&&... args) {
  write_or_lose(stream, fmt::format(format, std::forward<Args>(args)...));
}
// To standard output.
template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say(stdout, format, std::forward<Args>(args)...);
}

// Prints text with names of files, classes or layers to standard output, printable() but for ends
// of lines.
template <class... Args>
void print_names(fmt::format_string<Args...> format, Args&&... args) {
  say("{}", printable(fmt::format(format, std::forward<Args>(args)...), "\n"));
}

// To standard output. Names in it may be in Latin-1: U+FFFD replaces what is no UTF-8. Returns the
// exit code of a command that has printed what it found.
int print_json(const json& tree);

}  // namespace tandem::cli
