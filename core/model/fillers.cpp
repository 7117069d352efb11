#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "core/base/normals.h"
#include "core/base/random.h"
#include "core/model/net.h"

namespace tandem {

namespace {

// Each chunk of a weight array has a random stream of its own, so that threads can share the work
// (60 million values take seconds) and their number never shows in the values.
constexpr int64_t chunk_size = int64_t{1} << 18;

struct Chunk {
  const WeightArray* weight;
  int64_t begin, count;  // values of the array
  [[nodiscard]] uint64_t stream() const {
    if (begin == 0) return stream_of(weight->name.c_str());
    return stream_of(fmt::format("{}#{}", weight->name, begin / chunk_size).c_str());
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

// Caffe's: around a kernel's centre, falling linearly to its edge: a Deconvolution that begins with
// it enlarges the image bilinearly.
double bilinear(const Shape& shape, int64_t index) {
  const auto factor = static_cast<double>((shape.w + 1) / 2);
  const double centre = (2 * factor - 1 - std::fmod(factor, 2)) / (2 * factor);
  const auto part = [&](int64_t at) {
    return 1 - std::abs(static_cast<double>(at) / factor - centre);
  };
  return part(index % shape.w) * part(index / shape.w % shape.h);
}

// Seeded by the weight's name, so that an array is the same whatever else is in the net.
void fill(const Chunk& chunk, uint64_t seed, float* values) {
  const WeightArray& weight = *chunk.weight;
  const Filler& filler = weight.filler;
  Random random(seed, chunk.stream());
  const auto uniform = [&](double low, double high) {
    fill(values, chunk.count, [&] { return low + (high - low) * random.uniform(); });
  };
  const auto gaussian = [&](double mean, double deviation) {
    draw_normals(seed, chunk.stream(), static_cast<float>(mean), static_cast<float>(deviation),
                 chunk.count, values);
  };
  if (filler.type == "constant") {
    fill(values, chunk.count, [&] { return filler.value; });
  } else if (filler.type == "uniform") {
    uniform(filler.min, filler.max);
  } else if (filler.type == "gaussian" && filler.sparse >= 0) {
    const double kept = static_cast<double>(filler.sparse) / static_cast<double>(weight.shape.n);
    fill(values, chunk.count, [&] {
      const double value = filler.mean + filler.std * random.normal();
      return random.uniform() < kept ? value : 0;
    });
  } else if (filler.type == "gaussian") {
    gaussian(filler.mean, filler.std);
  } else if (filler.type == "positive_unitball") {
    uniform(0, 1);  // divide_rows() follows
  } else if (filler.type == "bilinear") {
    int64_t index = chunk.begin;
    fill(values, chunk.count, [&] { return bilinear(weight.shape, index++); });
  } else if (filler.type == "xavier") {
    const double scale = std::sqrt(3 / fan_of(weight));
    uniform(-scale, scale);
  } else {
    gaussian(0, std::sqrt(2 / fan_of(weight)));  // msra
  }
}

// Each output's weights add up to 1.
void divide_rows(const WeightArray& weight, float* values) {
  const int64_t length = weight.count / weight.shape.n;
  for (float* row = values; row < values + weight.count; row += length) {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += row[i];
    for (int64_t i = 0; i < length && sum > 0; ++i) row[i] = static_cast<float>(row[i] / sum);
  }
}

void demand_filler(const WeightArray& weight) {
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

// What is drawn at once: a chunk, or a whole array whose values depend on one another.
using Piece = Chunk;

std::vector<Piece> pieces_of(const Net& net) {
  std::vector<Piece> pieces;
  for (const WeightArray& weight : net.weights) {
    demand_filler(weight);
    const int64_t size = weight.filler.type == "positive_unitball" ? weight.count : chunk_size;
    for (int64_t begin = 0; begin < weight.count; begin += size) {
      pieces.push_back({&weight, begin, std::min(size, weight.count - begin)});
    }
  }
  return pieces;
}

void draw(const Piece& piece, uint64_t seed, float* values) {
  const int64_t end = piece.begin + piece.count;
  for (int64_t begin = piece.begin; begin < end; begin += chunk_size) {
    fill({piece.weight, begin, std::min(chunk_size, end - begin)}, seed,
         values + begin - piece.begin);
  }
  if (piece.weight->filler.type == "positive_unitball") divide_rows(*piece.weight, values);
}

// Calls work(piece) for every piece of the net's weights, on all cores; what it throws comes out
// once all are done.
template <class Work>
void for_pieces(const Net& net, const Work& work) {
  const std::vector<Piece> pieces = pieces_of(net);
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto take = [&] {
    try {
      for (size_t i = next++; i < pieces.size(); i = next++) work(pieces[i]);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  {
    const size_t most = std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> helpers;
    for (size_t i = 1; i < std::min(most, pieces.size() / 2); ++i) helpers.emplace_back(take);
    take();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::vector<float> initial_weights(const Net& net, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(net.weight_floats), 0.0F);
  for_pieces(net, [&](const Piece& piece) {
    draw(piece, seed, values.data() + piece.weight->offset + piece.begin);
  });
  return values;
}

void draw_weights(const Net& net, uint64_t seed, const WeightSink& sink) {
  std::mutex mutex;
  for_pieces(net, [&](const Piece& piece) {
    const auto values = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(piece.count));
    draw(piece, seed, values.get());
    const std::lock_guard lock(mutex);
    sink(piece.weight->offset + piece.begin, values.get(), piece.count);
  });
}

}  // namespace tandem
