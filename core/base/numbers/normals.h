// Many normally distributed numbers at once, in float32 vector code: the fast form of
// Random::normal() for millions of weights. Each number is made of the same uniform numbers as
// normal()'s and differs from it by a few units in the last place of float32. The bits are the same
// on every machine. A shorter call gives the first values of a longer one.
#pragma once

#include <cstdint>

namespace tandem {

// values[i] = mean + deviation * z in float32, where z is the i-th number of normal() of a new
// Random(seed, stream), to that accuracy. Box-Muller: one Philox block gives radius and angle of a
// pair, 53 random bits each, so that the tails reach 8.5 deviations.
void draw_normals(uint64_t seed, uint64_t stream, float mean, float deviation, int64_t count,
                  float* values);

}  // namespace tandem
