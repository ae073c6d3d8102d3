/* Names of a model and its inputs: built with -DMODEL=name -DUPPER=NAME -DHEADER="name.h". */
#include HEADER

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define M(word) JOIN(MODEL, word)
#define C(word) JOIN(UPPER, word)

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* An input of a word: float32:1,512 or int64:1,5 is a tensor, int:16000 a number. */
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
