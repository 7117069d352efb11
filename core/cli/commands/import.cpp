#include <fmt/format.h>

#include "core/cli/commands.h"
#include "core/cli/print.h"
#include "include/tandem/predict.h"

namespace tandem::cli {

void add_import(CommandLine& line) {
  auto options = std::make_shared<ImportOptions>();
  Command& command = line.add("import", "Make a run folder of published weights");
  command
      .option("weights PATH", &options->weights,
              "A folder of timm's (model.safetensors, config.json), or a .safetensors or "
              ".caffemodel file")
      .required();
  command.option("--net,--model FILE", &options->net,
                 "The architecture of a file alone, e.g. resnet50; or a model's name or a prototxt "
                 "file");
  command.option("--classes FILE", &options->classes,
                 "A file with a class name on each line (default: 'class 0', ...)");
  command.option("--out FOLDER", &options->out, "Run folder (default: runs/<net>-<number>)");
  command.action([options] {
    const ImportResult result = import_weights(*options);
    say("{}\nrun folder: {}\n", printable(result.notes, "\n"), printable(result.run.string()));
    return 0;
  });
}

}  // namespace tandem::cli
