// The recipe of a run: how its image size, augmentation, batch, length and learning rate are chosen
// where neither the user nor a solver file gives them.
//   photos  models with batch normalization, on images: size by the images, augmentation, momentum
//           with a warm-up and half a cosine over the run
//   finetune  as photos, from trained weights: a low rate, a higher one for new layers, which learn
//           alone at first
//   caffe   the net's own transform and the model's own solver, fitted to the run
//   plain   no augmentation, a rate that never changes
// What was chosen is in the run's record, net and solver, and a message names each choice with the
// option that changes it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/run/setup/train_setup.h"

namespace tandem {

// Throws Error for a word of an option that is none of the known ones; "" is not given.
void require_word(const char* option, const std::string& word,
                  const std::vector<std::string>& known);

// The recipe and the augmentation that the options name or imply. `model`: the built-in model that
// the net is, or "". Throws Error for an unknown name, and for one that contradicts a solver file.
void choose_recipe(const TrainOptions& options, const std::string& model, TrainSetup& setup);

// The image size and the augmentation of "photos", where they are not given, by the shorter sides
// of the images; before the net's input is used.
void choose_image_size(Registry& registry, const TrainOptions& options, TrainSetup& setup);

struct ImageSizes {
  int64_t shorter_side = 0;  // the median
  int64_t channels = 0;
  bool is_one_size = false;
};
// Of some of the training images. A data set that does not tell the sizes of its images has images
// of one size.
[[nodiscard]] ImageSizes find_sizes(Registry& registry, const TrainSetup& setup);

// The data set's parameters of --augment: none, light, photos, strong; nothing for "".
// `mirrors`: false for digits and the like.
[[nodiscard]] std::map<std::string, std::string> augmentation(const std::string& word,
                                                              int64_t image_size, bool mirrors);

// The images in a batch of the recipe "photos". The batch is chosen by the size and number of the
// images and by the memory of the devices; a message says so if the memory bounds it.
[[nodiscard]] int64_t photos_batch(Registry& registry, TrainSetup& setup);

// Bytes that are available on each device of the setup, or to all of them together if they share
// the host's memory. 0: not known.
[[nodiscard]] int64_t available_memory(const Registry& registry, const TrainSetup& setup);

// `batch`, halved down to `min_batch` at most, until a training step of the setup's net takes no
// more than 80 % of `available`: what libraries keep for themselves is not in the plan. `batch` if
// the step cannot be planned or `available` is 0.
[[nodiscard]] int64_t batch_in_memory(Registry& registry, const TrainSetup& setup, int64_t batch,
                                      int64_t min_batch, int64_t available);

// The epochs of a run for which neither the user nor a solver gives a length.
[[nodiscard]] int64_t usual_epochs(const std::string& recipe);

// Gives the solver of "photos" and "finetune" its rates; when batch and steps are known.
void fit_photos(const TrainOptions& options, TrainSetup& setup);

}  // namespace tandem
