/* Backends: machines of devices, their memory, streams and events. A part of the plugin ABI with a
 * version of its own. */
#pragma once

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_BACKENDS_MAJOR 2
#define TANDEM_BACKENDS_MINOR 0

/* A set of devices that are opened together, numbered from 0. */
typedef struct tandem_machine tandem_machine;
/* A FIFO of work on one device. */
typedef struct tandem_stream tandem_stream;
/* Recorded on one stream, waited for by others. */
typedef struct tandem_event tandem_event;
/* Works and copies that are launched together. */
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
  /* By channel, for people: "gpu0 -> gpu1 (NVLink)". NULL: they have no names. */
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
  /* Replaces link_bandwidth and link_latency. NULL: every pair of devices has its own
   * channel in each direction. Borrowed until open() returns. */
  const tandem_topology* topology;
} tandem_machine_options;

typedef struct tandem_device_info {
  uint32_t struct_size;
  char name[128];          /* of the hardware; NUL-terminated */
  int64_t memory_bytes;    /* in all */
  int64_t available_bytes; /* now */
  int32_t threads;         /* cpu: cores of this device; else 0 */
  double peak_flops;       /* float32 per second, estimated; for the roofline */
  double memory_bandwidth; /* bytes per second, estimated */
  /* The library that kernels compute with, its version, and what it has and lacks on
   * this device, for people. NUL-terminated; may be empty. */
  char kernels[128];
} tandem_device_info;

enum {
  TANDEM_WORK_COMPUTE = 0,
  TANDEM_WORK_HOST = 1, /* always runs; it is never paced and never virtual */
  /* Waits for other processes, for any time, while other streams go on. As HOST otherwise; it calls
   * nothing of the device. Only where tandem_streams.messages is 1. */
  TANDEM_WORK_MESSAGE = 2
};

