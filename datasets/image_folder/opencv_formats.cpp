#include "datasets/image_folder/opencv_formats.h"

#include <cmath>
#include <cstdio>
#include <iostream>
#include <limits>
#include <new>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <streambuf>
#include <vector>

#include "datasets/image_folder/gif_heif_formats.h"
#include "datasets/image_folder/image_headers.h"
#include "datasets/image_folder/other_formats.h"
#include "datasets/image_folder/tiff_errors.h"
#include "datasets/image_folder/tiff_forms.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

thread_local int quiet_depth = 0;

// Replaces the buffer of std::cerr from the first Quiet on. Never removed, as another thread may be
// writing.
class Gate : public std::streambuf {
 public:
  explicit Gate(std::streambuf* target) : target_(target) {}

 protected:
  int_type overflow(int_type character) override {
    if (quiet_depth > 0 || traits_type::eq_int_type(character, traits_type::eof())) {
      return traits_type::not_eof(character);
    }
    return target_->sputc(traits_type::to_char_type(character));
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    return quiet_depth > 0 ? count : target_->sputn(text, count);
  }
  int sync() override { return quiet_depth > 0 ? 0 : target_->pubsync(); }

 private:
  std::streambuf* target_;
};

#ifdef __GLIBC__
// Writes to the stream that stderr was before.
ssize_t write_unless_quiet(void* target, const char* text, size_t count) {
  if (quiet_depth > 0) return static_cast<ssize_t>(count);
  return static_cast<ssize_t>(std::fwrite(text, 1, count, static_cast<std::FILE*>(target)));
}
#endif

// The same for the stderr of C, as libpng cannot be told where to write when OpenCV calls it.
void put_gate_of_c() {
#ifdef __GLIBC__
  cookie_io_functions_t functions{};
  functions.write = &write_unless_quiet;
  std::FILE* made = ::fopencookie(stderr, "w", functions);
  if (made == nullptr) return;
  std::setvbuf(made, nullptr, _IONBF, 0);
  stderr = made;
#endif
}

void put_gate() {
  static Gate* const gate = [] {
    auto* made = new Gate(std::cerr.rdbuf());
    std::cerr.rdbuf(made);
    put_gate_of_c();
    return made;
  }();
  static_cast<void>(gate);
}

// OpenCV 4.6 writes messages about some files to std::cerr, and libpng to stderr. While a Quiet
// lives, output of its thread to both is dropped; that of other threads passes.
class Quiet {
 public:
  Quiet() {
    put_gate();
    ++quiet_depth;
  }
  ~Quiet() { --quiet_depth; }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
};

// Of floats OpenCV makes no colors out of gray, and no gray out of colors. Empty for any other
// form.
cv::Mat decode_floats(const cv::Mat& bytes, bool gray) {
  cv::Mat image = cv::imdecode(bytes, cv::IMREAD_UNCHANGED), result;
  if (image.depth() < CV_32F || (image.channels() != 1 && image.channels() != 3)) return result;
  image.convertTo(image, CV_32F);
  if ((image.channels() == 1) == gray) return image;
  cv::cvtColor(image, result, gray ? cv::COLOR_BGR2GRAY : cv::COLOR_GRAY2BGR);
  return result;
}

// Decoders of some forms of PNM leave values as they are where white is below 255, those of others
// make it 255. As these do, with a fraction dropped.
void make_white_255(cv::Mat& image, int64_t white) {
  cv::Mat table(1, 256, CV_8U);
  for (int64_t i = 0; i < 256; ++i) {
    table.data[i] = static_cast<unsigned char>(std::min<int64_t>(i * 255 / white, 255));
  }
  cv::LUT(image, table, image);
}

}  // namespace

Values values_of(const cv::Mat& image) {
  Values values;
  if (image.depth() == CV_8U) return values;
  values.are_deep = true;
  values.are_floats = image.depth() == CV_32F;
  const auto samples = static_cast<int64_t>(image.total()) * image.channels();
  const cv::Mat one_channel = image.reshape(1);
  if (!values.are_floats) {
    values.finite = samples;
    cv::minMaxLoc(one_channel, &values.least, &values.greatest);
    return values;
  }
  constexpr float infinite = std::numeric_limits<float>::infinity();
  float least = infinite, greatest = -infinite;
  for (int y = 0; y < one_channel.rows; ++y) {
    const auto* row = one_channel.ptr<float>(y);
    for (int x = 0; x < one_channel.cols; ++x) {
      if (!std::isfinite(row[x])) continue;
      ++values.finite;
      least = std::min(least, row[x]);
      greatest = std::max(greatest, row[x]);
    }
  }
  values.others = samples - values.finite;
  if (values.finite > 0) {
    values.least = least;
    values.greatest = greatest;
  }
  return values;
}

