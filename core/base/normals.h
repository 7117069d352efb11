// Many normally distributed numbers at once, in float32 vector code: the fast form of
// Random::normal() for weights, which are millions. The same uniform numbers go in, so a number is
// normal()'s to within a few units of float32's last place. The bits are the same on every machine,
// and a shorter call gives the beginning of a longer one.
#pragma once

#include <cstdint>

namespace tandem {

// values[i] = mean + deviation * z in float32, z (to that accuracy) the i-th number of normal() of
// a new Random(seed, stream). Box-Muller: radius and angle of a pair from one Philox block, 53
// random bits each, so that tails reach to 8.5 deviations.
void draw_normals(uint64_t seed, uint64_t stream, float mean, float deviation, int64_t count,
                  float* values);

}  // namespace tandem
