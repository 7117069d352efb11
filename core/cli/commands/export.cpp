#include <fmt/format.h>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "core/cli/print.h"
#include "include/tandem/predict.h"

namespace tandem::cli {
namespace {

// "480x640"
void read_picture_size(const std::string& text, ExportOptions& options) {
  constexpr int64_t largest = 4096;
  const std::vector<std::string> sides = split(text, 'x');
  int64_t height = 0, width = 0;
  if (sides.size() != 2 || !parse_integer(sides[0], &height) || !parse_integer(sides[1], &width) ||
      height < 1 || width < 1 || height > largest || width > largest) {
    throw error("--preprocess {}: give height and width of the pictures, as 480x640 (at most {})",
                text, largest);
  }
  options.picture_height = height;
  options.picture_width = width;
}

int run_export(ExportOptions options, const std::filesystem::path& onnx_file) {
  if (options.file.empty() == onnx_file.empty()) {
    throw error("name one file to write: FILE.onnx, FILE.caffemodel or FILE.safetensors");
  }
  if (!onnx_file.empty()) {
    options.file = onnx_file;
    options.onnx = true;
  }
  const ExportResult result = export_run(options);
  for (const std::string& line : result.lines) print_names("{}\n", line);
  print_names("{} weights of {} written to {}\n", result.weights, options.run.string(),
              options.file.string());
  return 0;
}

}  // namespace

void add_export(CommandLine& line) {
  auto options = std::make_shared<ExportOptions>();
  auto onnx_file = std::make_shared<std::filesystem::path>();
  Command& command =
      line.add("export", "Write a run's net as ONNX, or its weights as one file, also for Caffe");
  command.option("--run FOLDER", &options->run, "Run folder").required();
  command.option("file FILE", &options->file, "FILE.onnx, FILE.caffemodel or FILE.safetensors");
  command.option("--weights best|last", &options->weights, "Weights of the best or the last step")
      .show_default();
  command.group("ONNX");
  command.option("--onnx FILE", onnx_file.get(), "Write ONNX, whatever the name ends in");
  command.option(
      "--preprocess HxW", [options](const std::string& text) { read_picture_size(text, *options); },
      "The model takes RGB pictures of this size, as 480x640, and resizes, crops and normalises "
      "them itself");
  command.flag("--softmax", options->softmax, "The model gives probabilities, not scores");
  command.flag("--fold-batch-norm", options->fold_batch_norm,
               "Fold BatchNorm into the weights of the layers before it");
  command.action([options, onnx_file] { return run_export(*options, *onnx_file); });
}

}  // namespace tandem::cli
