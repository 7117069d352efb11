/* Layer types and their kernels: a part of the plugin ABI with a version of its own. */
#pragma once

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_LAYERS_MAJOR 2
#define TANDEM_LAYERS_MINOR 0

/* Element-wise functions that a kernel may fuse: it applies them to an output as it writes it. */
enum {
  TANDEM_ACTIVATION_NONE = 0,
  TANDEM_ACTIVATION_RELU = 1 /* y = x < 0 ? 0 : x; a NaN stays NaN */
};

/* ---- Layer types: what a layer is ------------------------------------------------------------ */

/* Traits of a layer type. A host may ignore a trait of bits 0 to 31 that it does not know: the type
 * then does the same, only slower. A host that does not know a trait of TANDEM_REQUIRED_TRAITS
 * refuses the type. (An enumerator of C11 is an int: a trait from bit 31 on is a macro.) */
#define TANDEM_REQUIRED_TRAITS UINT64_C(0xffffffff00000000)
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
  /* In training it draws from Philox (see random.h). */
  TANDEM_RANDOM = 1 << 8,
  /* None of its kernels uses saved memory: a backward pass needs no earlier forward pass on the
   * same device. */
  TANDEM_SAVES_NOTHING = 1 << 9,
  /* An output is a sum over the elements of an input row, and a binding may sum a range of them:
   * see tandem_binding. */
  TANDEM_SLICED_INPUTS = 1 << 10,
  /* What follows is for those who check a layer; it runs the same. */
  /* In testing it computes something else than in training on purpose: a loss without its margin,
   * rows of which none is dropped. */
  TANDEM_TESTS_OTHERWISE = 1 << 11,
  /* Gradients of its backward passes are not the derivatives of forward on purpose: reversed ones,
   * or those that go straight through a step. */
  TANDEM_NO_DERIVATIVE = 1 << 12
};

/* What an input of a layer is. */
enum {
  /* Values. A gradient flows into it, unless the layer is a metric. */
  TANDEM_INPUT_DATA = 1,
  /* A class number for each row, float32 in any precision. No gradient flows into it. A row with a
   * label below zero holds no sample: it adds nothing to loss, gradient or metric. */
  TANDEM_INPUT_LABEL = 2,
  /* A label, or a value for each class instead of it. Otherwise like TANDEM_INPUT_LABEL. */
  TANDEM_INPUT_TARGETS = 3,
  /* Only its shape is used: it may have any layout and dtype. No gradient flows into it. */
  TANDEM_INPUT_SHAPE = 4,
  /* Values into which no gradient flows: they are indices, or the output is one. */
  TANDEM_INPUT_NON_DIFFERENTIABLE = 5
};

/* A declared input. */
typedef struct tandem_input {
  uint32_t struct_size;
  int32_t role;     /* TANDEM_INPUT_... */
  const char* name; /* one word, for people: "scores" */
} tandem_input;

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

/* It may grow: the host says how many bytes lie from one to the next. Its strings live as long as
 * the process. */
