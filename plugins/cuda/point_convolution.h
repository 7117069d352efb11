// Convolutions of single pixels in full float32, as products of matrices by cuBLAS: kernels of 1 x
// 1, stride 1, no padding, one group, NCHW. For each image, y = W x and dx = W' dy; the gradient of
// W is the sum of dy x' over the images. cuDNN's model of a GPU puts slow engines first for these.
// The order of all sums depends on the shapes only, so that they have the same bits each time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/cuda/blas.h"
#include "plugins/cuda/convolution_shape.h"
#include "plugins/cuda/dnn_algorithms.h"
#include "plugins/cuda/indexing.h"
#include "plugins/cuda/teams.h"

namespace tandem::cuda {

namespace detail {

constexpr int64_t divided_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// How the weights' gradient is summed. A product adds over the columns of its factors, which are
// the pixels of one image, or of several where one has too few for a fast product. Many products
// run at a time, each into its own part; then the next ones are added to them, at last the parts to
// each other.
struct PointSums {
  int64_t joined = 1;   // images in a factor; 1: factors are the tensors themselves
  int64_t columns = 0;  // of a factor, beyond its pixels zeros
  int64_t products = 0;
  int64_t parts = 1;

  // Elements of all factors with so many rows, rounded up so that what follows them is aligned.
  [[nodiscard]] constexpr int64_t joined_elements(int64_t rows) const {
    constexpr int64_t alignment = 64;
    return joined == 1 ? 0 : divided_up(products * rows * columns, alignment) * alignment;
  }
};

// Together they are at most the scratch memory that a convolution has on every GPU.
constexpr int64_t max_joined_bytes = int64_t{192} << 20, max_part_bytes = int64_t{64} << 20;
static_assert(max_joined_bytes + max_part_bytes <= scratch_limit(0));

constexpr PointSums sums_of_joined(const ConvolutionShape& shape, int64_t joined) {
  constexpr int64_t aligned = 4;  // floats of one access
  const int64_t images = shape.x.n, pixels = shape.x.h * shape.x.w;
  PointSums sums;
  sums.products = divided_up(images, joined);
  sums.joined = divided_up(images, sums.products);
  sums.columns = sums.joined == 1 ? pixels : divided_up(sums.joined * pixels, aligned) * aligned;
  return sums;
}

constexpr PointSums point_sums(const ConvolutionShape& shape) {
  // Joining copies both tensors, which for more pixels takes longer than it saves.
  constexpr int64_t few_pixels = 128, enough_columns = 512;
  const int64_t pixels = shape.x.h * shape.x.w;
  PointSums sums = sums_of_joined(shape, 1);
  if (pixels < few_pixels) {
    const PointSums joined = sums_of_joined(shape, divided_up(enough_columns, pixels));
    const int64_t elements = joined.joined_elements(shape.x.c) + joined.joined_elements(shape.y.c);
    if (4 * elements <= max_joined_bytes) sums = joined;
  }
  // A large GPU has some 130 multiprocessors, which compute two tiles of a result each at a time.
  constexpr int64_t tile = 128, tiles_at_once = 264;
  const int64_t tiles = divided_up(shape.x.c, tile) * divided_up(shape.y.c, tile);
  const int64_t max_parts =
      std::clamp<int64_t>(max_part_bytes / (4 * shape.x.c * shape.y.c), 1, sums.products);
  const int64_t rounds =
      divided_up(sums.products, std::min(divided_up(tiles_at_once, tiles), max_parts));
  sums.parts = divided_up(sums.products, rounds);
  return sums;
}

// Writes the factors: for each product, the pixels of its images side by side for each channel.
struct JoinImages {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t line = quotient(i, columns), column = i - line * columns;
    const int64_t product = quotient(line, channels), channel = line - product * channels;
    const int64_t place = quotient(column, pixels), pixel = column - place * pixels;
    const int64_t image = product * joined + place;
    const bool is_pixel = place < joined && image < images;
    to[i] = is_pixel ? from[(image * channels + channel) * pixels + pixel] : 0.0F;
  }
  Divisor columns, channels, pixels;
  int64_t joined, images;
  const float* from;
  float* to;
};

struct AddParts {
  TANDEM_HOST_DEVICE void operator()(int64_t i) const {
    float sum = parts[i];
    for (int64_t part = 1; part < count; ++part) sum += parts[part * elements + i];
    result[i] = sum;
  }
  int64_t count, elements;
  const float* parts;
  float* result;
};

}  // namespace detail

