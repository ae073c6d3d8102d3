// Declarations that the files of the engine share: everything above the kernels of one instruction set. Compiled once.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

#include <rushlight/team.h>

#include "variant.h"

// One operand of a loop: strides in bytes, in the order of the loop's sizes.
struct Operand {
  char* data;
  int dtype;
  int64_t strides[RL_MOST_DIMENSIONS];
};

// out = code(inputs...) over all indices; broadcast dimensions of inputs have stride 0. The operator is computed in the
// type `dtype`, into which inputs are converted, and the result into out's type.
struct Loop {
  int code, dtype, rank, inputs;
  int64_t sizes[RL_MOST_DIMENSIONS];
  Operand out, in[RL_MOST_INPUTS];
  double parameters[RL_MOST_PARAMETERS];
};

constexpr int COPY = -1;  // a loop that only converts

// The functions return 1 when done. They return 0, having done nothing, if there is no kernel.
int rushlight_run_loop(const Loop* loop);
int rushlight_pointwise(int code, int dtype, const void* const* inputs, unsigned scalars, void* out, int64_t count,
                        const double* parameters);
int rushlight_optimizer(int code, const double* options, RlParameter* parameters, int64_t count);

int rushlight_choose_variant(const char* wanted);  // NULL for the best variant; returns 0 if the processor lacks the wanted one
void rushlight_watch_forks();
void rushlight_set_threads(int count);
int rushlight_get_threads();

constexpr int64_t item_size[RL_DTYPE_COUNT] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};

// Calls body(thread, threads) on each of `threads` threads.
template <class F> inline void in_parallel(int threads, const F& body) {
#ifdef _OPENMP
  if (threads > 1) {
    rl_team::in_team(threads, [&] { body(omp_get_thread_num(), omp_get_num_threads()); });
    return;
  }
#endif
  body(0, 1);
}

// At least `bytes` of memory, aligned to 64, valid until this thread asks again for the same use; NULL if memory is short.
// Products take PANELS for themselves.
enum ScratchUse { PANELS, BUFFERS, SCRATCH_COUNT };
void* rushlight_scratch(int64_t bytes, ScratchUse use);

// The part of `count` that a thread takes, in multiples of `unit`.
struct Part {
  int64_t first, last;
};
inline Part part_of(int64_t count, int thread, int threads, int64_t unit = 1) {
  const int64_t units = (count + unit - 1) / unit;
  const int64_t first = units * thread / threads * unit, last = units * (thread + 1) / threads * unit;
  return {first < count ? first : count, last < count ? last : count};
}

int rushlight_run_product(Product* product);  // the function sets `scratch` itself
int rushlight_matmul(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_row, int64_t a_column, const float* b,
                     int64_t b_row, int64_t b_column, const float* bias, float* c);

// out[outer, inner] of in[outer, count, inner], contiguous; out's type is that of reduced_dtype. `mean`, for
// REDUCE_DEVIATION and REDUCE_OFFSET, is laid out like out.
int rushlight_reduce(Reduction operation, int dtype, const void* in, int64_t outer, int64_t count, int64_t inner,
                     void* out, const void* mean);
int rushlight_reduced_dtype(Reduction operation, int dtype);
