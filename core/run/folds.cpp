// Cross-validation: a run for each fold, and their figures together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/files/files.h"
#include "core/data/dataset.h"
#include "core/data/dataset_source.h"
#include "core/plugin/registry.h"
#include "core/ranks/ranks.h"
#include "core/report/compare_page.h"
#include "core/run/folder/run_folder.h"
#include "include/tandem/train.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr int64_t max_folds = 1000;

std::unique_ptr<Dataset> open_fold(Registry& registry, const TrainOptions& options,
                                   const DeclaredParameters& declared, int64_t fold, int64_t folds,
                                   const char* split) {
  DatasetOptions one;
  one.source = options.data;
  one.split = split;
  one.shape = {1, 0, 0, 0};
  one.parameters = options.data_parameters;
  one.parameters["fold"] = fmt::format("{}/{}", fold, folds);
  if (declared.contains("task") && !options.task.empty()) one.parameters["task"] = options.task;
  return std::make_unique<Dataset>(registry, one);
}

void require_folds(const TrainOptions& options, int64_t folds) {
  if (folds < 2 || folds > max_folds) {
    throw error("--kfold {}: there are at least 2 folds and at most {}; 5 is usual", folds,
                max_folds);
  }
  if (options.ranks > 1 || launched_ranks() > 1) {
    throw error("--kfold {}: is for one process; train each fold with --data-option fold=1/{} ...",
                folds, folds);
  }
  if (options.resume && RunFolder::holds_run(options.out)) {
    throw error(
        "--kfold {}: '{}' is the folder of one run, not of a cross-validation, so that there are "
        "no folds to go on with: leave --kfold or --resume out",
        folds, options.out.string());
  }
  Registry registry = Registry::with_defaults();
  if (options.data.empty()) return;
  const DeclaredParameters declared = declared_parameters(registry, options.data);
  if (!declared.contains("fold")) {
    throw error("--kfold {}: data '{}': its data set cannot hold out a part (parameter 'fold')",
                folds, options.data);
  }
  // Before the first one is trained.
  const auto first = open_fold(registry, options, declared, 1, folds, "train");
  if (!first->split_is_drawn()) {
    throw error(
        "--kfold {}: the data have validation images of their own, so that no part of the training "
        "images is held out: give the training images alone",
        folds);
  }
  try {
    (void)open_fold(registry, options, declared, folds, folds, "val");
  } catch (const Error& failure) {
    throw error("--kfold {}: fold {} cannot hold out an image: {}", folds, folds, failure.what());
  }
}

fs::path folder_of(const fs::path& out, int64_t fold) {
  return out / fmt::format("fold-{}", fold);
}

bool is_complete(const fs::path& folder) {
  if (!path_status(folder / "run.json").exists()) return false;
  const ComparedRun run = read_compared_run(folder);
  return !run.metrics.empty() && run.metrics.back().step >= run.record.options.steps;
}

TrainOptions options_of(const TrainOptions& options, const fs::path& out, int64_t fold,
                        int64_t folds) {
  TrainOptions one = options;
  one.out = folder_of(out, fold);
  one.resume = options.resume && RunFolder::holds_run(one.out);
  one.data_parameters["fold"] = fmt::format("{}/{}", fold, folds);
  return one;
}

}  // namespace

FoldsResult train_folds(const TrainOptions& options, int64_t folds, Observer& observer) {
  require_folds(options, folds);
  FoldsResult result;
  result.folder = options.out.empty() ? RunFolder::free_name("kfold") : options.out;
  std::vector<ComparedRun> runs;
  for (int64_t fold = 1; fold <= folds; ++fold) {
    const TrainOptions one = options_of(options, result.folder, fold, folds);
    if (one.resume && is_complete(one.out)) {
      observer.on_message(fmt::format("fold {} of {} is complete", fold, folds));
    } else {
      observer.on_message(fmt::format("fold {} of {}: {}", fold, folds, one.out.string()));
      const TrainResult trained = train(one, observer);
      result.stopped = trained.stopped;
      if (trained.stopped) return result;
    }
    runs.push_back(read_compared_run(one.out));
  }
  result.text = folds_text(runs);
  result.page = result.folder / "kfold.html";
  write_text_file(result.page, compare_page(runs, true));
  write_text_file(result.folder / "kfold.csv", folds_table(runs));
  return result;
}

}  // namespace tandem
