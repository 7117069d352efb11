/* Data sets without parameters: "plain" is right, the others give NULL for a text. */
#include "minimal.h"

static tandem_status open_set(const tandem_dataset_request* request, void** handle,
                              tandem_dataset_info* info) {
  (void)request;
  *handle = 0;
  info->size = 8;
  info->class_count = 2;
  info->shape.c = 3;
  info->shape.h = info->shape.w = 8;
  return TANDEM_OK;
}
static void close_set(void* handle) {
  (void)handle;
}
static const char* name_of(void* handle, int64_t index) {
  (void)handle;
  return index % 2 == 0 ? "even" : "odd";
}
static const char* no_name(void* handle, int64_t index) {
  (void)handle, (void)index;
  return 0;
}
static const char* notes(void* handle) {
  (void)handle;
  return "";
}
static const char* no_notes(void* handle) {
  (void)handle;
  return 0;
}
static tandem_status get(void* handle, int64_t index, uint64_t seed, float* pixels, float* label) {
  int i;
  (void)handle, (void)seed;
  for (i = 0; i < 3 * 8 * 8; ++i) pixels[i] = (float)(index % 2);
  *label = (float)(index % 2);
  return TANDEM_OK;
}
static tandem_status describe(void* handle, int64_t index, tandem_sample_info* info) {
  (void)handle, (void)index;
  info->format = 0;
  return TANDEM_OK;
}

TEST_EXPORT const tandem_plugin* tandem_plugin_entry(const tandem_host* host) {
  static const char* const names[] = {"plain", "null_class_name", "null_sample_name", "null_notes",
                                      "null_format"};
  static tandem_dataset_type sets[5];
  static const tandem_dataset_type* all[5];
  static tandem_datasets datasets;
  static tandem_plugin plugin;
  int i;
  (void)host;
  for (i = 0; i < 5; ++i) {
    sets[i].struct_size = sizeof sets[i];
    sets[i].name = names[i];
    sets[i].help = "for tests";
    sets[i].open = open_set;
    sets[i].close = close_set;
    sets[i].class_name = sets[i].sample_name = name_of;
    sets[i].notes = notes;
    sets[i].get = get;
    all[i] = &sets[i];
  }
  sets[1].class_name = no_name;
  sets[2].sample_name = no_name;
  sets[3].notes = no_notes;
  sets[4].describe = describe;
  plugin = test_plugin("null_texts");
  datasets = test_datasets(all, 5);
  plugin.datasets = &datasets;
  return &plugin;
}
