#include "core/cli/commands.h"
#include "include/tandem/predict.h"

namespace tandem::cli {
namespace {

int run_fetch(FetchOptions& options) {
  options.note = [](const std::string& line) { print_names("{}\n", line); };
  print_names("{}\n", fetch_weights(options));
  return 0;
}

}  // namespace

void add_fetch(CommandLine& line) {
  Command& command =
      line.add("fetch", "Download published weights from Hugging Face into the cache");
  FetchOptions& o = command.runs(run_fetch);
  command.add({
      {"repository OWNER/NAME", &o.repository,
       "As timm/resnet18.a1_in1k, also with @REVISION; --weights takes the same name", required},
  });
}

}  // namespace tandem::cli
