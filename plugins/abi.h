/* The ABI between Tandem and its plugins: the only thing both sides share. C11, integers, PODs,
 * opaque handles and borrowed strings; no exception, no C++ type and no owned memory ever crosses
 * it.
 *
 * Promises. The first two fields of tandem_host and tandem_plugin are abi_major and abi_minor for
 * ever. A struct that begins with struct_size grows only at its end; a reader looks at a field only
 * if struct_size covers it. Every call returns a tandem_status; before a failing status the plugin
 * says why through host->explain(). Strings are UTF-8, NUL-terminated, and owned by whoever passes
 * them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_ABI_MAJOR 1
#define TANDEM_ABI_MINOR 5
#define TANDEM_ENTRY_SYMBOL "tandem_plugin_entry"

/* ---- Values that cross -------------------------------------------------------------------------
 */

typedef int32_t tandem_status;
enum {
  TANDEM_OK = 0,
  TANDEM_INVALID = 1,     /* the user's input is wrong; the reason says what would be right */
  TANDEM_UNSUPPORTED = 2, /* valid, but this plugin cannot do it */
  TANDEM_OUT_OF_MEMORY = 3,
  TANDEM_FAILED = 4, /* a device, a library or a file failed */
  TANDEM_SKIP = 5,   /* a data set's sample is damaged: leave it out, the reason says why */
  TANDEM_TIMEOUT = 6 /* an event was not reached in the time given */
};

enum {
  TANDEM_FLOAT32 = 1,
  TANDEM_BFLOAT16 = 2,
  TANDEM_FLOAT16 = 3,
  TANDEM_INT32 = 4,
  TANDEM_UINT8 = 5
};

/* Bytes of a logical N,C,H,W tensor. The blocked layouts hold C in groups of 8 or 16 as the fastest
 * axis (nChw8c, nChw16c) and are used only where C is a multiple of the block. A tensor with H = W
 * = 1 is always called TANDEM_NCHW. */
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

/* What a kernel may read of the step, in device memory, written once a step by the host. */
typedef struct tandem_step {
  uint64_t seed;
  uint64_t step;
  float rate;    /* the solver's learning rate for this step */
  float samples; /* rows of the global batch that hold a sample; what a loss divides by */
  /* Rows of the batches that went before this one into the same update. A random layer adds it to
   * its rows' positions: what is drawn is then the same as in one large batch. */
  int32_t first_row;
  int32_t reserved;
} tandem_step;

/* ---- The host's table --------------------------------------------------------------------------
 */

typedef struct tandem_attributes
    tandem_attributes; /* a layer's or data set's parameters, already checked */

typedef struct tandem_host {
  int32_t abi_major, abi_minor;
  uint32_t struct_size;
  /* Why the call that is about to return a failing status failed. Thread-local; the text is copied.
   */
  void (*explain)(const char* text);
  /* A parameter's value: the user's, or its declared default. Fails on a name that was not
   * declared. */
  tandem_status (*get_integer)(const tandem_attributes*, const char* name,
                               int64_t* value); /* BOOLEAN: 0, 1 */
  tandem_status (*get_number)(const tandem_attributes*, const char* name, double* value);
  tandem_status (*get_text)(const tandem_attributes*, const char* name, const char** value);
  tandem_status (*get_integers)(const tandem_attributes*, const char* name, const int64_t** values,
                                uint32_t* count);
  /* 1 if the user wrote the parameter, 0 if its value is the default. */
  int32_t (*is_set)(const tandem_attributes*, const char* name);
  /* What this thread last explained ("" if nothing), until its next explain(). A backend needs it
   * to carry a failed work's reason from the stream's thread to the one that synchronizes. */
  const char* (*explained)(void);
  /* Since 1.1. */
  tandem_status (*get_numbers)(const tandem_attributes*, const char* name, const double** values,
                               uint32_t* count);
} tandem_host;

/* ---- Declared parameters -----------------------------------------------------------------------
 */

enum {
  TANDEM_PARAMETER_INTEGER = 1,
  TANDEM_PARAMETER_NUMBER = 2,
  TANDEM_PARAMETER_BOOLEAN = 3,
  TANDEM_PARAMETER_TEXT = 4,
  TANDEM_PARAMETER_INTEGERS = 5, /* a repeated field: kernel_size: 3 kernel_size: 5 */
  TANDEM_PARAMETER_FILLER = 6,   /* a nested filler message; read by the host only */
  TANDEM_PARAMETER_NUMBERS = 7   /* since 1.1: a repeated field: coeff: 1 coeff: -1 */
};