typedef struct tandem_weight {
  const char* name; /* "weight", "bias": letters, digits, '_', '-' and '.', a letter first */
  tandem_shape shape;
  /* The FILLER parameter that gives the initial values. NULL: all are `initial`. */
  const char* filler;
  double initial;
  int64_t fan_in, fan_out; /* for xavier and msra */
  int32_t kind;            /* TANDEM_TRAINED or TANDEM_STATE; a host refuses any other */
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

/* Its functions have no state. Several threads may call them at the same time. */
typedef struct tandem_layer_type {
  uint32_t struct_size;
  const char* name; /* "Convolution"; with a prefix if it is a third party's: "acme.Swish" */
  const char* help; /* one line */
  const tandem_parameter* const* parameters;
  uint32_t parameter_count;
  /* What input 0, 1, ... is. The last one describes all further inputs, too. None: every input is
   * TANDEM_INPUT_DATA. */
  const tandem_input* const* inputs;
  uint32_t input_count;
  int32_t minimum_inputs, maximum_inputs; /* maximum -1: any number */
  int32_t minimum_outputs, maximum_outputs;
  uint64_t traits;
  /* Output shapes from input shapes. TANDEM_INVALID, with a reason, if they do not fit. */
  tandem_status (*shapes)(const tandem_layer_query*, tandem_shape* outputs);
  /* Each of the following may be NULL. */
  /* Writes at most `capacity` weights, each `weight_size` bytes after the one before; *count
   * receives the number that exist. The memory holds zeros. NULL: it has no weights. */
  tandem_status (*weights)(const tandem_layer_query*, tandem_weight* weights, uint32_t weight_size,
                           uint32_t capacity, uint32_t* count);
  /* NULL: one operation, one read and one write for each element of the inputs. */
  tandem_status (*cost)(const tandem_layer_query*, tandem_layer_cost*);
  /* Used with TANDEM_BATCH_STATISTICS. NULL: no statistics. */
  tandem_status (*statistics)(const tandem_layer_query*, tandem_layer_statistics*);
  /* The TANDEM_ACTIVATION_... that its forward pass computes, if it computes nothing else. If the
   * layer runs in place, it may then be fused into another layer's kernel. NULL: none. */
  tandem_status (*activation)(const tandem_layer_query*, int32_t* activation);
} tandem_layer_type;

/* ---- Kernels: how a layer type runs on a kind of device -------------------------------------- */

/* Of the flags of a binding and of a pass a kernel may ignore bits 0 to 15 that it does not know.
 * If one of TANDEM_REQUIRED_FLAGS is set that it does not know, it refuses (TANDEM_UNSUPPORTED).
 * The flags of version 2.0 are known to every kernel. (A flag of bit 31 is a macro.) */
#define TANDEM_REQUIRED_FLAGS UINT32_C(0xffff0000)

/* Flags of a binding. */
enum {
  TANDEM_WANTS_BACKWARD_DATA = 1 << 0,
  TANDEM_WANTS_BACKWARD_WEIGHTS = 1 << 1,
  TANDEM_RUNS_IN_PLACE = 1 << 2,
  /* A sliced binding adds its product to the output. */
  TANDEM_ADD_TO_OUTPUT = 1 << 3,
  /* The user allows float32 products to round their factors to TF32. */
  TANDEM_ALLOWS_TF32 = 1 << 4,
  /* If the binding's `algorithm` is NULL, prepare() may measure which algorithm is the fastest. It
   * then takes seconds, and allocates memory while it runs. */
  TANDEM_MAY_MEASURE = 1 << 5,
  /* The kernel `fuses_sum`: forward adds the `addend` of the pass to output 0. */
  TANDEM_FUSED_SUM = 1 << 6
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
 * The memory of a sliced binding is aligned for floats only.
 *
 * The binding given to layouts() is valid until the call returns. That given to prepare(), and all
 * that it points to except `algorithm`, is valid until release() returns. */
typedef struct tandem_binding {
  uint32_t struct_size;
  int32_t phase;
  uint32_t layer_index; /* for Philox: the layer's number in the net */
  uint32_t flags;
  const char* layer_name;
  const tandem_attributes* attributes;
  const tandem_tensor* inputs;
  uint32_t input_count;
  uint32_t tensor_size; /* bytes from one element of inputs, or of outputs, to the next */
  const tandem_tensor* outputs;
  uint32_t output_count;
  const tandem_shape* weights;
  uint32_t weight_count;
  int64_t batch_begin; /* position of local row 0 in the global batch of batch_size rows */
  int64_t batch_size;
  int64_t slice_begin, slice_end; /* output channels [begin, end) */
  /* The element of a whole row at which input 0 begins. */
  int64_t input_begin;
  /* The `algorithm` that prepare() reported for the same use of this layer, in an earlier run or on
   * another device, or for a layer alike. The kernel uses it again or refuses. NULL: it chooses. */
  const char* algorithm;
  /* Forward applies it to each element of output 0 before it writes it. It is one that the kernel's
   * `fused_activations` names, and never set together with TANDEM_ADD_TO_OUTPUT. The backward
   * passes get the output gradient of the values before the activation, or, if the kernel's
   * `fused_gradients` names it and no sum is fused, that of the values after it. They do not read
   * outputs. */
  int32_t fused_activation;
  /* The layer before has applied it to input 0, in place. backward_data gives the gradient of the
   * values before it, for which it may read input 0, whatever the type's traits say. It is one that
   * the kernel's `gradients_before` names. */
  int32_t activation_before;
} tandem_binding;

/* One way to lay out a binding's tensors. It applies to all inputs and all outputs. It may grow:
 * the host says how many bytes lie from one to the next. */
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
  /* The chosen algorithm: a text for people. It lives as long as the handle. If is_measured is 1
   * the kernel must understand it again, in the `algorithm` of a later binding. A text that ends
   * with "; by a model" says that not everything could be measured, which the host tells the user.
   */
  const char* algorithm;
  /* 1: `algorithm` was measured, or taken from the binding. Another measurement might choose
   * another one, and with it other bits: the host records it, and a resumed run gives it again. */
  int32_t is_measured;
} tandem_kernel_report;

enum { TANDEM_ACCUMULATE = 1 << 0 }; /* add to weight gradients instead of overwriting them */

/* The memory of one pass. The host owns it; it lies on the call's device and is 64-byte aligned. A
 * NULL entry of input_gradients or weight_gradients means that this gradient is not wanted. A
 * gradient has its tensor's layout.
 * The struct and its arrays of addresses lie in host memory and are valid until the call returns,
 * also in a capture: what runs on the device later gets the addresses, not the arrays. */
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
  /* For a loss or metric: one value per local row. A row whose value is below zero holds
   * no sample and must add nothing. NULL: all rows hold samples. */
  const float* row_labels;
  /* With TANDEM_FUSED_SUM, in forward: a tensor of output 0's shape, layout and dtype, whose memory
   * may be that of an input, but not that of an output. Each element is added to the layer's value
   * once that is rounded to the dtype, and before a fused activation. Otherwise NULL. */
  const void* addend;
} tandem_pass;

