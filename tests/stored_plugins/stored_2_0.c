/* A plugin for plugin ABI 2.0, in C11, of which the binary stored_2_0.so is kept: it must load and
 * train in every later Tandem (docs/reference/abi.md). It has two layers and a data set, and uses
 * of the ABI what plugins use most: every kind of parameter, inputs with roles, weights with a
 * filler, saved and scratch memory, random numbers, a loss. Once stored it is not changed. */
#include <stdlib.h>

#include "plugins/abi.h"
#include "plugins/random.h"

static const tandem_host* host;

static const tandem_tensor* tensor(const tandem_binding* binding, const tandem_tensor* array,
                                   uint32_t i) {
  return (const tandem_tensor*)((const char*)array + (size_t)i * binding->tensor_size);
}
static int64_t size_of(tandem_shape s) {
  return s.n * s.c * s.h * s.w;
}

/* ---- stored.Mix: out = scale * f[row] * factor[c] * a + offset[0] * b, where f is 0.5 or 2 in
 * training and 1 in testing. ------------------------------------------------------------------- */

typedef struct mix {
  tandem_shape shape;
  int64_t first_row;
  uint32_t layer;
  int32_t draws;
  float scale;
} mix;

static tandem_status mix_shapes(const tandem_layer_query* query, tandem_shape* outputs) {
  const tandem_shape a = query->inputs[0], b = query->inputs[1];
  if (a.n != b.n || a.c != b.c || a.h != b.h || a.w != b.w) {
    host->explain("its inputs must have the same shape");
    return TANDEM_INVALID;
  }
  outputs[0] = a;
  return TANDEM_OK;
}

static tandem_status mix_weights(const tandem_layer_query* query, tandem_weight* weights,
                                 uint32_t weight_size, uint32_t capacity, uint32_t* count) {
  *count = 2;
  if (capacity >= 1) {
    weights->name = "factor";
    weights->shape = (tandem_shape){query->inputs[0].c, 1, 1, 1};
    weights->filler = "factor_filler";
    weights->fan_in = weights->fan_out = 1;
  }
  if (capacity >= 2) {
    tandem_weight* second = (tandem_weight*)((char*)weights + weight_size);
    second->name = "offset";
    second->shape = (tandem_shape){1, 1, 1, 1};
    second->initial = 0.5;
    second->fan_in = second->fan_out = 1;
  }
  return TANDEM_OK;
}

static tandem_status mix_cost(const tandem_layer_query* query, tandem_layer_cost* cost) {
  const double elements = (double)size_of(query->inputs[0]);
  cost->forward_flops = cost->backward_data_flops = cost->backward_weights_flops = 4 * elements;
  cost->forward_bytes = cost->backward_data_bytes = cost->backward_weights_bytes = 12 * elements;
  return TANDEM_OK;
}

static tandem_status mix_prepare(const tandem_binding* binding, const tandem_call* call,
                                 void** handle, tandem_kernel_report* report) {
  (void)call;
  double scale = 0;
  int64_t power = 0, doubled = 0;
  const char* sign = NULL;
  const int64_t* halves = NULL;
  const double* more = NULL;
  uint32_t half_count = 0, more_count = 0;
  const tandem_attributes* a = binding->attributes;
  tandem_status status = host->get_number(a, "scale", &scale);
  if (status == TANDEM_OK) status = host->get_integer(a, "power", &power);
  if (status == TANDEM_OK) status = host->get_integer(a, "doubled", &doubled);
  if (status == TANDEM_OK) status = host->get_text(a, "sign", &sign);
  if (status == TANDEM_OK) status = host->get_integers(a, "halves", &halves, &half_count);
  if (status == TANDEM_OK) status = host->get_numbers(a, "more", &more, &more_count);
  if (status != TANDEM_OK) return status;
  for (int64_t i = 0; i < power; ++i) scale *= 2;
  if (doubled != 0) scale *= 2;
  if (host->is_set(a, "sign") != 0 && sign[0] == 'M') scale = -scale;
  for (uint32_t i = 0; i < half_count; ++i) {
    for (int64_t k = 0; k < halves[i]; ++k) scale /= 2;
  }
  for (uint32_t i = 0; i < more_count; ++i) scale *= more[i];
  mix* self = malloc(sizeof *self);
  if (self == NULL) {
    host->explain("out of memory");
    return TANDEM_OUT_OF_MEMORY;
  }
  self->shape = tensor(binding, binding->inputs, 0)->shape;
  self->first_row = binding->batch_begin;
  self->layer = binding->layer_index;
  self->draws = binding->phase == TANDEM_TRAIN;
  self->scale = (float)scale;
  report->saved_bytes = 4 * self->shape.n;
  report->scratch_bytes = 4 * self->shape.c;
  report->algorithm = "plain";
  *handle = self;
  return TANDEM_OK;
}

