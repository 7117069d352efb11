// Whether the device of the kernels under test has arithmetic for what a test is about: GPUs before
// Ampere have none for bfloat16 and TF32, and refuse it with a sentence of their own.
#pragma once

#include <string>

#include "tests/support/layer_test.h"

namespace tandem::test {

// Why not, of products in a dtype or with a binding's flags; "" if it has, and of what is refused
// for another reason.
inline std::string not_computable(int32_t dtype, uint32_t flags = 0) {
  LayerSetup setup{.type = "InnerProduct",
                   .parameters = {{"num_output", "2"}, {"bias_term", "false"}},
                   .inputs = {random_tensor({1, 2, 1, 1}, 1)},
                   .weights = {random_tensor({2, 2, 1, 1}, 2)}};
  setup.input_dtype = setup.output_dtype = dtype;
  setup.flags |= flags;
  try {
    const LayerRun run(setup);
  } catch (const Error& refused) {
    const std::string reason = refused.what();
    if (reason.find("needs 8.0 (Ampere)") != std::string::npos) return reason;
  }
  return "";
}

}  // namespace tandem::test
