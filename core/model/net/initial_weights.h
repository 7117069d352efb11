// Initial values of weights by Caffe's fillers: a pure function of (net, seed), the same on every
// machine whatever the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/model/net/net.h"

namespace tandem {

// The values of all weights: net.weight_floats floats.
[[nodiscard]] std::vector<float> initial_weights(const Net& net, uint64_t seed);

// The same values block by block, so that no second copy of all of them exists: calls sink(first,
// values, count) for ranges that cover all weights once, in any order and on any thread, but never
// two at a time. Padding is left out. An exception of the sink is thrown again.
using WeightSink = std::function<void(int64_t first, const float* values, int64_t count)>;
void draw_weights(const Net& net, uint64_t seed, const WeightSink& sink);

}  // namespace tandem
