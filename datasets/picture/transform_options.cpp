#include "datasets/picture/transform_options.h"

#include <charconv>
#include <cmath>

namespace tandem::picture {
namespace {

// "104,117,123", or one value for all channels.
std::array<float, 3> read_mean(std::string_view text, int64_t channels) {
  std::vector<float> values;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    while (at < end && *at == ' ') ++at;
    float value = 0;
    const auto [stop, status] = std::from_chars(at, end, value);
    if (status != std::errc{} || (stop != end && *stop != ',') || !std::isfinite(value)) {
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

void read_area(const sdk::Attributes& attributes, TransformOptions& t) {
  const std::vector<double> area = attributes.numbers("crop_area");
  const std::vector<double> ratio = attributes.numbers("crop_ratio");
  const auto require = [](bool right, const char* name, const char* what) {
    if (!right) throw sdk::invalid(name, " must be two numbers, the least and the most, ", what);
  };
  if (!area.empty()) {
    require(area.size() == 2 && area[0] > 0 && area[0] <= area[1] && area[1] <= 1, "crop_area",
            "above 0 and at most 1, as 0.08,1");
    t.min_area = area[0];
    t.max_area = area[1];
  }
  if (!ratio.empty()) {
    require(ratio.size() == 2 && ratio[0] > 0 && ratio[0] <= ratio[1], "crop_ratio",
            "of width to height, above 0, as 0.75,1.333");
    t.min_ratio = ratio[0];
    t.max_ratio = ratio[1];
  }
  if (!area.empty() && t.pad > 0) throw sdk::invalid("crop_area and pad exclude each other");
}

void read_size(const tandem_dataset_request& request, const sdk::Attributes& attributes,
               TransformOptions& t) {
  const std::string_view fit = attributes.text("fit");
  if (fit == "squash") t.fit = center_crop::Fit::squash;
  if (fit == "pad") t.fit = center_crop::Fit::pad;
  t.resize = attributes.integer("resize");
  t.resize_width = attributes.integer("resize_width");
  const int64_t other = t.resize_width > 0 ? t.resize_width : t.resize;
  t.height = request.shape.h == 0 ? t.resize : request.shape.h;
  t.width = request.shape.w == 0 ? other : request.shape.w;
  if (t.resize_width > 0 && (fit != "squash" || t.resize == 0)) {
    throw sdk::invalid("resize_width ", t.resize_width,
                       " is the width of fit=squash, whose height is 'resize'; give both");
  }
  const int64_t least = t.resize_width > 0 ? t.height : std::max(t.height, t.width);
  if (t.resize > 0 && t.resize < least) {
    throw sdk::invalid("resize ", t.resize, " is below the crop of ", t.height, "x", t.width,
                       "; give at least ", least);
  }
  if (t.resize_width > 0 && t.resize_width < t.width) {
    throw sdk::invalid("resize_width ", t.resize_width, " is below the crop of ", t.height, "x",
                       t.width, "; give at least ", t.width);
  }
}

void read_jitter(const std::vector<double>& jitter, TransformOptions& t) {
  if (jitter.size() > 4) {
    throw sdk::invalid("jitter has ", jitter.size(),
                       " numbers, but at most brightness, contrast, saturation and hue");
  }
  for (size_t i = 0; i < jitter.size(); ++i) {
    const double most = i == 3 ? 0.5 : 10;
    if (!(jitter[i] >= 0 && jitter[i] <= most)) {
      throw sdk::invalid("jitter is ", jitter[i], " for ", i == 3 ? "hue" : "a factor",
                         ", but must be from 0 to ", most);
    }
    t.jitter[i] = jitter[i];
  }
}

void read_randaugment(const std::vector<double>& random, TransformOptions& t) {
  if (random.empty()) return;
  if (random.size() != 2 || random[0] != std::floor(random[0]) || random[0] < 0 || random[0] > 14 ||
      !(random[1] >= 0 && random[1] <= 30)) {
    throw sdk::invalid(
        "randaugment must be how many operations (0 to 14) and how strong they are (0 to 30), as "
        "2,9");
  }
  t.random_operations = static_cast<int>(random[0]);
  t.magnitude = random[1];
}

}  // namespace

std::vector<sdk::Parameter> transform_parameters(const char* block) {
  return {
      sdk::word(block, "fit")
          .by_default("crop")
          .one_of("crop|squash|pad")
          .help("a picture of another form is cropped, or seen whole: squashed (stretched to the "
                "form of the input), or padded (letterbox: between bars of the mean)"),
      sdk::integer(block, "resize")
          .by_default("0")
          .range(0, 16384)
          .help("shorter side in pixels before cropping; 0: crop the largest region of the crop's "
                "form"),
      sdk::integer(block, "resize_width")
          .by_default("0")
          .range(0, 16384)
          .help("of fit=squash: the width before cropping, and 'resize' is the height; 0: in the "
                "crop's form"),
      sdk::word(block, "interpolation")
          .by_default("bilinear")
          .one_of("bilinear|bicubic")
          .help("how pixels are resampled; both average where the picture shrinks"),
      sdk::word(block, "resampling")
          .by_default("direct")
          .one_of("direct|pillow")
          .help("in tests and predictions: in one pass from a picture that may be decoded smaller, "
                "or Pillow's bytes, bit for bit"),
      sdk::word(block, "view")
          .by_default("middle")
          .one_of("middle|top_left|top_right|bottom_left|bottom_right")
          .help("in tests and predictions: the part of the picture that is cropped"),
      sdk::boolean(block, "mirror_view")
          .by_default("false")
          .help("in tests and predictions: mirror all samples left to right"),
      sdk::boolean(block, "mirror")
          .by_default("false")
          .help("mirror half of the samples left to right (training only, as all that follows)"),
      sdk::integer(block, "pad")
          .by_default("0")
          .range(0, 4096)
          .help("pixels of the mean put around the resized picture before it is cropped"),
      sdk::numbers(block, "crop_area")
          .help("random resized crop: least and most share of the picture, as 0.08,1"),
      sdk::numbers(block, "crop_ratio")
          .help("its least and most width by height; default 0.75,1.333"),
      sdk::number(block, "rotation")
          .by_default("0")
          .range(0, 180)
          .help("turn by up to so many degrees either way"),
      sdk::numbers(block, "jitter")
          .help("brightness,contrast,saturation,hue: 0.4 is a factor of 0.6 to 1.4; hue in turns, "
                "to 0.5"),
      sdk::numbers(block, "randaugment").help("operations,strength (0 to 30), as 2,9"),
      sdk::number(block, "trivialaugment")
          .by_default("0")
          .range(0, 1)
          .help(
              "share of the samples with one operation of any strength, in place of randaugment's"),
      sdk::number(block, "erase")
          .by_default("0")
          .range(0, 1)
          .help("share of the samples in which a random rectangle becomes the mean"),
      sdk::word(block, "mean")
          .by_default("")
          .help("taken from every pixel: B,G,R as 104,117,123, or one value"),
      sdk::word(block, "mean_image")
          .by_default("")
          .help("a .binaryproto file, as Caffe's mean_file: taken from every pixel at its place in "
                "the resized picture; 'mean' is then only what is drawn around pictures"),
      sdk::number(block, "scale")
          .by_default("1")
          .help("every pixel, its mean taken away, is multiplied by it"),
      sdk::word(block, "color")
          .by_default("bgr")
          .one_of("bgr|rgb")
          .help("order of the channels; Caffe's is bgr"),
  };
}

TransformOptions read_transform(const tandem_dataset_request& request,
                                const sdk::Attributes& attributes) {
  TransformOptions t;
  t.channels = request.shape.c == 0 ? 3 : request.shape.c;
  if (t.channels != 1 && t.channels != 3) {
    throw sdk::invalid("images have 1 or 3 channels, but the net expects ", t.channels);
  }
  read_size(request, attributes, t);
  if (attributes.text("interpolation") == "bicubic") t.filter = Filter::cubic;
  t.in_bytes = attributes.text("resampling") == "pillow";
  const std::string_view view = attributes.text("view");
  t.across = view.ends_with("_left") ? -1 : view.ends_with("_right") ? 1 : 0;
  t.down = view.starts_with("top_") ? -1 : view.starts_with("bottom_") ? 1 : 0;
  t.mirrored = attributes.boolean("mirror_view");
  t.random = request.phase == TANDEM_TRAIN;
  t.mirror = attributes.boolean("mirror");
  t.pad = static_cast<int>(attributes.integer("pad"));
  t.rotation = attributes.number("rotation");
  t.trivial = attributes.number("trivialaugment");
  t.erase = attributes.number("erase");
  t.rgb = attributes.text("color") == "rgb";
  t.mean = read_mean(attributes.text("mean"), t.channels);
  const std::string mean_image(attributes.text("mean_image"));
  if (!mean_image.empty()) {
    t.mean_image = std::make_shared<MeanImage>(mean_image, static_cast<int>(t.channels), t.mean);
  }
  t.scale = static_cast<float>(attributes.number("scale"));
  read_area(attributes, t);
  read_jitter(attributes.numbers("jitter"), t);
  read_randaugment(attributes.numbers("randaugment"), t);
  return t;
}

}  // namespace tandem::picture
