#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "core/cli/commands.h"

namespace {

int run(int argc, char** argv) {
  tandem::cli::CommandLine line(
      "tandem", TANDEM_VERSION,
      "Trains convolutional networks on one machine. One graph drives the compute and\n"
      "communication streams of all devices, so that gradients travel while others are still\n"
      "being computed.\n"
      "Begin with: tandem train --data FOLDER --net cifar10_quick");
  tandem::cli::add_train(line);
  tandem::cli::add_test(line);
  tandem::cli::add_predict(line);
  tandem::cli::add_data(line);
  tandem::cli::add_pack(line);
  tandem::cli::add_profile(line);
  tandem::cli::add_plan(line);
  tandem::cli::add_export(line);
  tandem::cli::add_net(line);
  tandem::cli::add_layers(line);
  tandem::cli::add_plugins(line);
  tandem::cli::add_devices(line);
  tandem::cli::add_completion(line);
  return line.run(argc, argv);
}

// stderr may be closed, too; that is no reason to abort.
void report(const std::string& message) {
  std::fputs(("tandem: " + message + "\n").c_str(), stderr);
}

}  // namespace

int main(int argc, char** argv) {
  // Where a file may grow no larger, a write fails with a message; the signal would end the
  // program.
  std::signal(SIGXFSZ, SIG_IGN);
  // A run goes on when the reader of its output ends (`| head`).
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    report("out of memory");
  } catch (const std::exception& failure) {
    report(failure.what());
  }
  return 1;
}
