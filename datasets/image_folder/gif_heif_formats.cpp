#include "datasets/image_folder/gif_heif_formats.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <opencv2/imgproc.hpp>
#include <string_view>
#include <vector>

#include "datasets/image_folder/image_headers.h"
#include "plugins/sdk.h"

#ifdef TANDEM_WITH_GIF
#include <gif_lib.h>
#endif
#ifdef TANDEM_WITH_HEIF
#include <libheif/heif.h>
#endif

namespace tandem::image_folder {
namespace {

#ifdef TANDEM_WITH_GIF

class Gif {
 public:
  explicit Gif(Bytes file) : file_(file) {
    int code = 0;
    gif_ = DGifOpen(this, &read, &code);
    if (gif_ == nullptr) refuse(code);
  }
  ~Gif() { DGifCloseFile(gif_, nullptr); }
  Gif(const Gif&) = delete;
  Gif& operator=(const Gif&) = delete;

  // B,G,R on the whole canvas, which is black where the frame leaves it free.
  [[nodiscard]] cv::Mat first_frame() {
    find_frame();
    const GifImageDesc frame = gif_->Image;
    const ColorMapObject* colors = frame.ColorMap != nullptr ? frame.ColorMap : gif_->SColorMap;
    if (colors == nullptr) throw sdk::skip("damaged GIF: it has no colors");
    check_extent(frame.Width, frame.Height);
    if (frame.Left >= gif_->SWidth || frame.Top >= gif_->SHeight) {
      throw sdk::skip("damaged GIF: its first frame is outside of the picture");
    }
    cv::Mat canvas(gif_->SHeight, gif_->SWidth, CV_8UC3, cv::Scalar::all(0));
    std::vector<GifPixelType> row(static_cast<size_t>(frame.Width));
    // An interlaced picture has every eighth row first, then those between them.
    struct Pass {
      int first, step;
    };
    const std::vector<Pass> passes = frame.Interlace
                                         ? std::vector<Pass>{{0, 8}, {4, 8}, {2, 4}, {1, 2}}
                                         : std::vector<Pass>{{0, 1}};
    for (const auto [first, step] : passes) {
      for (int y = first; y < frame.Height; y += step) {
        if (DGifGetLine(gif_, row.data(), frame.Width) == GIF_ERROR) refuse(gif_->Error);
        draw(row, frame.Left, frame.Top + y, *colors, canvas);
      }
    }
    return canvas;
  }

 private:
  static int read(GifFileType* gif, GifByteType* to, int count) {
    auto* self = static_cast<Gif*>(gif->UserData);
    const size_t left = self->file_.size() - self->at_;
    const size_t taken = std::min(left, static_cast<size_t>(std::max(count, 0)));
    std::memcpy(to, self->file_.data() + self->at_, taken);
    self->at_ += taken;
    return static_cast<int>(taken);
  }

  [[noreturn]] static void refuse(int code) {
    if (code == D_GIF_ERR_NOT_ENOUGH_MEM) throw std::bad_alloc();
    const char* text = GifErrorString(code);
    throw sdk::skip("truncated or damaged GIF: ", text == nullptr ? "it ends early" : text);
  }

  void find_frame() {
    while (true) {
      GifRecordType kind = UNDEFINED_RECORD_TYPE;
      if (DGifGetRecordType(gif_, &kind) == GIF_ERROR) refuse(gif_->Error);
      if (kind == TERMINATE_RECORD_TYPE) throw sdk::skip("damaged GIF: it has no frame");
      if (kind == IMAGE_DESC_RECORD_TYPE) {
        if (DGifGetImageDesc(gif_) == GIF_ERROR) refuse(gif_->Error);
        return;
      }
      int code = 0;
      GifByteType* block = nullptr;
      if (DGifGetExtension(gif_, &code, &block) == GIF_ERROR) refuse(gif_->Error);
      while (block != nullptr) {
        if (DGifGetExtensionNext(gif_, &block) == GIF_ERROR) refuse(gif_->Error);
      }
    }
  }

  // What lies outside of the canvas is left out.
  static void draw(const std::vector<GifPixelType>& row, int left, int y,
                   const ColorMapObject& colors, cv::Mat& canvas) {
    if (y < 0 || y >= canvas.rows) return;
    unsigned char* pixels = canvas.ptr(y);
    for (size_t i = 0; i < row.size(); ++i) {
      const int64_t x = left + static_cast<int64_t>(i);
      if (row[i] >= colors.ColorCount) throw sdk::skip("damaged GIF: it names a missing color");
      if (x < 0 || x >= canvas.cols) continue;
      const GifColorType& color = colors.Colors[row[i]];
      pixels[3 * x] = color.Blue;
      pixels[3 * x + 1] = color.Green;
      pixels[3 * x + 2] = color.Red;
    }
  }