typedef struct tandem_work {
  uint32_t struct_size;
  int32_t kind;
  const char* label;        /* for messages, or NULL; lives until the work is done */
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
 *             N and W are the norms of this array's g and w                         (h)
 *   AVERAGE   d = min(momentum, (1 + t) / (10 + t));  a = d a + (1 - d) w           (a)
 *             The weights stay as they are; early steps decay faster, so that the first weights
 *             are soon forgotten. The gradient is not used */
enum {
  TANDEM_UPDATE_SGD = 1,
  TANDEM_UPDATE_NESTEROV = 2,
  TANDEM_UPDATE_ADAGRAD = 3,
  TANDEM_UPDATE_RMSPROP = 4,
  TANDEM_UPDATE_ADADELTA = 5,
  TANDEM_UPDATE_ADAM = 6,
  TANDEM_UPDATE_ADAMW = 7,
  TANDEM_UPDATE_LARS = 8,
  TANDEM_UPDATE_AVERAGE = 9
};

/* One solver update of `count` float32 values. */
typedef struct tandem_update {
  uint32_t struct_size;
  int32_t rule;
  int64_t count;
  float* weights;
  const float* gradient;
  float* const* state; /* a host array of device addresses, valid until the call returns */
  uint32_t state_count;
  float momentum, decay, rate_multiplier;
  const tandem_step* step;
  const int32_t* found_inf; /* device memory; if not 0, the update changes nothing */
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
 * rounded to float32. Both arrays are in plain n,c,h,w order. */
typedef struct tandem_pixels {
  uint32_t struct_size;
  tandem_shape shape; /* at most 4 channels */
  const uint8_t* pixels;
  float* target;
  float means[4]; /* by channel */
  float scale;
} tandem_pixels;

/* A copy of rows of bytes that lie at a fixed distance on each side. */
typedef struct tandem_rows {
  uint32_t struct_size;
  int32_t target_device, source_device; /* or TANDEM_HOST */
  void* target;
  const void* source;
  int64_t target_stride, source_stride; /* bytes from row to row; at least row_bytes */
  int64_t row_bytes, row_count;
} tandem_rows;

/* ---- What a backend offers: small tables ----------------------------------------------------- */

typedef struct tandem_buffers {
  uint32_t struct_size;
  /* 1: device memory is memory of the host, which reads and writes it; all devices share it. */
  int32_t host_addressable;
  tandem_status (*allocate)(tandem_machine*, int32_t device, int32_t memory, int64_t bytes,
                            void** address);
  void (*free)(tandem_machine*, int32_t device, int32_t memory, void* address);
} tandem_buffers;

typedef struct tandem_streams {
  uint32_t struct_size;
  /* 1: nothing is computed: works take their predicted times, and device memory is addresses only.
   */
  int32_t virtual_time;

  tandem_status (*create_stream)(tandem_machine*, int32_t device, int32_t priority,
                                 const char* name, tandem_stream**);
  void (*destroy_stream)(tandem_stream*); /* waits until it is idle */
  /* A new event counts as done. A wait refers to the latest record that was issued before it. */
  tandem_status (*create_event)(tandem_machine*, tandem_event**);
  void (*destroy_event)(tandem_event*);

  /* These four return at once. What they issue happens in the order of their stream. The structs
   * are copied before the call returns. A label is for messages, or NULL, and lives until the work
   * or copy is done; the name of a stream is copied. One thread at a time uses a stream. */
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
   * opened (virtual, where the time is). */
  tandem_status (*event_time)(tandem_event*, double* seconds);
  /* Like copy(), for all rows at once. NULL: the host copies row by row. */
  tandem_status (*copy_rows)(tandem_stream*, const char* label, const tandem_rows*);
  int32_t messages; /* 1: works of kind MESSAGE */
} tandem_streams;

/* Arithmetic on device memory. Its functions are called inside a submitted work. */
typedef struct tandem_arithmetic {
  uint32_t struct_size;
  /* The dtypes in which some kernels compute: bits 1 << TANDEM_FLOAT16 and so on. */
  uint32_t dtypes;
  int32_t tf32; /* 1: some kernels use TANDEM_ALLOWS_TF32 */
  tandem_status (*fill)(const tandem_call*, float* target, float value, int64_t count);
  /* target += sources[0] + sources[1] + ..., added in that order. The array is valid until the call
   * returns, also in a capture. */
  tandem_status (*add)(const tandem_call*, float* target, const float* const* sources,
                       uint32_t source_count, int64_t count);
  tandem_status (*update)(const tandem_call*, const tandem_update*);
  /* Sets *found_inf to 1 if a value is not finite; otherwise leaves it unchanged. */
  tandem_status (*check_finite)(const tandem_call*, const float* values, int64_t count,
                                int32_t* found_inf);
  /* *sum = the sum of the values' squares, in an order that depends only on `count`. */
  tandem_status (*sum_of_squares)(const tandem_call*, const float* values, int64_t count,
                                  double* sum);
  /* NULL: samples travel to its devices as floats. */
  tandem_status (*convert_pixels)(const tandem_call*, const tandem_pixels*);
} tandem_arithmetic;

typedef struct tandem_links {
  uint32_t struct_size;
  /* What the hardware reports about the links between the machine's devices. *topology is NULL if
   * it reports nothing. The machine owns it, and all that it points to, until close(). */
  tandem_status (*find_topology)(tandem_machine*, const tandem_topology** topology);
} tandem_links;

/* Between begin() and end(), what this thread submits, copies, records and waits for on `stream` is
 * not executed but becomes part of the graph. The same holds for every stream that waits for an
 * event recorded in the capture. Works run once, at capture, and issue what each launch repeats
 * with the same addresses. At the end, `stream` must have waited for every stream that joined.
 * Events recorded in a capture can be waited for only within it and have no times. A capture that
 * failed has ended.
 * The launches of a work may depend only on its binding and on the addresses of its pass: counts,
 * random offsets and arrays that the host keeps stay as they were at capture. A kernel that cannot
 * promise it refuses to be captured (TANDEM_UNSUPPORTED). */
typedef struct tandem_capture {
  uint32_t struct_size;
  tandem_status (*begin)(tandem_stream*);
  tandem_status (*end)(tandem_stream*, tandem_graph**);
  /* Returns at once. The whole graph runs in the order of the stream. The label is as in copy(). */
  tandem_status (*launch)(tandem_stream*, const char* label, tandem_graph*);
  void (*destroy_graph)(tandem_graph*); /* only when its last launch is done */
} tandem_capture;

typedef struct tandem_backend {
  uint32_t struct_size;
  /* 1: a user asks for a number of devices (kind:4). 0: for physical ones (kind:0,2). */
  int32_t counted_devices;
  const char* kind; /* "cpu", "cuda", "sim" */
  const char* help;
  /* The number of physical devices of this machine; TANDEM_FAILED with the reason if it cannot be
   * found out. */
  tandem_status (*count)(int32_t* count);
  tandem_status (*describe)(int32_t ordinal, tandem_device_info*);

  tandem_status (*open)(const tandem_machine_options*, tandem_machine**);
  void (*close)(tandem_machine*); /* only when all of its streams are idle */
  tandem_status (*device_info)(tandem_machine*, int32_t device, tandem_device_info*);

  const tandem_buffers* buffers;
  const tandem_streams* streams;
  const tandem_arithmetic* arithmetic;
  const tandem_links* links;     /* NULL: nothing is known about links */
  const tandem_capture* capture; /* NULL: streams cannot be captured */
} tandem_backend;

/* What a module offers. */
typedef struct tandem_backends {
  uint32_t struct_size;
  int32_t major, minor; /* TANDEM_BACKENDS_MAJOR and _MINOR of the header it was built with */
  uint32_t backend_count;
  const tandem_backend* const* backends;
} tandem_backends;

#ifdef __cplusplus
}
#endif
