// Whether the device of the kernels under test has the arithmetic that a test needs. GPUs before
// Ampere do not have bfloat16 and TF32, CPUs without AVX-512 do not have products of bfloat16. They
// refuse it with a message.
#pragma once

#include <initializer_list>
#include <string>

#include "tests/support/layer_test.h"

namespace tandem::test {

// The reason why products in a dtype or with a binding's flags are refused, if it contains one of
// the given sentences; otherwise "".
inline std::string refusal_of_products(int32_t dtype, uint32_t flags,
                                       std::initializer_list<const char*> sentences) {
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
    for (const char* sentence : sentences) {
      if (reason.find(sentence) != std::string::npos) return reason;
    }
  }
  return "";
}

// The reason why nothing can be computed in the dtype; "" if something can.
inline std::string not_computable(int32_t dtype, uint32_t flags = 0) {
  return refusal_of_products(dtype, flags, {"needs 8.0 (Ampere)"});
}

// The reason why no kernel with products can compute in the dtype; "" if one can.
inline std::string no_products(int32_t dtype) {
  return refusal_of_products(dtype, 0, {"needs 8.0 (Ampere)", "does not multiply bfloat16"});
}

}  // namespace tandem::test
