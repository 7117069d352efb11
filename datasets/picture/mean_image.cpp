#include "datasets/picture/mean_image.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "datasets/picture/data_file.h"
#include "plugins/sdk.h"

namespace tandem::picture {
namespace {

// Caffe's BlobProto.
struct Blob {
  std::vector<int64_t> sizes;          // shape
  std::array<int64_t, 4> old_sizes{};  // num, channels, height, width
  std::vector<float> values;
};

// Fields of a message of Protocol Buffers, one after the other.
class Message {
 public:
  explicit Message(std::string_view bytes) : bytes_(bytes) {}

  // False at the end. What a field is made of is in `number` or `bytes`.
  bool next() {
    if (bytes_.empty()) return false;
    const uint64_t key = varint();
    field = static_cast<int>(key >> 3U);
    kind = static_cast<int>(key & 7U);
    if (kind == 0) {
      number = static_cast<int64_t>(varint());
    } else if (kind == 1 || kind == 5) {
      bytes = take(kind == 1 ? sizeof(double) : sizeof(float));
    } else if (kind == 2) {
      bytes = take(varint());
    } else {
      throw sdk::invalid("it is damaged, or no .binaryproto");
    }
    return true;
  }
  // The numbers of a field that may be packed.
  template <class Function>
  void for_each_number(const Function& function) const {
    if (kind == 0) function(number);
    Message packed(kind == 2 ? bytes : std::string_view());
    while (!packed.bytes_.empty()) function(static_cast<int64_t>(packed.varint()));
  }

  int field = 0, kind = 0;
  int64_t number = 0;
  std::string_view bytes;

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    throw sdk::invalid("it is damaged, or no .binaryproto");
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size()) throw sdk::invalid("it is truncated, damaged, or no .binaryproto");
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }

  std::string_view bytes_;
};

template <class Number>
void append(std::string_view bytes, std::vector<float>& values) {
  for (size_t at = 0; at + sizeof(Number) <= bytes.size(); at += sizeof(Number)) {
    Number one = 0;
    std::memcpy(&one, bytes.data() + at, sizeof(Number));
    values.push_back(static_cast<float>(one));
  }
}

Blob read_blob(std::string_view bytes) {
  constexpr int data = 5, shape = 7, double_data = 8;
  Blob blob;
  Message message(bytes);
  while (message.next()) {
    if (message.field >= 1 && message.field <= 4 && message.kind == 0) {
      blob.old_sizes[static_cast<size_t>(message.field - 1)] = message.number;
    } else if (message.field == data) {
      append<float>(message.bytes, blob.values);
    } else if (message.field == double_data) {
      append<double>(message.bytes, blob.values);
    } else if (message.field == shape && message.kind == 2) {
      Message sizes(message.bytes);
      while (sizes.next()) {
        if (sizes.field == 1)
          sizes.for_each_number([&](int64_t one) { blob.sizes.push_back(one); });
      }
    }
  }
  if (blob.sizes.empty()) blob.sizes.assign(blob.old_sizes.begin(), blob.old_sizes.end());
  return blob;
}

std::string bytes_of(const std::string& path) {
  constexpr int64_t most = int64_t{1} << 28;
  const DataFile file(path);
  if (file.size() > most) throw sdk::invalid("it is over 256 MiB");
  file.require_stored();
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  if (!file.read(0, reinterpret_cast<unsigned char*>(bytes.data()), bytes.size())) {
    throw sdk::invalid("became shorter while it was read");
  }
  return bytes;
}

// A place that is a whole number up to rounding.
double snapped(double value) {
  constexpr double slack = 1e-6;
  const double whole = std::nearbyint(value);
  return std::abs(value - whole) < slack ? whole : value;
}

// For each pixel of an axis the two that it lies between, and the share of the second; a negative
// `first` is beyond the picture.
struct Between {
  int first = -1, second = -1;
  float share = 0;
};

std::vector<Between> between(double begin, double length, int count, int pixels, bool mirrored) {
  std::vector<Between> axis(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const double middle = begin + (i + 0.5) * length / count;
    if (middle < 0 || middle > pixels) continue;
    const double at = std::clamp(snapped(middle - 0.5), 0.0, static_cast<double>(pixels - 1));
    Between& one = axis[static_cast<size_t>(mirrored ? count - 1 - i : i)];
    one.first = static_cast<int>(at);
    one.second = std::min(one.first + 1, pixels - 1);
    one.share = static_cast<float>(at - one.first);
  }
  return axis;
}

}  // namespace

MeanImage::MeanImage(const std::string& path, int channels, const std::array<float, 3>& mean) {
  try {
    const Blob blob = read_blob(bytes_of(path));
    const size_t axes = blob.sizes.size();
    const auto size = [&](size_t from_end) {
      return axes < from_end ? 0 : blob.sizes[axes - from_end];
    };
    const int64_t stored = size(3), height = size(2), width = size(1);
    constexpr int64_t longest = 1 << 16;
    const bool is_picture = (stored == 1 || stored == channels) && height > 0 && width > 0 &&
                            height <= longest && width <= longest &&
                            static_cast<int64_t>(blob.values.size()) == stored * height * width;
    if (!is_picture) {
      throw sdk::invalid("is an array of ", stored, "x", height, "x", width, " with ",
                         blob.values.size(), " values; a mean of images has 1 channel, or the ",
                         channels, " of the net, and a value for each pixel");
    }
    width_ = static_cast<int>(width);
    height_ = static_cast<int>(height);
    const size_t plane = blob.values.size() / static_cast<size_t>(stored);
    values_.resize(plane * static_cast<size_t>(channels));
    for (size_t i = 0; i < values_.size(); ++i) {
      const float value = blob.values[stored == 1 ? i % plane : i];
      if (!std::isfinite(value)) throw sdk::invalid("has values that are not finite");
      values_[i] = value - mean[i / plane];
    }
  } catch (const sdk::Refusal& refused) {
    throw sdk::invalid("mean_image '", path, "': ", refused.what());
  }
}

void MeanImage::draw(const Size& whole, const Region& region, bool reversed, bool mirrored,
                     const Planes& result) const {
  const double across = static_cast<double>(width_) / whole.width;
  const double down = static_cast<double>(height_) / whole.height;
  const std::vector<Between> columns =
      between(region.x * across, region.width * across, result.width, width_, mirrored);
  const std::vector<Between> rows =
      between(region.y * down, region.height * down, result.height, height_, false);
  for (int c = 0; c < result.channels; ++c) {
    const float* plane = values_.data() + static_cast<std::ptrdiff_t>(c) * height_ * width_;
    float* target = result.plane(reversed ? result.channels - 1 - c : c);
    for (const Between& row : rows) {
      const float* first = plane + static_cast<std::ptrdiff_t>(row.first) * width_;
      const float* second = plane + static_cast<std::ptrdiff_t>(row.second) * width_;
      for (const Between& column : columns) {
        const bool is_inside = row.first >= 0 && column.first >= 0;
        const auto at = [&](const float* line) {
          return line[column.first] + (line[column.second] - line[column.first]) * column.share;
        };
        *target++ = is_inside ? at(first) + (at(second) - at(first)) * row.share : 0;
      }
    }
  }
}

}  // namespace tandem::picture