static void mix_release(void* handle) {
  free(handle);
}

static tandem_status mix_forward(void* handle, const tandem_call* call, const tandem_pass* pass) {
  (void)call;
  const mix* self = handle;
  const tandem_shape s = self->shape;
  const float *a = pass->inputs[0], *b = pass->inputs[1];
  const float *factor = pass->weights[0], *offset = pass->weights[1];
  float *out = pass->outputs[0], *drawn = pass->saved, *scaled = pass->scratch;
  for (int64_t c = 0; c < s.c; ++c) scaled[c] = self->scale * factor[c];
  for (int64_t n = 0; n < s.n; ++n) {
    drawn[n] = 1;
    if (self->draws) {
      const tandem_step* step = pass->step;
      const uint64_t row = (uint64_t)(self->first_row + step->first_row + n);
      const tandem_random4 numbers =
          tandem_random_block(step->seed, step->step, self->layer, row, 0);
      drawn[n] = tandem_uniform(numbers.value[0]) < 0.5F ? 0.5F : 2.0F;
    }
    for (int64_t c = 0; c < s.c; ++c) {
      for (int64_t i = 0; i < s.h * s.w; ++i) {
        const int64_t at = (n * s.c + c) * s.h * s.w + i;
        out[at] = drawn[n] * scaled[c] * a[at] + offset[0] * b[at];
      }
    }
  }
  return TANDEM_OK;
}

static tandem_status mix_backward_data(void* handle, const tandem_call* call,
                                       const tandem_pass* pass) {
  (void)call;
  const mix* self = handle;
  const tandem_shape s = self->shape;
  const float *factor = pass->weights[0], *offset = pass->weights[1];
  const float *dy = pass->output_gradients[0], *drawn = pass->saved;
  float *da = pass->input_gradients[0], *db = pass->input_gradients[1];
  for (int64_t at = 0; at < size_of(s); ++at) {
    const int64_t c = at / (s.h * s.w) % s.c, n = at / (s.c * s.h * s.w);
    if (da != NULL) da[at] = drawn[n] * (self->scale * factor[c]) * dy[at];
    if (db != NULL) db[at] = offset[0] * dy[at];
  }
  return TANDEM_OK;
}

static tandem_status mix_backward_weights(void* handle, const tandem_call* call,
                                          const tandem_pass* pass) {
  (void)call;
  const mix* self = handle;
  const tandem_shape s = self->shape;
  const float *a = pass->inputs[0], *b = pass->inputs[1];
  const float *dy = pass->output_gradients[0], *drawn = pass->saved;
  float *of_factor = pass->weight_gradients[0], *of_offset = pass->weight_gradients[1];
  const int adds = (pass->flags & TANDEM_ACCUMULATE) != 0;
  for (int64_t c = 0; of_factor != NULL && c < s.c; ++c) {
    float sum = 0;
    for (int64_t n = 0; n < s.n; ++n) {
      for (int64_t i = 0; i < s.h * s.w; ++i) {
        const int64_t at = (n * s.c + c) * s.h * s.w + i;
        sum += drawn[n] * self->scale * a[at] * dy[at];
      }
    }
    of_factor[c] = (adds ? of_factor[c] : 0) + sum;
  }
  if (of_offset != NULL) {
    float sum = 0;
    for (int64_t at = 0; at < size_of(s); ++at) sum += b[at] * dy[at];
    of_offset[0] = (adds ? of_offset[0] : 0) + sum;
  }
  return TANDEM_OK;
}

/* ---- stored.Loss: half the squared distance of the scores from 1 for the label's class and 0 for
 * the others. --------------------------------------------------------------------------------- */

typedef struct loss {
  int64_t rows, size;
} loss;

static tandem_status loss_shapes(const tandem_layer_query* query, tandem_shape* outputs) {
  (void)query;
  outputs[0] = (tandem_shape){1, 1, 1, 1};
  return TANDEM_OK;
}

static tandem_status loss_prepare(const tandem_binding* binding, const tandem_call* call,
                                  void** handle, tandem_kernel_report* report) {
  (void)call, (void)report;
  loss* self = malloc(sizeof *self);
  if (self == NULL) {
    host->explain("out of memory");
    return TANDEM_OUT_OF_MEMORY;
  }
  const tandem_shape s = tensor(binding, binding->inputs, 0)->shape;
  self->rows = s.n;
  self->size = s.c * s.h * s.w;
  *handle = self;
  return TANDEM_OK;
}

static void loss_release(void* handle) {
  free(handle);
}

static int holds_sample(const tandem_pass* pass, int64_t row) {
  const float* labels = pass->inputs[1];
  if (pass->row_labels != NULL && pass->row_labels[row] < 0) return 0;
  return !(labels[row] < 0);
}