typedef struct tandem_parameter {
  uint32_t struct_size;
  int32_t type;
  const char* block;         /* the message it stands in, as "convolution_param"; one inside it as
                                "reshape_param.shape" */
  const char* name;          /* unique within its layer type or data set */
  const char* default_value; /* as it would be written; NULL: none (required, or simply absent) */
  int32_t required;
  double minimum, maximum; /* inclusive; INTEGER(S) and NUMBER(S). minimum > maximum: no range */
  const char* choices;     /* TEXT: the allowed words, "MAX|AVE"; NULL: any text */
  const char* help;        /* one line */
} tandem_parameter;

/* Functions of one element that kernels know to be done with an output as it is written. Since
 * 1.5. */
enum {
  TANDEM_ACTIVATION_NONE = 0,
  TANDEM_ACTIVATION_RELU = 1 /* y = x < 0 ? 0 : x; a NaN stays one */
};

/* ---- Layer types: what a layer is --------------------------------------------------------------
 */

enum {                             /* traits */
       TANDEM_PER_SAMPLE = 1 << 0, /* row n of every output depends on row n of the inputs only */
       TANDEM_IN_PLACE = 1 << 1,   /* output 0, if as large, may be the memory of input 0 */
       TANDEM_SLICED_OUTPUTS = 1 << 2,   /* a binding may compute a range of output channels: see
                                            tandem_binding */
       TANDEM_BATCH_STATISTICS = 1 << 3, /* needs the statistics passes */
       TANDEM_LOSS = 1 << 4, /* outputs are scalars, sums over rows / normaliser; trains the net */
       TANDEM_METRIC = 1 << 5, /* outputs are scalars as a loss's, but there is no backward */
       TANDEM_BACKWARD_READS_INPUTS = 1 << 6,  /* a backward pass reads the forward inputs */
       TANDEM_BACKWARD_READS_OUTPUTS = 1 << 7, /* a backward pass reads the forward outputs */
       TANDEM_SECOND_INPUT_IS_LABEL =
           1 << 8,             /* no gradient flows into input 1. A row whose label is below zero
                                  holds no sample: it adds nothing to loss, gradient or metric */
       TANDEM_RANDOM = 1 << 9, /* draws from Philox (see sdk.h) in training */
       TANDEM_SECOND_INPUT_IS_SHAPE =
           1 << 10, /* of input 1 only the shape counts: it may have any layout, and no gradient */
       /* No gradient flows into any input: indices, or arg max. */
       TANDEM_NO_DATA_GRADIENT = 1 << 11,
       /* Since 1.2. No kernel of it keeps saved memory: a backward pass needs no forward before it
        * on its device. */
       TANDEM_SAVES_NOTHING = 1 << 12,
       /* Since 1.2. An output is a sum over the elements of an input row, and a binding may add up
        * a range of them: see tandem_binding */
       TANDEM_SLICED_INPUTS = 1 << 13,
       /* Since 1.3. A loss whose input 1 may hold, instead of a label, a value for each class. */
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
  TANDEM_STATE = 1
}; /* STATE: persistent but not trained, as running means */

typedef struct tandem_weight {
  const char* name; /* "weight", "bias"; static */
  tandem_shape shape;
  const char*
      filler; /* the FILLER parameter that gives its initial value; NULL: `initial` everywhere */
  double initial;
  int64_t fan_in, fan_out; /* for xavier and msra */
  int32_t kind;
} tandem_weight;

typedef struct tandem_layer_cost { /* of one pass over the inputs of the query */
  uint32_t struct_size;
  double forward_flops, backward_data_flops, backward_weights_flops;
  double forward_bytes, backward_data_bytes, backward_weights_bytes;
} tandem_layer_cost;

/* Floats that the statistics passes of this use of a layer write; 0: it has no such pass. They may
 * depend on phase and parameters, but not on the number of rows. */
typedef struct tandem_layer_statistics {
  uint32_t struct_size;
  int64_t forward, backward;
} tandem_layer_statistics;

