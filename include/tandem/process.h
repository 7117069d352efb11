// What a command-line program and the system that runs it owe each other: open standard streams,
// output that is not lost silently, and signals that ask it to stop.
#pragma once

#include <atomic>
#include <cstdio>
#include <string>

namespace tandem {

// Opens standard streams that are closed, so that no file of the program takes their number and
// receives its messages. Reading or writing them fails as before. To be called first in main().
void open_standard_streams();

// Waits until the stream takes some kilobytes without waiting, as a pipe does not whose reader does
// not read. False where it does not take them and the program was asked to stop
// (stop_on_signals()): then nothing should be written, and lost_output() tells of it.
[[nodiscard]] bool wait_for_output(std::FILE* stream);

// Writes the text, or what of it the stream takes, once wait_for_output() allows it.
void write_or_lose(std::FILE* stream, const std::string& text);

// Writes what is buffered. Returns a message if standard output was lost (disk full, closed), else
// "". A pipe whose reader has ended (`| head`) is no loss.
[[nodiscard]] std::string lost_output();

// From here on SIGINT, SIGTERM and SIGHUP (a closed terminal) set the flag that is returned, and
// `answer`, a line that outlives the program's use of signals, is written to stderr at once.
// Further ones only repeat the line. SIGHUP and SIGINT stay ignored where they were, as under nohup
// and in a shell's background.
[[nodiscard]] const std::atomic<bool>* stop_on_signals(const char* answer);

}  // namespace tandem
