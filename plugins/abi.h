/* The ABI between Tandem and its plugins: the only thing that both sides share. C11, integers,
 * PODs, opaque handles and borrowed strings. No exception, no C++ type and no owned memory crosses
 * it.
 *
 * Promises. The first two fields of tandem_host and tandem_plugin are always abi_major and
 * abi_minor. A struct that begins with struct_size grows only at its end; a reader uses a field
 * only if struct_size covers it. Every call returns a tandem_status. Before a plugin returns a
 * failing status it passes the reason to host->explain(). Strings are UTF-8, NUL-terminated, and
 * owned by whoever passes them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_ABI_MAJOR 1
#define TANDEM_ABI_MINOR 7
#define TANDEM_ENTRY_SYMBOL "tandem_plugin_entry"

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

typedef struct tandem_shape {
  int64_t n, c, h, w; /* weights: n = output channels, c = input channels per group */
} tandem_shape;

typedef struct tandem_tensor {
  tandem_shape shape;
  int32_t dtype;
  int32_t layout;
} tandem_tensor;

/* What a kernel may read about the current step. It lies in device memory; the host writes it once
 * per micro-batch. */
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

/* ---- The host's table ------------------------------------------------------------------------ */

/* A layer's or data set's parameters, already checked. */
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
  /* Since 1.1. */
  tandem_status (*get_numbers)(const tandem_attributes*, const char* name, const double** values,
                               uint32_t* count);
} tandem_host;

/* ---- Declared parameters --------------------------------------------------------------------- */

enum {
  TANDEM_PARAMETER_INTEGER = 1,
  TANDEM_PARAMETER_NUMBER = 2,
  TANDEM_PARAMETER_BOOLEAN = 3,
  TANDEM_PARAMETER_TEXT = 4,
  TANDEM_PARAMETER_INTEGERS = 5, /* a repeated field: kernel_size: 3 kernel_size: 5 */
  TANDEM_PARAMETER_FILLER = 6,   /* a nested filler message; only the host reads it */
  TANDEM_PARAMETER_NUMBERS = 7   /* since 1.1: a repeated field: coeff: 1 coeff: -1 */
};

typedef struct tandem_parameter {
  uint32_t struct_size;
  int32_t type;
  const char* block; /* the message that holds it: "convolution_param", "reshape_param.shape" */
  const char* name;  /* unique within its layer type or data set */
  /* As a user would write it. NULL: none (required, or absent by default). */
  const char* default_value;
  int32_t required;
  double minimum, maximum; /* inclusive; INTEGER(S) and NUMBER(S). minimum > maximum: no range */
  const char* choices;     /* TEXT: the allowed words, "MAX|AVE"; NULL: any text */
  const char* help;        /* one line */
} tandem_parameter;

/* Element-wise functions that a kernel may fuse: it applies them to an output as it writes it.
 * Since 1.5. */
enum {
  TANDEM_ACTIVATION_NONE = 0,
  TANDEM_ACTIVATION_RELU = 1 /* y = x < 0 ? 0 : x; a NaN stays NaN */
};

/* ---- Layer types: what a layer is ------------------------------------------------------------ */

