// Tables that are too small, too long, senseless or of a newer version: what the registry refuses,
// and what of a module it leaves out. The modules are entries in this program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>

#include "core/plugin/host.h"
#include "core/plugin/registry.h"
#include "core/plugin/tables.h"

extern "C" {
#include "tests/bad_plugins/minimal.h"
}

namespace tandem {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A module with two layer types, test.Changed and test.Plain, and a kernel for each.
struct TableModule {
  tandem_layer_type changed = test_layer_type("test.Changed");
  tandem_layer_type plain = test_layer_type("test.Plain");
  const tandem_layer_type* types[2] = {&changed, &plain};
  tandem_kernel changed_kernel = test_kernel("test.Changed", "cpu");
  tandem_kernel plain_kernel = test_kernel("test.Plain", "cpu");
  const tandem_kernel* kernels[2] = {&changed_kernel, &plain_kernel};
  tandem_layers layers = test_layers(types, 2, kernels, 2);
  tandem_datasets datasets = test_datasets(nullptr, 0);
  tandem_plugin plugin = test_plugin("tables");

  TableModule() { plugin.layers = &layers; }
  TableModule(const TableModule&) = delete;
  TableModule& operator=(const TableModule&) = delete;

  ModuleReport load(Registry& registry) const {
    current = this;
    return registry.load(entry);
  }
  [[nodiscard]] ModuleReport report() const {
    Registry registry;
    return load(registry);
  }
  // "" if it loads.
  [[nodiscard]] std::string refusal() const {
    const ModuleReport result = report();
    EXPECT_EQ(result.loaded, result.reason.empty());
    return result.reason;
  }

