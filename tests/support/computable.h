// Whether the device of the kernels under test has arithmetic for what a test is about: GPUs before
// Ampere have none for bfloat16 and TF32, CPUs without AVX-512 no products of bfloat16, and they
// refuse it with a sentence of their own.
#pragma once

#include <initializer_list>
#include <string>

#include "tests/support/layer_test.h"

namespace tandem::test {

// What products in a dtype or with a binding's flags are refused with; "" if they are not, or if
// none of these is part of it.
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

// Why nothing can be computed in it; "" if something can.
inline std::string not_computable(int32_t dtype, uint32_t flags = 0) {
  return refusal_of_products(dtype, flags, {"needs 8.0 (Ampere)"});
}

// Why no kernel that multiplies can compute in it; "" if one can.
inline std::string no_products(int32_t dtype) {
  return refusal_of_products(dtype, 0, {"needs 8.0 (Ampere)", "does not multiply bfloat16"});
}

}  // namespace tandem::test
