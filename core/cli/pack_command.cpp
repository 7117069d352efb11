#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "core/base/strings.h"
#include "core/cli/commands.h"
#include "core/cli/data_report.h"
#include "core/data/pack.h"
#include "core/plugin/registry.h"

namespace tandem::cli {
namespace {

std::atomic<bool> interrupted{false};

extern "C" void on_pack_interrupt(int signal_number) {
  interrupted = true;
  std::signal(signal_number, SIG_DFL);
}

struct PackArguments {
  PackOptions options;
  std::vector<std::string> parameters;
};

int run_pack(PackArguments& arguments) {
  PackOptions& options = arguments.options;
  options.parameters = read_pairs(arguments.parameters, "--data-option", "val_fraction=0.1");
  options.stop = &interrupted;
  std::signal(SIGINT, on_pack_interrupt);
  std::signal(SIGTERM, on_pack_interrupt);
  if (isatty(STDERR_FILENO) != 0) {
    options.progress = [](int64_t done, int64_t all) {
      fmt::print(stderr, "\r{} of {} images{}", done, all, done == all ? "\r\033[K" : "");
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
    fmt::print("left out: {} x {} (as {})\n", one.count, one.reason, one.example);
  }
  fmt::print("{} images ({}) in '{}', {}; use it as --data\n",
             all - static_cast<int64_t>(result.left_out.size()), splits, options.file,
             human_bytes(static_cast<int64_t>(std::filesystem::file_size(options.file))));
  return 0;
}

}  // namespace

void add_pack(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<PackArguments>();
  PackOptions& o = arguments->options;
  CLI::App* command = app.add_subcommand(
      "pack", "Write a data set of images as one file, shrunk once: for data read many times");
  command->add_option("source", o.source, "As --data of 'tandem train'")->required();
  command->add_option("--out", o.file, "The file; must not exist")->required();
  command
      ->add_option("--shorter-side", o.shorter_side,
                   "Pixels that larger images are shrunk to; 0: images stay as they are")
      ->capture_default_str();
  command->add_option("--quality", o.quality, "Of the JPEGs written anew, 1 to 100")
      ->capture_default_str();
  command->add_option("--data-option", arguments->parameters,
                      "A parameter of the data set, name=value: val_fraction, root, ...");
  command->add_option("--seed", o.seed, "Of split and order")->capture_default_str();
  command->add_option("--threads", o.threads, "Default: all cores")->check(CLI::NonNegativeNumber);
  command->callback(
      [&action, arguments] { action = [arguments] { return run_pack(*arguments); }; });
}

}  // namespace tandem::cli
