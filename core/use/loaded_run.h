// A run loaded for use: its record, its net, and once it is opened a session with its weights.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/run/folder/run_folder.h"
#include "core/session/session.h"

namespace tandem {

struct LoadedRun {
  // `which`: "best" (else last) or "last" weights. Throws Error for a folder without them, and for
  // devices that compute nothing.
  // The registry outlives the run.
  LoadedRun(Registry& registry, const std::filesystem::path& run, std::string on,
            const std::string& which);

  // Makes the session. precision: "" is the run's.
  void open(int64_t batch, const std::string& precision, PixelForm pixels, const PixelScale& scale);
  // The same for other options of a session that tests; `is_explicit`: the precision was given.
  // Where the devices cannot compute in the run's precision, float32 replaces one that was not.
  void open(SessionOptions options, bool is_explicit);
  // The session's for the run's net and data.
  [[nodiscard]] SessionOptions testing_options(int64_t batch, const std::string& precision,
                                               PixelForm pixels, const PixelScale& scale) const;
  // The form of the pixels; `given`: --pixels. Default: as the run was trained, if the data can be.
  [[nodiscard]] PixelForm pixels_of(const Dataset& dataset, const std::string& given);
  void add_note(const std::string& text) { note += (note.empty() ? "" : "\n") + text; }
  // Whether pixels are rounded to bytes before the net reads them.
  [[nodiscard]] bool rounds_pixels() const { return record.options.pixels == "bytes"; }
  // Of the net's scores of a sample: probabilities of labels, or numbers in their own units. The
  // run's task is not classes.
  [[nodiscard]] std::vector<double> values_of(const float* scores, int64_t count) const;
  // Error for a --threshold outside 0 to 1, and if the run has not learned several labels.
  void require_threshold(double threshold) const;
  // The data set of a third party that the run learned from, which alone knows how it prepares
  // images; "": they are prepared as folders of images are. Throws Error if it is not loaded.
  [[nodiscard]] std::string own_preparation() const;
  // Files and folders, one on each line, as the net's input. With own_preparation(): one path that
  // this data set reads. Several views of each picture where `all_views` (views()), else one.
  [[nodiscard]] std::vector<std::unique_ptr<Dataset>> open_pictures(const std::string& paths,
                                                                    bool all_views = false);

  Registry& registry;
  RunFolder folder;
  RunRecord record;
  std::string devices;
  std::string name, note;  // of the weights; what the user should know, or ""
  std::optional<Session> session;
};

// Parameters of a data set for each view of a picture: the corners and the middle, each as it is
// and mirrored, the middle as it is first (torchvision's TenCrop).
[[nodiscard]] std::vector<std::map<std::string, std::string>> views();
// The data set opened once for each view. Error if it has no views.
[[nodiscard]] std::vector<std::unique_ptr<Dataset>> open_views(Registry& registry,
                                                               const NetDefinition& net,
                                                               const RunRecord& record,
                                                               const std::string& source,
                                                               const std::string& split);
// The addresses of the data sets.
[[nodiscard]] std::vector<const Dataset*> pointers(
    const std::vector<std::unique_ptr<Dataset>>& datasets);

// One sample as floats that the net reads. A damaged one is skipped, with its reason.
SampleStatus read_row(const Dataset& dataset, int64_t index, bool rounds_pixels, float* row,
                      std::string* reason);

}  // namespace tandem
