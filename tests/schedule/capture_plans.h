// Plans whose steps cannot be captured.
#pragma once

#include "tests/schedule/handmade.h"

namespace tandem::test {

// What the host is given lies in the middle: "overwrite" must come after it, and follows "one".
inline Plan given_in_the_middle() {
  Maker maker(1);
  const Region out = maker.floats("out", -1, 4, BufferKind::external);
  const Region a = maker.persistent("a", 0, 4), b = maker.persistent("b", 0, 4);
  maker.add("one", compute(0), a, {b});
  maker.copy("give", {copies(0)}, out, a);
  maker.add("overwrite", compute(0), a, {b});
  return maker.derived();
}

}  // namespace tandem::test
