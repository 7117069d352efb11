/* predict RUN IMAGE...: the first class of each image file, with the C functions of the
 * library. Nothing of the pictures' preparation is here: the run folder says what it is. */
#include <stdio.h>
#include <stdlib.h>
#include <tandem/predictor.h>

/* The file's bytes in picture.data, to be freed; NULL if it cannot be read. */
static tandem_picture read_picture(const char* path) {
  tandem_picture picture = {sizeof(tandem_picture), 0, 0, 0, NULL, 0};
  FILE* file = fopen(path, "rb");
  long bytes = -1;
  if (file != NULL && fseek(file, 0, SEEK_END) == 0) bytes = ftell(file);
  if (bytes > 0) {
    char* data = malloc((size_t)bytes);
    rewind(file);
    if (data != NULL && fread(data, 1, (size_t)bytes, file) == (size_t)bytes) {
      picture.data = data;
      picture.bytes = (size_t)bytes;
    } else {
      free(data);
    }
  }
  if (file != NULL) fclose(file);
  return picture;
}

static int print_class(tandem_predictor* predictor, const char* path, float* scores) {
  const tandem_picture picture = read_picture(path);
  if (picture.data == NULL) {
    fprintf(stderr, "%s cannot be read\n", path);
    return 1;
  }
  const int64_t unused = tandem_predictor_run(predictor, &picture, 1, scores);
  free((void*)picture.data);
  if (unused != 0) {
    fprintf(stderr, "%s: %s\n", path, tandem_predictor_error());
    return 1;
  }
  int32_t best = 0;
  for (int32_t i = 1; i < tandem_predictor_class_count(predictor); ++i) {
    if (scores[i] > scores[best]) best = i;
  }
  const char* name = tandem_predictor_class_name(predictor, best);
  printf("%s: %s ", path, name != NULL ? name : "a class without a name");
  if (tandem_predictor_has_probabilities(predictor)) {
    printf("%.1f %%\n", 100 * (double)scores[best]);
  } else {
    printf("score %.4g\n", (double)scores[best]);
  }
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s RUN IMAGE...\n", argv[0]);
    return 1;
  }
  tandem_predictor* predictor = tandem_predictor_open(argv[1], "cpu", "best", 1);
  if (predictor == NULL) {
    fprintf(stderr, "%s\n", tandem_predictor_error());
    return 1;
  }
  float* scores = malloc(sizeof(float) * (size_t)tandem_predictor_class_count(predictor));
  int failures = scores == NULL ? 1 : 0;
  for (int i = 2; i < argc && scores != NULL; ++i) {
    failures += print_class(predictor, argv[i], scores);
  }
  free(scores);
  tandem_predictor_close(predictor);
  return failures == 0 ? 0 : 1;
}
