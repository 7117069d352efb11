/* A library that runs ONNX models: exports are compared with it. It lies in a module of its own,
 * lib/tandem/onnx/NAME.so, which is loaded only then. Program and module are of one version, so
 * this is no part of the plugin ABI. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tandem_onnx_runner {
  uint32_t struct_size;
  const char* name; /* "OpenCV 4.6.0" */
  /* Runs the model in the file on float32 rows: extents are rows, channels, height, width. Writes
   * extents[0] * values floats. Returns 0; or 1, with the reason as text of at most reason_bytes
   * bytes. */
  int32_t (*run)(const char* path, const float* rows, const int64_t* extents, float* results,
                 int64_t values, char* reason, uint32_t reason_bytes);
} tandem_onnx_runner;

/* The module's one exported symbol, tandem_onnx_runner_entry. */
typedef const tandem_onnx_runner* (*tandem_onnx_runner_function)(void);

#ifdef __cplusplus
}
#endif