typedef struct tandem_layer_type {
  uint32_t struct_size;
  const char* name; /* "Convolution"; a third party's carries a prefix: "acme.Swish" */
  const char* help; /* one line */
  const tandem_parameter* const* parameters;
  uint32_t parameter_count;
  int32_t minimum_inputs, maximum_inputs; /* maximum -1: any number */
  int32_t minimum_outputs, maximum_outputs;
  uint64_t traits;
  /* Output shapes from input shapes; TANDEM_INVALID explains what does not fit. */
  tandem_status (*shapes)(const tandem_layer_query*, tandem_shape* outputs);
  /* At most `capacity` weights; *count receives how many there are. */
  tandem_status (*weights)(const tandem_layer_query*, tandem_weight* weights, uint32_t capacity,
                           uint32_t* count);
  tandem_status (*cost)(const tandem_layer_query*, tandem_layer_cost*);
  /* Since 1.1. With TANDEM_BATCH_STATISTICS; NULL: no statistics. */
  tandem_status (*statistics)(const tandem_layer_query*, tandem_layer_statistics*);
  /* Since 1.5. The TANDEM_ACTIVATION_... that its forward pass is, and nothing besides; where it
   * runs in place, another layer's kernel may then do it. NULL: none. */
  tandem_status (*activation)(const tandem_layer_query*, int32_t* activation);
} tandem_layer_type;

/* ---- Kernels: how a layer type runs on a kind of device ----------------------------------------
 */

enum { /* binding flags */
       TANDEM_WANTS_BACKWARD_DATA = 1 << 0,
       TANDEM_WANTS_BACKWARD_WEIGHTS = 1 << 1,
       TANDEM_RUNS_IN_PLACE = 1 << 2,
       TANDEM_ADD_TO_OUTPUT =
           1 << 3, /* a sliced binding adds its product to what the output holds */
       /* Since 1.3. The user allows products of float32 to round their factors to TF32. */
       TANDEM_ALLOWS_TF32 = 1 << 4,
       /* Since 1.4. prepare() may run algorithms to see which is the fastest, where `algorithm` of
        * the binding names none. It then takes seconds, and memory of its own while it lasts. */
       TANDEM_MAY_MEASURE = 1 << 5
};

/* One use of a layer: on one device, over a range of the batch and of its output channels. Inputs
 * and outputs have the local row count. Weights are float32 in plain row-major (O,I,H,W) order on
 * every device kind.
 *
 * Slices. With TANDEM_SLICED_OUTPUTS slice_begin and slice_end may be a part of the output
 * channels. Weights, weight gradients and saved memory are then of that part alone; outputs and
 * their gradients are, too, if they have slice_end - slice_begin channels, else they are whole and
 * the passes touch that part of them. A layer without weights has inputs as it has outputs. Random
 * numbers are counted in the whole row. With TANDEM_SLICED_INPUTS input 0 may hold a part of its
 * row's elements, as (n, c, 1, 1): those from input_begin on. Weights are as if it held all of
 * them, and of their gradient only that part is touched; with TANDEM_ADD_TO_OUTPUT the forward pass
 * adds to the output what this part gives, and nothing besides (no bias). The memory of a sliced
 * binding is aligned as floats are, not more. */
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
  /* Since 1.2. Where input 0 begins in a whole row's elements. */
  int64_t input_begin;
  /* Since 1.4. What prepare() reported as `algorithm` for the same use of this layer in an earlier
   * run, which is to be taken again; a kernel that cannot refuses. NULL: the kernel chooses. */
  const char* algorithm;
  /* Since 1.5. What forward does last to each element of output 0, of those that the kernel's
   * `activations` names; never with TANDEM_ADD_TO_OUTPUT. The backward passes are as without it:
   * the output gradient is that of the values before it, and outputs are not read. */
  int32_t activation;
} tandem_binding;

/* One way of laying out a binding's tensors. Applies to all inputs and all outputs. */
typedef struct tandem_layout_option {
  int32_t input, output;
  double extra_bytes; /* memory traffic this choice costs beyond the best one; the host weighs it
                         against the reorders that it would need */
} tandem_layout_option;

typedef struct tandem_kernel_report {
  uint32_t struct_size;
  int64_t saved_bytes;   /* written by forward, read by backward */
  int64_t scratch_bytes; /* alive during one call */
  int64_t statistics;    /* floats of its forward_statistics; not more than the type says. 0: as the
                            type says */
  const char* algorithm; /* what was chosen, for people; alive as long as the handle */
} tandem_kernel_report;

