// Times rl::gemm on the shapes compiled in (-DSHAPES="SHAPE(128, 384, 384) ..."), a fused attention, and prints one line
// each: kind, the sizes, the median and the best seconds of a call. benchmarks/kernels.py compiles and runs this.
#include <omp.h>
#include <rushlight/attention.h>
#include <rushlight/gemm.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

static float* random_floats(long count) {
  float* data = (float*)aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
  for (long i = 0; i < count; ++i) data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  return data;
}

// Median and best seconds of `run`, called by all threads of one team per call, for about half a second.
template <class F> static void report(const char* name, const F& run) {
  std::vector<double> seconds;
  const double start = omp_get_wtime();
  while (seconds.size() < 5 || omp_get_wtime() - start < 0.5) {
    const double begin = omp_get_wtime();
    rl::in_team(omp_get_max_threads(), run);
    seconds.push_back(omp_get_wtime() - begin);
  }
  std::sort(seconds.begin(), seconds.end());
  printf("%s %.9f %.9f\n", name, seconds[seconds.size() / 2], seconds[0]);
}

static void time_gemm(long rows, long columns, long depth) {
  const float *a = random_floats(rows * depth), *b = random_floats(columns * depth), *bias = random_floats(columns);
  float *packed = random_floats(rl::packed_size(depth, columns)), *out = random_floats(rows * columns);
  rl::pack_b(b, 1, depth, depth, columns, packed);
  char name[80];
  snprintf(name, sizeof name, "gemm %ld %ld %ld", rows, columns, depth);
  report(name, [&] {
    rl::gemm(rows, a, depth, rl::b_panels<float>(packed), columns, depth,
             rl::epilogue_of([=](auto lane, long row, long column, auto value) {
               lane.store(out + row * columns + column, value + lane.load(bias + column));
             }));
  });
}

template <int D> static void time_attention(long heads, long rows) {
  const float *q = random_floats(heads * rows * D), *k = random_floats(heads * rows * D);
  const float* v = random_floats(heads * rows * D);
  float* out = random_floats(heads * rows * D);
  const rl::head_strides at = {heads * rows * D, D, heads * D, 1};
  char name[80];
  snprintf(name, sizeof name, "attention %ld %ld %d", heads, rows, D);
  report(name, [&] {
    rl::attention<D>(q, at, k, at, v, at, out, at, nullptr, 1, heads, rows, rows, 0.125f, false);
  });
}

int main() {
#define SHAPE(m, n, k) time_gemm(m, n, k);
  SHAPES
  time_attention<32>(12, 128);
  time_attention<64>(12, 128);
  time_attention<64>(12, 197);
}
