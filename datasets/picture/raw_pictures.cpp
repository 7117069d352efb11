#include "datasets/picture/raw_pictures.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "datasets/picture/bytes.h"
#include "datasets/picture/classes.h"
#include "datasets/picture/names.h"
#include "datasets/picture/recolor.h"

namespace tandem::picture {
namespace {

// A picture with the channels that the net reads, as rows of interleaved pixels, B first.
View arranged(const std::vector<unsigned char>& stored, const RawForm& form, int channels,
              std::vector<unsigned char>& buffer) {
  const auto plane = static_cast<size_t>(form.height) * static_cast<size_t>(form.width);
  const View view{nullptr, form.width, form.height, channels,
                  static_cast<std::ptrdiff_t>(form.width) * channels};
  buffer.resize(plane * static_cast<size_t>(channels));
  unsigned char* to = buffer.data();
  for (size_t i = 0; i < plane; ++i) {
    const int red = stored[i];
    const int green = form.rgb_planes ? stored[plane + i] : red;
    const int blue = form.rgb_planes ? stored[2 * plane + i] : red;
    if (channels == 1) {
      // ITU-R BT.601 with 14 bits
      *to++ = static_cast<unsigned char>((red * 4899 + green * 9617 + blue * 1868 + 8192) >> 14);
    } else {
      *to++ = static_cast<unsigned char>(blue);
      *to++ = static_cast<unsigned char>(green);
      *to++ = static_cast<unsigned char>(red);
    }
  }
  View result = view;
  result.pixels = buffer.data();
  return result;
}

// The stored plane that a net reads as its plane c, in the order of options.rgb.
size_t stored_plane(const RawForm& form, const TransformOptions& options, int c) {
  if (!form.rgb_planes) return 0;
  return static_cast<size_t>(options.rgb ? c : form.channels - 1 - c);
}

// Whether the plan only moves pixels, and to all of the input: every byte of the result is a byte
// of the file, or the mean.
bool only_moves(const RawForm& form, const TransformOptions& options, const Plan& plan) {
  const auto is_whole = [](double value) { return value == std::floor(value); };
  return (options.channels == 3 || !form.rgb_planes) && plan.affine.is_identity() &&
         !(options.random && recolors(options)) && plan.region.width == plan.size.width &&
         plan.region.height == plan.size.height && is_whole(plan.region.x) &&
         is_whole(plan.region.y) && plan.size.width == options.width &&
         plan.size.height == options.height;
}

// For plans that only_moves(): copies row by row from the stored planes.
void move_pixels(const std::vector<unsigned char>& stored, const RawForm& form,
                 const TransformOptions& options, const Plan& plan, const BytePlanes& result) {
  const auto left = static_cast<int>(plan.region.x), top = static_cast<int>(plan.region.y);
  const int begin = std::clamp(-left, 0, result.width);
  const int end = std::clamp(form.width - left, begin, result.width);
  const auto size = static_cast<size_t>(form.height) * static_cast<size_t>(form.width);
  for (int c = 0; c < result.channels; ++c) {
    const unsigned char around = nearest_byte(mean_of_plane(options, c));
    const unsigned char* plane = stored.data() + stored_plane(form, options, c) * size;
    for (int y = 0; y < result.height; ++y) {
      unsigned char* to = result.plane(c) + static_cast<std::ptrdiff_t>(y) * result.width;
      const int row = top + y;
      if (row < 0 || row >= form.height) {
        std::fill_n(to, result.width, around);
        continue;
      }
      std::fill(to, to + begin, around);
      std::copy_n(plane + static_cast<std::ptrdiff_t>(row) * form.width + left + begin, end - begin,
                  to + begin);
      std::fill(to + end, to + result.width, around);
      if (plan.mirrored) std::reverse(to, to + result.width);
    }
  }
}

}  // namespace

bool RawPictures::is_drawn_from(const std::string& file, const std::string& split) {
  const std::string name = std::filesystem::path(file).filename().string();
  if (!has_word(name, "t10k") && !has_word(name, "test")) return true;
  const std::string what = sdk::text("'", as_utf8(name), "' is a test file by its name");
  if (split == "train") notes_ = what + ", all of which is tested; ";
  if (split == "test") notes_ = what + ": tested on all pictures";
  return split != "test";
}

std::vector<sdk::Parameter> RawPictures::parameters_of(const char* block) {
  std::vector<sdk::Parameter> parameters = transform_parameters(block);
  HeldOut::add_parameters(block, parameters);
  return parameters;
}

void RawPictures::begin(const tandem_dataset_request& request, const sdk::Attributes& attributes,
                        const RawForm& form, std::vector<std::string> class_names, bool drawn) {
  form_ = form;
  tandem_dataset_request wanted = request;
  if (wanted.shape.c == 0) wanted.shape.c = form.channels;
  transform_ = read_transform(wanted, attributes);
  if (transform_.height == 0) transform_.height = form.height;
  if (transform_.width == 0) transform_.width = form.width;
  class_names_ = std::move(class_names);
  if (request.class_names == nullptr) require_two_classes();
  if (drawn) take_part(request, HeldOut::of(attributes));
  adopt_classes(request.class_names);
}

void RawPictures::require_two_classes() const {
  const int64_t first = samples_.at(0).label;
  const bool alike = std::all_of(samples_.begin(), samples_.end(),
                                 [first](const Sample& sample) { return sample.label == first; });
  if (alike) {
    throw sdk::invalid("there is one class only, '", class_names_[static_cast<size_t>(first)],
                       "'; a classifier needs at least two");
  }
}

void RawPictures::adopt_classes(const char* model_classes) {
  if (model_classes == nullptr) return;
  const std::vector<std::string> model = lines_of(model_classes);
  for (Sample& sample : samples_) {
    sample.label = model_class(class_names_[static_cast<size_t>(sample.label)], model);
  }
  class_names_ = model;
}

void RawPictures::take_part(const tandem_dataset_request& request, const HeldOut& share) {
  const double fraction = share.fraction;
  const bool training = std::strcmp(request.split, "train") == 0;
  std::vector<int64_t> labels;
  for (const Sample& sample : samples_) labels.push_back(sample.label);
  const std::vector<Sample> all = std::move(samples_);
  samples_.clear();
  for (const size_t i : part_of(labels, class_names_, share, request.seed, !training)) {
    samples_.push_back(all[i]);
  }
  split_is_drawn_ = true;
  if (samples_.empty()) {
    throw sdk::invalid("val_fraction ", fraction, " leaves no picture ",
                       training ? "to train on" : "for validation");
  }
  note_part(request, fraction);
}

void RawPictures::note_part(const tandem_dataset_request& request, double fraction) {
  const std::string share = sdk::text(std::round(fraction * 1000) / 10, " % of every class");
  const std::string split = request.split;
  if (split == "train") {
    notes_ += sdk::text(share, " are held out (seed ", request.seed, ")");
  } else if (split == "test" && fraction == 1) {
    notes_ = "no test file: tested on all pictures";
  } else if (split == "test") {
    notes_ = sdk::text("no test file: tested on the ", share, " that training holds out (seed ",
                       request.seed, "); --data-option val_fraction=1 tests all pictures");
  }
}

const char* RawPictures::class_name(int64_t index) const {
  return class_names_.at(static_cast<size_t>(index)).c_str();
}

const char* RawPictures::sample_name(int64_t index) const {
  const Sample& sample = samples_.at(static_cast<size_t>(index));
  const std::lock_guard lock(names_mutex_);
  std::string& name = names_[index];
  if (name.empty()) name = sdk::text(files_[sample.file].path(), ", picture ", sample.number);
  return name.c_str();
}

int64_t RawPictures::label(int64_t index) const {
  return samples_.at(static_cast<size_t>(index)).label;
}

void RawPictures::read_pixels(const Sample& sample, std::vector<unsigned char>& pixels) const {
  pixels.resize(static_cast<size_t>(form_.channels) * static_cast<size_t>(form_.height) *
                static_cast<size_t>(form_.width));
  if (!files_[sample.file].read(sample.offset, pixels.data(), pixels.size())) {
    throw sdk::skip("cannot be read at byte ", sample.offset,
                    ": the file became shorter meanwhile, or its disk failed");
  }
}

void RawPictures::get(int64_t index, uint64_t seed, float* pixels, float* label) const {
  thread_local std::vector<unsigned char> stored, rows;
  const Sample& sample = samples_.at(static_cast<size_t>(index));
  read_pixels(sample, stored);
  const View view = arranged(stored, form_, static_cast<int>(transform_.channels), rows);
  const Size whole{form_.width, form_.height};
  const auto number = static_cast<uint64_t>(index);
  transform(view, whole, make_plan(whole, transform_, number, seed), transform_, number, seed,
            pixels);
  *label = static_cast<float>(sample.label);
}

void RawPictures::get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label) const {
  thread_local std::vector<unsigned char> stored, rows;
  const Sample& sample = samples_.at(static_cast<size_t>(index));
  read_pixels(sample, stored);
  const Size whole{form_.width, form_.height};
  const auto number = static_cast<uint64_t>(index);
  const Plan plan = make_plan(whole, transform_, number, seed);
  if (only_moves(form_, transform_, plan)) {
    const BytePlanes result{pixels, static_cast<int>(transform_.channels), plan.size.height,
                            plan.size.width};
    move_pixels(stored, form_, transform_, plan, result);
    erase(transform_, number, seed, result);
  } else {
    const View view = arranged(stored, form_, static_cast<int>(transform_.channels), rows);
    transform(view, whole, plan, transform_, number, seed, pixels);
  }
  *label = static_cast<float>(sample.label);
}

void RawPictures::describe(int64_t index, tandem_sample_info& info) const {
  thread_local std::vector<unsigned char> stored;
  read_pixels(samples_.at(static_cast<size_t>(index)), stored);
  info.channels = form_.channels;
  info.width = form_.width;
  info.height = form_.height;
  info.bytes = static_cast<int64_t>(stored.size());
  info.content = hash_of(stored);
  info.format = form_.format;
}

}  // namespace tandem::picture