/* Where a call runs. On the cpu it runs on a stream's thread, whose OpenMP team has `threads`
 * threads. */
typedef struct tandem_call {
  uint32_t struct_size;
  int32_t device;
  int32_t threads;
  void* native_stream; /* cuda: its cudaStream_t */
  /* Since 1.3. The stream's own library handles. cuda: a cublasHandle_t and a cudnnHandle_t; else
   * NULL. */
  void* native_blas;
  void* native_dnn;
} tandem_call;

enum { TANDEM_ACCUMULATE = 1 << 0 }; /* weight gradients are added to, not overwritten */

/* The memory of one pass, all the host's, all on the call's device, 64-byte aligned. A NULL entry
 * in input_gradients or weight_gradients: not wanted. Gradients have their tensor's layout. */
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
  const float* normaliser; /* device memory: what a loss or metric divides its sum by */
  /* A statistics pass writes all of it, from the rows of its binding; forward (of
   * forward_statistics) and the backward passes (of backward_statistics) find there what the whole
   * batch gave, the same bits on every device. NULL: the type says 0. */
  float* statistics;
  /* Since 1.1. Of a loss or metric: one value a local row; below zero: the row holds no sample and
   * must add nothing. NULL: all rows hold samples. */
  const float* row_labels;
} tandem_pass;

typedef tandem_status (*tandem_pass_function)(void* handle, const tandem_call*, const tandem_pass*);

/* target = what it and the sources give together, in this order: each is what forward_statistics
 * wrote for a part of the batch. */
typedef tandem_status (*tandem_merge_function)(void* handle, const tandem_call*, float* target,
                                               const float* const* sources, uint32_t source_count);

typedef struct tandem_kernel {
  uint32_t struct_size;
  const char* layer_type;
  const char* device_kind; /* "cpu", "cuda" */
  /* The layouts it takes, best first; NULL: plain NCHW only. Layout fields of the binding are not
   * yet set. */
  tandem_status (*layouts)(const tandem_binding*, tandem_layout_option* options, uint32_t capacity,
                           uint32_t* count);
  /* Called on the stream that will run the passes. *handle is the plugin's, until release(). */
  tandem_status (*prepare)(const tandem_binding*, const tandem_call*, void** handle,
                           tandem_kernel_report*);
  void (*release)(void* handle);
  tandem_pass_function forward;
  tandem_pass_function backward_data;    /* input gradients. NULL: it has none */
  tandem_pass_function backward_weights; /* weight gradients. NULL: no trained weights */
  tandem_pass_function backward; /* both in one call, where that is cheaper; NULL: not offered */
  /* They run before forward and before the backward passes and see what those do, but write
   * statistics and scratch only. The host sums what the devices wrote, in their order. */
  tandem_pass_function forward_statistics;
  tandem_pass_function backward_statistics;
  /* Since 1.1. In place of that sum, for statistics that do not add, as a mean and the squares
   * about it. Called while no pass of the handle runs, on whatever stream. NULL: floats that are
   * added. */
  tandem_merge_function merge_forward_statistics;
  /* Since 1.3. The dtypes that inputs and outputs may have, 1 << TANDEM_FLOAT32 and so on; all of a
   * binding have the same, but labels, losses and metrics, which are float32. 0: float32 only. */
  uint32_t dtypes;
  /* Since 1.5. The activations that a binding may ask for, 1 << TANDEM_ACTIVATION_RELU and so on.
   * 64 bits, so that it lies behind the padding of older tables. */
  uint64_t activations;
} tandem_kernel;

/* ---- Backends: machines of devices, streams and events -----------------------------------------
 */

typedef struct tandem_machine
    tandem_machine;                         /* a set of devices opened together, numbered from 0 */
typedef struct tandem_stream tandem_stream; /* a FIFO of work on one device */
typedef struct tandem_event tandem_event;   /* recorded on one stream, waited for by others */
typedef struct tandem_graph tandem_graph;   /* since 1.4: works and copies that are issued as one */

#define TANDEM_HOST (-1) /* the host's memory, as a copy's source or target */

/* What copies between devices pass through. A channel is one direction of a link, or a hub that all
 * of its traffic shares. It serves one copy after the other, as they become ready, each for its
 * path's latency and its bytes at the channel's bandwidth; copies of up to 16 KiB do not wait for
 * larger ones. The channels of a path serve a copy at the same time, as pieces of it would pass
 * through them; it is done when the last of them has served it. */
