// The value of every constant of the ABI, fixed for major version 2: a constant never changes its
// value, and no other one gets it (docs/reference/abi.md). A new constant is added here.
#include "plugins/abi.h"

// ---- plugins/abi/common.h
static_assert(TANDEM_OK == 0);
static_assert(TANDEM_INVALID == 1);
static_assert(TANDEM_UNSUPPORTED == 2);
static_assert(TANDEM_OUT_OF_MEMORY == 3);
static_assert(TANDEM_FAILED == 4);
static_assert(TANDEM_SKIP == 5);
static_assert(TANDEM_TIMEOUT == 6);

static_assert(TANDEM_FLOAT32 == 1);
static_assert(TANDEM_BFLOAT16 == 2);
static_assert(TANDEM_FLOAT16 == 3);
static_assert(TANDEM_INT32 == 4);
static_assert(TANDEM_UINT8 == 5);

static_assert(TANDEM_NCHW == 1);
static_assert(TANDEM_NHWC == 2);
static_assert(TANDEM_NCHW8C == 3);
static_assert(TANDEM_NCHW16C == 4);

static_assert(TANDEM_TRAIN == 0);
static_assert(TANDEM_TEST == 1);

static_assert(TANDEM_PARAMETER_INTEGER == 1);
static_assert(TANDEM_PARAMETER_NUMBER == 2);
static_assert(TANDEM_PARAMETER_BOOLEAN == 3);
static_assert(TANDEM_PARAMETER_TEXT == 4);
static_assert(TANDEM_PARAMETER_INTEGERS == 5);
static_assert(TANDEM_PARAMETER_FILLER == 6);
static_assert(TANDEM_PARAMETER_NUMBERS == 7);

// ---- plugins/abi/layers.h
static_assert(TANDEM_ACTIVATION_NONE == 0);
static_assert(TANDEM_ACTIVATION_RELU == 1);

static_assert(TANDEM_PER_SAMPLE == 1 << 0);
static_assert(TANDEM_IN_PLACE == 1 << 1);
static_assert(TANDEM_SLICED_OUTPUTS == 1 << 2);
static_assert(TANDEM_BATCH_STATISTICS == 1 << 3);
static_assert(TANDEM_LOSS == 1 << 4);
static_assert(TANDEM_METRIC == 1 << 5);
static_assert(TANDEM_BACKWARD_READS_INPUTS == 1 << 6);
static_assert(TANDEM_BACKWARD_READS_OUTPUTS == 1 << 7);
static_assert(TANDEM_RANDOM == 1 << 8);
static_assert(TANDEM_SAVES_NOTHING == 1 << 9);
static_assert(TANDEM_SLICED_INPUTS == 1 << 10);
static_assert(TANDEM_TESTS_OTHERWISE == 1 << 11);
static_assert(TANDEM_NO_DERIVATIVE == 1 << 12);

static_assert(TANDEM_INPUT_DATA == 1);
static_assert(TANDEM_INPUT_LABEL == 2);
static_assert(TANDEM_INPUT_TARGETS == 3);
static_assert(TANDEM_INPUT_SHAPE == 4);
static_assert(TANDEM_INPUT_NON_DIFFERENTIABLE == 5);

static_assert(TANDEM_TASK_CLASSES == 0);
static_assert(TANDEM_TASK_LABELS == 1);
static_assert(TANDEM_TASK_VALUES == 2);

static_assert(TANDEM_TRAINED == 0);
static_assert(TANDEM_STATE == 1);

static_assert(TANDEM_REQUIRED_TRAITS == 0xffffffff00000000);
static_assert(TANDEM_REQUIRED_FLAGS == 0xffff0000);

static_assert(TANDEM_WANTS_BACKWARD_DATA == 1 << 0);
static_assert(TANDEM_WANTS_BACKWARD_WEIGHTS == 1 << 1);
static_assert(TANDEM_RUNS_IN_PLACE == 1 << 2);
static_assert(TANDEM_ADD_TO_OUTPUT == 1 << 3);
static_assert(TANDEM_ALLOWS_TF32 == 1 << 4);
static_assert(TANDEM_MAY_MEASURE == 1 << 5);

static_assert(TANDEM_ACCUMULATE == 1 << 0);

// ---- plugins/abi/backends.h
static_assert(TANDEM_WORK_COMPUTE == 0);
static_assert(TANDEM_WORK_HOST == 1);
static_assert(TANDEM_WORK_MESSAGE == 2);

static_assert(TANDEM_MEMORY_DEVICE == 0);
static_assert(TANDEM_MEMORY_PINNED == 1);

static_assert(TANDEM_UPDATE_SGD == 1);
static_assert(TANDEM_UPDATE_NESTEROV == 2);
static_assert(TANDEM_UPDATE_ADAGRAD == 3);
static_assert(TANDEM_UPDATE_RMSPROP == 4);
static_assert(TANDEM_UPDATE_ADADELTA == 5);
static_assert(TANDEM_UPDATE_ADAM == 6);
static_assert(TANDEM_UPDATE_ADAMW == 7);
static_assert(TANDEM_UPDATE_LARS == 8);
static_assert(TANDEM_UPDATE_AVERAGE == 9);

static_assert(TANDEM_HOST == (-1));
static_assert(TANDEM_LINK_KEY_BYTES == 128);
