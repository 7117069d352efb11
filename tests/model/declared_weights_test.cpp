// Weights that a layer type must not declare: unknown kinds, names that no file may have, and
// initial values that are not finite. The module is an entry in this program.
#include <gtest/gtest.h>

#include <limits>

#include "core/model/net/net.h"
#include "core/model/passes/build_net.h"
#include "tests/model/net_test.h"

namespace tandem {
namespace {

using test::message_of;

tandem_weight declared{};

tandem_status shapes(const tandem_layer_query* query, tandem_shape* outputs) {
  outputs[0] = query->inputs[0];
  return TANDEM_OK;
}
tandem_status weights(const tandem_layer_query*, tandem_weight* array, uint32_t, uint32_t capacity,
                      uint32_t* count) {
  *count = 1;
  if (capacity > 0) array[0] = declared;
  return TANDEM_OK;
}
const tandem_plugin* entry(const tandem_host*) {
  static tandem_layer_type type{};
  static const tandem_layer_type* const types[] = {&type};
  static tandem_layers layers{};
  static tandem_plugin plugin{};
  type.struct_size = sizeof type;
  type.name = "test.Declares";
  type.help = "for tests";
  type.minimum_inputs = type.maximum_inputs = 1;
  type.minimum_outputs = type.maximum_outputs = 1;
  type.traits = TANDEM_PER_SAMPLE;
  type.shapes = shapes;
  type.weights = weights;
  layers.struct_size = sizeof layers;
  layers.major = TANDEM_LAYERS_MAJOR;
  layers.types = types;
  layers.type_count = 1;
  plugin.abi_major = TANDEM_ABI_MAJOR;
  plugin.struct_size = sizeof plugin;
  plugin.layers = &layers;
  return &plugin;
}

class DeclaredWeights : public testing::Test {
 protected:
  void SetUp() override {
    declared = {};
    declared.name = "weight";
    declared.shape = {1, 2, 3, 4};
    const ModuleReport& report = registry_.load(entry);
    ASSERT_TRUE(report.loaded) << report.reason;
  }
  [[nodiscard]] std::string refusal() const {
    return message_of([&] {
      (void)build_net(
          test::parse_definition(
              "layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: 2 dim: 3 "
              "dim: 8 dim: 8 } } }\n" +
              test::layer("own", "test.Declares", "d", "out")),
          registry_, test::small_options(TANDEM_TEST));
    });
  }
  Registry registry_;
};

TEST_F(DeclaredWeights, OfAKindThatThisVersionDoesNotKnowAreRefused) {
  EXPECT_EQ(refusal(), "");
  declared.kind = TANDEM_STATE;
  EXPECT_EQ(refusal(), "");
  declared.kind = 77;
  EXPECT_EQ(refusal(),
            "layer 'own' (test.Declares): weight 'weight' has kind 77, which version 2.0 of the "
            "layer tables does not know; use a newer Tandem (net.prototxt:2)");
}

TEST_F(DeclaredWeights, HaveNamesThatFilesMayHave) {
  for (const char* name : {"w", "running_mean", "a.b-c9"}) {
    declared.name = name;
    EXPECT_EQ(refusal(), "") << name;
  }
  const std::string message =
      "layer 'own' (test.Declares): its plugin declares weight 0 without a name of letters, "
      "digits, '_', '-' and '.' that begins with a letter (net.prototxt:2)";
  for (const char* name :
       {static_cast<const char*>(nullptr), "", "two\nlines", "../up", "9", "a/b"}) {
    declared.name = name;
    EXPECT_EQ(refusal(), message) << (name == nullptr ? "NULL" : name);
  }
}

TEST_F(DeclaredWeights, HaveFiniteInitialValues) {
  declared.initial = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal(),
            "layer 'own' (test.Declares): weight 'weight' has the initial value nan, which is not "
            "finite (net.prototxt:2)");
}

}  // namespace
}  // namespace tandem