typedef struct tandem_topology {
  uint32_t struct_size;
  uint32_t channel_count;
  const double* bandwidths; /* by channel: bytes per second, above 0 */
  /* Paths by source * device_count + target; one from a device to itself is not used. */
  const double* latencies;       /* by path: seconds */
  const uint32_t* path_begins;   /* device_count^2 + 1 places in path_channels */
  const uint32_t* path_channels; /* of each path, its channels */
  /* Since 1.4. By channel, for people: "gpu0 -> gpu1 (NVLink)". NULL: they have no names. */
  const char* const* channel_names;
} tandem_topology;

typedef struct tandem_machine_options {
  uint32_t struct_size;
  int32_t device_count;
  const int32_t* ordinals; /* which physical device each is; the cpu and sim backends ignore it */
  int32_t threads;         /* cpu: cores to share; 0: all */
  double link_bandwidth;   /* bytes per second of a copy between two devices; 0: as fast as it goes
                              (sim: 4e9) */
  double link_latency;     /* seconds added to each such copy */
  uint64_t delay_seed;     /* test mode: not 0: random delays before every work and copy */
  double delay_seconds;    /* the longest such delay */
  int32_t paced;           /* 1: compute works take their predicted time instead of running */
  /* Since 1.2. In place of link_bandwidth and link_latency; NULL: every pair of devices has, in
   * each direction, a channel of its own. Borrowed until open() returns. */
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
} tandem_device_info;

enum {
  TANDEM_WORK_COMPUTE = 0,
  TANDEM_WORK_HOST = 1
}; /* HOST: always runs, is never paced nor virtual */

typedef struct tandem_work {
  uint32_t struct_size;
  int32_t kind;
  const char* label;        /* alive until the work is done */
  double predicted_seconds; /* what sim and paced mode take for it; < 0: not known */
  tandem_status (*run)(void* context, const tandem_call*);
  void* context;
} tandem_work;

enum {
  TANDEM_MEMORY_DEVICE = 0,
  TANDEM_MEMORY_PINNED = 1 /* host memory a device copies from fast */
};

/* Solver rules, element by element. r = step->rate * rate_multiplier; t = step->step + 1;
 * s = gradient_scale, times clip / norm where clip > 0 and norm = sqrt(the sum of gradient_squares)
 * exceeds it; G = s * g + decay * w + l1_decay * sign(w). State arrays begin as zeros.
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
 *   LARS      SGD with r times trust_coefficient W / (s N + decay W), N and W the norms of
 *             this array's g and w; times 1 where one of them is 0                  (h) */
enum {
  TANDEM_UPDATE_SGD = 1,
  TANDEM_UPDATE_NESTEROV = 2, /* this and what follows: since minor 1 */
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
  const int32_t* found_inf; /* device memory: not 0: change nothing */
  /* Since minor 1; 0, NULL and gradient_scale 1 in what a caller of minor 0 gives. */
  double momentum2, delta;
  double clip; /* 0: no clipping */
  double gradient_scale;
  double trust_coefficient;
  float l1_decay;
  uint32_t gradient_square_count;
  const double* gradient_squares; /* device memory: of all weight arrays, added in this order */
  const double* gradient_square;  /* device memory: of this array; LARS */
  const double* weight_square;
} tandem_update;

/* Pictures whose pixels are bytes, as a data set gave them (get_bytes), made what get() would have
 * given: target[i] = (pixels[i] - means[channel]) * scale, a difference, then a product, both
 * rounded to float32. Both are in plain n,c,h,w order. Since 1.4. */
typedef struct tandem_pixels {
  uint32_t struct_size;
  tandem_shape shape; /* at most 4 channels */
  const uint8_t* pixels;
  float* target;
  float means[4]; /* by channel */
  float scale;
} tandem_pixels;

/* Rows of bytes, one behind the other at a distance of their own on either side. Since 1.5. */
typedef struct tandem_rows {
  uint32_t struct_size;
  int32_t target_device, source_device; /* or TANDEM_HOST */
  void* target;
  const void* source;
  int64_t target_stride, source_stride; /* bytes from row to row; at least row_bytes */
  int64_t row_bytes, row_count;
} tandem_rows;

