// A net of an ONNX file, in the form that a net's prototxt gives, ready to be trained: with data,
// loss and accuracy, and with the file's weights beside it. Nothing behind it knows ONNX.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/arrays.h"
#include "core/model/file/definition.h"

namespace tandem {

struct OnnxImport {
  NetDefinition net;
  // Arrays by their names in the net ("conv1.weight"). A BatchNorm has its mean and variance, and
  // no weight of running sums.
  ArrayFile arrays;
  std::vector<std::string> notes;  // lines on what the file lacks or what was left out
  std::map<std::string, std::string> metadata;
  // Of an export of this program's its "preprocessing" and its task ("labels", "multilabel",
  // "regression"), and by what its numbers are scaled, which is no part of `net`; else "" and none.
  std::string preparation, task;
  std::vector<float> target_means, target_deviations;
  std::vector<std::string> class_names;  // of the outputs, where somebody says them
  // The largest pixel of images that the file itself prepares further, 1 or 255, and nothing else
  // does; 0: it does not, or does not tell.
  double largest_pixel = 0;
};

// `std`: the deviations of the channels, R, G, B, of images between 0 and 1, by which the net's
// first layer divides; nothing: the usual ones, unless the file prepares images itself. Error in
// one line that names all nodes without a layer here, and for a file that is damaged, reads no
// image or gives no row of class scores.
[[nodiscard]] OnnxImport import_onnx(const std::filesystem::path& path,
                                     const std::optional<std::array<double, 3>>& std);

// As read_model() (core/model/adapted/models.h), and of an ONNX file.
[[nodiscard]] NetDefinition read_net_file(const std::string& name_or_path);

}  // namespace tandem
