// The backend's own kernels, on the host.
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <thread>

#include "plugins/cuda/sources.h"
#include "plugins/cuda/sum_order.h"
#include "plugins/pixels.h"
#include "plugins/update_rules.h"
#include "tests/cuda/fake/stream.h"

namespace tandem::fake {
namespace {

template <class T>
T argument(void** arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof value);
  return value;
}

void update(const tandem_update& u, float* first, float* second) {
  if (u.found_inf != nullptr && *u.found_inf != 0) return;
  const rules::Terms t = rules::terms_of(u);
  for (int64_t i = 0; i < u.count; ++i) {
    float& w = u.weights[i];
    const float g = u.gradient[i];
    switch (u.rule) {
      case TANDEM_UPDATE_NESTEROV:
        rules::nesterov(t, w, g, first[i]);
        break;
      case TANDEM_UPDATE_ADAGRAD:
        rules::adagrad(t, w, g, first[i]);
        break;
      case TANDEM_UPDATE_RMSPROP:
        rules::rmsprop(t, w, g, first[i]);
        break;
      case TANDEM_UPDATE_ADADELTA:
        rules::adadelta(t, w, g, first[i], second[i]);
        break;
      case TANDEM_UPDATE_ADAM:
        rules::adam(t, w, g, first[i], second[i]);
        break;
      case TANDEM_UPDATE_ADAMW:
        rules::adamw(t, w, g, first[i], second[i]);
        break;
      case TANDEM_UPDATE_AVERAGE:
        rules::average(t, w, g, first[i]);
        break;
      default:
        rules::sgd(t, w, g, first[i]);
    }
  }
}

void add(float* target, const cuda::Sources& sources, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    for (uint32_t s = 0; s < sources.count; ++s) target[i] += sources.arrays[s][i];
  }
}

void check_finite(const float* values, int64_t count, int32_t* found_inf) {
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) *found_inf = 1;
  }
}

void add_squares(const float* values, int64_t count, double* sums, int64_t blocks) {
  std::fill(sums, sums + blocks, 0.0);
  for (int64_t i = 0; i < count; ++i) {
    sums[i / cuda::sum_threads % blocks] += static_cast<double>(values[i]) * values[i];
  }
}

void add_up(const double* sums, int count, double* sum) {
  *sum = 0;
  for (int i = 0; i < count; ++i) *sum += sums[i];
}

void convert_pixels(const tandem_pixels& p, int64_t count) {
  const int64_t plane = p.shape.h * p.shape.w;
  for (int64_t i = 0; i < count; ++i) {
    p.target[i] = pixels::value_of(p.pixels[i], p.means[i / plane % p.shape.c], p.scale);
  }
}

}  // namespace

std::function<void()> kernel_body(const char* name, unsigned blocks, void** a) {
  const std::string_view mangled(name);
  const auto is = [&](const char* kernel) { return mangled.find(kernel) != mangled.npos; };
  if (is("fill_kernel")) {
    return [target = argument<float*>(a, 0), value = argument<float>(a, 1),
            count = argument<int64_t>(a, 2)] { std::fill(target, target + count, value); };
  }
  if (is("check_finite_kernel")) {
    return [values = argument<const float*>(a, 0), count = argument<int64_t>(a, 1),
            found_inf = argument<int32_t*>(a, 2)] { check_finite(values, count, found_inf); };
  }
  if (is("square_kernel")) {
    return [values = argument<const float*>(a, 0), count = argument<int64_t>(a, 1),
            sums = argument<double*>(a, 2), blocks] { add_squares(values, count, sums, blocks); };
  }
  if (is("add_up_kernel")) {
    return [sums = argument<const double*>(a, 0), count = argument<int>(a, 1),
            sum = argument<double*>(a, 2)] { add_up(sums, count, sum); };
  }
  if (is("add_kernel")) {
    return [target = argument<float*>(a, 0), sources = argument<cuda::Sources>(a, 1),
            count = argument<int64_t>(a, 2)] { add(target, sources, count); };
  }
  if (is("convert_pixels_kernel")) {
    return [given = argument<tandem_pixels>(a, 0), count = argument<int64_t>(a, 1)] {
      convert_pixels(given, count);
    };
  }
  if (is("pass_time_kernel")) {
    return [time = std::chrono::nanoseconds(argument<uint64_t>(a, 0))] {
      std::this_thread::sleep_for(time);
    };
  }
  if (is("update_kernel")) {
    return [arrays = argument<tandem_update>(a, 0), first = argument<float*>(a, 1),
            second = argument<float*>(a, 2)] { update(arrays, first, second); };
  }
  return nullptr;
}

}  // namespace tandem::fake