  Bytes file_;
  size_t at_ = 0;
  GifFileType* gif_ = nullptr;
};

#endif
#ifdef TANDEM_WITH_HEIF

class Heif {
 public:
  Heif(Bytes file, const char* name) : name_(name), context_(heif_context_alloc()) {
    if (context_ == nullptr) throw std::bad_alloc();
    heif_context_set_max_decoding_threads(context_, 0);  // the loader has threads of its own
    try {
      check(
          heif_context_read_from_memory_without_copy(context_, file.data(), file.size(), nullptr));
      check(heif_context_get_primary_image_handle(context_, &handle_));
    } catch (...) {
      release();
      throw;
    }
  }
  ~Heif() { release(); }
  Heif(const Heif&) = delete;
  Heif& operator=(const Heif&) = delete;

  // Gray or B,G,R.
  [[nodiscard]] cv::Mat decode(bool gray, const BeforePixels& before_pixels) {
    const int shown_width = heif_image_handle_get_width(handle_);
    const int shown_height = heif_image_handle_get_height(handle_);
    check_extent(shown_width, shown_height);
    limit_to(std::max(shown_width, shown_height));
    const int64_t bytes = heif_bytes_per_pixel * shown_width * shown_height;
    before_pixels(static_cast<double>(bytes), shown_width, shown_height);
    require_memory(static_cast<double>(bytes));
    heif_decoding_options* options = heif_decoding_options_alloc();
    if (options == nullptr) throw std::bad_alloc();
    options->convert_hdr_to_8bit = 1;
    // Concerns headers only: of compressed pixels that are damaged and can be decoded libheif gives
    // neither an error nor a warning.
    options->strict_decoding = 1;
    const heif_error status = heif_decode_image(handle_, &image_, heif_colorspace_RGB,
                                                heif_chroma_interleaved_RGB, options);
    heif_decoding_options_free(options);
    check(status);
    int stride = 0;
    const uint8_t* pixels =
        heif_image_get_plane_readonly(image_, heif_channel_interleaved, &stride);
    const int width = heif_image_get_width(image_, heif_channel_interleaved);
    const int height = heif_image_get_height(image_, heif_channel_interleaved);
    check_extent(width, height);
    if (pixels == nullptr) throw sdk::skip("damaged ", name_, ": it has no pixels");
    const cv::Mat rgb(height, width, CV_8UC3, const_cast<uint8_t*>(pixels),
                      static_cast<size_t>(stride));
    cv::Mat result;
    cv::cvtColor(rgb, result, gray ? cv::COLOR_RGB2GRAY : cv::COLOR_RGB2BGR);
    return result;
  }

 private:
  // The items of which a picture is put together have sizes of their own, which may be lies.
  void limit_to(int shown) {
    constexpr int small = 4096;
    const int stored = std::max(heif_image_handle_get_ispe_width(handle_),
                                heif_image_handle_get_ispe_height(handle_));
    heif_context_set_maximum_image_size_limit(context_, std::max({small, shown, stored}));
  }
  void check(const heif_error& status) const {
    if (status.code == heif_error_Ok) return;
    if (status.code == heif_error_Memory_allocation_error &&
        status.subcode != heif_suberror_Security_limit_exceeded) {
      throw std::bad_alloc();
    }
    if (status.code == heif_error_Unsupported_filetype ||
        status.code == heif_error_Unsupported_feature) {
      throw sdk::skip(name_, ": libheif cannot read it here (", first_line(status.message),
                      "); it may lack a decoder of this format");
    }
    if (status.subcode == heif_suberror_End_of_data) {
      throw sdk::skip("truncated or damaged ", name_, ": it ends early");
    }
    if (status.code == heif_error_Decoder_plugin_error) {
      throw sdk::skip("truncated or damaged ", name_, ": its compressed pixels cannot be decoded");
    }
    throw sdk::skip("truncated or damaged ", name_, ": ", first_line(status.message));
  }
  // Without the places in the file, so that equal reasons are counted together.
  static std::string_view first_line(const char* message) {
    const std::string_view text(message);
    const std::string_view line = text.substr(0, text.find_first_of("(\n"));
    return line.substr(0, line.find_last_not_of(" .:") + 1);
  }
  void release() {
    if (image_ != nullptr) heif_image_release(image_);
    if (handle_ != nullptr) heif_image_handle_release(handle_);
    heif_context_free(context_);
  }

  const char* name_;
  heif_context* context_;
  heif_image_handle* handle_ = nullptr;
  heif_image* image_ = nullptr;
};

#endif

}  // namespace

cv::Mat decode_gif([[maybe_unused]] Bytes file, [[maybe_unused]] bool gray) {
#ifdef TANDEM_WITH_GIF
  cv::Mat frame = Gif(file).first_frame();
  if (!gray) return frame;
  cv::Mat result;
  cv::cvtColor(frame, result, cv::COLOR_BGR2GRAY);
  return result;
#else
  throw sdk::skip("GIF: Tandem was built without giflib (Debian: libgif-dev), which reads it");
#endif
}

cv::Mat decode_heif([[maybe_unused]] Bytes file, [[maybe_unused]] bool gray,
                    [[maybe_unused]] const BeforePixels& before_pixels) {
#ifdef TANDEM_WITH_HEIF
  return Heif(file, heif_name(file)).decode(gray, before_pixels);
#else
  throw sdk::skip(heif_name(file),
                  ": Tandem was built without libheif (Debian: libheif-dev), which reads it");
#endif
}

}  // namespace tandem::image_folder
