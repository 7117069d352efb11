// The data sets of a run: where its data are, with which parameters they are opened, and for which
// phase.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/data/dataset.h"
#include "core/plugin/registry.h"
#include "core/run/setup/train_setup.h"

namespace tandem {

// Opens one split of the record's data as input of the net of that phase. `source` "": the
// record's.
[[nodiscard]] std::unique_ptr<Dataset> open_dataset(Registry& registry, const NetDefinition& net,
                                                    const RunRecord& record,
                                                    const std::string& source,
                                                    const std::string& split, int32_t phase);

// For other data than those that the record's parameters were given for: removes the parameters
// that the data set for `source` does not declare. Returns a note of them for the user; "" if none
// was.
[[nodiscard]] std::string leave_out_undeclared(Registry& registry, const std::string& source,
                                               RunRecord& record);

// The last name of a path as a net or a solver has it, perhaps of Windows: C:\nets\net.prototxt.
[[nodiscard]] std::string last_name(const std::string& path);

// Finds the transform's mean_file: its path, its size, which images are resized to unless the
// transform has another one, and as mean_values the mean of each channel. Says what is done; "" if
// there is none, or it does not exist. `by_pixel`: whether the data set takes a mean away from each
// pixel; else the mean of each channel is all that is taken. Error for a file that is no mean of
// images.
[[nodiscard]] std::string read_mean_file(const NetDefinition& net, bool by_pixel,
                                         TransformDefinition& transform);

// The net's own transform_param as parameters of a data set of images: mean, mean_image, scale,
// mirror, fit, resize.
[[nodiscard]] std::map<std::string, std::string> image_parameters(
    const TransformDefinition& transform);

// The word of --task for a task (TANDEM_TASK_CLASSES, ...): labels, multilabel, regression.
[[nodiscard]] const char* task_word(int64_t task);

// Opens training and validation data as the record's options say.
void open_datasets(Registry& registry, TrainSetup& setup);
// The record of the run whose net this file is, with what its prototxt does not have: how the run
// prepares images, its batch.
[[nodiscard]] std::optional<RunRecord> record_beside(const std::filesystem::path& net);
// The run's data: a data set's name, or a path that holds in any working folder.
[[nodiscard]] std::string data_source(Registry& registry, const RunRecord& record);

// The module of a third party's data set, "" for one of Tandem's own; and as " (path)".
[[nodiscard]] std::string foreign_module(const Registry& registry, const std::string& dataset);
[[nodiscard]] std::string foreign_module_text(const Registry& registry, const std::string& dataset);

}  // namespace tandem
