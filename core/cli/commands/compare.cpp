#include <fmt/format.h>

#include "core/base/error.h"
#include "core/cli/arguments.h"
#include "core/cli/commands.h"
#include "core/cli/print.h"
#include "core/report/compare_page.h"

namespace tandem::cli {

void add_compare(CommandLine& line) {
  struct Arguments {
    std::vector<std::filesystem::path> runs;
    std::string html = "compare.html";
  };
  auto arguments = std::make_shared<Arguments>();
  Command& command = line.add("compare", "Show several runs on one page: curves, options, results");
  command.option("runs FOLDER", &arguments->runs, "Run folders").required();
  command.option("--html FILE", &arguments->html, "The page to write").show_default();
  command.action([arguments] {
    if (arguments->runs.size() < 2) {
      throw error("compare needs at least two run folders; report.html in a run folder shows one");
    }
    std::vector<ComparedRun> runs;
    for (const auto& folder : arguments->runs) runs.push_back(read_compared_run(folder));
    write_output(arguments->html, compare_page(runs));
    print_names("{}page: {}\n", compare_text(runs), arguments->html);
    return 0;
  });
}

}  // namespace tandem::cli
