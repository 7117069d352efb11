/* Predictions for programs in C, or in any language that calls C: what a run folder has learned,
 * ready for use. No exception leaves these functions. All of them may be called by several threads
 * at the same time, also for one predictor; each call gives the bits that it would give alone. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tandem_predictor tandem_predictor;

/* A picture in memory: the bytes of an image file (JPEG, PNG, ...) where height is 0; else rows of
 * bytes from the top, R,G,B (channels 3) or gray (channels 1), without gaps. */
typedef struct tandem_picture {
  uint32_t struct_size; /* sizeof(tandem_picture) */
  int32_t height, width, channels;
  const void* data;
  size_t bytes; /* of a file, or height * width * channels */
} tandem_picture;

/* Loads a run. devices: NULL is "cpu"; weights: "best" or "last", NULL is "best"; batch: pictures
 * that are computed together, 0 is 32, and 1 answers soonest for single ones. Returns NULL for a
 * failure, with its reason in tandem_predictor_error(). */
tandem_predictor* tandem_predictor_open(const char* run, const char* devices, const char* weights,
                                        int32_t batch);
/* No call may be under way. NULL does nothing. */
void tandem_predictor_close(tandem_predictor* predictor);

/* The number of scores of a picture. */
int32_t tandem_predictor_class_count(const tandem_predictor* predictor);
/* In UTF-8 where the data are. Valid until the predictor is closed; NULL for a class without a name
 * and for an index that is no class. */
const char* tandem_predictor_class_name(const tandem_predictor* predictor, int32_t index);

/* 1: scores are probabilities. 0: they are what the net's last layer computes, as of a net trained
 * with HingeLoss or EuclideanLoss; or the predictor is NULL. */
int32_t tandem_predictor_has_probabilities(const tandem_predictor* predictor);

/* Writes class_count scores for each picture, picture after picture. Returns the number of pictures
 * that could not be used, whose scores are zeros, and of whose first one tandem_predictor_error()
 * has the reason; or -1 if nothing was computed, with its reason. */
int64_t tandem_predictor_run(tandem_predictor* predictor, const tandem_picture* pictures,
                             size_t count, float* scores);

/* The reason of this thread's last failure; "" after none. Valid until the thread's next call. */
const char* tandem_predictor_error(void);

#ifdef __cplusplus
}
#endif
