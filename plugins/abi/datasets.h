/* Data sets: a part of the plugin ABI with a version of its own. */
#pragma once

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_DATASETS_MAJOR 2
#define TANDEM_DATASETS_MINOR 0

/* It and all that it points to, except the attributes, is valid until open() returns. */
typedef struct tandem_dataset_request {
  uint32_t struct_size;
  int32_t phase;
  const char* source; /* what the user wrote after --data */
  const char* split;  /* "train", "val" or "test" */
  /* Newline-separated, those of an existing model. NULL: the data set decides. */
  const char* class_names;
  const tandem_attributes* attributes;
  uint64_t seed;      /* of the split */
  tandem_shape shape; /* n = 1; c, h and w that the net expects; 0: as the data have it */
  /* The net's further inputs beside image and label, for get_inputs: n = 1, and zeros
   * where the shape is that of the image. */
  const tandem_shape* inputs;
  uint32_t input_count;
} tandem_dataset_request;

/* What the label of a sample is. */
enum {
  TANDEM_TASK_CLASSES = 0, /* its class */
  TANDEM_TASK_LABELS = 1,  /* any number of labels: for each "class" 1 or 0, as targets() gives */
  TANDEM_TASK_VALUES = 2   /* numbers: one for each "class", whose name says what it is */
};

typedef struct tandem_dataset_info {
  uint32_t struct_size;
  int64_t size;
  int64_t class_count;
  tandem_shape shape;     /* of one sample: n = 1 */
  int32_t split_is_drawn; /* 1: which samples it holds depends on the request's seed */
  /* 1: get_bytes() works for this request. get() then gives (byte - means[channel]) *
   * scale, apart from the rounding of resized or recolored pixels to bytes. */
  int32_t has_bytes;
  float byte_means[4];
  float byte_scale;
  /* Of other tasks than classes, get() gives the label 0 to every sample. */
  int64_t task;
} tandem_dataset_info;

/* One sample as it is stored, as opposed to what get() makes from it. */
typedef struct tandem_sample_info {
  uint32_t struct_size;
  int32_t channels;      /* 1: gray, 3: color, 4: with alpha, or CMYK; 0: not known */
  int64_t width, height; /* after rotation by the orientation tag; 0: not known */
  int64_t bytes;
  uint64_t content;   /* a hash of the stored bytes */
  const char* format; /* "JPEG"; lives as long as the plugin */
} tandem_sample_info;

/* Opened data sets of one type that are to be written to one file, which the type can open as a
 * source. */
typedef struct tandem_pack_request {
  uint32_t struct_size;
  uint32_t split_count;
  void* const* handles;      /* of each split */
  const char* const* splits; /* its name */
  const char* path;          /* must not exist; the file appears whole or not at all */
  int64_t shorter_side;      /* larger images are shrunk to it; 0: stored unchanged */
  int32_t quality;           /* of the written JPEGs, 1 to 100 */
  int32_t threads;
  uint64_t seed; /* of the order */
  /* Called from time to time, by one thread at a time. A result other than 0 ends the writing. */
  int32_t (*progress)(void* user, int64_t done, int64_t all);
  /* Called for each sample that is left out. */
  void (*left_out)(void* user, const char* sample, const char* reason);
  void* user;
} tandem_pack_request;

/* open() and recognizes() may be called by several threads at the same time, for several handles.
 * All functions of an opened data set are thread-safe, except close(). get() is a pure function of
 * (index, seed). The texts that class_name(), sample_name() and notes() give are not NULL and live
 * until close(). */
typedef struct tandem_dataset_type {
  uint32_t struct_size;
  const char* name; /* "image_folder" */
  const char* help;
  const tandem_parameter* const* parameters;
  uint32_t parameter_count;
  tandem_status (*open)(const tandem_dataset_request*, void** handle, tandem_dataset_info*);
  void (*close)(void* handle);
  const char* (*class_name)(void* handle, int64_t index);
  /* A path, for messages. */
  const char* (*sample_name)(void* handle, int64_t index);
  /* Lines for the user: what was skipped and why; "" if nothing was. */
  const char* (*notes)(void* handle);
  /* Writes c*h*w floats (plain C,H,W) and the class. TANDEM_SKIP with a reason if the sample is
   * damaged. */
  tandem_status (*get)(void* handle, int64_t index, uint64_t seed, float* pixels, float* label);
  /* Each of the following may be NULL. */
  /* Writes the further inputs of the request for the same sample, in the request's order. NULL: the
   * data set has only an image and a label for each sample. */
  tandem_status (*get_inputs)(void* handle, int64_t index, uint64_t seed, float* const* inputs);
  /* 1 if this type reads the source, else 0. */
  int32_t (*recognizes)(const char* source);
  /* The label that get() gives, without reading pixels. */
  int64_t (*label)(void* handle, int64_t index);
  /* TANDEM_SKIP as get(). */
  tandem_status (*describe)(void* handle, int64_t index, tandem_sample_info*);
  tandem_status (*pack)(const tandem_pack_request*);
  /* Like get(), but pixels are rounded to bytes, without mean and scale.
   * May be called only if the info says has_bytes. */
  tandem_status (*get_bytes)(void* handle, int64_t index, uint64_t seed, uint8_t* pixels,
                             float* label);
  /* Writes class_count values of a sample, without reading pixels. Called only if the
   * info's task is not TANDEM_TASK_CLASSES. */
  tandem_status (*targets)(void* handle, int64_t index, float* values);
} tandem_dataset_type;

/* What a module offers. */
typedef struct tandem_datasets {
  uint32_t struct_size;
  int32_t major, minor; /* TANDEM_DATASETS_MAJOR and _MINOR of the header it was built with */
  uint32_t type_count;
  const tandem_dataset_type* const* types;
} tandem_datasets;

#ifdef __cplusplus
}
#endif
