#include "datasets/image_folder/decode.h"

#include <turbojpeg.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "datasets/image_folder/headers.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

constexpr int64_t pixel_limit = 100'000'000;
constexpr int64_t byte_limit = int64_t{1} << 30;

void check_extent(int64_t width, int64_t height) {
  if (width < 1 || height < 1) throw sdk::skip("has no pixels (", width, "x", height, ")");
  if (width > pixel_limit / height) {
    throw sdk::skip("too large: ", width, "x", height, " is over the limit of 100 megapixels");
  }
}

std::vector<unsigned char> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             &std::fclose);
  if (file == nullptr) throw sdk::skip("cannot be read: ", std::strerror(errno));
  std::fseek(file.get(), 0, SEEK_END);
  const int64_t size = std::ftell(file.get());
  if (size == 0) throw sdk::skip("the file is empty (0 bytes)");
  if (size < 0 || size > byte_limit) throw sdk::skip("too large: over 1 GiB");
  std::rewind(file.get());
  std::vector<unsigned char> bytes(static_cast<size_t>(size));
  if (std::fread(bytes.data(), 1, bytes.size(), file.get()) != bytes.size()) {
    throw sdk::skip("cannot be read to its end: ", std::strerror(errno));
  }
  return bytes;
}

struct JpegHeader {
  int width = 0, height = 0, subsampling = 0, colorspace = 0;
};

class JpegDecoder {
 public:
  JpegDecoder() : handle_(tjInitDecompress()) {
    if (handle_ == nullptr) throw sdk::failed("libjpeg-turbo: ", tjGetErrorStr2(nullptr));
  }
  ~JpegDecoder() { tjDestroy(handle_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  cv::Mat decode(Bytes file, const DecodeOptions& options) {
    const JpegHeader header = read_header(file);
    const bool four_inks = header.colorspace == TJCS_CMYK || header.colorspace == TJCS_YCCK;
    const tjscalingfactor factor = choose_scale(header, options.shorter_side);
    const int width = TJSCALED(header.width, factor);
    const int height = TJSCALED(header.height, factor);
    cv::Mat image(height, width, four_inks ? CV_8UC4 : options.gray ? CV_8UC1 : CV_8UC3);
    const int format = four_inks ? TJPF_CMYK : options.gray ? TJPF_GRAY : TJPF_BGR;
    if (tjDecompress2(handle_, file.data(), file.size(), image.data, width,
                      static_cast<int>(image.step), height, format,
                      TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0) {
      throw sdk::skip("truncated or damaged JPEG: ", tjGetErrorStr2(handle_));
    }
    return four_inks ? from_inks(image, options.gray) : image;
  }

 private:
  JpegHeader read_header(Bytes file) {
    JpegHeader header;
    if (tjDecompressHeader3(handle_, file.data(), file.size(), &header.width, &header.height,
                            &header.subsampling, &header.colorspace) != 0) {
      throw sdk::skip("truncated or damaged JPEG: ", tjGetErrorStr2(handle_));
    }
    if (header.width < 1) throw sdk::skip("truncated or damaged JPEG: it holds no picture");
    check_extent(header.width, header.height);
    return header;
  }

  static tjscalingfactor choose_scale(const JpegHeader& header, int shorter_side) {
    // Other eighths are slower than full size.
    for (const int denominator : {8, 4, 2}) {
      const tjscalingfactor factor{1, denominator};
      const int shorter = std::min(TJSCALED(header.width, factor), TJSCALED(header.height, factor));
      if (shorter_side > 0 && shorter >= shorter_side) return factor;
    }
    return {1, 1};
  }

  // Programs write CMYK JPEGs inverted, as Adobe does: a byte is the light that an ink lets
  // through.
  static cv::Mat from_inks(const cv::Mat& inks, bool gray) {
    cv::Mat image(inks.rows, inks.cols, CV_8UC3);
    for (int y = 0; y < inks.rows; ++y) {
      const auto* from = inks.ptr<unsigned char>(y);
      auto* to = image.ptr<unsigned char>(y);
      for (int x = 0; x < inks.cols; ++x, from += 4, to += 3) {
        for (int c = 0; c < 3; ++c) {
          to[c] = static_cast<unsigned char>((from[2 - c] * from[3] + 127) / 255);
        }
      }
    }
    if (gray) cv::cvtColor(image, image, cv::COLOR_BGR2GRAY);
    return image;
  }

  tjhandle handle_;
};

cv::Mat turned(const cv::Mat& image, int orientation) {
  cv::Mat result = image;
  const bool transposed = orientation >= 5;
  if (transposed) cv::transpose(image, result);
  // After the transposition: which axes still run backwards.
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  if (!flip_x && !flip_y) return result;
  cv::Mat flipped;
  cv::flip(result, flipped, flip_x && flip_y ? -1 : flip_x ? 1 : 0);
  return flipped;
}

// 16 bits to 8. Cameras and scanners store 12 bits in 16: such a picture would be nearly black.
cv::Mat to_8_bits(const cv::Mat& image) {
  double scale = 1;
  if (image.depth() == CV_16U) {
    double greatest = 0;
    cv::minMaxLoc(image.reshape(1), nullptr, &greatest);
    scale = 255.0 / (greatest < 4096 ? 4095 : 65535);
  } else if (image.depth() == CV_32F || image.depth() == CV_64F) {
    scale = 255;  // 0 to 1
  }
  cv::Mat result;
  image.convertTo(result, CV_8U, scale);
  return result;
}

cv::Mat decode_other(Bytes file, const DecodeOptions& options) {
  if (!is_known_format(file)) {
    throw sdk::skip("not an image that is read here (JPEG, PNG, BMP, WebP, TIFF, PNM)");
  }
  const Extent extent = extent_of(file);
  if (extent.width != 0 || extent.height != 0) check_extent(extent.width, extent.height);
  if (const char* damage = damage_of(file)) throw sdk::skip(damage);
  const cv::Mat bytes(1, static_cast<int>(file.size()), CV_8U,
                      const_cast<unsigned char*>(file.data()));
  cv::Mat image;
  try {
    image = cv::imdecode(
        bytes, (options.gray ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR) | cv::IMREAD_ANYDEPTH);
  } catch (const cv::Exception& failure) {
    throw sdk::skip("damaged: OpenCV says ", failure.err);
  }
  if (image.empty()) throw sdk::skip("damaged: OpenCV cannot decode it");
  check_extent(image.cols, image.rows);
  return image.depth() == CV_8U ? image : to_8_bits(image);
}

}  // namespace

cv::Mat decode_file(const std::string& path, const DecodeOptions& options) {
  const std::vector<unsigned char> bytes = read_file(path);
  if (!is_jpeg(bytes)) return decode_other(bytes, options);
  // A decoder keeps tables from file to file: only a new one makes the picture the file's alone.
  const cv::Mat image = JpegDecoder().decode(bytes, options);
  return turned(image, exif_orientation(bytes));
}

}  // namespace tandem::image_folder
