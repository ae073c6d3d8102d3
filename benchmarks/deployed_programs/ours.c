/* Times an exported model: `ours weights threads float32:1,512 int:16000 ...` prints seconds and megabytes as JSON.
 * Built with -DMODEL=name -DUPPER=NAME -DHEADER="name.h"; calls the first method. */
#include "memory.h"
#include "model.h"

#include <stdio.h>

enum { MOST = 1 << 20 };

static int by_size(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
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
  printf("{\"latency\": %.9f, \"first\": %.9f, \"memory\": %.3f}\n", times[count / 2], first, peak_memory());
  M(destroy)(model);
  return 0;
}
