#include "plugins/cuda/pixels.h"

#include <cstdint>

#include "plugins/cuda/indexing.h"
#include "plugins/cuda/launch.h"
#include "plugins/cuda/status.h"
#include "plugins/pixel_checks.h"
#include "plugins/pixels.h"

namespace tandem::cuda {

namespace {

// bytes that are read as one word, and floats that are written as one
constexpr int64_t together = 4;

// The channel of a pixel and of the pixels after it; a plane may end within a word.
class ChannelCursor {
 public:
  __device__ ChannelCursor(const tandem_shape& shape, int64_t at)
      : plane_(shape.h * shape.w), channels_(static_cast<int>(shape.c)) {
    const int64_t number = quotient(at, plane_);
    left_ = plane_ - (at - number * plane_);
    channel_ = static_cast<int>(number - quotient(number, channels_) * channels_);
  }
  [[nodiscard]] __device__ int channel() const { return channel_; }
  __device__ void advance() {
    if (--left_ > 0) return;
    left_ = plane_;
    if (++channel_ == channels_) channel_ = 0;
  }

 private:
  int64_t plane_, left_;
  int channels_, channel_;
};

// `in_words`: both arrays are aligned for words.
__global__ void convert_pixels_kernel(tandem_pixels p, int64_t count, bool in_words) {
  const int64_t words = (count + together - 1) / together;
  for (int64_t word = first_element(); word < words; word += element_stride()) {
    const int64_t begin = word * together;
    ChannelCursor cursor(p.shape, begin);
    if (in_words && begin + together <= count) {
      const uchar4 bytes = reinterpret_cast<const uchar4*>(p.pixels)[word];
      float4 values;
      values.x = pixels::value_of(bytes.x, p.means[cursor.channel()], p.scale);
      cursor.advance();
      values.y = pixels::value_of(bytes.y, p.means[cursor.channel()], p.scale);
      cursor.advance();
      values.z = pixels::value_of(bytes.z, p.means[cursor.channel()], p.scale);
      cursor.advance();
      values.w = pixels::value_of(bytes.w, p.means[cursor.channel()], p.scale);
      reinterpret_cast<float4*>(p.target)[word] = values;
      continue;
    }
    for (int64_t i = begin; i < count && i < begin + together; ++i, cursor.advance()) {
      p.target[i] = pixels::value_of(p.pixels[i], p.means[cursor.channel()], p.scale);
    }
  }
}

template <class T>
bool is_aligned(const T* address, size_t bytes) {
  return reinterpret_cast<uintptr_t>(address) % bytes == 0;
}

}  // namespace

void convert_pixels(const tandem_call& call, const tandem_pixels& given) {
  pixels::require_shape(given.shape);
  const tandem_shape& shape = given.shape;
  const int64_t count = shape.n * shape.c * shape.h * shape.w;
  if (count == 0) return;
  const bool in_words =
      is_aligned(given.pixels, sizeof(uchar4)) && is_aligned(given.target, sizeof(float4));
  convert_pixels_kernel<<<blocks_for(count, together), threads_per_block, 0, stream_of(call)>>>(
      given, count, in_words);
  check_launch("convert_pixels");
}

}  // namespace tandem::cuda
