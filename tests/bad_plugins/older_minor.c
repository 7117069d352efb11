/* Built with a header in which the tables ended earlier. The memory after their ends holds invalid
 * pointers: a host that reads them crashes. */
#include "minimal.h"

#define POISON ((uintptr_t)0xdead)

static tandem_status never(void* handle, const tandem_call* call, const tandem_pass* pass) {
  (void)handle, (void)call, (void)pass;
  return TANDEM_FAILED;
}

static tandem_status never_merge(void* handle, const tandem_call* call, float* target,
                                 const float* const* sources, uint32_t source_count) {
  (void)handle, (void)call, (void)target, (void)sources, (void)source_count;
  return TANDEM_FAILED;
}

static tandem_status never_act(const tandem_layer_query* query, int32_t* activation) {
  (void)query, (void)activation;
  return TANDEM_FAILED;
}

static tandem_status never_say(const tandem_layer_query* query, tandem_layer_statistics* floats) {
  (void)query, (void)floats;
  return TANDEM_FAILED;
}

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_parameter parameter;
  static const tandem_parameter* parameters[] = {&parameter};
  static tandem_layer_type type;
  static const tandem_layer_type* types[] = {&type};
  static tandem_kernel kernel;
  static const tandem_kernel* kernels[] = {&kernel};
  static tandem_plugin plugin;
  (void)host;
  parameter.struct_size = offsetof(tandem_parameter, minimum);
  parameter.type = TANDEM_PARAMETER_INTEGER;
  parameter.block = "test_param";
  parameter.name = "size";
  parameter.default_value = "3";
  parameter.minimum = 100; /* beyond the end: no range */
  parameter.maximum = 200;
  parameter.choices = (const char*)POISON;
  parameter.help = (const char*)POISON;
  type = test_layer_type("test.Older");
  type.struct_size = offsetof(tandem_layer_type, statistics);
  type.statistics = never_say;
  type.activation = never_act;
  type.parameters = parameters;
  type.parameter_count = 1;
  kernel = test_kernel("test.Older", "cpu");
  kernel.struct_size = offsetof(tandem_kernel, backward);
  kernel.backward = kernel.forward_statistics = kernel.backward_statistics = never;
  kernel.merge_forward_statistics = never_merge;
  kernel.activations = ~UINT64_C(0);
  plugin = test_plugin("older_minor");
  plugin.abi_minor = 3;
  plugin.struct_size = offsetof(tandem_plugin, backends);
  plugin.layer_types = types;
  plugin.layer_type_count = 1;
  plugin.kernels = kernels;
  plugin.kernel_count = 1;
  plugin.backends = (const tandem_backend* const*)POISON;
  plugin.backend_count = 9;
  plugin.dataset_types = (const tandem_dataset_type* const*)POISON;
  plugin.dataset_type_count = 9;
  return &plugin;
}
