// A program that multiplies small integers stored in every type that panels can have, and by words; the results are exact.
// Prints a line per type with the number of wrong results.
#include <rushlight/word_gemm.h>
#include <stdio.h>
#include <stdlib.h>

using namespace rl;

static const long row_counts[] = {1, 5, 13, 16, 33, 150}, depths[] = {1, 4, 7, 33, 64, 150}, column_counts[] = {1, 31, 70};

template <class S> static long wrong_products(long m, long k, long n, bool transposed) {
  const scalar_lane lane;
  const long k_stride = transposed ? 1 : n, n_stride = transposed ? k : 1;
  float *a = new float[m * k], *c = new float[m * n];
  S *b = new S[k * n], *packed = new S[packed_size(k, n)];
  for (long i = 0; i < m * k; ++i) a[i] = (float)(rand() % 17 - 8);
  for (long i = 0; i < k * n; ++i) store_float(lane, b + i, (float)(rand() % 15 - 7));
  pack_b(b, k_stride, n_stride, k, n, packed);
  long wrong = 0;
  for (int pass = 0; pass < 2; ++pass) {
    const long rows_at_once = pass * 2L * tile_rows;
    const auto emit = [=](auto to, long r, long j, auto value) { to.store(c + r * n + j, value); };
    gemm(m, a, k, b_panels(packed), n, k, epilogue_of(emit), rows_at_once);
    for (long i = 0; i < m; ++i)
      for (long j = 0; j < n; ++j) {
        float total = 0.0f;
        for (long q = 0; q < k; ++q) total += a[i * k + q] * load_float(lane, b + q * k_stride + j * n_stride);
        wrong += total != c[i * n + j];
      }
  }
  delete[] a, delete[] b, delete[] c, delete[] packed;
  return wrong;
}

static long wrong_bytes(long m, long k, long n, bool transposed) {
  const long k_stride = transposed ? 1 : n, n_stride = transposed ? k : 1;
  int8_t *a = new int8_t[m * k], *b = new int8_t[k * n];
  int8_t* packed = new int8_t[word_panel_size<int8_t>(k) * ((n + tile_columns - 1) / tile_columns)];
  int32_t* c = new int32_t[m * n];
  for (long i = 0; i < m * k; ++i) a[i] = (int8_t)rand();
  for (long i = 0; i < k * n; ++i) b[i] = (int8_t)rand();
  pack_words(b, k_stride, n_stride, k, n, packed);
  word_gemm(m, a, k, packed, n, k, [&](auto to, long r, long j, auto value) { to.store(c + r * n + j, value); });
  long wrong = 0;
  for (long i = 0; i < m; ++i)
    for (long j = 0; j < n; ++j) {
      int32_t total = 0;
      for (long q = 0; q < k; ++q) total += a[i * k + q] * b[q * k_stride + j * n_stride];
      wrong += total != c[i * n + j];
    }
  delete[] a, delete[] b, delete[] c, delete[] packed;
  return wrong;
}

static long wrong_pairs(long m, long k, long n, bool transposed) {
  const scalar_lane lane;
  const long k_stride = transposed ? 1 : n, n_stride = transposed ? k : 1;
  bfloat16 *a = new bfloat16[m * k], *b = new bfloat16[k * n];
  bfloat16* packed = new bfloat16[word_panel_size<bfloat16>(k) * ((n + tile_columns - 1) / tile_columns)];
  float* c = new float[m * n];
  for (long i = 0; i < m * k; ++i) lane.store(a + i, (float)(rand() % 257 - 128));
  for (long i = 0; i < k * n; ++i) lane.store(b + i, (float)(rand() % 257 - 128));
  pack_words(b, k_stride, n_stride, k, n, packed);
  const auto emit = [=](auto to, long r, long j, auto value) { to.store(c + r * n + j, value); };
  word_gemm(m, a, k, packed, n, k, epilogue_of(emit));
  long wrong = 0;
  for (long i = 0; i < m; ++i)
    for (long j = 0; j < n; ++j) {
      float total = 0.0f;
      for (long q = 0; q < k; ++q) total += lane.load(a + i * k + q) * lane.load(b + q * k_stride + j * n_stride);
      wrong += total != c[i * n + j];
    }
  delete[] a, delete[] b, delete[] c, delete[] packed;
  return wrong;
}

template <class F> static void report(const char* name, const F& count) {
  long wrong = 0;
  for (long m : row_counts)
    for (long k : depths)
      for (long n : column_counts) wrong += count(m, k, n, false) + count(m, k, n, true);
  printf("%s %ld\n", name, wrong);
}

int main() {
  report("float", wrong_products<float>);
  report("bfloat16", wrong_products<bfloat16>);
  report("half", wrong_products<half>);
  report("int8", wrong_products<int8_t>);
  report("bytes", wrong_bytes);
  report("pairs", wrong_pairs);
}