 private:
  inline static const TableModule* current = nullptr;
  static const tandem_plugin* entry(const tandem_host*) { return &current->plugin; }
};

std::string too_small(const std::string& table, uint32_t size, size_t least) {
  return fmt::format(
      "{} has a struct_size of {}, but it is at least {}: set it to the sizeof of "
      "the struct, and rebuild the plugin",
      table, size, least);
}

// A size of 12 ends within a pointer of some tables; 0 was forgotten.
TEST(Tables, SmallerThanVersion2MadeThemAreRefused) {
  for (const uint32_t size : {0U, 12U, 36U}) {
    TableModule module;
    module.plugin.struct_size = size;
    EXPECT_EQ(module.refusal(), too_small("its tandem_plugin", size, sizeof(tandem_plugin)));
  }
  for (const uint32_t size : {0U, 12U, 39U}) {
    TableModule part, type, kernel;
    part.layers.struct_size = size;
    EXPECT_EQ(part.refusal(), too_small("the table of its layers", size, sizeof(tandem_layers)));
    type.changed.struct_size = size;
    EXPECT_EQ(type.refusal(), too_small("one of its layer types", size, sizeof(tandem_layer_type)));
    kernel.changed_kernel.struct_size = size;
    constexpr size_t last = offsetof(tandem_kernel, fuses_sum);
    EXPECT_EQ(kernel.refusal(), too_small("one of its kernels", size, last + sizeof(uint32_t)));
  }
}

TEST(Tables, OfDataSetsAreRefusedLikeThoseOfLayers) {
  TableModule module;
  tandem_dataset_type type{};
  const tandem_dataset_type* types[] = {&type};
  module.datasets = test_datasets(types, 1);
  module.plugin.datasets = &module.datasets;
  EXPECT_EQ(module.refusal(),
            too_small("one of its data sets", 0, offsetof(tandem_dataset_type, targets)));
  module.datasets.struct_size = 8;
  EXPECT_EQ(module.refusal(), too_small("the table of its data sets", 8, sizeof(tandem_datasets)));
}

TEST(Tables, OfDeclaredParametersAndInputsHaveALeastSizeToo) {
  TableModule module;
  tandem_parameter parameter{};
  const tandem_parameter* parameters[] = {&parameter};
  module.changed.parameters = parameters;
  module.changed.parameter_count = 1;
  EXPECT_EQ(module.refusal(), too_small("layer type 'test.Changed': one of its parameters", 0,
                                        sizeof(tandem_parameter)));
  module.changed.parameter_count = 0;
  tandem_input input{};
  const tandem_input* inputs[] = {&input};
  module.changed.inputs = inputs;
  module.changed.input_count = 1;
  EXPECT_EQ(module.refusal(),
            too_small("layer type 'test.Changed': one of its inputs", 0, sizeof(tandem_input)));
}

// A table of an older minor version than the field.
TEST(Tables, AreCopiedUpToTheLastFieldThatTheirSizeCovers) {
  tandem_kernel kernel = test_kernel("test.Plain", "cpu");
  kernel.dtypes = 6;
  for (const uint32_t cut : {0U, 1U, 7U}) {
    kernel.struct_size = offsetof(tandem_kernel, forward) + cut;
    const tandem_kernel copy = covered_part(kernel);
    EXPECT_EQ(copy.release, kernel.release);
    EXPECT_EQ(copy.forward, nullptr) << "half of a pointer";
    EXPECT_EQ(copy.dtypes, 0U);
  }
}

TEST(Tables, OfCountsThatNoModuleHasAreNotRead) {
  TableModule types, kernels, inputs, parameters;
  types.layers.type_count = 4000000000;
  EXPECT_EQ(types.refusal(), "its layer types: 4000000000 of them, but the most are 4096");
  kernels.layers.kernel_count = 4097;
  EXPECT_EQ(kernels.refusal(), "its kernels: 4097 of them, but the most are 4096");
  inputs.changed.input_count = 4000000000;
  EXPECT_EQ(inputs.refusal(),
            "layer type 'test.Changed': inputs: 4000000000 of them, but the most are 4096");
  parameters.changed.parameter_count = 4000000000;
  EXPECT_EQ(parameters.refusal(),
            "layer type 'test.Changed': parameters: 4000000000 of them, but the most are 4096");
  types.layers.type_count = 2;
  types.layers.types = nullptr;
  EXPECT_EQ(types.refusal(), "its layer types: 2 of them, but the list is NULL");
}

TEST(Tables, ThatMakeNoSenseAreRefused) {
  TableModule inputs, outputs, kind, minor, part, traits;
  inputs.changed.minimum_inputs = 5;
  inputs.changed.maximum_inputs = 2;
  EXPECT_THAT(inputs.refusal(), HasSubstr("layer type 'test.Changed' takes from 5 to 2 inputs: "));
  outputs.changed.minimum_outputs = -4;
  outputs.changed.maximum_outputs = -7;
  EXPECT_THAT(outputs.refusal(), HasSubstr("from -4 to -7 outputs: the least is 0"));
  kind.changed_kernel.device_kind = "";
  EXPECT_THAT(kind.refusal(), HasSubstr("'test.Changed' has no 'device_kind'"));
  minor.plugin.abi_minor = -5;
  EXPECT_EQ(minor.refusal(),
            "it says that it was built for plugin ABI 2.-5: the least minor "
            "version is 0");
  part.layers.minor = -5;
  EXPECT_THAT(part.refusal(), HasSubstr("its layers say that they were built for version 2.-5"));
  traits.changed.traits = TANDEM_LOSS | TANDEM_METRIC;
  EXPECT_EQ(traits.refusal(),
            "layer type 'test.Changed' is both TANDEM_LOSS and TANDEM_METRIC: a type is one of "
            "them");
}

TEST(Tables, WithATraitThatMayBeIgnoredAreUsed) {
  TableModule module;
  module.changed.traits |= UINT64_C(1) << 31U | UINT64_C(1) << 20U;
  EXPECT_EQ(module.refusal(), "");
}

TEST(Tables, WithANameThatIsNoWordAreRefused) {
  for (const auto& [name, shown] : std::vector<std::pair<const char*, const char*>>{
           {"a b\n", "\"a b\\n\""}, {"acme/Swish", "\"acme/Swish\""}, {"", "without a name"}}) {
    TableModule module;
    module.changed.name = name;
    EXPECT_THAT(module.refusal(), AllOf(HasSubstr("layer type"), HasSubstr(shown)));
  }
}

// What needs a newer Tandem is left out; the rest of the module works.
TEST(Tables, WithARequiredTraitOfANewerVersionAreLeftOut) {
  TableModule module;
  module.changed.traits |= UINT64_C(1) << 40U;
  Registry registry;
  const ModuleReport report = module.load(registry);
  EXPECT_TRUE(report.loaded) << report.reason;
  const std::string reason =
      "layer type 'test.Changed': it has the traits 0x10000000000, which version 2.0 of the layer "
      "tables does not know; use a newer Tandem";
  EXPECT_THAT(report.left_out, ElementsAre(reason));
  EXPECT_THAT(report.offers, ElementsAre("layer test.Plain", "kernel test.Plain/cpu"));
  EXPECT_STREQ(registry.layer_type("test.Plain").name, "test.Plain");
  try {
    (void)registry.layer_type("test.Changed");
    ADD_FAILURE() << "it is offered";
  } catch (const Error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr(reason));
  }
}