typedef struct tandem_backend {
  uint32_t struct_size;
  const char* kind; /* "cpu", "cuda", "sim" */
  const char* help;
  /* How many physical devices this machine has; TANDEM_FAILED with the reason if it cannot be said.
   */
  tandem_status (*count)(int32_t* count);
  tandem_status (*describe)(int32_t ordinal, tandem_device_info*);

  tandem_status (*open)(const tandem_machine_options*, tandem_machine**);
  void (*close)(tandem_machine*); /* after every stream of it is idle */
  tandem_status (*device_info)(tandem_machine*, int32_t device, tandem_device_info*);

  tandem_status (*allocate)(tandem_machine*, int32_t device, int32_t memory, int64_t bytes,
                            void** address);
  void (*free)(tandem_machine*, int32_t device, int32_t memory, void* address);

  tandem_status (*create_stream)(tandem_machine*, int32_t device, int32_t priority,
                                 const char* name, tandem_stream**);
  void (*destroy_stream)(tandem_stream*); /* waits until it is idle */
  /* A fresh event counts as done. Waiting means the latest record issued before the wait. */
  tandem_status (*create_event)(tandem_machine*, tandem_event**);
  void (*destroy_event)(tandem_event*);

  /* These four return at once; what they issue happens in the order of their stream. */
  tandem_status (*submit)(tandem_stream*, const tandem_work*);
  tandem_status (*copy)(tandem_stream*, const char* label, int32_t target_device, void* target,
                        int32_t source_device, const void* source, int64_t bytes);
  tandem_status (*wait)(tandem_stream*, tandem_event*);
  tandem_status (*record)(tandem_stream*, tandem_event*);

  /* The host waits for an event at most `seconds` (< 0: for ever); 0 asks. TANDEM_TIMEOUT if it is
   * not done; the first failing work of the machine makes this return its status and reason. */
  tandem_status (*synchronize)(tandem_event*, double seconds);
  /* When the event's latest record was reached, seconds since the machine was opened (sim:
   * virtual). */
  tandem_status (*event_time)(tandem_event*, double* seconds);

  /* Arithmetic on device memory, called inside a submitted work. */
  tandem_status (*fill)(const tandem_call*, float* target, float value, int64_t count);
  tandem_status (*add)(
      const tandem_call*, float* target, const float* const* sources, uint32_t source_count,
      int64_t count); /* target += sources[0] + sources[1] + ..., added in that order */
  tandem_status (*update)(const tandem_call*, const tandem_update*);
  /* *found_inf = 1 if one of the values is not finite, else as it was. */
  tandem_status (*check_finite)(const tandem_call*, const float* values, int64_t count,
                                int32_t* found_inf);
  /* Since minor 1. *sum = the sum of the values' squares, in an order that depends on `count` only.
   * NULL: this backend knows no update field and no rule of minor 1. */
  tandem_status (*sum_of_squares)(const tandem_call*, const float* values, int64_t count,
                                  double* sum);

  /* Since minor 4; each may be NULL: this backend has it not. */
  tandem_status (*convert_pixels)(const tandem_call*, const tandem_pixels*);
  /* What the hardware says of the links between the machine's devices: *topology is NULL where it
   * says nothing. It is the machine's, until close(). */
  tandem_status (*find_topology)(tandem_machine*, const tandem_topology** topology);
  /* Between these two, what this thread submits, copies, records and waits for on `stream`, and on
   * every stream that has waited for an event recorded there meanwhile, does not happen: it becomes
   * the graph. Works run once, now, and issue what each launch repeats, with the same addresses.
   * Each stream that joined must have been waited for by `stream` at the end. Events of a capture
   * are waited for within it only and have no times. A capture that failed has ended.
   * What a work passes to its launches depends on its binding and its pass's addresses alone:
   * counts, random offsets and arrays kept by the host stay as they were in the capture. A module
   * of minor 4 or newer promises this of its kernels; one that cannot refuses in a capture
   * (TANDEM_UNSUPPORTED). */
  tandem_status (*begin_capture)(tandem_stream*);
  tandem_status (*end_capture)(tandem_stream*, tandem_graph**);
  /* Returns at once; the whole graph happens in the order of the stream. */
  tandem_status (*launch)(tandem_stream*, const char* label, tandem_graph*);
  void (*destroy_graph)(tandem_graph*); /* after its last launch is done */

  /* Since minor 5. As copy(), of all the rows at once. NULL: the host copies row by row. */
  tandem_status (*copy_rows)(tandem_stream*, const char* label, const tandem_rows*);
} tandem_backend;

