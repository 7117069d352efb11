/* Built with the header of a later minor version: every table has grown at its end. */
#include "minimal.h"

typedef struct {
  tandem_plugin known;
  const void* later[4];
} larger_plugin;
typedef struct {
  tandem_layers known;
  const void* later[3];
} larger_layers;
typedef struct {
  tandem_input known;
  const void* later;
} larger_input;
typedef struct {
  tandem_layer_type known;
  const void* later[2];
} larger_layer_type;
typedef struct {
  tandem_parameter known;
  double later;
} larger_parameter;
typedef struct {
  tandem_kernel known;
  tandem_pass_function later;
} larger_kernel;

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static larger_parameter parameter;
  static const tandem_parameter* parameters[] = {&parameter.known};
  static larger_input input;
  static const tandem_input* inputs[] = {&input.known};
  static larger_layer_type type;
  static const tandem_layer_type* types[] = {&type.known};
  static larger_kernel kernel;
  static const tandem_kernel* kernels[] = {&kernel.known};
  static larger_layers layers;
  static larger_plugin plugin;
  (void)host;
  parameter.known.struct_size = sizeof parameter;
  parameter.known.type = TANDEM_PARAMETER_NUMBER;
  parameter.known.block = "test_param";
  parameter.known.name = "slope";
  parameter.known.default_value = "0.5";
  parameter.known.minimum = 0;
  parameter.known.maximum = 1;
  parameter.known.help = "how steep";
  type.known = test_layer_type("test.Newer");
  type.known.struct_size = sizeof type;
  type.known.parameters = parameters;
  type.known.parameter_count = 1;
  input.known.struct_size = sizeof input;
  input.known.role = TANDEM_INPUT_NON_DIFFERENTIABLE;
  input.known.name = "index";
  type.known.inputs = inputs;
  type.known.input_count = 1;
  kernel.known = test_kernel("test.Newer", "cpu");
  kernel.known.struct_size = sizeof kernel;
  plugin.known = test_plugin("newer_minor");
  plugin.known.abi_minor = TANDEM_ABI_MINOR + 7;
  plugin.known.struct_size = sizeof plugin;
  layers.known = test_layers(types, 1, kernels, 1);
  layers.known.struct_size = sizeof layers;
  layers.known.minor = TANDEM_LAYERS_MINOR + 3;
  plugin.known.layers = &layers.known;
  return &plugin.known;
}
