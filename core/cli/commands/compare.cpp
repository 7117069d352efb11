#include "core/base/error.h"
#include "core/cli/commands.h"
#include "core/report/compare_page.h"

namespace tandem::cli {
namespace {

struct CompareArguments {
  std::vector<std::filesystem::path> runs;
  std::string html = "compare.html";
};

int run_compare(CompareArguments& a) {
  if (a.runs.size() < 2) {
    throw error("compare needs at least two run folders; report.html in a run folder shows one");
  }
  std::vector<ComparedRun> runs;
  for (const auto& folder : a.runs) runs.push_back(read_compared_run(folder));
  write_output(a.html, compare_page(runs));
  print_names("{}page: {}\n", compare_text(runs), a.html);
  return 0;
}

}  // namespace

void add_compare(CommandLine& line) {
  Command& command = line.add("compare", "Show several runs on one page: curves, options, results");
  CompareArguments& a = command.runs(run_compare);
  command.add({
      {"runs FOLDER", &a.runs, "Run folders", required},
      {"--html FILE", &a.html, "The page to write", show_default},
  });
}

}  // namespace tandem::cli