/* Traits of a layer type. */
enum {
  /* Row n of every output depends only on row n of the inputs. */
  TANDEM_PER_SAMPLE = 1 << 0,
  /* Output 0, if of the same size, may use the memory of input 0. */
  TANDEM_IN_PLACE = 1 << 1,
  /* A binding may compute a range of output channels: see tandem_binding. */
  TANDEM_SLICED_OUTPUTS = 1 << 2,
  /* It needs the statistics passes. */
  TANDEM_BATCH_STATISTICS = 1 << 3,
  /* Outputs are scalars, sums over rows / normaliser. The net trains on them. */
  TANDEM_LOSS = 1 << 4,
  /* Outputs are scalars like those of a loss. There is no backward pass. */
  TANDEM_METRIC = 1 << 5,
  /* A backward pass reads the forward inputs, or the forward outputs. */
  TANDEM_BACKWARD_READS_INPUTS = 1 << 6,
  TANDEM_BACKWARD_READS_OUTPUTS = 1 << 7,
  /* No gradient flows into input 1. A row with a label below zero holds no sample: it adds nothing
   * to loss, gradient or metric. */
  TANDEM_SECOND_INPUT_IS_LABEL = 1 << 8,
  /* In training it draws from Philox (see random.h). */
  TANDEM_RANDOM = 1 << 9,
  /* Only the shape of input 1 is used: it may have any layout and gets no gradient. */
  TANDEM_SECOND_INPUT_IS_SHAPE = 1 << 10,
  /* No gradient flows into any input: inputs are indices, or the output is one. */
  TANDEM_NO_DATA_GRADIENT = 1 << 11,
  /* Since 1.2. None of its kernels uses saved memory: a backward pass needs no earlier forward
   * pass on the same device. */
  TANDEM_SAVES_NOTHING = 1 << 12,
  /* Since 1.2. An output is a sum over the elements of an input row, and a binding may sum a range
   * of them: see tandem_binding. */
  TANDEM_SLICED_INPUTS = 1 << 13,
  /* Since 1.3. A loss whose input 1 may hold a value for each class instead of a label. */
  TANDEM_LABEL_OR_TARGETS = 1 << 14
};

typedef struct tandem_layer_query {
  uint32_t struct_size;
  int32_t phase;
  const tandem_attributes* attributes;
  const tandem_shape* inputs;
  uint32_t input_count;
  uint32_t output_count;
} tandem_layer_query;

enum {
  TANDEM_TRAINED = 0,
  TANDEM_STATE = 1 /* persistent but not trained, such as running means */
};

typedef struct tandem_weight {
  const char* name; /* "weight", "bias"; static */
  tandem_shape shape;
  /* The FILLER parameter that gives the initial values. NULL: all are `initial`. */
  const char* filler;
  double initial;
  int64_t fan_in, fan_out; /* for xavier and msra */
  int32_t kind;
} tandem_weight;

typedef struct tandem_layer_cost { /* of one pass over the inputs of the query */
  uint32_t struct_size;
  double forward_flops, backward_data_flops, backward_weights_flops;
  double forward_bytes, backward_data_bytes, backward_weights_bytes;
} tandem_layer_cost;

/* How many floats the statistics passes of this use of a layer write; 0: there is no such pass. The
 * numbers may depend on phase and parameters, but not on the number of rows. */
typedef struct tandem_layer_statistics {
  uint32_t struct_size;
  int64_t forward, backward;
} tandem_layer_statistics;

typedef struct tandem_layer_type {
  uint32_t struct_size;
  const char* name; /* "Convolution"; with a prefix if it is a third party's: "acme.Swish" */
  const char* help; /* one line */
  const tandem_parameter* const* parameters;
  uint32_t parameter_count;
  int32_t minimum_inputs, maximum_inputs; /* maximum -1: any number */
  int32_t minimum_outputs, maximum_outputs;
  uint64_t traits;
  /* Output shapes from input shapes. TANDEM_INVALID, with a reason, if they do not fit. */
  tandem_status (*shapes)(const tandem_layer_query*, tandem_shape* outputs);
  /* Writes at most `capacity` weights; *count receives the number that exist. */
  tandem_status (*weights)(const tandem_layer_query*, tandem_weight* weights, uint32_t capacity,
                           uint32_t* count);
  tandem_status (*cost)(const tandem_layer_query*, tandem_layer_cost*);
  /* Since 1.1. Used with TANDEM_BATCH_STATISTICS. NULL: no statistics. */
  tandem_status (*statistics)(const tandem_layer_query*, tandem_layer_statistics*);
  /* Since 1.5. The TANDEM_ACTIVATION_... that its forward pass computes, if it computes nothing
   * else. If the layer runs in place, it may then be fused into another layer's kernel. NULL: none.
   */
  tandem_status (*activation)(const tandem_layer_query*, int32_t* activation);
} tandem_layer_type;

/* ---- Kernels: how a layer type runs on a kind of device -------------------------------------- */

