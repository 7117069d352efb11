// A NaN survives every built-in layer: it never turns into a number, with which training would go
// on unnoticed.
#include <gtest/gtest.h>

#include <string>

#include "core/check/layer/kernel_device.h"
#include "core/check/promises/promises.h"
#include "tests/support/layer_test.h"

namespace tandem::test {
namespace {

const Promise& promise(const std::string& name) {
  for (const Promise& one : promises()) {
    if (one.name == name) return one;
  }
  throw error("no promise '{}'", name);
}

TEST(Nan, SurvivesEveryLayer) {
  int layers = 0;
  OpenDevices devices(layer_registry());
  for (const std::string& type : layer_registry().layer_types()) {
    const Subject subject{layer_registry(),
                          devices,
                          kernel_device(),
                          layer_registry().layer_type(type),
                          layer_registry().kernel(type, kernel_device().kind()),
                          cases_of(layer_registry(), kernel_device(), type, {})};
    ++layers;
    for (const Case& one : subject.cases) {
      if (!one.setup.inputs.empty() && element_count(one.setup.inputs[0].shape) > 1000) continue;
      const Outcome outcome = promise("nan").check(subject, one);
      EXPECT_NE(outcome.verdict, Outcome::Verdict::broken)
          << type << one.arguments << ": " << outcome.detail;
    }
  }
  EXPECT_GE(layers, 45);
}

}  // namespace
}  // namespace tandem::test