typedef tandem_status (*tandem_pass_function)(void* handle, const tandem_call*, const tandem_pass*);

/* target = the merged statistics of target and the sources, in this order. Each is what
 * forward_statistics wrote for an interval of the batch. The array `sources` is valid until the
 * call returns, also in a capture. */
typedef tandem_status (*tandem_merge_function)(void* handle, const tandem_call*, float* target,
                                               const float* const* sources, uint32_t source_count);

typedef struct tandem_kernel {
  uint32_t struct_size;
  const char* layer_type;
  const char* device_kind; /* "cpu", "cuda" */
  /* Writes at most `capacity` layouts that it supports, best first, each `option_size` bytes after
   * the one before, and their number to *count. NULL: plain NCHW only. The layout fields of the
   * binding are not set yet. */
  tandem_status (*layouts)(const tandem_binding*, tandem_layout_option* options,
                           uint32_t option_size, uint32_t capacity, uint32_t* count);
  /* Called on the stream that will run the passes; at the same time for several devices. The plugin
   * owns *handle until release(). */
  tandem_status (*prepare)(const tandem_binding*, const tandem_call*, void** handle,
                           tandem_kernel_report*);
  /* Called on that stream, too, once no pass runs; by any thread if the machine has failed. */
  void (*release)(void* handle);
  tandem_pass_function forward;
  tandem_pass_function backward_data;    /* input gradients. NULL: it has none */
  tandem_pass_function backward_weights; /* weight gradients. NULL: no trained weights */
  tandem_pass_function backward; /* both in one call, if that is cheaper. NULL: not offered */
  /* They run before forward and before the backward passes and get the same memory, but write only
   * statistics and scratch. The host sums the statistics of the devices in the devices' order. */
  tandem_pass_function forward_statistics;
  tandem_pass_function backward_statistics;
  /* Replaces that sum for statistics that cannot be added, such as a mean and the
   * squared deviations from it. Called on any stream, while no pass of the handle runs. NULL: the
   * floats are added. */
  tandem_merge_function merge_forward_statistics;
  /* The dtypes that inputs and outputs may have: bits 1 << TANDEM_FLOAT32 and so on. All
   * tensors of a binding have the same dtype, except labels, losses and metrics, which are float32.
   * 0: float32 only. */
  uint32_t dtypes;
  /* The activations that the kernel can fuse: bits 1 << TANDEM_ACTIVATION_RELU and so on. */
  uint32_t fused_activations;
  /* Those of them whose gradient all backward passes apply, too: to an output gradient of the
   * values after the activation, where no sum is fused. A host may have applied it already, which
   * must change nothing. */
  uint32_t fused_gradients;
  /* The activations whose gradient backward_data applies, if the layer before has them
   * (`activation_before` of a binding). */
  uint32_t gradients_before;
  /* 1: forward can add another layer's output (TANDEM_FUSED_SUM of a binding). The backward passes
   * do the same with it and without it. */
  uint32_t fuses_sum;
} tandem_kernel;

/* ---- What a module offers -------------------------------------------------------------------- */

typedef struct tandem_layers {
  uint32_t struct_size;
  int32_t major, minor; /* TANDEM_LAYERS_MAJOR and _MINOR of the header that it was built with */
  uint32_t type_count, kernel_count;
  const tandem_layer_type* const* types;
  const tandem_kernel* const* kernels;
} tandem_layers;

#ifdef __cplusplus
}
#endif
