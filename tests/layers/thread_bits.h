// That a kernel's results do not depend on the number of threads.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/layer_test.h"

namespace tandem::test {

// Of all passes of a layer with one input; of a layer without weights there are two.
inline void expect_same_bits_for_every_number_of_threads(LayerSetup setup) {
  LayerRun first(setup);
  const PlainTensor y = first.forward()[0], dy = random_tensor(y.shape, 4);
  const PlainTensor dx = first.backward_data({dy})[0];
  const bool has_weights = !setup.weights.empty();
  std::vector<PlainTensor> dw;
  if (has_weights) dw = first.backward_weights({dy});
  for (const int32_t threads : {1, 2, 3, 5, 7}) {
    setup.threads = threads;
    LayerRun run(setup);
    EXPECT_EQ(run.forward()[0].values, y.values) << threads;
    EXPECT_EQ(run.backward_data({dy})[0].values, dx.values) << threads;
    if (!has_weights) continue;
    const std::vector<PlainTensor> gradients = run.backward_weights({dy});
    ASSERT_EQ(gradients.size(), dw.size());
    for (size_t i = 0; i < dw.size(); ++i) EXPECT_EQ(gradients[i].values, dw[i].values) << threads;
  }
}

}  // namespace tandem::test
