/* Four threads, each with a handle over the same weights, and with two threads of its own: all have to agree.
 * Built with -DMODEL=name -DUPPER=NAME -DHEADER="name.h"; calls the first method. */
#include HEADER

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define M(word) JOIN(MODEL, word)
#define C(word) JOIN(UPPER, word)

enum { THREADS = 4, RUNS = 20 };

typedef struct job {
  MODEL* model;
  double sums[RUNS];
  int failed;
} job;

static void* work(void* given) {
  job* self = given;
  int run;
  for (run = 0; run < RUNS && !self->failed; ++run) {
    const M(method)* method = M(method_at)(0);
    M(value) inputs[8], outputs[8];
    float numbers[256];
    int64_t places[64];
    size_t i;
    int dim;
    memset(inputs, 0, sizeof(inputs));
    memset(outputs, 0, sizeof(outputs));
    for (i = 0; i < 256; ++i) numbers[i] = (float)((i * 7 + (size_t)run) % 13) / 13;
    for (i = 0; i < 64; ++i) places[i] = (int64_t)(i % 2);
    for (i = 0; i < method->input_count; ++i) {
      const M(parameter)* about = &method->inputs[i];
      int64_t sizes[C(MAX_RANK)];
      for (dim = 0; dim < about->rank; ++dim) sizes[dim] = about->sizes[dim] < 0 ? about->least[dim] + 2 : about->sizes[dim];
      inputs[i].kind = about->kind;
      if (about->kind == C(TENSOR))
        inputs[i].as.tensor = M(tensor_of)(about->dtype, about->dtype == C(FLOAT32) ? (void*)numbers : places, about->rank, sizes);
      else if (about->kind == C(FLOAT)) inputs[i].as.real = 0.5;
      else inputs[i].as.integer = 1;
    }
    self->failed = M(run)(self->model, 0, inputs, method->input_count, outputs, method->output_count) != C(OK);
    self->sums[run] = 0;
    for (i = 0; i < method->output_count && !self->failed; ++i) {
      const M(tensor)* found = &outputs[i].as.tensor;
      int64_t count = 1, at;
      for (dim = 0; dim < found->rank; ++dim) count *= found->sizes[dim];
      for (at = 0; at < count; ++at) self->sums[run] += (double)((const float*)found->data)[at] * (double)(at + 1);
    }
  }
  return NULL;
}

int main(int argc, char** argv) {
  static job jobs[THREADS];
  pthread_t threads[THREADS];
  int i, run;
  if (argc < 2 || M(create)(argv[1], &jobs[0].model, NULL, 0) != C(OK)) return 2;
  for (i = 1; i < THREADS; ++i)
    if (M(share)(jobs[0].model, &jobs[i].model) != C(OK)) return 3;
  for (i = 0; i < THREADS; ++i)
    if (M(set_threads)(jobs[i].model, 2) != C(OK)) return 4;
  for (i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, work, &jobs[i]);
  for (i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (i = 0; i < THREADS; ++i) {
    if (jobs[i].failed) {
      printf("%s\n", M(error)(jobs[i].model));
      return 5;
    }
    for (run = 0; run < RUNS; ++run)
      if (!(fabs(jobs[i].sums[run] - jobs[0].sums[run]) <= 1e-4 * (1 + fabs(jobs[0].sums[run])))) return 6;
  }
  for (i = 0; i < THREADS; ++i) M(destroy)(jobs[i].model);
  printf("%d threads agree\n", THREADS);
  return 0;
}