TEST(Tables, WithAnUnknownRoleOrParameterAreLeftOut) {
  TableModule role, type;
  const tandem_input input{sizeof(tandem_input), 9, "data"};
  const tandem_input* inputs[] = {&input};
  role.changed.inputs = inputs;
  role.changed.input_count = 1;
  ModuleReport report = role.report();
  EXPECT_TRUE(report.loaded) << report.reason;
  EXPECT_THAT(report.left_out, ElementsAre(HasSubstr("input 'data' has role 9")));
  tandem_parameter parameter{};
  parameter.struct_size = sizeof parameter;
  parameter.name = "color";
  parameter.type = 99;
  const tandem_parameter* parameters[] = {&parameter};
  type.changed.parameters = parameters;
  type.changed.parameter_count = 1;
  report = type.report();
  EXPECT_TRUE(report.loaded) << report.reason;
  EXPECT_THAT(report.left_out, ElementsAre(HasSubstr("parameter 'color' has type 99")));
}

TEST(Tables, OfAPartOfAnotherMajorVersionAreLeftOut) {
  TableModule module;
  module.datasets.major = 3;
  module.datasets.types = reinterpret_cast<const tandem_dataset_type* const*>(0xdead);
  module.datasets.type_count = 1;
  module.plugin.datasets = &module.datasets;
  Registry registry;
  const ModuleReport report = module.load(registry);
  EXPECT_TRUE(report.loaded) << report.reason;
  EXPECT_THAT(report.parts, ElementsAre("layers 2.0", "data sets 3.0"));
  EXPECT_THAT(report.left_out,
              ElementsAre(AllOf(HasSubstr("its data sets were built for version 3.0"),
                                HasSubstr("this Tandem has 2.0 of them"))));
  EXPECT_STREQ(registry.layer_type("test.Changed").name, "test.Changed");
  try {
    (void)registry.dataset("absent");
    ADD_FAILURE() << "it is offered";
  } catch (const Error& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("its data sets were built for version 3.0"));
  }
}

TEST(Tables, OfAParameterWithAnEmptyBlockAreOfTheLayerItself) {
  TableModule module;
  tandem_parameter parameter{};
  parameter.struct_size = sizeof parameter;
  parameter.name = "slope";
  parameter.block = "";
  parameter.type = TANDEM_PARAMETER_NUMBER;
  parameter.minimum = 1;
  const tandem_parameter* parameters[] = {&parameter};
  module.changed.parameters = parameters;
  module.changed.parameter_count = 1;
  Registry registry;
  ASSERT_TRUE(module.load(registry).loaded);
  EXPECT_EQ(registry.layer_type("test.Changed").parameters[0]->block, nullptr);
}

TEST(HostTable, TellsTheVersionsOfItsParts) {
  const tandem_host& host = host_table();
  EXPECT_EQ(host.struct_size, sizeof(tandem_host));
  EXPECT_EQ(host.layers_major, TANDEM_LAYERS_MAJOR);
  EXPECT_EQ(host.datasets_major, TANDEM_DATASETS_MAJOR);
  EXPECT_EQ(host.backends_major, TANDEM_BACKENDS_MAJOR);
  EXPECT_EQ(host.transports_major, TANDEM_TRANSPORTS_MAJOR);
  EXPECT_EQ(host.layers_minor, TANDEM_LAYERS_MINOR);
  EXPECT_EQ(host.transports_minor, TANDEM_TRANSPORTS_MINOR);
}

}  // namespace
}  // namespace tandem
