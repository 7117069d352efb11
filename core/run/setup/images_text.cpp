#include "core/run/setup/images_text.h"

#include <fmt/format.h>

#include <vector>

#include "core/data/dataset_source.h"
#include "core/run/setup/setup_data.h"

namespace tandem {
namespace {

std::string size_text(const std::string& height, const std::string& width) {
  return height == width ? height : height + "x" + width;
}

// As size_text(), of numbers; "" where they are not known.
std::string size_text(int64_t height, int64_t width) {
  return height > 0 ? size_text(fmt::format("{}", height), fmt::format("{}", width)) : "";
}

std::string filter_text(const RunRecord& record) {
  const std::string filter =
      parameter(record, "interpolation") == "bicubic" ? "bicubic" : "bilinear";
  return parameter(record, "resampling") == "pillow" ? filter + " as by Pillow" : filter;
}

// How a picture becomes the size of the net's input.
std::string fit_text(const RunRecord& record) {
  const std::string fit = parameter(record, "fit"), size = size_text(record.data.h, record.data.w);
  std::string resize = parameter(record, "resize");
  if (resize == "0") resize = "";
  const std::string width = parameter(record, "resize_width");
  const std::string whole = resize.empty()                  ? size
                            : width.empty() || width == "0" ? resize
                                                            : size_text(resize, width);
  const std::string filter = filter_text(record);
  const std::string cropped = resize.empty() || whole == size ? "" : " and cropped to " + size;
  if (fit == "squash") return fmt::format("squashed to {} ({}){}", whole, filter, cropped);
  if (fit == "pad") {
    return fmt::format("fitted into {} ({}) between bars of the mean{}", whole, filter, cropped);
  }
  if (!resize.empty())
    return fmt::format("resized to {} ({}) and cropped to {}", resize, filter, size);
  const bool is_square = record.data.h == record.data.w;
  return fmt::format("cropped to {}, resized to {} ({})",
                     is_square ? "a square" : "the proportions of " + size, size, filter);
}

std::string training_text(const RunRecord& record) {
  std::vector<std::string> parts;
  for (const char* name : {"mirror", "pad", "crop_area", "crop_ratio", "rotation", "jitter",
                           "randaugment", "trivialaugment", "erase"}) {
    const std::string value = parameter(record, name);
    if (value.empty() || value == "false" || value == "0") continue;
    parts.push_back(value == "true" ? name : fmt::format("{} {}", name, value));
  }
  return parts.empty() ? "" : fmt::format("; in training also {}", fmt::join(parts, ", "));
}

std::string text_of(const TransformDefinition& transform) {
  std::vector<std::string> parts{fmt::format("scale {:g}", transform.scale)};
  const auto add = [&](bool is_so, const std::string& part) {
    if (is_so) parts.push_back(part);
  };
  add(transform.crop_height > 0, "crop " + size_text(transform.crop_height, transform.crop_width));
  add(transform.resize_height > 0,
      fmt::format("{} to {}", transform.fit,
                  size_text(transform.resize_height, transform.resize_width)));
  add(!transform.mean_values.empty(),
      fmt::format("mean {:g}", fmt::join(transform.mean_values, ",")));
  add(!transform.mean_file.empty(), "mean_file " + transform.mean_file);
  add(transform.gray, "gray");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string other_preparation_text(const NetDefinition& net) {
  const auto training = net.transform(TANDEM_TRAIN), testing = net.transform(TANDEM_TEST);
  if (!training || !testing || text_of(*training) == text_of(*testing)) return "";
  return fmt::format(
      "the net's data layer of testing prepares images in another way ({}) than that of training "
      "({}), which counts in both",
      text_of(*testing), text_of(*training));
}

std::string images_text(const RunRecord& record) {
  const bool is_rgb = parameter(record, "color") == "rgb";
  const std::string channels = record.data.c == 1 ? "gray" : is_rgb ? "r,g,b" : "b,g,r";
  const std::string mean = parameter(record, "mean"), scale = parameter(record, "scale");
  const std::string white = parameter(record, "white"), black = parameter(record, "black");
  const bool is_by_pixel = !parameter(record, "mean_image").empty();
  const std::string taken =
      mean.empty() ? (is_by_pixel ? "a mean of each pixel" : "no mean")
                   : fmt::format("{} {} ({})", is_by_pixel ? "a mean of each pixel, about" : "mean",
                                 mean, record.data.c == 1 ? "gray" : "b,g,r");
  return fmt::format("images: {}, {}, {}, {}{}{}{}", channels, fit_text(record), taken,
                     scale.empty() ? "scale 1" : "scale " + scale,
                     white.empty() ? "" : ", white " + white,
                     black.empty() ? "" : ", black " + black, training_text(record));
}

std::string images_text(Registry& registry, const RunRecord& record, const std::string& source,
                        const std::string& split) {
  const DeclaredParameters declared =
      declared_parameters(registry, source.empty() ? data_source(registry, record) : source, split);
  return declared.contains("mean") && declared.contains("fit") ? images_text(record) : "";
}

}  // namespace tandem
