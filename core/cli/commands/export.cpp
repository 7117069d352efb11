#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/cli/commands.h"
#include "include/tandem/predict.h"

namespace tandem::cli {
namespace {

// "480x640"
void read_picture_size(const std::string& text, ExportOptions& options) {
  constexpr int64_t max = 4096;
  const std::vector<std::string> sides = split(text, 'x');
  int64_t height = 0, width = 0;
  if (sides.size() != 2 || !parse_integer(sides[0], &height) || !parse_integer(sides[1], &width) ||
      height < 1 || width < 1 || height > max || width > max) {
    throw error("--preprocess {}: give height and width of the pictures, as 480x640 (at most {})",
                text, max);
  }
  options.picture_height = height;
  options.picture_width = width;
}

struct ExportArguments {
  ExportOptions options;
  std::filesystem::path onnx_file;
};

int run_export(ExportArguments& a) {
  ExportOptions& options = a.options;
  if (options.file.empty() == a.onnx_file.empty()) {
    throw error("name one file to write: FILE.onnx, FILE.caffemodel or FILE.safetensors");
  }
  if (!a.onnx_file.empty()) {
    options.file = a.onnx_file;
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
  Command& command =
      line.add("export", "Write a run's net as ONNX, or its weights as one file, also for Caffe");
  ExportArguments& a = command.runs(run_export);
  ExportOptions& o = a.options;
  command.add({
      run_option(o.run),
      {"file FILE", &o.file, "FILE.onnx, FILE.caffemodel or FILE.safetensors"},
      weights_option(o.weights),
      {"--overwrite", &o.overwrite, "Replace a file of that name, once the new one is whole"},
  });
  command.group("ONNX");
  command.add({
      {"--onnx FILE", &a.onnx_file, "Write ONNX, whatever the name ends in"},
      {"--preprocess HxW", [&o](const std::string& text) { read_picture_size(text, o); },
       "The model takes RGB pictures of this size, as 480x640, and resizes, crops and normalizes "
       "them itself"},
      {"--dynamic-size", &o.dynamic_size,
       "The model takes RGB pictures of any size, all of a batch alike, and resizes, crops and "
       "normalizes them itself (opset 18 or later)"},
      {"--opset N", &o.opset,
       "Version of ONNX's operators, 13 to 21 (default: 13, or 18 with --dynamic-size)",
       in_range(13, 21)},
      {"--softmax", &o.softmax, "The model gives probabilities, not scores"},
      {"--fold-batch-norm", &o.fold_batch_norm,
       "Fold BatchNorm into the weights of the layers before it"},
      {"--verify onnxruntime", &o.verify,
       "Compare scores with ONNX Runtime's, which python3 must have (TANDEM_PYTHON: another "
       "Python)"},
  });
}

}  // namespace tandem::cli