/* Flags of a binding. */
enum {
  TANDEM_WANTS_BACKWARD_DATA = 1 << 0,
  TANDEM_WANTS_BACKWARD_WEIGHTS = 1 << 1,
  TANDEM_RUNS_IN_PLACE = 1 << 2,
  /* A sliced binding adds its product to the output. */
  TANDEM_ADD_TO_OUTPUT = 1 << 3,
  /* Since 1.3. The user allows float32 products to round their factors to TF32. */
  TANDEM_ALLOWS_TF32 = 1 << 4,
  /* Since 1.4. If the binding's `algorithm` is NULL, prepare() may measure which algorithm is the
   * fastest. It then takes seconds, and allocates memory while it runs. */
  TANDEM_MAY_MEASURE = 1 << 5
};

/* One use of a layer: on one device, for a range of the batch and of the output channels. Inputs
 * and outputs have the local row count. Weights are float32 in plain row-major (O,I,H,W) order on
 * every device kind.
 *
 * Slices. With TANDEM_SLICED_OUTPUTS, [slice_begin, slice_end) may be a range of the output
 * channels. Weights, weight gradients and saved memory then hold that range only. Outputs and their
 * gradients hold that range only if they have slice_end - slice_begin channels; otherwise they hold
 * all channels and the passes touch only the range. In a layer without weights the same holds for
 * the inputs. Random numbers are always counted by the position in the whole row.
 * With TANDEM_SLICED_INPUTS, input 0 may hold a range of its row's elements as (n, c, 1, 1),
 * beginning at element input_begin. Weights and their gradient have the shape for the whole row;
 * the passes touch only the range's part of the gradient. With TANDEM_ADD_TO_OUTPUT the forward
 * pass adds the products of this range to the output and nothing else (no bias).
 * The memory of a sliced binding is aligned for floats only. */
typedef struct tandem_binding {
  uint32_t struct_size;
  int32_t phase;
  uint32_t layer_index; /* for Philox: the layer's number in the net */
  uint32_t flags;
  const char* layer_name;
  const tandem_attributes* attributes;
  const tandem_tensor* inputs;
  uint32_t input_count;
  const tandem_tensor* outputs;
  uint32_t output_count;
  const tandem_shape* weights;
  uint32_t weight_count;
  int64_t batch_begin; /* position of local row 0 in the global batch of batch_size rows */
  int64_t batch_size;
  int64_t slice_begin, slice_end; /* output channels [begin, end) */
  /* Since 1.2. The element of a whole row at which input 0 begins. */
  int64_t input_begin;
  /* Since 1.4. The `algorithm` that prepare() reported for the same use of this layer in an earlier
   * run. The kernel uses it again or refuses. NULL: the kernel chooses. */
  const char* algorithm;
  /* Since 1.5. The fused activation: forward applies it to each element of output 0 before it
   * writes it. It is one that the kernel's `activations` names, and never set together with
   * TANDEM_ADD_TO_OUTPUT. It changes nothing in the backward passes: the output gradient they get
   * is that of the values before the activation, and they do not read outputs. */
  int32_t activation;
} tandem_binding;

/* One way to lay out a binding's tensors. It applies to all inputs and all outputs. */
typedef struct tandem_layout_option {
  int32_t input, output;
  /* Memory traffic of this choice beyond that of the best one. The host compares it with the
   * traffic of the reorders that the best one would need. */
  double extra_bytes;
} tandem_layout_option;

typedef struct tandem_kernel_report {
  uint32_t struct_size;
  int64_t saved_bytes;   /* written by forward, read by backward */
  int64_t scratch_bytes; /* used during one call */
  /* Floats that its forward_statistics writes: at most as many as the type declares. 0: as many as
   * the type declares. */
  int64_t statistics;
  const char* algorithm; /* the chosen algorithm, for people; lives as long as the handle */
} tandem_kernel_report;

/* Where a call runs. On the cpu it runs on a stream's thread, whose OpenMP team has `threads`
 * threads. */
typedef struct tandem_call {
  uint32_t struct_size;
  int32_t device;
  int32_t threads;
  void* native_stream; /* cuda: its cudaStream_t */
  /* Since 1.3. The stream's own library handles. cuda: a cublasHandle_t and a cudnnHandle_t.
   * Otherwise NULL. */
  void* native_blas;
  void* native_dnn;
} tandem_call;

enum { TANDEM_ACCUMULATE = 1 << 0 }; /* add to weight gradients instead of overwriting them */