static float distance(const loss* self, const tandem_pass* pass, int64_t row, int64_t c) {
  const float *scores = pass->inputs[0], *labels = pass->inputs[1];
  return scores[row * self->size + c] - ((int64_t)labels[row] == c ? 1.0F : 0.0F);
}

static float divisor(const tandem_pass* pass) {
  return pass->normaliser[0] < 1 ? 1 : pass->normaliser[0];
}

static tandem_status loss_forward(void* handle, const tandem_call* call, const tandem_pass* pass) {
  (void)call;
  const loss* self = handle;
  double sum = 0;
  for (int64_t row = 0; row < self->rows; ++row) {
    for (int64_t c = 0; c < self->size && holds_sample(pass, row); ++c) {
      const double d = (double)distance(self, pass, row, c);
      sum += d * d / 2;
    }
  }
  *(float*)pass->outputs[0] = (float)(sum / (double)divisor(pass));
  return TANDEM_OK;
}

static tandem_status loss_backward_data(void* handle, const tandem_call* call,
                                        const tandem_pass* pass) {
  (void)call;
  const loss* self = handle;
  const float factor = *(const float*)pass->output_gradients[0] / divisor(pass);
  float* dx = pass->input_gradients[0];
  for (int64_t row = 0; row < self->rows; ++row) {
    for (int64_t c = 0; c < self->size; ++c) {
      dx[row * self->size + c] =
          holds_sample(pass, row) ? factor * distance(self, pass, row, c) : 0;
    }
  }
  return TANDEM_OK;
}

/* ---- The data set stored_rows: of class k, row k of the picture is bright. --------------------
 */

typedef struct rows {
  int64_t size;
  tandem_shape shape;
} rows;

static tandem_status rows_open(const tandem_dataset_request* request, void** handle,
                               tandem_dataset_info* info) {
  int64_t size = 0;
  const tandem_status status = host->get_integer(request->attributes, "pictures", &size);
  if (status != TANDEM_OK) return status;
  rows* self = malloc(sizeof *self);
  if (self == NULL) {
    host->explain("out of memory");
    return TANDEM_OUT_OF_MEMORY;
  }
  const tandem_shape wanted = request->shape;
  self->size = size;
  self->shape = (tandem_shape){1, wanted.c > 0 ? wanted.c : 3, wanted.h > 0 ? wanted.h : 8,
                               wanted.w > 0 ? wanted.w : 8};
  info->size = size;
  info->class_count = 4;
  info->shape = self->shape;
  *handle = self;
  return TANDEM_OK;
}

static void rows_close(void* handle) {
  free(handle);
}

static const char* rows_class_name(void* handle, int64_t index) {
  static const char* const names[] = {"row 0", "row 1", "row 2", "row 3"};
  (void)handle;
  return names[index];
}

static const char* rows_sample_name(void* handle, int64_t index) {
  (void)handle, (void)index;
  return "made up";
}

static const char* rows_notes(void* handle) {
  (void)handle;
  return "";
}

static tandem_status rows_get(void* handle, int64_t index, uint64_t seed, float* pixels,
                              float* label) {
  const rows* self = handle;
  const tandem_shape s = self->shape;
  for (int64_t i = 0; i < size_of(s); ++i) {
    const tandem_random4 noise = tandem_random_block(seed, 0, 0, (uint64_t)index, (uint32_t)i);
    pixels[i] = 0.25F * tandem_uniform(noise.value[0]) + (i / s.w % s.h == index % 4 ? 1.0F : 0.0F);
  }
  *label = (float)(index % 4);
  return TANDEM_OK;
}

/* ---- The module ------------------------------------------------------------------------------ */

#define PARAMETER(identifier, kind, value)                                      \
  static const tandem_parameter identifier = {.struct_size = sizeof identifier, \
                                              .type = TANDEM_PARAMETER_##kind,  \
                                              .block = "stored_mix_param",      \
                                              .name = #identifier,              \
                                              .default_value = value,           \
                                              .minimum = 1,                     \
                                              .help = "for a test"}

