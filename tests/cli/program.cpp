#include "tests/cli/program.h"
#include "tests/support/folders.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

namespace tandem::test {
namespace {

namespace fs = std::filesystem;

std::string in_quotes(const fs::path& path) {
  return fmt::format("'{}'", path.string());
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string program_path(const std::string& name) {
  return test::build_folder().string() + "/bin/" + name;
}

}  // namespace

std::string own_cache() {
  return "export XDG_CACHE_HOME=" + in_quotes(test::build_folder().string() + "/test-cache") + "; ";
}

std::string tiny_net() {
  return R"(name: "tiny"
layer {
  name: "data" type: "Data" top: "data" top: "label"
  transform_param { crop_size: 8 scale: 0.01 mean_value: 128 }
  data_param { batch_size: 4 }
}
layer {
  name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 4 kernel_size: 3 weight_filler { type: "xavier" } }
}
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "drop1" type: "Dropout" bottom: "conv1" top: "conv1" }
layer {
  name: "score" type: "InnerProduct" bottom: "conv1" top: "score"
  inner_product_param { num_output: 2 weight_filler { type: "xavier" } }
}
layer {
  name: "accuracy" type: "Accuracy" bottom: "score" bottom: "label" top: "accuracy"
  include { phase: TEST }
}
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "score" bottom: "label" top: "loss" }
)";
}

std::string replaced(std::string text, const std::string& old_part, const std::string& new_part) {
  const size_t at = text.find(old_part);
  if (at == std::string::npos) throw std::runtime_error("no '" + old_part + "' in the text");
  return text.replace(at, old_part.size(), new_part);
}

Desk::Desk() {
  write("tiny.prototxt", tiny_net());
}

Outcome Desk::run(const std::string& program, const std::string& arguments,
                  const std::string& before) const {
  const fs::path output = folder_ / "stdout.txt", errors = folder_ / "stderr.txt";
  const std::string command = "cd " + in_quotes(folder_.path()) + " && { " + own_cache() + before +
                              " " + in_quotes(program_path(program)) + " " + arguments + "; } > " +
                              in_quotes(output) + " 2> " + in_quotes(errors);
  const int status = std::system(command.c_str());
  return {exit_code(status), read_text(output), read_text(errors)};
}

Outcome Desk::tandem(const std::string& arguments, const std::string& before) const {
  return run("tandem", arguments, before);
}

Outcome Desk::alexnet(const std::string& arguments, const std::string& before) const {
  return run("tandem-alexnet", arguments, before);
}

std::string Desk::refusal(const std::string& arguments, const std::string& before) const {
  const Outcome outcome = tandem(arguments, before);
  const std::string& text = outcome.errors;
  EXPECT_EQ(outcome.code, 1) << "tandem " << arguments << "\n" << outcome.output << text;
  const std::string prefix = "tandem: ";
  const bool one_line = text.rfind(prefix, 0) == 0 && text.find('\n') == text.size() - 1;
  EXPECT_TRUE(one_line) << "tandem " << arguments << "\nshould say one line, says: " << text;
  return one_line ? text.substr(prefix.size(), text.size() - prefix.size() - 1) : text;
}

void Desk::draw(const std::string& folder, int count, int red, int green, int blue) const {
  constexpr int side = 10;
  uint32_t noise = static_cast<uint32_t>(red + 3 * green + 5 * blue + 1);
  for (int i = 1; i <= count; ++i) {
    std::string picture = "P6 10 10 255\n";
    for (int pixel = 0; pixel < side * side; ++pixel) {
      for (const int value : {red, green, blue}) {
        noise = noise * 1664525U + 1013904223U;
        picture += static_cast<char>(value + static_cast<int>(noise >> 28));
      }
    }
    write(folder + "/" + std::to_string(i) + ".ppm", picture);
  }
}

void Desk::draw_two_classes(const std::string& folder) const {
  draw(folder + "/train/blue", 6, 20, 20, 200);
  draw(folder + "/train/red", 6, 200, 20, 20);
  draw(folder + "/val/blue", 2, 30, 30, 210);
  draw(folder + "/val/red", 2, 210, 30, 30);
}

RunningProgram::RunningProgram(const Desk& desk, const std::string& arguments,
                               const std::string& before)
    : output_(desk / "running_stdout.txt"), errors_(desk / "running_stderr.txt") {
  // Where the output is there, so are the errors: a kill in between leaves both to be read.
  const std::string command = "cd " + in_quotes(desk / "") + " && exec env " + before + " " +
                              in_quotes(program_path("tandem")) + " " + arguments + " 2> " +
                              in_quotes(errors_) + " > " + in_quotes(output_);
  process_ = fork();
  if (process_ < 0) throw std::runtime_error("fork failed");
  if (process_ == 0) {
    std::signal(SIGINT, SIG_DFL);  // which stays ignored in tests in the background
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
}

RunningProgram::~RunningProgram() {
  if (process_ > 0) (void)stop(SIGKILL);
}

template <class Condition>
bool RunningProgram::wait_until(const Condition& condition) {
  constexpr auto pause = std::chrono::milliseconds(5);
  const int max_pauses = 12000 * patience;
  for (int i = 0; i < max_pauses; ++i) {
    siginfo_t info{};
    const bool ended =
        waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == process_;
    if (condition()) return true;  // a quick program may have made it so, and ended
    if (ended) return false;
    std::this_thread::sleep_for(pause);
  }
  return false;
}

bool RunningProgram::wait_for_file(const fs::path& file) {
  return wait_until([&] {
    std::error_code ignored;
    return fs::exists(file, ignored);
  });
}

bool RunningProgram::wait_for_unnamed_file(uintmax_t bytes) {
  return wait_until([&] {
    std::error_code ignored;
    for (const auto& entry :
         fs::directory_iterator(fmt::format("/proc/{}/fd", process_), ignored)) {
      struct stat status {
      }, own{};
      if (::stat(entry.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
      const fs::path inherited = fs::path("/proc/self/fd") / entry.path().filename();
      if (::stat(inherited.c_str(), &own) == 0 && own.st_ino == status.st_ino) continue;
      if (status.st_nlink == 0 && static_cast<uintmax_t>(status.st_size) >= bytes) return true;
    }
    return false;
  });
}

bool RunningProgram::wait_for_message(const std::string& part) {
  return wait_until([&] { return read_text(errors_).find(part) != std::string::npos; });
}

bool RunningProgram::wait_for_pause() {
  return wait_until([&] {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(process_), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == process_;
  });
}

void RunningProgram::send(int signal_number) const {
  kill(process_, signal_number);
}

Outcome RunningProgram::stop(int signal_number) {
  int status = 0;
  send(signal_number);
  waitpid(process_, &status, 0);
  process_ = -1;
  return {exit_code(status), read_text(output_), read_text(errors_)};
}

}  // namespace tandem::test
