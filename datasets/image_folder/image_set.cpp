#include "datasets/image_folder/image_set.h"
#include "datasets/image_folder/remarks.h"
#include "datasets/image_folder/white.h"
#include "datasets/picture/data_file.h"

#include <filesystem>

#include "datasets/picture/bytes.h"
#include "datasets/picture/classes.h"

namespace tandem::image_folder {

namespace fs = std::filesystem;

std::vector<sdk::Parameter> ImageSet::parameters_of(const char* block) {
  std::vector<sdk::Parameter> parameters = picture::transform_parameters(block);
  add_level_parameters(block, parameters);
  picture::HeldOut::add_parameters(block, parameters);
  parameters.push_back(sdk::integer(block, "cache")
                           .by_default("0")
                           .range(0, 1 << 20)
                           .help("MiB of memory for decoded pictures; those that fit are decoded "
                                 "once"));
  return parameters;
}

ListingOptions ImageSet::listing_options(const tandem_dataset_request& request,
                                         const sdk::Attributes& attributes) {
  ListingOptions options;
  options.source = request.source;
  options.split = request.split;
  options.class_names = picture::lines_of(request.class_names);
  options.held_out = picture::HeldOut::of(attributes);
  options.seed = request.seed;
  return options;
}

std::string ImageSet::name_in_source(int64_t index) const {
  std::error_code ignored;
  const fs::path path = fs::absolute(image(index).path, ignored).lexically_normal();
  const fs::path name = path.lexically_relative(folder_);
  return name.empty() || *name.begin() == ".." ? path.string() : name.string();
}

void ImageSet::begin(const tandem_dataset_request& request, const sdk::Attributes& attributes,
                     Listing listing) {
  std::error_code ignored;
  const fs::path source = fs::absolute(request.source, ignored).lexically_normal();
  folder_ = picture::path_status(source).is_folder() ? source : source.parent_path();
  transform_ = picture::read_transform(request, attributes);
  listing_ = std::move(listing);
  whole_ = std::make_unique<std::atomic<uint64_t>[]>(listing_.images.size());
  cache_ =
      std::make_unique<PictureCache>(listing_.images.size(), attributes.integer("cache") << 20);
  levels_ = levels_of(attributes);
  if (transform_.height == 0 || transform_.width == 0) read_size_of_first_image();
  if (std::string_view(request.split) == "train") {
    const auto load = [&](int64_t i, Reader& reader) {
      return may_have_deep_values(image(i).path) ? reader.load(image(i).path) : Bytes();
    };
    std::string note;
    levels_ = find_white(levels_, size(), load, note);
    if (!note.empty()) listing_.note(note);
  }
  for (const std::string& note : listing_.notes) notes_ += (notes_.empty() ? "" : "\n") + note;
}

void ImageSet::read_size_of_first_image() {
  std::string first_reason;
  for (const Image& image : listing_.images) {
    try {
      const ThreadReader reader(transform_, levels_);
      const picture::Size first = reader->open_file(image.path);
      (void)reader->decode_all();
      if (transform_.height == 0) transform_.height = first.height;
      if (transform_.width == 0) transform_.width = first.width;
      return;
    } catch (const sdk::Refusal& damaged) {
      if (damaged.status() != TANDEM_SKIP) throw;
      if (first_reason.empty()) first_reason = image.path + ": " + damaged.what();
    }
  }
  throw sdk::invalid("none of ", size(), " images can be used, as ", first_reason);
}

template <class Pixel>
void ImageSet::read(int64_t index, uint64_t seed, Pixel* pixels, float* label) const {
  *label = static_cast<float>(image(index).label);
  if (get_kept(index, seed, pixels)) return;
  const ThreadReader reader(transform_, levels_);
  const Bytes file = reader->load(image(index).path);
  // A file that was decoded to its end once is whole as long as its bytes are the same. Never 0.
  const uint64_t content = picture::hash_of(file) | 1U;
  std::atomic<uint64_t>& whole_content = whole_[static_cast<size_t>(index)];
  const bool known_whole = whole_content.load(std::memory_order_relaxed) == content;
  const picture::Size whole = reader->open(file, known_whole);
  read_and_keep(*reader, whole, index, seed, pixels);
  whole_content.store(content, std::memory_order_relaxed);
  if (*reader->remark() != '\0') sdk::host->explain(reader->remark());
}

template void ImageSet::read(int64_t, uint64_t, float*, float*) const;
template void ImageSet::read(int64_t, uint64_t, uint8_t*, float*) const;

template <class Pixel>
bool ImageSet::get_kept(int64_t index, uint64_t seed, Pixel* pixels) const {
  const PictureCache::Kept* kept = cache_->find(static_cast<size_t>(index));
  if (kept == nullptr) return false;
  const auto number = static_cast<uint64_t>(index);
  const picture::Plan plan = picture::make_plan(kept->whole, transform_, number, seed);
  // Decoded at another scale than this sample needs, the picture has other pixels.
  if (kept->can_shrink && picture::possible_shrink(plan) != kept->view.shrunk) return false;
  picture::transform(kept->view, kept->whole, plan, transform_, number, seed, pixels);
  return true;
}

template <class Pixel>
void ImageSet::read_and_keep(Reader& reader, const picture::Size& whole, int64_t index,
                             uint64_t seed, Pixel* pixels) const {
  const auto number = static_cast<uint64_t>(index);
  const picture::Plan plan = picture::make_plan(whole, transform_, number, seed);
  const int shrink = reader.can_shrink() ? picture::possible_shrink(plan) : 1;
  const int width = (whole.width + shrink - 1) / shrink;
  const int height = (whole.height + shrink - 1) / shrink;
  const auto place = static_cast<size_t>(index);
  const bool keeps =
      cache_->has_room(transform_.channels * width * height) && cache_->find(place) == nullptr;
  if (!keeps) {
    read_sample(reader, whole, transform_, index, seed, pixels);
    return;
  }
  const picture::View view = reader.decode(shrink, {0, 0, width, height});
  cache_->keep(place, whole, reader.can_shrink(), view);
  picture::transform(view, whole, plan, transform_, number, seed, pixels);
}

void ImageSet::describe(int64_t index, tandem_sample_info& info) const {
  const ThreadReader reader(transform_, levels_);
  const Bytes file = reader->load(image(index).path);
  describe_picture(file, info);
  info.content = picture::hash_of(file);
}

void describe_picture(Bytes file, tandem_sample_info& info) {
  const StoredForm form = stored_form(file);
  info.channels = form.channels;
  info.width = form.size.width;
  info.height = form.size.height;
  info.bytes = static_cast<int64_t>(file.size());
  info.format = form.format;
  const std::string remarks = remarks_of(file);
  if (!remarks.empty()) sdk::host->explain(remarks.c_str());
}

Reader& ThreadReader::of_thread(bool gray) {
  thread_local Reader of_gray(true), of_color(false);
  return gray ? of_gray : of_color;
}

}  // namespace tandem::image_folder
