#include "core/model/net/initial_weights.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>

#include "core/base/numbers/normals.h"
#include "core/base/numbers/random.h"
#include "core/base/parallel.h"

namespace tandem {

namespace {

// Each block of a weight array has its own random stream, so that threads can share the work (60
// million values take seconds) and the values do not depend on their number.
constexpr int64_t block_size = int64_t{1} << 18;

struct Block {
  const WeightArray* weight;
  int64_t begin, count;  // values of the array
  int64_t number;
  // `purpose` separates further numbers for the same values.
  [[nodiscard]] uint64_t stream(const char* purpose = "") const {
    if (number == 0) return stream_of((weight->name + purpose).c_str());
    return stream_of(fmt::format("{}#{}{}", weight->name, number, purpose).c_str());
  }
};

double fan_of(const WeightArray& weight) {
  if (weight.filler.variance_norm == "FAN_OUT") return static_cast<double>(weight.fan_out);
  if (weight.filler.variance_norm == "AVERAGE") {
    return static_cast<double>(weight.fan_in + weight.fan_out) / 2;
  }
  return static_cast<double>(weight.fan_in);
}

template <class Draw>
void fill(float* values, int64_t count, const Draw& draw) {
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(draw());
}

// Caffe's bilinear filler: 1 at the kernel's centre, falling linearly to its edge. A Deconvolution
// with these weights enlarges the image bilinearly.
double bilinear(const Shape& shape, int64_t index) {
  const int64_t half = (shape.w + 1) / 2;
  const auto factor = static_cast<double>(half);
  const double centre = (2 * factor - 1 - std::fmod(factor, 2)) / (2 * factor);
  const auto along = [&](int64_t at) {
    return 1 - std::abs(static_cast<double>(at) / factor - centre);
  };
  return along(index % shape.w) * along(index / shape.w % shape.h);
}

// Sets all but the fraction `kept` of the values to zero.
void make_sparse(const Block& block, uint64_t seed, double kept, float* values) {
  Random random(seed, block.stream("/kept"));
  for (int64_t i = 0; i < block.count; ++i) {
    if (random.uniform() >= kept) values[i] = 0;
  }
}

// Scales the weights of each output so that their sum is 1.
void divide_rows(const Block& block, float* values) {
  const int64_t length = block.weight->count / block.weight->shape.n;
  for (float* row = values; row < values + block.count; row += length) {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += row[i];
    for (int64_t i = 0; i < length && sum > 0; ++i) row[i] = static_cast<float>(row[i] / sum);
  }
}

// Seeded by the name of the weight, so that an array does not depend on the rest of the net.
void draw(const Block& block, uint64_t seed, float* values) {
  const WeightArray& weight = *block.weight;
  const Filler& filler = weight.filler;
  Random random(seed, block.stream());
  const auto uniform = [&](double low, double high) {
    fill(values, block.count, [&] { return low + (high - low) * random.uniform(); });
  };
  const auto gaussian = [&](double mean, double deviation) {
    draw_normals(seed, block.stream(), static_cast<float>(mean), static_cast<float>(deviation),
                 block.count, values);
  };
  if (filler.type == "constant") {
    fill(values, block.count, [&] { return filler.value; });
  } else if (filler.type == "uniform") {
    uniform(filler.min, filler.max);
  } else if (filler.type == "gaussian") {
    gaussian(filler.mean, filler.std);
    const auto outputs = static_cast<double>(weight.shape.n);
    if (filler.sparse >= 0) {
      make_sparse(block, seed, static_cast<double>(filler.sparse) / outputs, values);
    }
  } else if (filler.type == "positive_unitball") {
    uniform(0, 1);
    divide_rows(block, values);
  } else if (filler.type == "bilinear") {
    int64_t index = block.begin;
    fill(values, block.count, [&] { return bilinear(weight.shape, index++); });
  } else if (filler.type == "xavier") {
    const double scale = std::sqrt(3 / fan_of(weight));
    uniform(-scale, scale);
  } else {
    gaussian(0, std::sqrt(2 / fan_of(weight)));  // msra
  }
}

void require_filler(const WeightArray& weight) {
  const std::string& type = weight.filler.type;
  const std::vector<std::string>& known = filler_types();
  if (std::find(known.begin(), known.end(), type) == known.end()) {
    throw error("weight '{}': unknown filler '{}'; known: {}", weight.name, type,
                fmt::join(known, ", "));
  }
  if (type == "bilinear" && weight.shape.h != weight.shape.w) {
    throw error("weight '{}': the filler bilinear is for square kernels, but this one is {}x{}",
                weight.name, weight.shape.h, weight.shape.w);
  }
}

// Rows that must have a certain sum are not divided.
int64_t size_of_blocks(const WeightArray& weight) {
  if (weight.filler.type != "positive_unitball") return block_size;
  const int64_t length = weight.count / weight.shape.n;
  return std::max(int64_t{1}, block_size / length) * length;
}

std::vector<Block> blocks_of(const Net& net) {
  std::vector<Block> blocks;
  for (const WeightArray& weight : net.weights) {
    require_filler(weight);
    const int64_t size = size_of_blocks(weight);
    for (int64_t begin = 0; begin < weight.count; begin += size) {
      blocks.push_back({&weight, begin, std::min(size, weight.count - begin), begin / size});
    }
  }
  return blocks;
}

}  // namespace

std::vector<float> initial_weights(const Net& net, uint64_t seed) {
  std::vector<float> values(size_t(net.weight_floats), 0.0F);
  draw_weights(net, seed, [&](int64_t first, const float* drawn, int64_t count) {
    std::copy_n(drawn, count, values.data() + first);
  });
  return values;
}

void draw_weights(const Net& net, uint64_t seed, const WeightSink& sink) {
  const std::vector<Block> blocks = blocks_of(net);
  const auto useful = static_cast<int>(std::max<size_t>(1, blocks.size() / 2));
  std::mutex mutex;
  parallel_for(static_cast<int64_t>(blocks.size()), std::min(processor_count(), useful),
               [&](int64_t item, int) {
                 const Block& block = blocks[size_t(item)];
                 const auto values = std::make_unique_for_overwrite<float[]>(size_t(block.count));
                 draw(block, seed, values.get());
                 const std::lock_guard lock(mutex);
                 sink(block.weight->offset + block.begin, values.get(), block.count);
               });
}

}  // namespace tandem
