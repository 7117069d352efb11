// Whether this computer's CPU computes in a precision, for tests that train in it. Without AVX-512,
// or with ONEDNN_MAX_CPU_ISA=AVX2 in the environment, it does not in bfloat16.
#pragma once

#include <string>

#include "core/model/file/definition.h"
#include "core/session/session.h"
#include "include/tandem/net.h"

namespace tandem::test {

// The reason why the cpu's kernels refuse to multiply bfloat16; "" if they do not refuse.
inline std::string no_bfloat16() {
  Registry registry = Registry::with_defaults();
  SessionOptions options;
  options.devices = "cpu:1";
  options.strategy = "sequential";
  options.data = {1, 1, 2, 2};
  options.precision = TANDEM_BFLOAT16;
  const NetDefinition net =
      read_net_text(NetWriter("product")
                        .data(2)
                        .layer("product", "InnerProduct", "inner_product_param { num_output: 2 }")
                        .loss()
                        .text());
  try {
    const Session session(registry, net, options);
  } catch (const Unsupported& refused) {
    return refused.what();
  }
  return "";
}

}  // namespace tandem::test
