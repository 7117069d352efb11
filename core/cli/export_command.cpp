#include "core/cli/commands.h"
#include "core/train/pretrained.h"

namespace tandem::cli {

void add_export(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "Write a run's weights as one file, also for Caffe");
  command->add_option("--run", options->run, "Run folder")->required();
  command->add_option("file", options->file, "FILE.caffemodel or FILE.safetensors")->required();
  command->add_option("--weights", options->weights, "best (last if there is none) or last")
      ->capture_default_str();
  command->callback([&action, options] {
    action = [options] {
      const std::string used = export_run(*options);
      fmt::print("{} weights of {} written to {}\n", used, options->run.string(),
                 options->file.string());
      return 0;
    };
  });
}

}  // namespace tandem::cli
