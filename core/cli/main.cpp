#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "core/base/error.h"
#include "core/base/running_note.h"
#include "core/base/version.h"
#include "core/cli/commands.h"
#include "include/tandem/plugins.h"
#include "include/tandem/process.h"

namespace {

int run(int argc, char** argv) {
  tandem::cli::CommandLine line(
      "tandem", tandem::version(),
      "Trains convolutional networks on one machine or several. One graph drives the compute and\n"
      "communication streams of all devices, so that gradients travel while others are still\n"
      "being computed.\n"
      "Begin with: tandem train --data FOLDER");
  using namespace tandem::cli;
  for (const auto add :
       {add_train,   add_search,   add_test,    add_predict, add_compare, add_data,      add_pack,
        add_profile, add_plan,     add_export,  add_import,  add_fetch,   add_net,       add_models,
        add_layers,  add_datasets, add_plugins, add_plugin,  add_devices, add_completion}) {
    add(line);
  }
  return line.run(argc, argv);
}

// One line, however long the names in it. stderr may be closed, too; that is no reason to abort.
void report(const std::string& message) {
  const std::string text = tandem::cli::printable(tandem::shortened_message(message));
  tandem::cli::say(stderr, "tandem: {}\n", text);
}

}  // namespace

int main(int argc, char** argv) {
  tandem::open_standard_streams();
  // Where a file may grow no larger, a write fails with a message; the signal would end the
  // program.
  std::signal(SIGXFSZ, SIG_IGN);
  // A run goes on when the reader of its output ends (`| head`).
  std::signal(SIGPIPE, SIG_IGN);
  tandem::report_crashes("tandem");
  tandem::report_missing_modules(&report);
  int code = 1;
  try {
    const std::string note = tandem::drop_bad_thread_count();
    if (!note.empty()) report(note);
    code = run(argc, argv);
  } catch (const std::bad_alloc&) {
    report("out of memory");
  } catch (const std::exception& failure) {
    report(failure.what());
  }
  const std::string lost = tandem::lost_output();
  if (lost.empty()) return code;
  report(lost);
  return code == 0 ? 1 : code;
}