/* The memory of one pass. The host owns it; it lies on the call's device and is 64-byte aligned. A
 * NULL entry of input_gradients or weight_gradients means that this gradient is not wanted. A
 * gradient has its tensor's layout. */
typedef struct tandem_pass {
  uint32_t struct_size;
  uint32_t flags;
  void* const* inputs;
  void* const* outputs;
  void* const* weights;
  void* const* input_gradients;        /* overwritten */
  const void* const* output_gradients; /* of a loss: one float, the loss weight */
  void* const* weight_gradients;
  void* saved;
  void* scratch;
  const tandem_step* step; /* device memory */
  const float* normaliser; /* device memory: the divisor of a loss's or metric's sum */
  /* A statistics pass writes all of it, from the rows of its binding. Then forward (after
   * forward_statistics) and the backward passes (after backward_statistics) read there the values
   * of the whole batch, which have the same bits on every device. NULL: the type declares 0 floats.
   */
  float* statistics;
  /* Since 1.1. For a loss or metric: one value per local row. A row whose value is below zero holds
   * no sample and must add nothing. NULL: all rows hold samples. */
  const float* row_labels;
} tandem_pass;

typedef tandem_status (*tandem_pass_function)(void* handle, const tandem_call*, const tandem_pass*);

/* target = the merged statistics of target and the sources, in this order. Each is what
 * forward_statistics wrote for an interval of the batch. */
typedef tandem_status (*tandem_merge_function)(void* handle, const tandem_call*, float* target,
                                               const float* const* sources, uint32_t source_count);

typedef struct tandem_kernel {
  uint32_t struct_size;
  const char* layer_type;
  const char* device_kind; /* "cpu", "cuda" */
  /* The layouts that it supports, best first. NULL: plain NCHW only. The layout fields of the
   * binding are not set yet. */
  tandem_status (*layouts)(const tandem_binding*, tandem_layout_option* options, uint32_t capacity,
                           uint32_t* count);
  /* Called on the stream that will run the passes. The plugin owns *handle until release(). */
  tandem_status (*prepare)(const tandem_binding*, const tandem_call*, void** handle,
                           tandem_kernel_report*);
  void (*release)(void* handle);
  tandem_pass_function forward;
  tandem_pass_function backward_data;    /* input gradients. NULL: it has none */
  tandem_pass_function backward_weights; /* weight gradients. NULL: no trained weights */
  tandem_pass_function backward; /* both in one call, if that is cheaper. NULL: not offered */
  /* They run before forward and before the backward passes and get the same memory, but write only
   * statistics and scratch. The host sums the statistics of the devices in the devices' order. */
  tandem_pass_function forward_statistics;
  tandem_pass_function backward_statistics;
  /* Since 1.1. Replaces that sum for statistics that cannot be added, such as a mean and the
   * squared deviations from it. Called on any stream, while no pass of the handle runs. NULL: the
   * floats are added. */
  tandem_merge_function merge_forward_statistics;
  /* Since 1.3. The dtypes that inputs and outputs may have: bits 1 << TANDEM_FLOAT32 and so on. All
   * tensors of a binding have the same dtype, except labels, losses and metrics, which are float32.
   * 0: float32 only. */
  uint32_t dtypes;
  /* Since 1.5. The activations that the kernel can fuse: bits 1 << TANDEM_ACTIVATION_RELU and so
   * on. It has 64 bits so that it comes after the padding of older tables. */
  uint64_t activations;
} tandem_kernel;

/* ---- Backends: machines of devices, streams and events --------------------------------------- */

/* A set of devices that are opened together, numbered from 0. */
typedef struct tandem_machine tandem_machine;
/* A FIFO of work on one device. */
typedef struct tandem_stream tandem_stream;
/* Recorded on one stream, waited for by others. */
typedef struct tandem_event tandem_event;
/* Since 1.4. Works and copies that are launched together. */
typedef struct tandem_graph tandem_graph;

#define TANDEM_HOST (-1) /* host memory as the source or target of a copy */

