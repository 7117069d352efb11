/* The minimum of a layer type and of a kernel, in C that is C++, too, for the test plugins. */
#pragma once

#include <string.h>

#include "plugins/abi.h"

#define TEST_EXPORT __attribute__((visibility("default")))

static inline tandem_status test_shapes(const tandem_layer_query* query, tandem_shape* outputs) {
  outputs[0] = query->inputs[0];
  return TANDEM_OK;
}
static inline tandem_status test_prepare(const tandem_binding* binding, const tandem_call* call,
                                         void** handle, tandem_kernel_report* report) {
  (void)binding, (void)call, (void)report;
  *handle = 0;
  return TANDEM_OK;
}
static inline void test_release(void* handle) {
  (void)handle;
}
static inline tandem_status test_forward(void* handle, const tandem_call* call,
                                         const tandem_pass* pass) {
  (void)handle, (void)call, (void)pass;
  return TANDEM_OK;
}

static inline tandem_layer_type test_layer_type(const char* name) {
  tandem_layer_type type;
  memset(&type, 0, sizeof type);
  type.struct_size = sizeof type;
  type.name = name;
  type.help = "for tests";
  type.minimum_inputs = type.maximum_inputs = 1;
  type.minimum_outputs = type.maximum_outputs = 1;
  type.traits = TANDEM_PER_SAMPLE;
  type.shapes = test_shapes;
  return type;
}

static inline tandem_kernel test_kernel(const char* layer_type, const char* device_kind) {
  tandem_kernel kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.struct_size = sizeof kernel;
  kernel.layer_type = layer_type;
  kernel.device_kind = device_kind;
  kernel.prepare = test_prepare;
  kernel.release = test_release;
  kernel.forward = test_forward;
  return kernel;
}

static inline tandem_layers test_layers(const tandem_layer_type* const* types, uint32_t type_count,
                                        const tandem_kernel* const* kernels,
                                        uint32_t kernel_count) {
  tandem_layers layers;
  memset(&layers, 0, sizeof layers);
  layers.struct_size = sizeof layers;
  layers.major = TANDEM_LAYERS_MAJOR;
  layers.minor = TANDEM_LAYERS_MINOR;
  layers.types = types;
  layers.type_count = type_count;
  layers.kernels = kernels;
  layers.kernel_count = kernel_count;
  return layers;
}

static inline tandem_datasets test_datasets(const tandem_dataset_type* const* types,
                                            uint32_t type_count) {
  tandem_datasets datasets;
  memset(&datasets, 0, sizeof datasets);
  datasets.struct_size = sizeof datasets;
  datasets.major = TANDEM_DATASETS_MAJOR;
  datasets.minor = TANDEM_DATASETS_MINOR;
  datasets.types = types;
  datasets.type_count = type_count;
  return datasets;
}

static inline tandem_plugin test_plugin(const char* name) {
  tandem_plugin plugin;
  memset(&plugin, 0, sizeof plugin);
  plugin.abi_major = TANDEM_ABI_MAJOR;
  plugin.abi_minor = TANDEM_ABI_MINOR;
  plugin.struct_size = sizeof plugin;
  plugin.name = name;
  plugin.version = "1.2.3";
  return plugin;
}