class PointConvolution {
 public:
  static constexpr const char* name = "cublasGemmStridedBatchedEx";

  // Whether these are products that it computes. With fewer pixels than this those of an image are
  // too small.
  static constexpr bool computes(const ConvolutionShape& shape, const ConvolutionKind& kind) {
    constexpr int64_t min_pixels = 32;
    const bool is_full_float32 =
        kind.dtype == TANDEM_FLOAT32 && !kind.allows_tf32 && !kind.channels_last;
    const bool is_point = shape.weight.h == 1 && shape.weight.w == 1 && shape.stride.h == 1 &&
                          shape.stride.w == 1 && shape.pad.h == 0 && shape.pad.w == 0;
    return is_full_float32 && is_point && shape.group == 1 && shape.x.h * shape.x.w >= min_pixels;
  }

  PointConvolution(const ConvolutionShape& shape, bool backward_weights)
      : images_(shape.x.n),
        pixels_(shape.x.h * shape.x.w),
        inputs_(shape.x.c),
        outputs_(shape.y.c),
        has_sums_(backward_weights),
        sums_(detail::point_sums(shape)) {}

  [[nodiscard]] int64_t scratch_bytes() const {
    if (!has_sums_) return 0;
    const int64_t elements =
        part_elements() + sums_.joined_elements(inputs_) + sums_.joined_elements(outputs_);
    return elements * static_cast<int64_t>(sizeof(float));
  }

  // As those of Convolution.
  void forward(const sdk::Call& call, const void* x, const void* weight, const void*, void* y,
               void*) const {
    multiply_batch<float>(call, {{floats(weight), inputs_}, 0},
                          {{floats(x), pixels_}, inputs_ * pixels_},
                          {static_cast<float*>(y), pixels_, outputs_ * pixels_},
                          {outputs_, pixels_, inputs_, images_}, 0);
  }
  void backward_data(const sdk::Call& call, const void* weight, const void* dy, void* dx,
                     void*) const {
    multiply_batch<float>(call, {{floats(weight), inputs_, true}, 0},
                          {{floats(dy), pixels_}, outputs_ * pixels_},
                          {static_cast<float*>(dx), pixels_, inputs_ * pixels_},
                          {inputs_, pixels_, outputs_, images_}, 0);
  }
  void backward_weights(const sdk::Call& call, const void* x, const void* dy, void* dw,
                        void* scratch) const {
    auto* result = static_cast<float*>(dw);
    auto* memory = static_cast<float*>(scratch);
    float* parts = sums_.parts == 1 ? result : memory;
    memory += part_elements();
    const float* left = factors(call, floats(dy), outputs_, memory);
    memory += sums_.joined_elements(outputs_);
    const float* right = factors(call, floats(x), inputs_, memory);
    const int64_t elements = inputs_ * outputs_, columns = sums_.columns;
    const int64_t left_step = outputs_ * columns, right_step = inputs_ * columns;
    for (int64_t first = 0; first < sums_.products; first += sums_.parts) {
      multiply_batch<float>(
          call, {{left + first * left_step, columns}, left_step},
          {{right + first * right_step, columns, true}, right_step}, {parts, inputs_, elements},
          {outputs_, inputs_, columns, std::min(sums_.parts, sums_.products - first)},
          first == 0 ? 0.0F : 1.0F);
    }
    if (parts == result) return;
    for_each(call, elements, detail::AddParts{sums_.parts, elements, parts, result});
  }

 private:
  static const float* floats(const void* memory) { return static_cast<const float*>(memory); }

  [[nodiscard]] int64_t part_elements() const {
    constexpr int64_t alignment = 64;
    if (sums_.parts == 1) return 0;
    return detail::divided_up(sums_.parts * inputs_ * outputs_, alignment) * alignment;
  }
  // The factors of the products for the weights' gradient: the tensor, or its copy in `memory`.
  const float* factors(const sdk::Call& call, const float* tensor, int64_t channels,
                       float* memory) const {
    if (sums_.joined == 1) return tensor;
    for_each(call, sums_.products * channels * sums_.columns,
             detail::JoinImages{sums_.columns, channels, pixels_, sums_.joined, images_, tensor,
                                memory});
    return memory;
  }

  int64_t images_, pixels_, inputs_, outputs_;
  bool has_sums_;
  detail::PointSums sums_;
};

}  // namespace tandem::cuda
