#include <fmt/format.h>

#include "core/cli/commands.h"
#include "include/tandem/predict.h"

namespace tandem::cli {

void add_export(CommandLine& line) {
  auto options = std::make_shared<ExportOptions>();
  Command& command = line.add("export", "Write a run's weights as one file, also for Caffe");
  command.option("--run FOLDER", &options->run, "Run folder").required();
  command.option("file FILE", &options->file, "FILE.caffemodel or FILE.safetensors").required();
  command.option("--weights best|last", &options->weights, "Weights of the best or the last step")
      .show_default();
  command.action([options] {
    const ExportResult result = export_run(*options);
    if (!result.note.empty()) fmt::print(stderr, "note: {}\n", result.note);
    fmt::print("{} weights of {} written to {}\n", result.weights, options->run.string(),
               options->file.string());
    return 0;
  });
}

}  // namespace tandem::cli