/* The links that copies between devices use. A channel is one direction of a link, or a hub whose
 * traffic shares one bandwidth. It serves one copy at a time, in the order in which they become
 * ready. It serves each for the latency of the copy's path plus the time of its bytes at the
 * channel's bandwidth. Copies of up to 16 KiB do not wait for larger ones. The channels of a path
 * serve a copy at the same time, as packets of it would pass through them. The copy is done when
 * the last channel has served it. */
typedef struct tandem_topology {
  uint32_t struct_size;
  uint32_t channel_count;
  const double* bandwidths; /* by channel: bytes per second, above 0 */
  /* The index of a path is source * device_count + target; a path from a device to itself is not
   * used. */
  const double* latencies;       /* by path: seconds */
  const uint32_t* path_begins;   /* device_count^2 + 1 offsets into path_channels */
  const uint32_t* path_channels; /* the channels of each path in turn */
  /* Since 1.4. By channel, for people: "gpu0 -> gpu1 (NVLink)". NULL: they have no names. */
  const char* const* channel_names;
} tandem_topology;

typedef struct tandem_machine_options {
  uint32_t struct_size;
  int32_t device_count;
  const int32_t* ordinals; /* which physical device each is; the cpu and sim backends ignore it */
  int32_t threads;         /* cpu: cores in all, divided among the devices; 0: all of the machine */
  double link_bandwidth;   /* of a copy between two devices, bytes/s; 0: not limited (sim: 4e9) */
  double link_latency;     /* seconds added to each such copy */
  uint64_t delay_seed;     /* test mode: if not 0, random delays before every work and copy */
  double delay_seconds;    /* the longest such delay */
  int32_t paced;           /* 1: a compute work takes its predicted time instead of running */
  /* Since 1.2. Replaces link_bandwidth and link_latency. NULL: every pair of devices has its own
   * channel in each direction. Borrowed until open() returns. */
  const tandem_topology* topology;
} tandem_machine_options;

typedef struct tandem_device_info {
  uint32_t struct_size;
  char name[128];          /* of the hardware */
  int64_t memory_bytes;    /* in all */
  int64_t available_bytes; /* now */
  int32_t threads;         /* cpu: cores of this device; else 0 */
  double peak_flops;       /* float32 per second, estimated; for the roofline */
  double memory_bandwidth; /* bytes per second, estimated */
  /* Since 1.6. The library that kernels compute with, its version, and what it has and lacks on
   * this device, for people. May be empty. */
  char kernels[128];
} tandem_device_info;

enum {
  TANDEM_WORK_COMPUTE = 0,
  TANDEM_WORK_HOST = 1 /* always runs; it is never paced and never virtual */
};

typedef struct tandem_work {
  uint32_t struct_size;
  int32_t kind;
  const char* label;        /* lives until the work is done */
  double predicted_seconds; /* its duration in sim and in paced mode; < 0: not known */
  tandem_status (*run)(void* context, const tandem_call*);
  void* context;
} tandem_work;

enum {
  TANDEM_MEMORY_DEVICE = 0,
  TANDEM_MEMORY_PINNED = 1 /* host memory that a device copies from at full speed */
};

/* Solver rules, element by element. r = step->rate * rate_multiplier; t = step->step + 1;
 * s = gradient_scale, times clip / norm where clip > 0 and norm = sqrt(the sum of gradient_squares)
 * exceeds it; G = s * g + decay * w + l1_decay * sign(w). State arrays are zero at the beginning.
 *   SGD       h = momentum h + r G;  w -= h                                         (state: h)
 *   NESTEROV  k = momentum h + r G;  w -= (1 + momentum) k - momentum h;  h = k     (h)
 *   ADAGRAD   q += G G;  w -= r G / (sqrt(q) + delta)                               (q)
 *   RMSPROP   q = momentum2 q + (1 - momentum2) G G;  w -= r G / (sqrt(q) + delta)  (q)
 *   ADADELTA  q = momentum q + (1 - momentum) G G;  u = G sqrt((p + delta) / (q + delta));
 *             p = momentum p + (1 - momentum) u u;  w -= r u                        (q, p)
 *   ADAM      m = momentum m + (1 - momentum) G;  v = momentum2 v + (1 - momentum2) G G;
 *             w -= r sqrt(1 - momentum2^t) / (1 - momentum^t) m / (sqrt(v) + delta) (m, v)
 *   ADAMW     m, v as ADAM's with G = s g;  w -= r decay w;
 *             w -= r / (1 - momentum^t) m / (sqrt(v / (1 - momentum2^t)) + delta)   (m, v)
 *   LARS      SGD with r times trust_coefficient W / (s N + decay W); times 1 if N or W is 0.
 *             N and W are the norms of this array's g and w                         (h) */
