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
  static tandem_layer_type type;
  static const tandem_layer_type* types[] = {&type};
  static tandem_kernel kernel;
  static const tandem_kernel* kernels[] = {&kernel};
  static tandem_layers layers;
  static tandem_plugin plugin;
  (void)host;
  type = test_layer_type("test.Older");
  type.struct_size = offsetof(tandem_layer_type, statistics);
  type.statistics = never_say;
  type.activation = never_act;
  kernel = test_kernel("test.Older", "cpu");
  kernel.struct_size = offsetof(tandem_kernel, backward);
  kernel.backward = kernel.forward_statistics = kernel.backward_statistics = never;
  kernel.merge_forward_statistics = never_merge;
  kernel.fused_activations = ~UINT32_C(0);
  plugin = test_plugin("older_minor");
  layers = test_layers(types, 1, kernels, 1);
  plugin.struct_size = offsetof(tandem_plugin, datasets);
  plugin.layers = &layers;
  plugin.datasets = (const tandem_datasets*)POISON;
  plugin.backends = (const tandem_backends*)POISON;
  plugin.transports = (const tandem_transports*)POISON;
  return &plugin;
}
