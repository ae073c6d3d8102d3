// Declarations shared by the files of the engine, which runs the kernels of the chosen instruction set. The engine is compiled
// once.
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
  int64_t strides[RL_MAX_DIMENSIONS];
};

// out = code(inputs...) over all indices; broadcast dimensions of inputs have stride 0. The operator is computed in the
// type `dtype`, into which inputs are converted, and the result into out's type.
struct Loop {
  int code, dtype, rank, inputs;
  int64_t sizes[RL_MAX_DIMENSIONS];
  Operand out, in[RL_MAX_INPUTS];
  double parameters[RL_MAX_PARAMETERS];
};

constexpr int COPY = -1;  // the code of a loop that only converts

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

// Call body(thread, threads) on each of `threads` threads.
template <class F> inline void in_parallel(int threads, const F& body) {
#ifdef _OPENMP
  if (threads > 1) {
    rl_team::in_team(threads, [&] { body(omp_get_thread_num(), omp_get_num_threads()); });
    return;
  }
#endif
  body(0, 1);
}

// Return at least `bytes` of memory, aligned to 64; NULL if memory is short. It stays valid until this thread's next request
// for the same use. Matrix products use PANELS.
enum ScratchUse { PANELS, BUFFERS, SCRATCH_COUNT };
void* rushlight_scratch(int64_t bytes, ScratchUse use);

// The share of `count` that a thread takes, in multiples of `unit`.
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

// Reduce in[outer, count, inner] to out[outer, inner], both contiguous; out's type is reduced_dtype. REDUCE_DEVIATION and
// REDUCE_OFFSET also read `mean`, which has the layout of out.
int rushlight_reduce(Reduction operation, int dtype, const void* in, int64_t outer, int64_t count, int64_t inner,
                     void* out, const void* mean);
int rushlight_reduced_dtype(Reduction operation, int dtype);