enum {
  TANDEM_UPDATE_SGD = 1,
  TANDEM_UPDATE_NESTEROV = 2, /* this and the following: since 1.1 */
  TANDEM_UPDATE_ADAGRAD = 3,
  TANDEM_UPDATE_RMSPROP = 4,
  TANDEM_UPDATE_ADADELTA = 5,
  TANDEM_UPDATE_ADAM = 6,
  TANDEM_UPDATE_ADAMW = 7,
  TANDEM_UPDATE_LARS = 8
};

/* One solver update of `count` float32 values. */
typedef struct tandem_update {
  uint32_t struct_size;
  int32_t rule;
  int64_t count;
  float* weights;
  const float* gradient;
  float* const* state;
  uint32_t state_count;
  float momentum, decay, rate_multiplier;
  const tandem_step* step;
  const int32_t* found_inf; /* device memory; if not 0, the update changes nothing */
  /* Since 1.1. A caller of 1.0 gives 0, NULL and gradient_scale 1. */
  double momentum2, delta;
  double clip; /* 0: no clipping */
  double gradient_scale;
  double trust_coefficient;
  float l1_decay;
  uint32_t gradient_square_count;
  /* Device memory: one value for each weight array, added in this order. */
  const double* gradient_squares;
  /* LARS. Device memory: the values of this array. */
  const double* gradient_square;
  const double* weight_square;
} tandem_update;

/* Converts pixels that a data set gave as bytes (get_bytes) to the floats that get() would have
 * given: target[i] = (pixels[i] - means[channel]) * scale. The difference and the product are each
 * rounded to float32. Both arrays are in plain n,c,h,w order. Since 1.4. */
typedef struct tandem_pixels {
  uint32_t struct_size;
  tandem_shape shape; /* at most 4 channels */
  const uint8_t* pixels;
  float* target;
  float means[4]; /* by channel */
  float scale;
} tandem_pixels;

/* A copy of rows of bytes that lie at a fixed distance on each side. Since 1.5. */
typedef struct tandem_rows {
  uint32_t struct_size;
  int32_t target_device, source_device; /* or TANDEM_HOST */
  void* target;
  const void* source;
  int64_t target_stride, source_stride; /* bytes from row to row; at least row_bytes */
  int64_t row_bytes, row_count;
} tandem_rows;

/* Capabilities of a backend. Since 1.6. */
enum {
  /* It computes nothing: works take their predicted times, and device memory is addresses only. */
  TANDEM_VIRTUAL_TIME = 1 << 0,
  /* Device memory is memory of the host, which reads and writes it; all devices share it. */
  TANDEM_HOST_ADDRESSABLE = 1 << 1,
  /* A user asks for a number of devices (kind:4). Without it, for physical ones (kind:0,2). */
  TANDEM_COUNTED_DEVICES = 1 << 2,
  TANDEM_COMPUTES_FLOAT16 = 1 << 3, /* of kernels: some compute in float16 */
  TANDEM_COMPUTES_TF32 = 1 << 4     /* of kernels: some use TANDEM_ALLOWS_TF32 */
};

