// Compares a layer with its float64 vectors, in every layout that its kernel offers. Tolerances are
// max |a - b| / max |b| per tensor. The largest error of each layer type and pass is recorded
// (record_error.h).
#pragma once

#include <string>
#include <vector>

#include "core/plugin/layer_questions.h"
#include "tests/support/layer_test.h"
#include "tests/support/record_error.h"
#include "tests/support/reference.h"

namespace tandem::test {

inline void expect_near(const std::string& type, const std::vector<PlainTensor>& actual,
                        const ReferenceCase& expected, const std::string& prefix,
                        double tolerance) {
  for (size_t i = 0; i < actual.size(); ++i) {
    const std::string name = prefix + std::to_string(i);
    if (!expected.has(name)) continue;
    const double error = relative_difference(actual[i].values, expected.tensors.at(name).values);
    EXPECT_LE(error, tolerance) << name;
    record_error(type + " " + prefix, error);
  }
}

// Runs a case in one layout. Results without vectors are not compared.
inline void compare(const LayerSetup& setup, const ReferenceCase& reference, double tolerance) {
  LayerRun run(setup);
  expect_near(setup.type, run.forward(), reference, "output", tolerance);
  if (!reference.has("output_gradient0")) return;
  const std::vector<PlainTensor> gradients = reference.all("output_gradient");
  if (has_data_gradient(run.type())) {
    expect_near(setup.type, run.backward_data(gradients), reference, "input_gradient", tolerance);
  }
  if (!setup.weights.empty()) {
    expect_near(setup.type, run.backward_weights(gradients), reference, "weight_gradient",
                tolerance);
  }
}

inline void expect_reference(const std::string& file, const std::string& type,
                             double tolerance = 1e-6) {
  for (const ReferenceCase& reference : read_reference(file)) {
    LayerSetup plain{.type = type,
                     .parameters = reference.parameters,
                     .inputs = reference.all("input"),
                     .weights = reference.all("weight"),
                     .output_count = static_cast<uint32_t>(reference.all("output").size()),
                     .normaliser = static_cast<float>(reference.normaliser)};
    if (!reference.has("output_gradient0")) plain.flags = 0;
    for (const LayerSetup& setup : in_every_layout(plain)) {
      SCOPED_TRACE(reference.name + ", " + layout_text(setup));
      compare(setup, reference, tolerance);
    }
  }
}

}  // namespace tandem::test
