#include "core/run/setup/recipe.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text/strings.h"
#include "core/data/dataset_source.h"
#include "core/model/adapted/adapted.h"
#include "core/model/file/batch_norm.h"
#include "core/model/net/net_report.h"
#include "core/model/passes/build_net.h"
#include "core/run/setup/setup_data.h"

namespace tandem {
namespace {

constexpr int64_t small_image = 64, usual_image = 224;

bool has_batch_norm(const NetDefinition& net) {
  return std::any_of(net.layers.begin(), net.layers.end(),
                     [](const LayerDefinition& layer) { return is_batch_norm(layer.type); });
}

// As torchvision: a crop of 224 from a shorter side of 256.
int64_t size_for(int64_t shorter_side) {
  constexpr int64_t min_size = 24, step = 32;
  if (shorter_side <= small_image) return std::max(min_size, shorter_side);
  const auto fitting = static_cast<int64_t>(static_cast<double>(shorter_side) * 227 / 256);
  return std::clamp<int64_t>(fitting / step * step, small_image, usual_image);
}

Net of_one_image(const Registry& registry, const NetDefinition& net) {
  Shape image = net.input_shape();
  image.n = 1;
  return build_net(net, registry, {TANDEM_TRAIN, 1, image, /*device_kind=*/""});
}

// The operations of a training step.
double step_flops(const Net& net) {
  double sum = 0;
  for (const LayerSummary& row : summarize(net)) sum += row.forward_flops + row.backward_flops;
  return sum;
}

// Fully connected layers over the last maps, as VGG has, fit images of one size only.
bool have_same_weights(const Net& a, const Net& b) {
  return std::equal(
      a.weights.begin(), a.weights.end(), b.weights.begin(), b.weights.end(),
      [](const WeightArray& one, const WeightArray& other) { return one.count == other.count; });
}

// How many times as many operations an image takes at the net's size as at another one; 1 for a net
// whose weights are for no other size.
double times_of_size(const Registry& registry, const NetDefinition& net, int64_t size) {
  try {
    const Net whole = of_one_image(registry, net),
              small = of_one_image(registry, with_image_size(net, size));
    return have_same_weights(whole, small) ? step_flops(whole) / step_flops(small) : 1;
  } catch (const Error&) {
    return 1;
  }
}

// Small images are made as large as those of the weights, which costs. Where it costs much and the
// weights are those that were in the cache, not the user's choice, the images keep their size.
void choose_size_of_weights(Registry& registry, const TrainOptions& options,
                            const ImageSizes& sizes, TrainSetup& setup) {
  constexpr double much = 10, worth_telling = 2;
  PublishedWeights& weights = *setup.published;
  const int64_t size = setup.net.input_shape().h, own = size_for(sizes.shorter_side);
  const double times = own < size ? times_of_size(registry, setup.net, own) : 1;
  const bool is_chosen = options.solver_fields.contains("weights") || weights.onnx != nullptr;
  if (times > much && sizes.shorter_side <= small_image && !is_chosen) {
    setup.net = with_image_size(setup.net, own);
    weights.crop_side = weights.resized_side = 1;  // nothing is cut off so small images
    setup.note(
        "image size {}, by the images: at the {} of the weights each would take {:.0f} times as "
        "many operations (--image-size {})",
        own, size, times, size);
    return;
  }
  setup.note(
      "image size {}, at which the weights were trained{} (--image-size)", size,
      times < worth_telling
          ? ""
          : fmt::format(": {:.0f} times the operations of {}, the size of the images", times, own));
}

}  // namespace

ImageSizes find_sizes(Registry& registry, const TrainSetup& setup) {
  constexpr int64_t max_described = 200;
  RunRecord record = setup.record;
  record.data = {1, setup.net.layers.empty() ? 0 : setup.net.input_shape().c, 0, 0};
  // What the user gives may be needed to read the data: where files are, what labels are.
  for (const auto& [name, value] : record.options.data_parameters) {
    record.data_parameters.emplace(name, value);
  }
  const std::string& task = record.options.task;
  const std::string source = data_source(registry, record);
  if (!task.empty() && declared_parameters(registry, source).contains("task")) {
    record.data_parameters.emplace("task", task);
  }
  const auto dataset = open_dataset(registry, setup.net, record, "", "train", TANDEM_TEST);
  const Shape shape = dataset->shape();
  std::vector<int64_t> sides;
  std::set<std::pair<int64_t, int64_t>> sizes;
  const int64_t count = std::min(max_described, dataset->size());
  for (int64_t i = 0; i < count; ++i) {
    std::string reason;
    const auto stored = dataset->describe(i * dataset->size() / count, &reason);
    if (!stored || stored->width <= 0) continue;
    sides.push_back(std::min(stored->width, stored->height));
    sizes.emplace(stored->width, stored->height);
  }
  if (sides.empty()) return {std::min(shape.h, shape.w), shape.c, true};
  const auto middle = sides.begin() + static_cast<std::ptrdiff_t>(sides.size() / 2);
  std::nth_element(sides.begin(), middle, sides.end());
  return {*middle, shape.c, sizes.size() == 1};
}

void require_word(const char* option, const std::string& word,
                  const std::vector<std::string>& known) {
  if (word.empty() || std::find(known.begin(), known.end(), word) != known.end()) return;
  throw error("{} {}: there are {}{}", option, word, fmt::join(known, ", "),
              did_you_mean(word, known));
}

void choose_recipe(const TrainOptions& options, const std::string& model, TrainSetup& setup) {
  TrainOptions& chosen = setup.record.options;
  require_word("--recipe", options.recipe, {"plain", "photos", "caffe", "finetune"});
  require_word("--augment", options.augment, {"none", "light", "photos", "strong"});
  if (!options.solver.empty() && !options.recipe.empty() && options.recipe != "caffe") {
    throw error(
        "--recipe {} and --solver {}: the solver file has rates of its own; give one of them",
        options.recipe, options.solver);
  }
  const bool has_weights = setup.published || options.solver_fields.contains("weights");
  if (options.recipe == "finetune" && !has_weights) {
    throw error("--recipe finetune begins with trained weights: give --weights PATH");
  }
  const bool is_for_images = !model.empty() && has_batch_norm(setup.net);
  if (options.recipe.empty()) {
    const bool suits = options.solver.empty() && options.data != "synthetic";
    const bool tunes = suits && has_weights && options.net_text.empty();
    chosen.recipe = tunes ? "finetune" : suits && is_for_images ? "photos" : "caffe";
  }
  setup.fits_images = chosen.recipe == "photos" ||
                      (chosen.recipe == "finetune" &&
                       (is_for_images || (setup.published && !setup.published->is_run)));
  if (options.augment.empty() && chosen.recipe == "plain") chosen.augment = "none";
}

int64_t usual_epochs(const std::string& recipe) {
  return recipe == "finetune" ? 10 : 30;
}

void choose_image_size(Registry& registry, const TrainOptions& options, TrainSetup& setup) {
  TrainOptions& chosen = setup.record.options;
  if (!setup.fits_images || options.data == "synthetic") return;
  const ImageSizes sizes = find_sizes(registry, setup);
  setup.mirrors = sizes.channels != 1;
  const bool need_colors =
      setup.published && !setup.published->is_run && setup.published->onnx == nullptr;
  if (need_colors && sizes.channels != 3) {
    throw error(
        "--weights '{}': they are of images of 3 channels, and those of data '{}' have {}: leave "
        "--weights out",
        setup.published->file.string(), options.data, sizes.channels);
  }
  if (options.image_size == 0 && !setup.published) {
    const int64_t size = size_for(sizes.shorter_side);
    setup.net = with_image_size(setup.net, size);
    setup.note("image size {}, for images whose shorter side is {} at the median (--image-size)",
               size, sizes.shorter_side);
  } else if (options.image_size == 0 && !setup.published->is_run) {
    choose_size_of_weights(registry, options, sizes, setup);
  }
  const Shape images = setup.net.input_shape();
  const int64_t size = std::max(images.h, images.w);
  if (options.augment.empty()) chosen.augment = size <= small_image ? "light" : "photos";
}

std::map<std::string, std::string> augmentation(const std::string& word, int64_t image_size,
                                                bool mirrors) {
  std::map<std::string, std::string> parameters;
  if (word.empty()) return parameters;
  const bool is_small = image_size <= small_image;
  const bool pads = word == "light" && is_small;
  const auto shorter_side = is_small || word == "none"
                                ? image_size
                                : std::lround(static_cast<double>(image_size) * 256 / 227);
  parameters["resize"] = fmt::format("{}", shorter_side);
  parameters["mirror"] = word != "none" && mirrors ? "true" : "false";
  if (pads) parameters["pad"] = fmt::format("{}", std::max<int64_t>(1, image_size / 8));
  if (word == "photos") {
    parameters["crop_area"] = "0.25,1";
    parameters["jitter"] = "0.2,0.2,0.2";
  }
  if (word == "strong") {
    parameters["crop_area"] = "0.08,1";
    parameters["randaugment"] = "2,9";
    parameters["trivialaugment"] = "0.5";
    parameters["erase"] = "0.25";
  }
  return parameters;
}

int64_t photos_batch(Registry& registry, TrainSetup& setup) {
  constexpr int64_t min_batch = 8, min_steps = 8, of_small = 128, of_large = 32;
  int64_t batch = setup.net.input_shape().h <= small_image ? of_small : of_large;
  while (batch > min_batch && batch * min_steps > setup.record.training_samples) batch /= 2;
  // Other ranks may be on other hosts, whose memory is not known here.
  if (setup.record.options.ranks > 1) return batch;
  const int64_t available = available_memory(registry, setup);
  const int64_t fitting = batch_in_memory(registry, setup, batch, 1, available);
  if (fitting < batch) {
    setup.note("batch {}, not {}, by the memory: {} are available (--batch)", fitting, batch,
               human_bytes(available));
  }
  return fitting;
}

void fit_photos(const TrainOptions& options, TrainSetup& setup) {
  // As torchvision's reference: 0.1 for 256 images; without BatchNorm as its AlexNet, 0.01. Of
  // trained weights a tenth; without BatchNorm as Caffe's example, 0.001 for 50 images.
  const bool tunes = setup.record.options.recipe == "finetune";
  const double rate_of_batch =
      has_batch_norm(setup.net) ? (tunes ? 0.01 : 0.1) : (tunes ? 0.005 : 0.01);
  const double rate_of_image = rate_of_batch / 256;
  constexpr double warm_up_share = 0.05, first_share = 0.1, tuned_share = 0.1;
  SolverDefinition& solver = setup.solver;
  const TrainOptions& chosen = setup.record.options;
  const auto& given = options.solver_fields;
  const auto images = static_cast<double>(chosen.batch * solver.micro_batches_per_step);
  const bool scales = solver.type == "Nesterov" || solver.type == "SGD";
  if (scales && !given.contains("base_lr")) {
    solver.base_rate = rate_of_image * images;
  } else if (tunes && !given.contains("base_lr")) {
    solver.base_rate *= tuned_share;
  }
  const double rate = options.rate.value_or(solver.base_rate);
  if (!given.contains("lr_policy")) solver.rate_policy = "cosine";
  if (!given.contains("warmup_iter")) {
    solver.warm_up_steps =
        std::llround(warm_up_share * static_cast<double>(setup.record.options.steps));
    if (!given.contains("warmup_start_lr")) solver.warm_up_rate = first_share * rate;
  }
  setup.note(
      "batch {} (--batch), {} steps (--epochs, --steps), augmentation {}{} (--augment "
      "none|light|photos|strong)",
      chosen.batch, chosen.steps, chosen.augment.empty() ? "as the net says" : chosen.augment,
      chosen.augment == "strong" ? ", which is RandAugment or TrivialAugment, and random erasing"
                                 : "");
  setup.note(
      "recipe {} (--recipe plain|photos|caffe|finetune): {} (--solver-type), rate {:.4g} (--lr), "
      "{} after {} {} of warm-up",
      chosen.recipe, solver.type, rate, solver.rate_policy, solver.warm_up_steps,
      solver.warm_up_steps == 1 ? "step" : "steps");
}

}  // namespace tandem
