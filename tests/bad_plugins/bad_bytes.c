/* A data set with bytes, whose description has the fault that the parameter `fault` selects. */
#include <math.h>
#include <string.h>

#include "minimal.h"

static const tandem_host* host_;

static tandem_status open_set(const tandem_dataset_request* request, void** handle,
                              tandem_dataset_info* info) {
  const char* fault = "";
  int i;
  *handle = 0;
  info->size = info->class_count = 1;
  info->shape.c = 3;
  info->shape.h = info->shape.w = 1;
  info->has_bytes = 1;
  info->byte_scale = 0.5F;
  for (i = 0; i < 4; ++i) info->byte_means[i] = i < 3 ? 100.0F : NAN; /* there is no channel 3 */
  if (host_->get_text(request->attributes, "fault", &fault) != TANDEM_OK) return TANDEM_FAILED;
  if (strcmp(fault, "zero_scale") == 0) info->byte_scale = 0;
  if (strcmp(fault, "nan_scale") == 0) info->byte_scale = NAN;
  if (strcmp(fault, "nan_mean") == 0) info->byte_means[1] = NAN;
  if (strcmp(fault, "infinite_mean") == 0) info->byte_means[2] = -INFINITY;
  if (strcmp(fault, "channels") == 0) info->shape.c = 5;
  return TANDEM_OK;
}
static void close_set(void* handle) {
  (void)handle;
}
static const char* name_of(void* handle, int64_t index) {
  (void)handle, (void)index;
  return "a";
}
static const char* notes(void* handle) {
  (void)handle;
  return "";
}
static tandem_status get(void* handle, int64_t index, uint64_t seed, float* pixels, float* label) {
  (void)handle, (void)index, (void)seed, (void)pixels;
  *label = 0;
  return TANDEM_OK;
}
static tandem_status get_bytes(void* handle, int64_t index, uint64_t seed, uint8_t* pixels,
                               float* label) {
  (void)handle, (void)index, (void)seed, (void)pixels;
  *label = 0;
  return TANDEM_OK;
}

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_parameter fault;
  static const tandem_parameter* parameters[] = {&fault};
  static tandem_dataset_type sets[2];
  static const tandem_dataset_type* both[] = {&sets[0], &sets[1]};
  static tandem_datasets datasets;
  static tandem_plugin plugin;
  int i;
  host_ = host;
  fault.struct_size = sizeof fault;
  fault.type = TANDEM_PARAMETER_TEXT;
  fault.block = "data_param";
  fault.name = "fault";
  fault.default_value = "";
  fault.help = "what is wrong with its bytes";
  for (i = 0; i < 2; ++i) {
    sets[i].struct_size = sizeof sets[i];
    sets[i].help = "for tests";
    sets[i].parameters = parameters;
    sets[i].parameter_count = 1;
    sets[i].open = open_set;
    sets[i].close = close_set;
    sets[i].class_name = sets[i].sample_name = name_of;
    sets[i].notes = notes;
    sets[i].get = get;
  }
  sets[0].name = "bad_bytes";
  sets[0].get_bytes = get_bytes;
  sets[1].name = "no_get_bytes";
  plugin = test_plugin("bad_bytes");
  datasets = test_datasets(both, 2);
  plugin.datasets = &datasets;
  return &plugin;
}
