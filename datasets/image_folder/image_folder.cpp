#include "datasets/image_folder/image_folder.h"

#include <charconv>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <sstream>

#include "datasets/image_folder/decode.h"

namespace tandem::image_folder {
namespace {

constexpr const char* block = "image_folder_param";

std::vector<std::string> lines_of(const char* text) {
  std::vector<std::string> lines;
  if (text == nullptr) return lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// "104,117,123", or one value for all channels.
std::array<float, 3> read_mean(std::string_view text, int64_t channels) {
  std::vector<float> values;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    while (at < end && *at == ' ') ++at;
    float value = 0;
    const auto [stop, status] = std::from_chars(at, end, value);
    if (status != std::errc{} || (stop != end && *stop != ',')) {
      throw sdk::invalid("mean is '", text,
                         "', but must be numbers, as 104,117,123 (B,G,R) or 128");
    }
    values.push_back(value);
    at = stop + (stop != end ? 1 : 0);
  }
  if (values.empty()) return {};
  if (values.size() == 1) return {values[0], values[0], values[0]};
  if (values.size() != static_cast<size_t>(channels)) {
    throw sdk::invalid("mean '", text, "' has ", values.size(), " values, but images have ",
                       channels, channels == 1 ? " channel" : " channels");
  }
  return {values[0], values[1], values[2]};
}

}  // namespace

std::vector<sdk::Parameter> ImageFolder::parameters() {
  return {
      sdk::integer(block, "resize")
          .by_default("0")
          .range(0, 16384)
          .help("shorter side in pixels before cropping; 0: crop the largest region of the crop's "
                "form"),
      sdk::boolean(block, "mirror")
          .by_default("false")
          .help("mirror half of the samples left to right (training only)"),
      sdk::word(block, "mean")
          .by_default("")
          .help("taken from every pixel: B,G,R as 104,117,123, or one value"),
      sdk::number(block, "scale")
          .by_default("1")
          .help("every pixel, its mean taken away, is multiplied by it"),
      sdk::word(block, "color")
          .by_default("bgr")
          .one_of("bgr|rgb")
          .help("order of the channels; Caffe's is bgr"),
      sdk::number(block, "val_fraction")
          .by_default("0.2")
          .range(0, 1)
          .help("share of each class held out for validation where there is no val/ folder"),
  };
}

ImageFolder::ImageFolder(const tandem_dataset_request& request, const sdk::Attributes& attributes) {
  read_transform(request, attributes);
  ListingOptions options;
  options.source = request.source;
  options.split = request.split;
  options.class_names = lines_of(request.class_names);
  options.val_fraction = attributes.number("val_fraction");
  options.seed = request.seed;
  listing_ = list_images(options);
  if (transform_.height == 0 || transform_.width == 0) read_size_of_first_image();
  for (const std::string& note : listing_.notes) notes_ += (notes_.empty() ? "" : "\n") + note;
}

void ImageFolder::read_transform(const tandem_dataset_request& request,
                                 const sdk::Attributes& attributes) {
  TransformOptions& t = transform_;
  t.channels = request.shape.c == 0 ? 3 : request.shape.c;
  if (t.channels != 1 && t.channels != 3) {
    throw sdk::invalid("images have 1 or 3 channels, but the net expects ", t.channels);
  }
  t.resize = attributes.integer("resize");
  t.height = request.shape.h == 0 ? t.resize : request.shape.h;
  t.width = request.shape.w == 0 ? t.resize : request.shape.w;
  if (t.resize > 0 && t.resize < std::max(t.height, t.width)) {
    throw sdk::invalid("resize ", t.resize, " is below the crop of ", t.height, "x", t.width,
                       "; give at least ", std::max(t.height, t.width));
  }
  t.random = request.phase == TANDEM_TRAIN;
  t.mirror = t.random && attributes.boolean("mirror");
  t.rgb = attributes.text("color") == "rgb";
  t.mean = read_mean(attributes.text("mean"), t.channels);
  t.scale = static_cast<float>(attributes.number("scale"));
}

void ImageFolder::read_size_of_first_image() {
  for (const Image& image : listing_.images) {
    try {
      const cv::Mat first = decode_file(image.path, {});
      if (transform_.height == 0) transform_.height = first.rows;
      if (transform_.width == 0) transform_.width = first.cols;
      return;
    } catch (const sdk::Refusal& damaged) {
      if (damaged.status() != TANDEM_SKIP) throw;
    }
  }
  throw sdk::invalid("all ", size(), " images are damaged: their size cannot be read");
}

void ImageFolder::get(int64_t index, uint64_t seed, float* pixels, float* label) const {
  const Image& image = listing_.images.at(static_cast<size_t>(index));
  const cv::Mat decoded =
      decode_file(image.path, {transform_.channels == 1, needed_shorter_side(transform_)});
  transform(decoded, transform_, static_cast<uint64_t>(index), seed, pixels);
  *label = static_cast<float>(image.label);
}

}  // namespace tandem::image_folder

extern "C" TANDEM_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  // Decoder threads are the host's; and what OpenCV has to say comes as a reason, not on stderr.
  cv::setNumThreads(0);
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  tandem::sdk::Plugin plugin(host, "image_folder", "1.0");
  return plugin.dataset<tandem::image_folder::ImageFolder>().table();
}
