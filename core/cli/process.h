// What commands print to terminals and logs. The program's streams and signals: tandem/process.h.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

#include "include/tandem/process.h"

namespace tandem::cli {

// A text for a terminal or a log: bytes that would control it are written as \x1b, except those in
// `kept`. Names of files and values in them may hold any.
[[nodiscard]] std::string printable(const std::string& text, const std::string& kept = "");

// Prints text with names of files, classes or layers to standard output, printable() but for ends
// of lines.
template <class... Args>
void print_names(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = printable(fmt::format(format, std::forward<Args>(args)...), "\n");
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace tandem::cli