typedef struct tandem_backend {
  uint32_t struct_size;
  const char* kind; /* "cpu", "cuda", "sim" */
  const char* help;
  /* The number of physical devices of this machine; TANDEM_FAILED with the reason if it cannot be
   * found out. */
  tandem_status (*count)(int32_t* count);
  tandem_status (*describe)(int32_t ordinal, tandem_device_info*);

  tandem_status (*open)(const tandem_machine_options*, tandem_machine**);
  void (*close)(tandem_machine*); /* only when all of its streams are idle */
  tandem_status (*device_info)(tandem_machine*, int32_t device, tandem_device_info*);

  tandem_status (*allocate)(tandem_machine*, int32_t device, int32_t memory, int64_t bytes,
                            void** address);
  void (*free)(tandem_machine*, int32_t device, int32_t memory, void* address);

  tandem_status (*create_stream)(tandem_machine*, int32_t device, int32_t priority,
                                 const char* name, tandem_stream**);
  void (*destroy_stream)(tandem_stream*); /* waits until it is idle */
  /* A new event counts as done. A wait refers to the latest record that was issued before it. */
  tandem_status (*create_event)(tandem_machine*, tandem_event**);
  void (*destroy_event)(tandem_event*);

  /* These four return at once. What they issue happens in the order of their stream. */
  tandem_status (*submit)(tandem_stream*, const tandem_work*);
  tandem_status (*copy)(tandem_stream*, const char* label, int32_t target_device, void* target,
                        int32_t source_device, const void* source, int64_t bytes);
  tandem_status (*wait)(tandem_stream*, tandem_event*);
  tandem_status (*record)(tandem_stream*, tandem_event*);

  /* The host waits for an event for at most `seconds` (< 0: without limit; 0: only asks).
   * TANDEM_TIMEOUT if it is not done. Once a work of the machine has failed, this returns the
   * status and reason of the first failure. */
  tandem_status (*synchronize)(tandem_event*, double seconds);
  /* The time at which the event's latest record was reached, in seconds since the machine was
   * opened (sim: virtual). */
  tandem_status (*event_time)(tandem_event*, double* seconds);

  /* Arithmetic on device memory, called inside a submitted work. */
  tandem_status (*fill)(const tandem_call*, float* target, float value, int64_t count);
  /* target += sources[0] + sources[1] + ..., added in that order. */
  tandem_status (*add)(const tandem_call*, float* target, const float* const* sources,
                       uint32_t source_count, int64_t count);
  tandem_status (*update)(const tandem_call*, const tandem_update*);
  /* Sets *found_inf to 1 if a value is not finite; otherwise leaves it unchanged. */
  tandem_status (*check_finite)(const tandem_call*, const float* values, int64_t count,
                                int32_t* found_inf);
  /* Since 1.1. *sum = the sum of the values' squares, in an order that depends only on `count`.
   * NULL: this backend knows none of the update fields and rules of 1.1. */
  tandem_status (*sum_of_squares)(const tandem_call*, const float* values, int64_t count,
                                  double* sum);

  /* Since 1.4. Each may be NULL: this backend does not have it. */
  tandem_status (*convert_pixels)(const tandem_call*, const tandem_pixels*);
  /* What the hardware reports about the links between the machine's devices. *topology is NULL if
   * it reports nothing. The machine owns it until close(). */
  tandem_status (*find_topology)(tandem_machine*, const tandem_topology** topology);
  /* Between begin_capture and end_capture, what this thread submits, copies, records and waits for
   * on `stream` is not executed but becomes part of the graph. The same holds for every stream that
   * waits for an event recorded in the capture. Works run once, at capture, and issue what each
   * launch repeats with the same addresses. At the end, `stream` must have waited for every stream
   * that joined. Events recorded in a capture can be waited for only within it and have no times. A
   * capture that failed has ended.
   * The launches of a work may depend only on its binding and on the addresses of its pass: counts,
   * random offsets and arrays that the host keeps stay as they were at capture. A module of 1.4 or
   * newer promises this for its kernels. A kernel that cannot promise it refuses to be captured
   * (TANDEM_UNSUPPORTED). */
  tandem_status (*begin_capture)(tandem_stream*);
  tandem_status (*end_capture)(tandem_stream*, tandem_graph**);
  /* Returns at once. The whole graph runs in the order of the stream. */
  tandem_status (*launch)(tandem_stream*, const char* label, tandem_graph*);
  void (*destroy_graph)(tandem_graph*); /* only when its last launch is done */

  /* Since 1.5. Like copy(), for all rows at once. NULL: the host copies row by row. */
  tandem_status (*copy_rows)(tandem_stream*, const char* label, const tandem_rows*);

  uint64_t capabilities; /* since 1.6: TANDEM_VIRTUAL_TIME, ... */
} tandem_backend;

