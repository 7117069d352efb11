#include "layers/pooling/plain_pooling.h"

namespace tandem::layers {

PlainPooling::PlainPooling(const sdk::Binding& binding) : follows_relu_(binding.follows_relu()) {
  const sdk::Shape &in = binding.input(0).shape, &out = binding.output(0).shape;
  const PoolingSettings settings(binding.attributes, in);
  const Window& w = settings.window;
  maximum_ = settings.maximum;
  counts_padding_ = settings.counts_padding;
  block_ = cpu::block_of(cpu::named_as(binding.input(0), binding.output(0)).layout, in.c);
  planes_ = in.n * in.c / block_;
  h_ = {in.h, out.h, w.kernel.h, w.stride.h, w.pad.h};
  w_ = {in.w, out.w, w.kernel.w, w.stride.w, w.pad.w};
  if (maximum_ && binding.has(TANDEM_WANTS_BACKWARD_DATA)) {
    saved_bytes = sdk::count(out) * static_cast<int64_t>(sizeof(int32_t));
  }
  algorithm = "plain loops";
}

void PlainPooling::forward(const sdk::Call& call, const sdk::Pass& pass) const {
  const float* x = pass.input(0);
  float* y = pass.output(0);
  auto* places = saved_bytes > 0 ? pass.saved<int32_t>() : nullptr;
  const int64_t from = h_.input * w_.input * block_, to = h_.output * w_.output * block_;
  const int64_t work = w_.output * block_ * h_.kernel * w_.kernel;
  cpu::for_items(call.threads, planes_ * h_.output, work, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / h_.output, row = i % h_.output;
      const float* source = x + plane * from;
      const int64_t first = plane * to + row * w_.output * block_;
      if (maximum_) {
        maximum_row(row, source, y + first, places == nullptr ? nullptr : places + first);
      } else {
        average_row(row, source, y + first);
      }
    }
  });
}

void PlainPooling::backward_data(const sdk::Call& call, const sdk::Pass& pass) const {
  const float *x = pass.input(0), *dy = pass.output_gradient(0);
  float* dx = pass.input_gradient(0);
  const auto* places = saved_bytes > 0 ? pass.saved<int32_t>() : nullptr;
  const int64_t to = h_.output * w_.output * block_, line = w_.input * block_;
  cpu::for_items(call.threads, planes_ * h_.input, line, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t plane = i / h_.input, row = i % h_.input;
      float* target = dx + i * line;
      std::fill_n(target, line, 0.0F);
      if (maximum_) {
        maximum_gradient(row, dy + plane * to, places + plane * to, target);
      } else {
        average_gradient(row, dy + plane * to, target);
      }
      if (follows_relu_) cpu::pass_through_relu(x + i * line, target, line);
    }
  });
}

// Sums of lines, and then of the lines' sums, which keeps rounding errors small.
template <int64_t lanes>
void PlainPooling::average_of(const Range& rows, const Range& columns, int64_t line, int64_t block,
                              float divisor, const float* x, float* y) {
  float sums[lanes] = {};
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    float of_line[lanes] = {};
    for (int64_t w = columns.begin; w < columns.end; ++w) {
      const float* pixel = x + h * line + w * block;
      for (int64_t k = 0; k < lanes; ++k) of_line[k] += pixel[k];
    }
    for (int64_t k = 0; k < lanes; ++k) sums[k] += of_line[k];
  }
  for (int64_t k = 0; k < lanes; ++k) y[k] = sums[k] / divisor;
}

void PlainPooling::average_row(int64_t row, const float* x, float* y) const {
  const Range rows = h_.pixels_of(row);
  const float height = h_.extent_of(row, counts_padding_);
  for (int64_t i = 0; i < w_.output; ++i, y += block_) {
    const Range columns = w_.pixels_of(i);
    const float area = height * w_.extent_of(i, counts_padding_);
    for_channels(block_, [&](auto lanes, int64_t c) {
      average_of<lanes()>(rows, columns, w_.input * block_, block_, area, x + c, y + c);
    });
  }
}

template <int64_t lanes>
void PlainPooling::maximum_of(const Range& rows, const Range& columns, int64_t width, int64_t block,
                              const float* x, float* y, int32_t* places) {
  float most[lanes];
  int32_t place[lanes];
  const int64_t first = rows.begin * width + columns.begin;
  for (int64_t k = 0; k < lanes; ++k) most[k] = x[first * block + k];
  for (int64_t k = 0; k < lanes; ++k) place[k] = static_cast<int32_t>(first);
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = columns.begin; w < columns.end; ++w) {
      const float* pixel = x + (h * width + w) * block;
      const auto here = static_cast<int32_t>(h * width + w);
      for (int64_t k = 0; k < lanes; ++k) {
        const bool is_more = pixel[k] > most[k] || pixel[k] != pixel[k];
        most[k] = is_more ? pixel[k] : most[k];
        place[k] = is_more ? here : place[k];
      }
    }
  }
  std::copy_n(most, lanes, y);
  if (places != nullptr) std::copy_n(place, lanes, places);
}

void PlainPooling::maximum_row(int64_t row, const float* x, float* y, int32_t* places) const {
  const Range rows = h_.pixels_of(row);
  for (int64_t i = 0; i < w_.output; ++i, y += block_) {
    const Range columns = w_.pixels_of(i);
    for_channels(block_, [&](auto lanes, int64_t c) {
      maximum_of<lanes()>(rows, columns, w_.input, block_, x + c, y + c,
                          places == nullptr ? nullptr : places + i * block_ + c);
    });
  }
}

void PlainPooling::average_gradient(int64_t row, const float* dy, float* dx) const {
  const Range rows = h_.windows_of(row);
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    const float height = h_.extent_of(h, counts_padding_);
    for (int64_t i = 0; i < w_.output; ++i) {
      const float* gradient = dy + (h * w_.output + i) * block_;
      const float factor = 1 / (height * w_.extent_of(i, counts_padding_));
      const Range columns = w_.pixels_of(i);
      for (int64_t w = columns.begin; w < columns.end; ++w) {
        float* pixel = dx + w * block_;
        for (int64_t k = 0; k < block_; ++k) pixel[k] += factor * gradient[k];
      }
    }
  }
}

void PlainPooling::maximum_gradient(int64_t row, const float* dy, const int32_t* places,
                                    float* dx) const {
  const Range rows = h_.windows_of(row);
  const int64_t first = row * w_.input;
  for (int64_t i = rows.begin * w_.output; i < rows.end * w_.output; ++i) {
    for (int64_t k = 0; k < block_; ++k) {
      const int64_t column = places[i * block_ + k] - first;
      if (column >= 0 && column < w_.input) dx[column * block_ + k] += dy[i * block_ + k];
    }
  }
}

}  // namespace tandem::layers
