#include "core/report/page/png.h"

#include <png.h>

#include "core/base/error.h"

namespace tandem {

std::string to_png(int64_t width, int64_t height, const std::vector<unsigned char>& pixels) {
  if (width < 1 || height < 1 || pixels.size() != size_t(3 * width * height)) {
    throw error("a PNG of {}x{} has {} bytes of pixels", width, height, pixels.size());
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = png_uint_32(width);
  image.height = png_uint_32(height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string png(bytes, '\0');
  if (png_image_write_to_memory(&image, png.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0) {
    throw error("a PNG of {}x{} cannot be made: {}", width, height, image.message);
  }
  png.resize(bytes);
  return png;
}

}  // namespace tandem
