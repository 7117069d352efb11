// The search for good options: learning rate, augmentation, image size and model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "train.h"

namespace tandem {

struct SearchOptions {
  // Of each trial. What they give (rate, augment, image_size) is not drawn; `epochs` or `steps` are
  // those of the last round; `out` is the folder of the search; `resume` goes on with it.
  TrainOptions base;
  int64_t trials = 12;
  double seconds = std::numeric_limits<double>::infinity();  // for all runs together
  std::vector<std::string> models;                           // to draw from; none: base.net
};

struct SearchResult {
  std::filesystem::path folder, page;  // page: search.html; "" where no run was complete
  std::filesystem::path best;          // its run folder
  std::string text;                    // the runs, and which is the best
  std::string command;                 // that trains as the best run was trained, without --out
  bool stopped = false;                // by base.stop, or by the time: resume goes on
};

// Draws trials (the first has the usual options), trains all for a ninth of the epochs, the best
// third for a third, and the best third of these for all; of up to three trials in two rounds, of
// one in one. Each run begins anew, with rates of its own length. Only the best run's weights stay.
// The same seed draws the same trials. Throws Error as train() for the first trial; others may
// fail.
SearchResult search(const SearchOptions& options, Observer& observer);

}  // namespace tandem
