// Weights as torchvision and timm publish them: a file with PyTorch's names of arrays, alone or
// beside timm's config.json. The net of each architecture and the rules for the
// names are files beside the models (examples/models/pretrained): torch.names for all nets, and
// NAME.names for an architecture whose arrays are called otherwise. A run folder is read in the
// same way: its net, its weights and how its images were prepared; and so is an ONNX file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/model/file/definition.h"
#include "core/run/weights/pretrained.h"
#include "core/run/weights/published_weights.h"

namespace tandem {

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
