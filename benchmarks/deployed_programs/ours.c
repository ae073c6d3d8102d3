/* Times an exported model: `ours weights threads float32:1,512 int:16000 ...` prints seconds and megabytes as JSON.
 * Built with -DMODEL=name -DUPPER=NAME -DHEADER="name.h"; calls the first method. */
#include HEADER
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define M(word) JOIN(MODEL, word)
#define C(word) JOIN(UPPER, word)

enum { MOST = 1 << 20 };

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static int by_size(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}

static M(value) input_of(const char* word) {
  M(value) made;
  memset(&made, 0, sizeof(made));
  if (!strncmp(word, "int:", 4)) {
    made.kind = C(INT);
    made.as.integer = atoll(word + 4);
    return made;
  }
  {
    const int is_float = !strncmp(word, "float32:", 8);
    int64_t sizes[C(MAX_RANK)], count = 1, i;
    int rank = 0;
    const char* at = strchr(word, ':') + 1;
    for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) count *= sizes[rank++] = atoll(at);
    made.kind = C(TENSOR);
    made.as.tensor = M(tensor_of)(is_float ? C(FLOAT32) : C(INT64), malloc((size_t)count * 8), rank, sizes);
    for (i = 0; i < count; ++i)
      if (is_float) ((float*)made.as.tensor.data)[i] = (float)(i % 7) / 7;
      else ((int64_t*)made.as.tensor.data)[i] = 1 + i % 5;
  }
  return made;
}

int main(int argc, char** argv) {
  static double times[MOST];
  const double began = now();
  char message[512];
  M(value) inputs[8], outputs[16];
  MODEL* model = NULL;
  size_t out, i;
  int count = 0, given = argc - 3;
  double first, end;
  for (i = 0; i < (size_t)given; ++i) inputs[i] = input_of(argv[3 + i]);
  if (M(create)(argv[1], &model, message, sizeof(message)) != C(OK)) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  M(set_threads)(model, atoi(argv[2]));
  out = M(method_at)(0)->output_count;
  memset(outputs, 0, sizeof(outputs));
  if (M(run)(model, 0, inputs, (size_t)given, outputs, out) != C(OK)) {
    fprintf(stderr, "%s\n", M(error)(model));
    return 1;
  }
  first = now() - began;
  for (end = now() + 3; (now() < end || count < 20) && count < MOST; ++count) {
    const double start = now();
    memset(outputs, 0, sizeof(outputs));
    if (M(run)(model, 0, inputs, (size_t)given, outputs, out) != C(OK)) return 1;
    times[count] = now() - start;
  }
  qsort(times, (size_t)count, sizeof(double), by_size);
  printf("{\"latency\": %.9f, \"first\": %.9f, \"memory\": %.3f}\n", times[count / 2], first, most_memory());
  M(destroy)(model);
  return 0;
}
