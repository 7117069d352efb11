// Weights that others publish, and how the images were prepared that they were trained with: what
// the readers of their files fill in.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "core/formats/onnx_reader/reader.h"

namespace tandem {

struct PublishedWeights {
  std::filesystem::path file;
  std::string architecture;   // "resnet18", "mobilenetv2_100"
  std::filesystem::path net;  // of that architecture
  // How images were prepared; a file alone has the values of ImageNet. Of R, G, B from 0 to 1.
  std::array<double, 3> mean{0.485, 0.456, 0.406}, std{0.229, 0.224, 0.225};
  double scale = 1.0 / 255;                    // of pixels, before the mean is taken away
  bool is_bgr = false;                         // how the net reads the channels
  double crop_side = 0.875, resized_side = 1;  // of the crop and of the resized image; any unit
  int64_t image_size = 224, classes = 0;       // 0: those of the net
  int64_t image_width = 0;                     // of a run, whose images need not be square
  std::string interpolation = "bilinear", license, fit = "crop";
  // Of a run folder: its data set's parameters for preparing images; else empty.
  bool is_run = false;
  bool resizes = true;  // whether its images were resized before they were cropped
  std::map<std::string, std::string> run_parameters;
  // Of an ONNX file: its net and arrays. `run_parameters` are those that an export of this program
  // says, or empty.
  std::shared_ptr<const OnnxImport> onnx;
  std::string preparation_source;  // what says how images are prepared, for messages

  // The shorter side of the resized image for a crop of this size.
  [[nodiscard]] int64_t resize_for(int64_t crop) const;
  // "mean", "scale", "color", "fit", "interpolation", "resampling" for the data set; the net
  // divides by `std`.
  [[nodiscard]] std::map<std::string, std::string> data_parameters() const;
};

}  // namespace tandem
