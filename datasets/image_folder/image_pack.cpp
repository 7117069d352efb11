#include "datasets/image_folder/image_pack.h"
#include "datasets/image_folder/white.h"

#include <algorithm>
#include <cmath>

#include "datasets/picture/classes.h"
#include "datasets/picture/file_groups.h"
#include "datasets/picture/names.h"

namespace tandem::image_folder {

ImagePack::ImagePack(const tandem_dataset_request& request, const sdk::Attributes& attributes)
    : file_(request.source) {
  std::vector<unsigned char> bytes(pack_header_bytes);
  if (!file_.read(0, bytes.data(), bytes.size())) bytes.clear();
  const PackHeader header = parse_header(bytes, static_cast<uint64_t>(file_.size()), file_.path());
  const auto read = [&](uint64_t offset, unsigned char* target, size_t count) {
    return file_.read(static_cast<int64_t>(offset), target, count);
  };
  PackIndex index = parse_index(read, header, file_.path());
  class_names_ = index.class_names;
  task_ = index.task;
  take_split(index, request, picture::HeldOut::of(attributes));
  adopt_classes(request.class_names);
  transform_ = picture::read_transform(request, attributes);
  take_levels(header.levels, levels_of(attributes), std::string_view(request.split) == "train");
  if (transform_.height == 0 || transform_.width == 0) read_size_of_first_picture();
}

std::vector<sdk::Parameter> ImagePack::parameters() {
  constexpr const char* block = "image_pack_param";
  std::vector<sdk::Parameter> parameters = picture::transform_parameters(block);
  add_level_parameters(block, parameters);
  picture::HeldOut::add_parameters(block, parameters);
  return parameters;
}

// Pictures that were made smaller have no other values than those of 8 bits.
void ImagePack::take_levels(const Levels& packed, const Levels& given, bool is_training) {
  levels_ = packed.white > 0 ? packed : given;
  // The run keeps them as text.
  const auto is_other = [](double a, double b) { return sdk::text(a) != sdk::text(b); };
  const bool differ = (given.white > 0 && is_other(given.white, levels_.white)) ||
                      (given.black && is_other(*given.black, levels_.black.value_or(0)));
  if (differ) {
    throw sdk::invalid("the pictures in the pack were made such of 8 bits with white=",
                       levels_.white, " and black=", levels_.black.value_or(0), ", not ",
                       given.white > 0 ? sdk::text("white=", given.white) : "",
                       given.white > 0 && given.black ? " and " : "",
                       given.black ? sdk::text("black=", *given.black) : "",
                       " (of --data-option or of the run): pack them again with those");
  }
  if (!is_training) return;
  std::string note;
  if (packed.white > 0) {
    const char* why = ": by it pictures in the pack were made such of 8 bits";
    note = sdk::text("white=", packed.white, why);
    if (packed.black) note += sdk::text("\nblack=", *packed.black, why);
  } else {
    levels_ = find_white(
        levels_, size(),
        [&](int64_t i, Reader& reader) { return read(pictures_[static_cast<size_t>(i)], reader); },
        note);
  }
  if (!note.empty()) notes_ += (notes_.empty() ? "" : "\n") + note;
}

void ImagePack::take_split(const PackIndex& index, const tandem_dataset_request& request,
                           const picture::HeldOut& share) {
  const auto has = [&](const std::string& name) {
    return std::find(index.splits.begin(), index.splits.end(), name) != index.splits.end();
  };
  std::string split = request.split;
  if (!has("val") && has("train") && (split == "train" || !has(split))) {
    return take_part(index, request, share, split != "train");
  }
  if (split == "test" && !has("test")) {
    split = "val";
    notes_ = "the pack has no test images: tested on its validation images";
  }
  for (const PackedPicture& one : index.pictures) {
    if (index.splits.at(one.split) == split) pictures_.push_back(one);
  }
  if (pictures_.empty()) {
    throw sdk::invalid("the pack holds no image of split '", split, "'; it has ",
                       picture::list_of(index.splits));
  }
}

void ImagePack::take_part(const PackIndex& index, const tandem_dataset_request& request,
                          const picture::HeldOut& share, bool held_out) {
  const double fraction = share.fraction;
  split_is_drawn_ = true;
  std::vector<PackedPicture> train;
  std::vector<int64_t> labels;
  std::vector<std::string> files;
  for (const PackedPicture& one : index.pictures) {
    if (index.splits.at(one.split) != "train") continue;
    train.push_back(one);
    labels.push_back(one.label);
    files.push_back(one.name);
  }
  const bool has_classes = task_ == TANDEM_TASK_CLASSES;
  const std::vector<std::string> one{""};  // images with labels or numbers are as of one class
  for (const size_t i : picture::part_of_files(files, labels, has_classes ? class_names_ : one,
                                               share, request.seed, held_out)) {
    pictures_.push_back(train[i]);
  }
  if (pictures_.empty()) {
    throw sdk::invalid("val_fraction ", fraction, " leaves no image ",
                       held_out ? "for validation" : "to train on");
  }
  const std::string part = sdk::text(std::round(fraction * 1000) / 10,
                                     has_classes ? " % of every class" : " % of the images");
  if (!held_out && fraction > 0) {
    notes_ = sdk::text("the pack has no validation images: ", part, " are held out (seed ",
                       request.seed, ")");
  } else if (std::string(request.split) == "test" && fraction < 1) {
    notes_ = sdk::text("the pack has no test or validation images: tested on the ", part,
                       " that training holds out (seed ", request.seed,
                       "); --data-option val_fraction=1 tests all images");
  }
}

void ImagePack::adopt_classes(const char* model_classes) {
  if (model_classes == nullptr) return;
  const std::vector<std::string> model = picture::lines_of(model_classes);
  if (task_ != TANDEM_TASK_CLASSES) return adopt_targets(model);
  for (PackedPicture& one : pictures_) {
    one.label = static_cast<uint32_t>(picture::model_class(class_names_[one.label], model));
  }
  class_names_ = model;
}

// In the model's order. A label that the model does not know must not be there.
void ImagePack::adopt_targets(const std::vector<std::string>& model) {
  std::vector<size_t> places;  // in the model
  for (const std::string& name : class_names_) {
    places.push_back(static_cast<size_t>(picture::model_class(name, model)));
  }
  if (places.size() != model.size() && task_ == TANDEM_TASK_VALUES) {
    throw sdk::invalid("the pack has ", places.size(), " of the model's ", model.size(), " values");
  }
  for (PackedPicture& one : pictures_) {
    std::vector<float> values(model.size(), 0.0F);
    for (size_t i = 0; i < places.size(); ++i) values[places[i]] = one.targets[i];
    one.targets = std::move(values);
  }
  class_names_ = model;
}

void ImagePack::read_size_of_first_picture() {
  const ThreadReader reader(transform_, levels_);
  const picture::Size first = reader->open(read(pictures_[0], *reader));
  if (transform_.height == 0) transform_.height = first.height;
  if (transform_.width == 0) transform_.width = first.width;
}

picture::Bytes ImagePack::read(const PackedPicture& one, Reader& reader) const {
  const picture::Bytes picture =
      reader.load_part(file_, static_cast<int64_t>(one.offset), one.bytes);
  if (picture::hash_of(picture) != one.hash) {
    throw sdk::skip("damaged: the check sum at byte ", one.offset, " of '", file_.path(),
                    "' is wrong");
  }
  return picture;
}

template <class Pixel>
void ImagePack::read_to(int64_t index, uint64_t seed, Pixel* pixels, float* label) const {
  const PackedPicture& one = pictures_.at(static_cast<size_t>(index));
  const ThreadReader reader(transform_, levels_);
  // Every picture was decoded to its end when it was packed, and its check sum is right.
  const picture::Size whole = reader->open(read(one, *reader), true);
  read_sample(*reader, whole, transform_, index, seed, pixels);
  *label = static_cast<float>(one.label);
  if (*reader->remark() != '\0') sdk::host->explain(reader->remark());
}

void ImagePack::get(int64_t index, uint64_t seed, float* pixels, float* label) const {
  read_to(index, seed, pixels, label);
}

void ImagePack::get_bytes(int64_t index, uint64_t seed, uint8_t* pixels, float* label) const {
  read_to(index, seed, pixels, label);
}

void ImagePack::describe(int64_t index, tandem_sample_info& info) const {
  const PackedPicture& one = pictures_.at(static_cast<size_t>(index));
  const ThreadReader reader(transform_, levels_);
  describe_picture(read(one, *reader), info);
  info.content = one.hash;
}

bool ImagePack::recognizes(const std::string& source) {
  const PathStatus status = picture::path_status(source);
  if (!status.exists() || status.is_folder()) return false;
  // One that is damaged or cannot be read is still one: its message says why.
  if (picture::extension_of(source) == ".pack") return true;
  const RegularFile file(source);
  unsigned char beginning[8] = {};
  size_t done = 0;
  return file.error() == 0 && file.read(0, beginning, sizeof(beginning), &done) == 0 &&
         done == sizeof(beginning) && is_pack(beginning);
}

}  // namespace tandem::image_folder
