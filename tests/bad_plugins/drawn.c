/* A data set, which is loaded only when it is asked for. */
#include "minimal.h"

static tandem_status open_set(const tandem_dataset_request* request, void** handle,
                              tandem_dataset_info* info) {
  (void)request;
  *handle = 0;
  info->size = 1;
  info->class_count = 1;
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

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static tandem_dataset_type set;
  static const tandem_dataset_type* sets[] = {&set};
  static tandem_datasets datasets;
  static tandem_plugin plugin;
  (void)host;
  set.struct_size = sizeof set;
  set.name = "drawn";
  set.help = "for tests";
  set.open = open_set;
  set.close = close_set;
  set.class_name = set.sample_name = name_of;
  set.notes = notes;
  set.get = get;
  plugin = test_plugin("drawn");
  datasets = test_datasets(sets, 1);
  plugin.datasets = &datasets;
  return &plugin;
}
