// AlexNet on several devices: a program on the library that shows, measures and trains. What the
// numbers mean: docs/guide/pipeline.md.
#include <fmt/format.h>
#include <tandem/data.h>
#include <tandem/plugins.h>
#include <tandem/process.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "comparison.h"
#include "options.h"
#include "pipeline.h"
#include "training.h"

namespace alexnet {
namespace {

constexpr int stopped_code = 130;

int run(Options options) {
  if (!options.data.empty()) {
    options.classes = static_cast<int64_t>(tandem::read_data_info(options.data).class_names.size());
  }
  if (options.strategy == "all") {
    print(compare_strategies(options), options);
    return was_stopped() ? stopped_code : 0;
  }
  print(measure_pipeline(options), options);
  if (was_stopped()) return stopped_code;
  return options.data.empty() ? 0 : train_on_images(options);
}

// stderr may be closed, too; that is no reason to abort.
void report(const std::string& message) {
  std::fputs(("tandem-alexnet: " + message + "\n").c_str(), stderr);
}

}  // namespace
}  // namespace alexnet

int main(int argc, char** argv) {
  tandem::open_standard_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may grow no larger is a failing write
  std::signal(SIGPIPE, SIG_IGN);  // training goes on when the reader of its output ends
  int exit_code = 1;
  try {
    const std::string note = tandem::drop_bad_thread_count();
    if (!note.empty()) alexnet::report(note);
    const auto options = alexnet::read_options(argc, argv, &exit_code);
    if (options) exit_code = alexnet::run(*options);
  } catch (const std::bad_alloc&) {
    alexnet::report("out of memory");
  } catch (const std::exception& failure) {
    alexnet::report(failure.what());
  }
  const std::string lost = tandem::lost_output();
  if (!lost.empty()) alexnet::report(lost);
  return lost.empty() || exit_code != 0 ? exit_code : 1;
}