/* ---- Data sets ------------------------------------------------------------------------------- */

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
  /* Since 1.1. The net's further inputs beside image and label, for get_inputs: n = 1, and zeros
   * where the shape is that of the image. */
  const tandem_shape* inputs;
  uint32_t input_count;
} tandem_dataset_request;

typedef struct tandem_dataset_info {
  uint32_t struct_size;
  int64_t size;
  int64_t class_count;
  tandem_shape shape;     /* of one sample: n = 1 */
  int32_t split_is_drawn; /* since 1.2. 1: which samples it holds depends on the request's seed */
  /* Since 1.4. 1: get_bytes() works for this request. get() then gives (byte - means[channel]) *
   * scale, apart from the rounding of resized or recoloured pixels to bytes. */
  int32_t has_bytes;
  float byte_means[4];
  float byte_scale;
} tandem_dataset_info;

/* One sample as it is stored, as opposed to what get() makes from it. Since 1.2. */
typedef struct tandem_sample_info {
  uint32_t struct_size;
  int32_t channels;      /* 1: gray, 3: color, 4: with alpha, or CMYK; 0: not known */
  int64_t width, height; /* after rotation by the orientation tag; 0: not known */
  int64_t bytes;
  uint64_t content;   /* a hash of the stored bytes */
  const char* format; /* "JPEG"; lives as long as the plugin */
} tandem_sample_info;

/* Opened data sets of one type that are to be written to one file, which the type can open as a
 * source. Since 1.2. */
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

/* Thread-safe after open; get() is a pure function of (index, seed). */
typedef struct tandem_dataset_type {
  uint32_t struct_size;
  const char* name; /* "image_folder" */
  const char* help;
  const tandem_parameter* const* parameters;
  uint32_t parameter_count;
  tandem_status (*open)(const tandem_dataset_request*, void** handle, tandem_dataset_info*);
  void (*close)(void* handle);
  const char* (*class_name)(void* handle, int64_t index);
  /* A path, for messages; lives until close. */
  const char* (*sample_name)(void* handle, int64_t index);
  /* Lines for the user: what was skipped and why; "" if nothing was. */
  const char* (*notes)(void* handle);
  /* Writes c*h*w floats (plain C,H,W) and the class. TANDEM_SKIP with a reason if the sample is
   * damaged. */
  tandem_status (*get)(void* handle, int64_t index, uint64_t seed, float* pixels, float* label);
  /* Since 1.1. Writes the further inputs of the request for the same sample, in the request's
   * order. NULL: the data set has only an image and a label for each sample. */
  tandem_status (*get_inputs)(void* handle, int64_t index, uint64_t seed, float* const* inputs);
  /* Since 1.2; each may be NULL. recognizes: 1 if this type reads the source, else 0. label: the
   * label that get() gives, without reading pixels. describe: TANDEM_SKIP as get(). */
  int32_t (*recognizes)(const char* source);
  int64_t (*label)(void* handle, int64_t index);
  tandem_status (*describe)(void* handle, int64_t index, tandem_sample_info*);
  tandem_status (*pack)(const tandem_pack_request*);
  /* Since 1.4; may be NULL. Like get(), but pixels are rounded to bytes, without mean and scale.
   * May be called only if the info says has_bytes. */
  tandem_status (*get_bytes)(void* handle, int64_t index, uint64_t seed, uint8_t* pixels,
                             float* label);
} tandem_dataset_type;

/* ---- The plugin's table ---------------------------------------------------------------------- */

typedef struct tandem_plugin {
  int32_t abi_major, abi_minor;
  uint32_t struct_size;
  const char* name;
  const char* version;
  const tandem_layer_type* const* layer_types;
  uint32_t layer_type_count;
  const tandem_kernel* const* kernels;
  uint32_t kernel_count;
  const tandem_backend* const* backends;
  uint32_t backend_count;
  const tandem_dataset_type* const* dataset_types;
  uint32_t dataset_type_count;
  /* Since 1.7. */
  const struct tandem_transport* const* transports; /* plugins/transport.h */
  uint32_t transport_count;
} tandem_plugin;

/* The type of the one exported symbol. It returns NULL, with a reason, if the plugin cannot serve
 * this machine. */
typedef const tandem_plugin* (*tandem_plugin_entry_function)(const tandem_host*);

#ifdef __cplusplus
}
#endif
