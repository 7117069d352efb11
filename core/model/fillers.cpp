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

// Each piece of a weight array has a random stream of its own, so that threads can share the work
// (60 million values take seconds) and their number never shows in the values.
constexpr int64_t piece_size = int64_t{1} << 18;

struct Piece {
  const WeightArray* weight;
  int64_t begin, count;  // values of the array
  int64_t number;
  // `purpose` keeps further numbers for the same values apart.
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

// Zeros for all but the share `kept` of the values.
void thin_out(const Piece& piece, uint64_t seed, double kept, float* values) {
  Random random(seed, piece.stream("/kept"));
  for (int64_t i = 0; i < piece.count; ++i) {
    if (random.uniform() >= kept) values[i] = 0;
  }
}

// Each output's weights add up to 1.
void divide_rows(const Piece& piece, float* values) {
  const int64_t length = piece.weight->count / piece.weight->shape.n;
  for (float* row = values; row < values + piece.count; row += length) {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += row[i];
    for (int64_t i = 0; i < length && sum > 0; ++i) row[i] = static_cast<float>(row[i] / sum);
  }
}

// Seeded by the weight's name, so that an array is the same whatever else is in the net.
void draw(const Piece& piece, uint64_t seed, float* values) {
  const WeightArray& weight = *piece.weight;
  const Filler& filler = weight.filler;
  Random random(seed, piece.stream());
  const auto uniform = [&](double low, double high) {
    fill(values, piece.count, [&] { return low + (high - low) * random.uniform(); });
  };
  const auto gaussian = [&](double mean, double deviation) {
    draw_normals(seed, piece.stream(), static_cast<float>(mean), static_cast<float>(deviation),
                 piece.count, values);
  };
  if (filler.type == "constant") {
    fill(values, piece.count, [&] { return filler.value; });
  } else if (filler.type == "uniform") {
    uniform(filler.min, filler.max);
  } else if (filler.type == "gaussian") {
    gaussian(filler.mean, filler.std);
    const auto outputs = static_cast<double>(weight.shape.n);
    if (filler.sparse >= 0) {
      thin_out(piece, seed, static_cast<double>(filler.sparse) / outputs, values);
    }
  } else if (filler.type == "positive_unitball") {
    uniform(0, 1);
    divide_rows(piece, values);
  } else if (filler.type == "bilinear") {
    int64_t index = piece.begin;
    fill(values, piece.count, [&] { return bilinear(weight.shape, index++); });
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

// What is drawn at once; rows that must add up to something stay whole.
int64_t size_of_pieces(const WeightArray& weight) {
  if (weight.filler.type != "positive_unitball") return piece_size;
  const int64_t length = weight.count / weight.shape.n;
  return std::max(int64_t{1}, piece_size / length) * length;
}

std::vector<Piece> pieces_of(const Net& net) {
  std::vector<Piece> pieces;
  for (const WeightArray& weight : net.weights) {
    require_filler(weight);
    const int64_t size = size_of_pieces(weight);
    for (int64_t begin = 0; begin < weight.count; begin += size) {
      pieces.push_back({&weight, begin, std::min(size, weight.count - begin), begin / size});
    }
  }
  return pieces;
}

// Calls work(piece) for every piece of the net's weights, on all cores. What it throws first
// ends all of them and comes out.
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
      if (!failure) failure = std::current_exception();
      next = pieces.size();
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
