/* A parameter whose default is outside its range. */
#include "minimal.h"

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_parameter parameter;
  static const tandem_parameter* parameters[] = {&parameter};
  static tandem_layer_type type;
  static const tandem_layer_type* types[] = {&type};
  static tandem_layers layers;
  static tandem_plugin plugin;
  (void)host;
  parameter.struct_size = sizeof parameter;
  parameter.type = TANDEM_PARAMETER_INTEGER;
  parameter.block = "test_param";
  parameter.name = "stride";
  parameter.default_value = "0";
  parameter.minimum = 1;
  parameter.maximum = 9;
  parameter.help = "step of the window";
  type = test_layer_type("test.Defaulted");
  type.parameters = parameters;
  type.parameter_count = 1;
  plugin = test_plugin("bad_default");
  layers = test_layers(types, 1, 0, 0);
  plugin.layers = &layers;
  return &plugin;
}
