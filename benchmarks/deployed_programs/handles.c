/* Runs a model in several threads, each with a handle of its own: `handles weights threads float32:1,512 int:16000 ...` prints
 * runs a second as JSON. Built with -DMODEL=name -DUPPER=NAME -DHEADER="name.h"; calls the first method. */
#include "model.h"

#include <pthread.h>
#include <stdio.h>

enum { MAX_THREADS = 64, SECONDS = 3 };

typedef struct job {
  MODEL* model;
  M(value)* inputs;
  size_t count;
  double end;
  long runs;
} job;

static void* work(void* given) {
  job* self = given;
  const size_t out = M(method_at)(0)->output_count;
  M(value) outputs[16];
  while (now() < self->end) {
    memset(outputs, 0, sizeof(outputs));
    if (M(run)(self->model, 0, self->inputs, self->count, outputs, out) != C(OK)) return self;
    ++self->runs;
  }
  return NULL;
}

int main(int argc, char** argv) {
  const int threads = argc > 2 ? atoi(argv[2]) : 0;
  static job jobs[MAX_THREADS];
  static pthread_t started[MAX_THREADS];
  M(value) inputs[8];
  char message[512];
  long runs = 0;
  double began;
  int i, failed = 0;
  if (argc < 3 || argc > 11 || threads < 1 || threads > MAX_THREADS) return 2;
  for (i = 3; i < argc; ++i) inputs[i - 3] = input_of(argv[i]);
  for (i = 0; i < threads; ++i) {
    const job made = {NULL, inputs, (size_t)argc - 3, 0, 0};
    jobs[i] = made;
    if (i ? M(share)(jobs[0].model, &jobs[i].model) : M(create)(argv[1], &jobs[i].model, message, sizeof(message))) return 1;
  }
  began = now();
  for (i = 0; i < threads; ++i) jobs[i].end = began + SECONDS;
  for (i = 0; i < threads; ++i)
    if (pthread_create(&started[i], NULL, work, &jobs[i])) return 1;
  for (i = 0; i < threads; ++i) {
    void* wrong = NULL;
    pthread_join(started[i], &wrong);
    failed |= wrong != NULL;
    runs += jobs[i].runs;
  }
  printf("{\"runs\": %.3f}\n", (double)runs / (now() - began));
  for (i = 0; i < threads; ++i) M(destroy)(jobs[i].model);
  return failed;
}
