// Running the built programs as a user does: by a shell, in a folder of one's own, looking at the
// exit code and at what was printed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "tests/support/emulation.h"
#include "tests/support/temp_folder.h"

namespace tandem::test {

// How many times as long a program may take: sanitizers and emulators slow it down.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int patience = 5;
#else
inline const int patience = is_emulated() ? 20 : 1;
#endif

struct Outcome {
  int code = 0;  // of exit; 128 + the signal's number if one ended it
  std::string output, errors;
};

// A folder to work in, with a tiny net "tiny.prototxt" in it: 8x8 pixels, two classes.
class Desk {
 public:
  Desk();
  // "tandem " + arguments, in this folder. `before`: shell text in front, as "FOO=1" or "ulimit
  // -f 8; exec".
  [[nodiscard]] Outcome tandem(const std::string& arguments, const std::string& before = "") const;
  [[nodiscard]] Outcome alexnet(const std::string& arguments, const std::string& before = "") const;
  // Another of the built programs, as "check_lossless".
  [[nodiscard]] Outcome run(const std::string& program, const std::string& arguments,
                            const std::string& before = "") const;
  // The message of a program that must refuse: exit code 1 and one line on stderr, which begins
  // with the program's name. Anything else is a failed expectation.
  [[nodiscard]] std::string refusal(const std::string& arguments,
                                    const std::string& before = "") const;

  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return folder_ / name;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    return read_text(folder_ / name);
  }
  void write(const std::string& name, const std::string& text) const {
    (void)folder_.write(name, text);
  }
  void make_folder(const std::string& name) const {
    std::filesystem::create_directories(folder_ / name);
  }
  // `count` small pictures of one color with some noise, DIR/1.ppm, ...
  void draw(const std::string& folder, int count, int red, int green, int blue) const;
  // A tree with train/ and val/ of the classes "blue" and "red".
  void draw_two_classes(const std::string& folder) const;

 private:
  TempFolder folder_;
};

// `BEFORE tandem ARGUMENTS` in the background, to be stopped by a signal.
class RunningProgram {
 public:
  RunningProgram(const Desk& desk, const std::string& arguments, const std::string& before = "");
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  // False if the program ended, or a minute went by, before the file was there.
  [[nodiscard]] bool wait_for_file(const std::filesystem::path& file);
  // False if the program ended, or a minute went by, before it had a file open that no folder names
  // and that has this many bytes.
  [[nodiscard]] bool wait_for_unnamed_file(uintmax_t bytes);
  // False if the program ended, or a minute went by, before it said so on stderr.
  [[nodiscard]] bool wait_for_message(const std::string& part);
  // False if the program ended, or a minute went by, before SIGSTOP stopped it.
  [[nodiscard]] bool wait_for_pause();
  void send(int signal_number) const;
  // Sends the signal and waits for the end.
  Outcome stop(int signal_number);

 private:
  // Asks until it is so, the program ended, or a minute went by.
  template <class Condition>
  [[nodiscard]] bool wait_until(const Condition& condition);

  std::filesystem::path output_, errors_;
  pid_t process_ = -1;
};

// A net for 8x8 pixels, of two classes.
[[nodiscard]] std::string tiny_net();
// Shell text: a cache of the tests, without the weights that the user may have fetched.
[[nodiscard]] std::string own_cache();
[[nodiscard]] std::string replaced(std::string text, const std::string& old_part,
                                   const std::string& new_part);

}  // namespace tandem::test
