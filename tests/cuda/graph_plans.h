// Plans for tests of captured steps. The result of each has other bits if an order is missing.
#pragma once

#include <string>

#include "core/base/numbers/random.h"
#include "tests/schedule/handmade.h"

namespace tandem::test {

// Streams of two devices copy and add between a few buffers, one of which alternates, and each step
// begins with data of the host. A sum uses the memory of one device only, since another GPU's may
// not be accessible.
inline Plan random_arithmetic(uint64_t seed) {
  Random random(seed, stream_of("arithmetic"));
  Maker maker(2);
  std::vector<Region> regions;
  for (int i = 0; i < 6; ++i) {
    regions.push_back(
        maker.constant("b" + std::to_string(i), i % 2, {1.0F + static_cast<float>(i), -1, 0.5, 3}));
  }
  regions.push_back(maker.persistent("turns", 0, 4, 2));
  const Region input = maker.persistent("input", 1, 4, 2);
  maker.copy("input", {copies(1)}, input, maker.floats("batch", -1, 4, BufferKind::external));
  constexpr StreamKind kinds[] = {StreamKind::compute, StreamKind::communication, StreamKind::send};
  for (int i = 0; i < 20; ++i) {
    const size_t target = random.below(regions.size());
    const int device = maker.plan.buffers[static_cast<size_t>(regions[target].buffer)].device;
    const StreamKind kind = kinds[random.below(3)];
    const StreamId stream{static_cast<int>(random.below(2)), kind};
    const StreamId other{1 - stream.device, StreamKind::communication};
    const size_t source = (target + 1 + random.below(5)) % regions.size();
    const size_t beside = (target + 2 + 2 * random.below(2)) % 6;
    const std::string label = "t" + std::to_string(i);
    const uint64_t what = random.below(4);
    if (what < 2) {
      maker.add(label, {device, kind}, regions[target],
                {what == 0 && device == 1 ? input : regions[beside]});
    } else if (what == 2) {
      maker.copy(label, {stream}, regions[target], regions[source]);
    } else {
      maker.copy(label, {stream, other}, regions[target], regions[source]);
    }
  }
  return maker.derived();
}

// x = 2 x + input on its own stream, and y likewise on the stream that brings the input. The input
// is overwritten as soon as that stream's order allows. No events connect them with the rest.
inline Plan streams_of_their_own() {
  Maker maker(1);
  const Region batch = maker.floats("batch", -1, 4, BufferKind::external);
  const Region input = maker.persistent("input", 0, 4, 2), at_once = maker.persistent("now", 0, 4);
  const Region x = maker.persistent("x", 0, 4), y = maker.persistent("y", 0, 4),
               z = maker.persistent("z", 0, 4);
  const StreamId other{0, StreamKind::send};
  maker.copy("bring", {copies(0)}, input, batch);
  maker.copy("bring again", {copies(0)}, at_once, batch);
  const Region a = maker.constant("a", 0, {1, 2, 3, 4});
  maker.add("first", compute(0), a, {a});
  maker.add("x += x", other, x, {x});
  maker.add("x += input", other, x, {input});
  maker.copy("z = a", {copies(0)}, z, a);  // captured, like everything after it on its stream
  maker.add("y += y", copies(0), y, {y});
  maker.add("y += now", copies(0), y, {at_once});
  for (const char* label : {"second", "third", "fourth"}) maker.add(label, compute(0), a, {a});
  return maker.derived();
}

// Sums on four streams, each of the result of the one before: none may run earlier.
inline Plan chain_of_sums() {
  Maker maker(1);
  const Region a = maker.constant("a", 0, {1, 2, 3, 4}), b = maker.constant("b", 0, {1, 0, 2, 0}),
               c = maker.constant("c", 0, {0, 1, 0, 3}), d = maker.constant("d", 0, {5, 0, 0, 1});
  maker.add("a += d", compute(0), a, {d});
  maker.add("b += a", communication(0), b, {a});
  maker.add("c += b", {0, StreamKind::send}, c, {b});
  maker.add("a += c", compute(0), a, {c});
  maker.add("d += a", {0, StreamKind::update}, d, {a});
  maker.add("b += d", communication(0), b, {d});
  return maker.derived();
}

}  // namespace tandem::test
