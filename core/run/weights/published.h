// Weights as torchvision and timm publish them: a file with PyTorch's names of arrays, alone or
// beside timm's config.json. The net of each architecture and the rules for the
// names are files beside the models (examples/models/pretrained): torch.names for all nets, and
// NAME.names for an architecture whose arrays are called otherwise. A run folder is read in the
// same way: its net, its weights and how its images were prepared; and so is an ONNX file.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/formats/onnx_reader/reader.h"
#include "core/model/file/definition.h"
#include "core/run/weights/pretrained.h"

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

// What `path` of --weights holds; nullopt for a file that is none of these. `model`: --model, which
// names the architecture of a file alone; one with config.json beside it needs none. Error for a
// folder that cannot be used, for an architecture without a net here, and for another `model` than
// the folder's. What is not there may be a repository in the cache (hub.h); `downloads`: fetches it
// into the cache.
[[nodiscard]] std::optional<PublishedWeights> find_published(const std::filesystem::path& path,
                                                             const std::string& model,
                                                             bool downloads = false);

// The folder in the cache that was fetched last and has weights of the model's architecture; "" if
// there is none.
[[nodiscard]] std::filesystem::path find_cached(const std::string& model);

// The net of the architecture, with the images and the `eps` of BatchNorm that the weights had.
[[nodiscard]] NetDefinition net_of(const PublishedWeights& published);

// How many outputs the layer `classifier` has in the file; 0 if it is not there. Error for another
// number than config.json says. Reads no values.
[[nodiscard]] int64_t classes_in_file(const PublishedWeights& published,
                                      const std::string& classifier);

// As read_pretrained(). The net's layer "std" and the running statistics are set, too.
[[nodiscard]] Pretrained read_published(const PublishedWeights& published, const Net& net,
                                        std::vector<float>* values);

// "resnet18 of DIR/model.safetensors, license apache-2.0: mean ..., std ..., color rgb (...)"
[[nodiscard]] std::string to_text(const PublishedWeights& published);

}  // namespace tandem