__attribute__((visibility("default"))) const tandem_plugin* tandem_plugin_entry(
    const tandem_host* host_table) {
  PARAMETER(scale, NUMBER, "1");
  PARAMETER(power, INTEGER, "0");
  PARAMETER(doubled, BOOLEAN, "false");
  PARAMETER(halves, INTEGERS, NULL);
  PARAMETER(more, NUMBERS, NULL);
  PARAMETER(factor_filler, FILLER, NULL);
  static const tandem_parameter sign = {.struct_size = sizeof sign,
                                        .type = TANDEM_PARAMETER_TEXT,
                                        .block = "stored_mix_param",
                                        .name = "sign",
                                        .default_value = "PLUS",
                                        .minimum = 1,
                                        .choices = "PLUS|MINUS",
                                        .help = "for a test"};
  static const tandem_parameter* const parameters[] = {&scale,  &power, &doubled,      &sign,
                                                       &halves, &more,  &factor_filler};
  static const tandem_input a = {sizeof a, TANDEM_INPUT_DATA, "a"};
  static const tandem_input b = {sizeof b, TANDEM_INPUT_DATA, "b"};
  static const tandem_input* const two[] = {&a, &b};
  static const tandem_layer_type mix_type = {
      .struct_size = sizeof mix_type,
      .name = "stored.Mix",
      .help = "two inputs and two weights",
      .parameters = parameters,
      .parameter_count = sizeof parameters / sizeof *parameters,
      .inputs = two,
      .input_count = 2,
      .minimum_inputs = 2,
      .maximum_inputs = 2,
      .minimum_outputs = 1,
      .maximum_outputs = 1,
      .traits = TANDEM_PER_SAMPLE | TANDEM_RANDOM | TANDEM_BACKWARD_READS_INPUTS,
      .shapes = mix_shapes,
      .weights = mix_weights,
      .cost = mix_cost};
  static const tandem_input scores = {sizeof scores, TANDEM_INPUT_DATA, "scores"};
  static const tandem_input label = {sizeof label, TANDEM_INPUT_LABEL, "label"};
  static const tandem_input* const with_label[] = {&scores, &label};
  static const tandem_layer_type loss_type = {
      .struct_size = sizeof loss_type,
      .name = "stored.Loss",
      .help = "half the squared distance from the label's class",
      .inputs = with_label,
      .input_count = 2,
      .minimum_inputs = 2,
      .maximum_inputs = 2,
      .minimum_outputs = 1,
      .maximum_outputs = 1,
      .traits =
          TANDEM_PER_SAMPLE | TANDEM_LOSS | TANDEM_BACKWARD_READS_INPUTS | TANDEM_SAVES_NOTHING,
      .shapes = loss_shapes};
  static const tandem_kernel mix_kernel = {.struct_size = sizeof mix_kernel,
                                           .layer_type = "stored.Mix",
                                           .device_kind = "cpu",
                                           .prepare = mix_prepare,
                                           .release = mix_release,
                                           .forward = mix_forward,
                                           .backward_data = mix_backward_data,
                                           .backward_weights = mix_backward_weights};
  static const tandem_kernel loss_kernel = {.struct_size = sizeof loss_kernel,
                                            .layer_type = "stored.Loss",
                                            .device_kind = "cpu",
                                            .prepare = loss_prepare,
                                            .release = loss_release,
                                            .forward = loss_forward,
                                            .backward_data = loss_backward_data};
  static const tandem_layer_type* const types[] = {&mix_type, &loss_type};
  static const tandem_kernel* const kernels[] = {&mix_kernel, &loss_kernel};
  static const tandem_layers layers = {.struct_size = sizeof layers,
                                       .major = TANDEM_LAYERS_MAJOR,
                                       .minor = TANDEM_LAYERS_MINOR,
                                       .type_count = 2,
                                       .kernel_count = 2,
                                       .types = types,
                                       .kernels = kernels};
  static const tandem_parameter pictures = {.struct_size = sizeof pictures,
                                            .type = TANDEM_PARAMETER_INTEGER,
                                            .block = "",
                                            .name = "pictures",
                                            .default_value = "64",
                                            .minimum = 1,
                                            .maximum = 1000000,
                                            .help = "number of pictures"};
  static const tandem_parameter* const of_rows[] = {&pictures};
  static const tandem_dataset_type rows_type = {.struct_size = sizeof rows_type,
                                                .name = "stored_rows",
                                                .help = "pictures of one bright row",
                                                .parameters = of_rows,
                                                .parameter_count = 1,
                                                .open = rows_open,
                                                .close = rows_close,
                                                .class_name = rows_class_name,
                                                .sample_name = rows_sample_name,
                                                .notes = rows_notes,
                                                .get = rows_get};
  static const tandem_dataset_type* const sets[] = {&rows_type};
  static const tandem_datasets datasets = {.struct_size = sizeof datasets,
                                           .major = TANDEM_DATASETS_MAJOR,
                                           .minor = TANDEM_DATASETS_MINOR,
                                           .type_count = 1,
                                           .types = sets};
  static const tandem_plugin plugin = {.abi_major = TANDEM_ABI_MAJOR,
                                       .abi_minor = TANDEM_ABI_MINOR,
                                       .struct_size = sizeof plugin,
                                       .name = "stored",
                                       .version = "1.0",
                                       .layers = &layers,
                                       .datasets = &datasets};
  host = host_table;
  return &plugin;
}
