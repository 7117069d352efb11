#include <cmath>

#include "core/base/random.h"
#include "core/model/net.h"

namespace tandem {

namespace {

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

// Seeded by its name, so that an array is the same whatever else is in the net.
void fill(const WeightArray& weight, uint64_t seed, float* values) {
  const Filler& filler = weight.filler;
  Random random(seed, stream_of(weight.name.c_str()));
  const auto uniform = [&](double low, double high) {
    fill(values, weight.count, [&] { return low + (high - low) * random.uniform(); });
  };
  const auto gaussian = [&](double mean, double deviation) {
    fill(values, weight.count, [&] { return mean + deviation * random.normal(); });
  };
  if (filler.type == "constant") {
    fill(values, weight.count, [&] { return filler.value; });
  } else if (filler.type == "uniform") {
    uniform(filler.min, filler.max);
  } else if (filler.type == "gaussian") {
    gaussian(filler.mean, filler.std);
  } else if (filler.type == "xavier") {
    const double scale = std::sqrt(3 / fan_of(weight));
    uniform(-scale, scale);
  } else if (filler.type == "msra") {
    gaussian(0, std::sqrt(2 / fan_of(weight)));
  } else {
    throw error(
        "weight '{}': unknown filler '{}'; known: constant, uniform, gaussian, xavier, msra",
        weight.name, filler.type);
  }
}

}  // namespace

std::vector<float> initial_weights(const Net& net, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(net.weight_floats), 0.0F);
  for (const WeightArray& weight : net.weights) fill(weight, seed, values.data() + weight.offset);
  return values;
}

}  // namespace tandem
