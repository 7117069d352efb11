#include "core/cli/commands.h"
#include "include/tandem/predict.h"

namespace tandem::cli {
namespace {

int run_import(ImportOptions& options) {
  const ImportResult result = import_weights(options);
  print_names("{}\nrun folder: {}\n", result.notes, printable(result.run.string()));
  return 0;
}

}  // namespace

void add_import(CommandLine& line) {
  Command& command = line.add("import", "Make a run folder of published weights");
  ImportOptions& o = command.runs(run_import);
  command.add({
      {"weights PATH", &o.weights,
       "A folder of timm's (model.safetensors, config.json), or a file: .onnx, .safetensors, "
       ".pth, .pt, .bin, .caffemodel; or the name of a repository of Hugging Face, as of tandem "
       "fetch",
       required},
      {"--net,--model FILE", &o.net,
       "The architecture of a file alone, e.g. resnet50; or a model's name or a prototxt file"},
      {"--classes FILE", &o.classes,
       "A file with a class name on each line (default: 'class 0', ...)"},
      {"--download", &o.download, "Fetch weights that are named by their repository and not there"},
      {"--verify onnxruntime", &o.verify,
       "Of an ONNX file: compare scores with ONNX Runtime's, which python3 must have "
       "(TANDEM_PYTHON: another Python)"},
      {"--out FOLDER", &o.out, "Run folder (default: runs/<net>-<number>)"},
  });
}

}  // namespace tandem::cli
