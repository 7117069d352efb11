// What a command-line program and the system that runs it owe each other: open standard streams,
// output that is not lost silently, and signals that ask it to stop.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <string>
#include <utility>

namespace tandem::cli {

// Opens standard streams that are closed, so that no file of the program takes their number and
// receives its messages. Reading or writing them fails as before. To be called first in main().
void open_standard_streams();

// Writes what is buffered. Returns a message if standard output was lost (disk full, closed), else
// "". A pipe whose reader has ended (`| head`) is no loss.
[[nodiscard]] std::string lost_output();

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

// From here on SIGINT, SIGTERM and SIGHUP (a closed terminal) set the flag that is returned, and
// `answer`, a line that outlives the program's use of signals, is written to stderr at once.
// Further ones only repeat the line. SIGHUP stays ignored where it was, as under nohup.
[[nodiscard]] const std::atomic<bool>* stop_on_signals(const char* answer);

}  // namespace tandem::cli
