/* What all parts of the plugin ABI share: status codes, tensors, the host's table and declared
 * parameters. C11; docs/reference/abi.md has the promises about what may change. Its version is
 * that of plugins/abi.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Values that cross the ABI --------------------------------------------------------------- */

typedef int32_t tandem_status;
enum {
  TANDEM_OK = 0,
  TANDEM_INVALID = 1,     /* the user's input is wrong; the reason says what would be right */
  TANDEM_UNSUPPORTED = 2, /* valid, but this plugin cannot do it */
  TANDEM_OUT_OF_MEMORY = 3,
  TANDEM_FAILED = 4, /* a device, a library or a file failed */
  TANDEM_SKIP = 5,   /* this sample of a data set is damaged and is to be skipped */
  TANDEM_TIMEOUT = 6 /* an event was not reached within the given time */
};

enum {
  TANDEM_FLOAT32 = 1,
  TANDEM_BFLOAT16 = 2,
  TANDEM_FLOAT16 = 3,
  TANDEM_INT32 = 4,
  TANDEM_UINT8 = 5
};

/* Memory layouts of a logical N,C,H,W tensor. The blocked layouts hold C in groups of 8 or 16 as
 * the fastest axis (nChw8c, nChw16c); they are used only if C is a multiple of the block. The
 * layout of a tensor with H = W = 1 is always TANDEM_NCHW. */
enum { TANDEM_NCHW = 1, TANDEM_NHWC = 2, TANDEM_NCHW8C = 3, TANDEM_NCHW16C = 4 };

enum { TANDEM_TRAIN = 0, TANDEM_TEST = 1 };

/* It never grows: arrays of it have no stride. */
typedef struct tandem_shape {
  int64_t n, c, h, w; /* weights: n = output channels, c = input channels per group */
} tandem_shape;

/* It may grow: whoever passes an array of it says how many bytes lie from one to the next. */
typedef struct tandem_tensor {
  tandem_shape shape;
  int32_t dtype;
  int32_t layout;
} tandem_tensor;

/* What kernels and updates may read about the current step. It lies in device memory, which the
 * host writes once per micro-batch, and never grows. */
typedef struct tandem_step {
  uint64_t seed;
  uint64_t step;
  float rate;    /* the solver's learning rate for this step */
  float samples; /* rows of the global batch that hold a sample; a loss divides by it */
  /* Rows of the earlier micro-batches of the same update. A random layer adds it to the positions
   * of its rows, so that it draws the same numbers as in one large batch. */
  int32_t first_row;
  int32_t reserved;
} tandem_step;

/* Where a call runs. On the cpu it runs on a stream's thread, whose OpenMP team has `threads`
 * threads. That is the team of the OpenMP runtime that the host's process uses (GNU libgomp where
 * Tandem was built by g++). A module that brings another OpenMP runtime gets a second team, whose
 * size nobody sets: it passes `threads` in num_threads(), or uses no OpenMP. */
typedef struct tandem_call {
  uint32_t struct_size;
  int32_t device;
  int32_t threads;
  void* native_stream; /* cuda: its cudaStream_t */
  /* The stream's own library handles. cuda: a cublasHandle_t and a cudnnHandle_t, of the cuBLAS and
   * cuDNN that the backend loaded. Otherwise NULL. The ABI does not fix their version: before a
   * plugin uses a handle it compares what cublasGetVersion() or cudnnGetVersion() says with the
   * version it was built with, and refuses another major one. */
  void* native_blas;
  void* native_dnn;
} tandem_call;

/* ---- The host's table ------------------------------------------------------------------------ */

/* A layer's or data set's parameters, already checked. The handle of a layer lives as long as any
 * kernel that was prepared with it, until release() returns; that of a data set until close()
 * returns; that of a query until the call returns. What get_text(), get_integers() and
 * get_numbers() give lives as long as the handle. Any thread may read it. */
typedef struct tandem_attributes tandem_attributes;

typedef struct tandem_host {
  int32_t abi_major, abi_minor;
  uint32_t struct_size;
  /* The reason for the failing status that the current call is about to return. Thread-local; the
   * host copies the text. */
  void (*explain)(const char* text);
  /* A parameter's value: the user's, or else its declared default. An undeclared name is an error.
   * The integer of a BOOLEAN is 0 or 1. */
  tandem_status (*get_integer)(const tandem_attributes*, const char* name, int64_t* value);
  tandem_status (*get_number)(const tandem_attributes*, const char* name, double* value);
  tandem_status (*get_text)(const tandem_attributes*, const char* name, const char** value);
  tandem_status (*get_integers)(const tandem_attributes*, const char* name, const int64_t** values,
                                uint32_t* count);
  /* 1 if the user wrote the parameter, 0 if its value is the default. */
  int32_t (*is_set)(const tandem_attributes*, const char* name);
  /* The last text that this thread explained, or "". Valid until its next explain(). A backend uses
   * it to carry the reason of a failed work from the stream's thread to the one that synchronizes.
   */
  const char* (*explained)(void);
  tandem_status (*get_numbers)(const tandem_attributes*, const char* name, const double** values,
                               uint32_t* count);
  /* The versions of the host's parts, as TANDEM_LAYERS_MAJOR and so on. */
  int32_t layers_major, layers_minor;
  int32_t datasets_major, datasets_minor;
  int32_t backends_major, backends_minor;
  int32_t transports_major, transports_minor;
} tandem_host;

/* ---- Declared parameters --------------------------------------------------------------------- */

enum {
  TANDEM_PARAMETER_INTEGER = 1,
  TANDEM_PARAMETER_NUMBER = 2,
  TANDEM_PARAMETER_BOOLEAN = 3,
  TANDEM_PARAMETER_TEXT = 4,
  TANDEM_PARAMETER_INTEGERS = 5, /* a repeated field: kernel_size: 3 kernel_size: 5 */
  TANDEM_PARAMETER_FILLER = 6,   /* a nested filler message; only the host reads it */
  TANDEM_PARAMETER_NUMBERS = 7   /* a repeated field: coeff: 1 coeff: -1 */
};

typedef struct tandem_parameter {
  uint32_t struct_size;
  int32_t type;
  /* The message that holds it: "convolution_param", "reshape_param.shape". NULL or "": the layer
   * itself. A data set has no messages and ignores it. */
  const char* block;
  const char* name; /* unique within its layer type or data set */
  /* As a user would write it. NULL: none (required, or absent by default). */
  const char* default_value;
  int32_t required;
  double minimum, maximum; /* inclusive; INTEGER(S) and NUMBER(S). minimum > maximum: no range */
  const char* choices;     /* TEXT: the allowed words, "MAX|AVE"; NULL: any text */
  const char* help;        /* one line */
} tandem_parameter;

#ifdef __cplusplus
}
#endif
