#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/base/files/files.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "core/cli/data_report.h"
#include "core/data/pack.h"
#include "core/plugin/registry.h"
#include "include/tandem/process.h"

namespace tandem::cli {
namespace {

struct PackArguments {
  PackOptions options;
  std::vector<std::string> parameters;
};

int run_pack(PackArguments& arguments) {
  PackOptions& options = arguments.options;
  options.parameters = read_pairs(arguments.parameters, "--data-option", "val_fraction=0.1");
  options.stop = stop_on_signals("\ntandem: stopping after the image at hand\n");
  if (isatty(STDERR_FILENO) != 0) {
    options.progress = [](int64_t done, int64_t all) {
      say(stderr, "\r{} of {} images{}", done, all, done == all ? "\r\033[K" : "");
    };
  }
  Registry registry = Registry::with_defaults();
  const PackResult result = pack(registry, options);
  std::string splits;
  int64_t all = 0;
  for (const auto& [name, size] : result.splits) {
    splits += fmt::format("{}{} {}", splits.empty() ? "" : ", ", size, name);
    all += size;
  }
  for (const ReasonCount& one : by_reason(result.left_out)) {
    print_names("left out: {} x {} (as {})\n", one.count, one.reason, one.example);
  }
  print_names("{} images ({}) in '{}', {}; use it as --data\n", all, splits, options.file,
              human_bytes(int64_t(InputFile(options.file).size())));
  return 0;
}

}  // namespace

void add_pack(CommandLine& line) {
  Command& command =
      line.add("pack", "Write a data set of images as one file, for data that are read many times");
  PackArguments& a = command.runs(run_pack);
  PackOptions& o = a.options;
  command.add({
      {"source PATH", &o.source, "As --data of 'tandem train'", required},
      {"--out FILE", &o.file, "The file; must not exist", required},
      {"--shorter-side N", &o.shorter_side,
       "Shrink larger images to this shorter side, in pixels; 0: images stay as they are",
       show_default},
      {"--quality N", &o.quality, "JPEG quality of images that are shrunk, 1 to 100", show_default},
      {"--data-option NAME=VALUE", &a.parameters,
       "A parameter of the data set: val_fraction, root, ..."},
      task_option([&a](const std::string& word) { a.parameters.push_back("task=" + word); }),
      {"--seed N", &o.seed, "Seed of split and order", show_default},
      threads_option(o.threads),
  });
}

}  // namespace tandem::cli