/* ---- Data sets ---------------------------------------------------------------------------------
 */

typedef struct tandem_dataset_request {
  uint32_t struct_size;
  int32_t phase;
  const char* source; /* what the user wrote after --data */
  const char* split;  /* "train", "val" or "test" */
  const char*
      class_names; /* newline-separated, of the model to be served; NULL: the data set decides */
  const tandem_attributes* attributes;
  uint64_t seed;      /* of the split */
  tandem_shape shape; /* n = 1; c, h, w that the net expects; 0 where it takes what the data give */
  /* Since 1.1: what the net takes from the data set beside image and label, n = 1, zeros where it
   * is as the image; for get_inputs. */
  const tandem_shape* inputs;
  uint32_t input_count;
} tandem_dataset_request;

typedef struct tandem_dataset_info {
  uint32_t struct_size;
  int64_t size;
  int64_t class_count;
  tandem_shape shape;     /* of one sample: n = 1 */
  int32_t split_is_drawn; /* since 1.2. 1: the request's seed decided which samples it holds */
  /* Since 1.4. 1: get_bytes() works for this request, and get() would give (byte - means[channel])
   * * scale, but for the rounding of resized or recoloured pixels to bytes. */
  int32_t has_bytes;
  float byte_means[4];
  float byte_scale;
} tandem_dataset_info;

/* What is stored of one sample, as opposed to what get() makes of it. Since 1.2. */
typedef struct tandem_sample_info {
  uint32_t struct_size;
  int32_t channels;      /* 1: gray, 3: colours, 4: with alpha, or four inks; 0: not known */
  int64_t width, height; /* the right way up; 0: not known */
  int64_t bytes;
  uint64_t content;   /* a hash of the stored bytes */
  const char* format; /* "JPEG"; lives as long as the plugin */
} tandem_sample_info;

/* Opened data sets of one type, to be written as one file that the type opens as a source. Since
 * 1.2. */
typedef struct tandem_pack_request {
  uint32_t struct_size;
  uint32_t split_count;
  void* const* handles;      /* of each split */
  const char* const* splits; /* its name */
  const char* path;          /* must not exist; appears whole or not at all */
  int64_t shorter_side;      /* larger pictures are shrunk to it; 0: stored as they are */
  int32_t quality;           /* of the JPEGs written, 1 to 100 */
  int32_t threads;
  uint64_t seed; /* of the order */
  /* Called now and then by one thread at a time; what it returns other than 0 ends the writing. */
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
  const char* (*sample_name)(void* handle,
                             int64_t index); /* a path, for messages; alive until close */
  const char* (*notes)(
      void* handle); /* lines for the user: what was skipped and why; "" if nothing */
  /* Writes c*h*w floats (plain C,H,W) and the class. TANDEM_SKIP: a damaged sample, explained. */
  tandem_status (*get)(void* handle, int64_t index, uint64_t seed, float* pixels, float* label);
  /* Since 1.1. The further inputs of the request, in its order, of the same sample. NULL: it has an
   * image and a label for each sample, and nothing else. */
  tandem_status (*get_inputs)(void* handle, int64_t index, uint64_t seed, float* const* inputs);
  /* Since 1.2; each may be NULL. */
  int32_t (*recognizes)(const char* source);     /* 1: this type reads it, 0: it does not */
  int64_t (*label)(void* handle, int64_t index); /* as get() gives it, without reading pixels */
  tandem_status (*describe)(void* handle, int64_t index, tandem_sample_info*); /* or TANDEM_SKIP */
  tandem_status (*pack)(const tandem_pack_request*);
  /* Since 1.4; may be NULL. As get(), with pixels as bytes: rounded, and neither mean nor scale
   * applied. Only where the info says so. */
  tandem_status (*get_bytes)(void* handle, int64_t index, uint64_t seed, uint8_t* pixels,
                             float* label);
} tandem_dataset_type;

/* ---- The plugin's table ------------------------------------------------------------------------
 */

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
} tandem_plugin;

/* The one exported symbol. NULL: not on this machine (explained). */
typedef const tandem_plugin* (*tandem_plugin_entry_function)(const tandem_host*);

#ifdef __cplusplus
}
#endif
