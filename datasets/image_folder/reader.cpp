#include "datasets/image_folder/reader.h"

#include <cerrno>

#include "datasets/image_folder/decoding_memory.h"
#include "datasets/image_folder/image_headers.h"
#include "datasets/image_folder/opencv_formats.h"
#include "plugins/regular_file.h"
#include "plugins/sdk.h"

namespace tandem::image_folder {
namespace {

constexpr int64_t byte_limit = int64_t{1} << 30;
constexpr size_t kept_bytes = size_t{64} << 20;  // of a buffer, after a picture; also a small file

// A file that is missing or cut costs a sample. A disk that fails, or a file that this user may not
// read, ends the run, whose result would otherwise depend on it.
[[noreturn]] void refuse(const std::string& path, const char* what, int error) {
  const std::string why = RegularFile::text_of(error);
  const bool is_forbidden = error == EACCES || error == EPERM;
  if (is_forbidden || RegularFile::is_failure(error)) {
    throw sdk::failed("'", path, "' ", what, ": ", why);
  }
  throw sdk::skip(what, ": ", why);
}

// The position at which the stored pixel (x, y) is shown.
picture::View turned(const picture::View& view, int orientation,
                     std::vector<unsigned char>& buffer) {
  const bool transposed = orientation >= 5;
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  picture::View result = view;
  if (transposed) std::swap(result.width, result.height);
  result.stride = static_cast<std::ptrdiff_t>(result.width) * view.channels;
  const auto bytes = static_cast<size_t>(result.stride) * static_cast<size_t>(result.height);
  if (buffer.size() < bytes) buffer.resize(bytes);
  unsigned char* to = buffer.data();
  for (int row = 0; row < result.height; ++row) {
    const int y = flip_y ? result.height - 1 - row : row;
    for (int column = 0; column < result.width; ++column, to += view.channels) {
      const int x = flip_x ? result.width - 1 - column : column;
      const unsigned char* from = transposed ? view.pixels + x * view.stride + y * view.channels
                                             : view.pixels + y * view.stride + x * view.channels;
      for (int c = 0; c < view.channels; ++c) to[c] = from[c];
    }
  }
  result.pixels = buffer.data();
  return result;
}

void trim(std::vector<unsigned char>& buffer) {
  if (buffer.capacity() > kept_bytes) std::vector<unsigned char>().swap(buffer);
}

picture::Size shown(const picture::Size& stored, int orientation) {
  return orientation >= 5 ? picture::Size{stored.height, stored.width} : stored;
}

}  // namespace

Bytes Reader::load(const std::string& path) {
  close();
  const RegularFile file(path);
  if (file.error() != 0) refuse(path, "cannot be read", file.error());
  const int64_t size = file.size();
  if (size == 0) throw sdk::skip("the file is empty (0 bytes)");
  if (size > byte_limit) throw sdk::skip("too large: over 1 GiB");
  make_room(static_cast<size_t>(size));
  size_t done = 0;
  const int error = file.read(0, bytes_.data(), static_cast<size_t>(size), &done);
  if (error != 0) refuse(path, "cannot be read to its end", error);
  if (done < static_cast<size_t>(size)) {
    throw sdk::skip("cannot be read to its end: it became shorter meanwhile");
  }
  return {bytes_.data(), static_cast<size_t>(size)};
}

Bytes Reader::load_part(const picture::DataFile& file, int64_t offset, size_t bytes) {
  close();
  make_room(bytes);
  if (!file.read(offset, bytes_.data(), bytes)) {
    throw sdk::skip("cannot be read at byte ", offset, " of '", file.path(), "'");
  }
  return {bytes_.data(), bytes};
}

void Reader::make_room(size_t bytes) {
  if (bytes > kept_bytes) take_turn();
  if (bytes_.size() < bytes) bytes_.resize(bytes);
}

void Reader::close() {
  close_picture();
  trim(bytes_);
  turn_ = {};
}

void Reader::close_picture() {
  jpeg_.reset();
  other_.release();
  trim(pixels_);
  trim(turned_);
}

void Reader::take_turn() {
  static std::mutex one_at_a_time;
  if (!turn_) turn_ = std::unique_lock(one_at_a_time);
}

picture::Size Reader::open(Bytes file, bool known_whole) {
  if (file.data() == bytes_.data()) {
    close_picture();
  } else {
    close();
  }
  if (file.empty()) throw sdk::skip("the file is empty (0 bytes)");
  if (!is_jpeg(file)) {
    const char* format = format_name(file);
    const auto before_pixels = [&](double bytes, int64_t width, int64_t height) {
      if (is_large_decoding(bytes, format, width, height)) take_turn();
    };
    const char* remark = "";
    const cv::Mat stored = decode_other(file, gray_, before_pixels, remark);
    remark_ = remark;
    values_ = values_of(stored);
    other_ = to_8_bits(stored, file, values_, levels_);
    note_values(file);
    orientation_ = exif_orientation(file);
    size_ = shown({other_.cols, other_.rows}, orientation_);
    return size_;
  }
  jpeg_ = std::make_unique<Jpeg>(file, known_whole);
  check_extent(jpeg_->size().width, jpeg_->size().height);
  const auto [width, height] = jpeg_->size();
  if (is_large_decoding(jpeg_->buffered_bytes(), "JPEG", width, height)) take_turn();
  orientation_ = exif_orientation(file);
  size_ = shown(jpeg_->size(), orientation_);
  return size_;
}

void Reader::note_values(Bytes file) {
  if (!values_.are_deep) return;
  const auto add = [&](bool is_so, const char* line) {
    if (is_so) remark_ += (remark_.empty() ? "" : "\n") + std::string(line);
  };
  add(levels_.white == 0 && white_of_pnm(file) == 0,
      "over 8 bits a channel, of which 65535 (of floats 1) is taken as white: training has no such "
      "images, or the option 'white' says otherwise");
  add(levels_.white > 0 && values_.greatest > levels_.white,
      "values above white (the option 'white')");
  add(values_.least < levels_.black.value_or(0), "values below black (the option 'black')");
  add(values_.others > 0, "values that are no numbers (NaN) or infinite become black");
}

picture::View Reader::decode(int shrink, const picture::Part& part) {
  if (jpeg_ == nullptr) {
    const picture::View stored{other_.data, other_.cols, other_.rows, other_.channels(),
                               static_cast<std::ptrdiff_t>(other_.step)};
    return orientation_ == 1 ? stored : turned(stored, orientation_, turned_);
  }
  const auto [width, height] = jpeg_->size();
  const bool is_turned = orientation_ != 1;
  const picture::Part all{0, 0, (width + shrink - 1) / shrink, (height + shrink - 1) / shrink};
  const picture::Part& decoded = is_turned ? all : part;
  const double bytes = (is_turned ? 2.0 : 1.0) * (gray_ ? 1 : 3) * (decoded.right - decoded.left) *
                       (decoded.bottom - decoded.top);
  if (is_large_decoding(bytes, "JPEG", width, height)) take_turn();
  if (!is_turned) return jpeg_->decode(gray_, shrink, part, pixels_);
  return turned(jpeg_->decode(gray_, shrink, all, pixels_), orientation_, turned_);
}

picture::View Reader::decode_all() {
  return decode(1, {0, 0, size_.width, size_.height});
}

StoredForm stored_form(Bytes file) {
  if (is_jpeg(file)) {
    const JpegForm form = jpeg_form(file);
    const picture::Size size{static_cast<int>(form.extent.width),
                             static_cast<int>(form.extent.height)};
    if (form.channels > 0 && size.width > 0 && size.height > 0) {
      return {"JPEG", form.channels, shown(size, exif_orientation(file))};
    }
    const Jpeg jpeg(file);  // which knows the reason
    return {"JPEG", jpeg.channels(), shown(jpeg.size(), exif_orientation(file))};
  }
  const Extent extent = extent_of(file);
  const picture::Size size{static_cast<int>(extent.width), static_cast<int>(extent.height)};
  return {format_name(file), colors_of(file), shown(size, exif_orientation(file)),
          format_name(file) == std::string("unknown") ? 0 : bits_of(file)};
}

}  // namespace tandem::image_folder