cv::Mat to_8_bits(const cv::Mat& image, Bytes file, const Values& values, const Levels& levels) {
  const double black = levels.black.value_or(0);
  if (!values.are_deep) {
    const bool is_whole_range = levels.white == 0 || (levels.white >= 65535 && black == 0);
    if (!is_whole_range && drops_lower_bits(file)) {
      throw sdk::skip("too large: a picture of 16 bits whose white is ", levels.white,
                      ", not 65535, is read up to 32 megapixels; store it with 8 bits a channel");
    }
    return image;
  }
  if (values.finite == 0) throw sdk::skip("holds no numbers: every value is NaN or infinite");
  if (values.go_below_0() && !levels.black) throw sdk::skip(no_black(values));
  const double white = levels.white > 0 ? levels.white : values.are_floats ? 1 : 65535;
  if (white <= black) {
    throw sdk::skip("white, ", white, ", is not above black, ", black,
                    ": --data-option white=N gives it");
  }
  cv::Mat result;
  const double scale = 255 / (white - black);
  image.convertTo(result, CV_8U, scale, -black * scale);
  if (values.others == 0) return result;
  for (int y = 0; y < image.rows; ++y) {
    const auto* from = image.ptr<float>(y);
    auto* to = result.ptr<unsigned char>(y);
    for (int i = 0; i < image.cols * image.channels(); ++i) {
      if (!std::isfinite(from[i])) to[i] = 0;
    }
  }
  return result;
}

std::string no_black(const Values& values) {
  return sdk::text("values below 0 (from ", values.least, " to ", values.greatest,
                   "), and nothing says which value is black: --data-option black=", values.least,
                   " makes the least one black");
}

cv::Mat decode_other(Bytes file, bool gray, const BeforePixels& before_pixels,
                     const char*& remark) {
  const bool by_libheif = heif_name(file) != nullptr;
  const bool is_known = is_known_format(file) || is_gif(file) || by_libheif;
  const std::string other = !is_known || is_tiff(file) ? other_format(file) : "";
  if (!other.empty()) throw sdk::skip("not an image that is read here: ", other);
  if (!is_known) {
    throw sdk::skip(
        "not an image that is read here (JPEG, PNG, BMP, WebP, TIFF, PNM, GIF, AVIF, HEIC)");
  }
  const Extent extent = extent_of(file);
  if (extent.width != 0 || extent.height != 0) check_extent(extent.width, extent.height);
  if (by_libheif) return decode_heif(file, gray, before_pixels);
  if (is_gif(file)) check_extent(extent.width, extent.height);
  if (const char* damage = damage_of(file, remark)) throw sdk::skip(damage);
  const double memory = decoding_bytes(file);
  before_pixels(memory, extent.width, extent.height);
  require_memory(memory);
  if (is_gif(file)) return decode_gif(file, gray);
  std::vector<unsigned char> room;
  if (is_png(file)) {
    file = without_notes(file, room);
  } else if (*remark != '\0') {
    file = mended(file, room);
  } else if (is_text_without_end(file)) {
    room.assign(file.begin(), file.end());
    room.push_back('\n');
    file = room;
  }
  // The format itself says what is white.
  const int64_t white = white_of_pnm(file);
  if (is_tiff(file)) {
    if (const std::string form = misread_form(file); !form.empty()) {
      throw sdk::skip("not an image that is read here: ", form);
    }
    if (is_multiplied(file)) {
      file = with_colors_kept(file, room);
    } else if (has_gray_bands(file)) {
      file = with_bands_as_colors(file, room);
    }
  }
  const cv::Mat bytes(1, static_cast<int>(file.size()), CV_8U,
                      const_cast<unsigned char*>(file.data()));
  const bool drops_bits = drops_lower_bits(file);
  int flags = gray ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR;
  if (!drops_bits) flags |= cv::IMREAD_ANYDEPTH;
  // Only later versions of OpenCV read the orientation of a WebP.
  if (is_webp(file)) flags |= cv::IMREAD_IGNORE_ORIENTATION;
  cv::Mat image;
  bool is_broken = false;
  try {
    const Quiet quiet;
    const TiffErrors errors;
    image = cv::imdecode(bytes, flags);
    if (image.empty() && is_tiff(file) && orientation_of(file) == 1) {
      image = decode_floats(bytes, gray);
    }
    is_broken = errors.any();
  } catch (const cv::Exception& failure) {
    if (failure.code == cv::Error::StsNoMem) throw std::bad_alloc();
    throw sdk::skip("damaged: OpenCV says ", failure.err);
  }
  if (image.empty() && is_webp(file) && webp_form(file).animated) {
    throw sdk::skip(
        "not an image that is read here: an animated WebP; write its pictures as files: "
        "magick FILE FILE-%d.png");
  }
  if (is_tiff(file) && (image.empty() || is_broken)) {
    std::string form = unread_codec(file);
    if (form.empty() && image.empty()) form = unread_form(file);
    if (!form.empty()) throw sdk::skip("not an image that is read here: ", form);
  }
  if (image.empty()) throw sdk::skip("damaged: OpenCV cannot decode it");
  if (is_broken) throw sdk::skip("damaged TIFF: not all of its pixels can be decompressed");
  check_extent(image.cols, image.rows);
  if (image.depth() == CV_64F) image.convertTo(image, CV_32F);
  if (drops_bits && white > 255 && white < 65535) {
    throw sdk::skip("too large: a PNM whose white is ", white,
                    ", not 65535, is read up to 32 megapixels; store it with 8 bits a channel");
  }
  if (image.depth() == CV_8U && white > 1 && white < 255 && !is_text(file)) {
    make_white_255(image, white);
  }
  if (image.depth() == CV_16U && white > 0) image.convertTo(image, CV_16U, 65535.0 / white);
  return image;
}

}  // namespace tandem::image_folder
