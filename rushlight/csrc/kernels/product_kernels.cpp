// Matrix products, float32, on the tiles of gemm.h. All threads of a parallel region run them.
#include <rushlight/gemm.h>

#include "variant.h"

namespace rl {

// Whether to compute the transposed product instead. That packs the other operand into panels, which costs time in proportion
// to its size. With few rows of A, it is better to pack A and to read the larger B once, in place, unless B's columns would be
// strided in memory.
static bool transposes(const Product& p) {
  return p.rows >= 8 && 4 * p.rows <= p.columns && p.depth >= 64 && p.b_column != 1;
}

int64_t product_scratch(const Product* p) { return (bgemm_scratch_bytes(p->depth) + 63) / 64 * 64 + 64; }

template <class E> static void multiply(const Product& p, const E& emit) {
  const matrices<float> a = {p.a, p.a_batch, p.a_row, p.a_column}, b = {p.b, p.b_batch, p.b_row, p.b_column};
  if (!transposes(p)) return bgemm(p.rows, p.batches, a, b, p.columns, p.depth, p.scratch, batched_epilogue(emit, p.rows));
  const auto transposed = [&](auto lane, long batch, long column, long row, auto value) {
    constexpr int count = decltype(lane)::size;
    float values[count];
    lane.store(values, value);
    for (int i = 0; i < count; ++i) emit(scalar_lane{}, batch, row + i, column, values[i]);
  };
  bgemm(p.columns, p.batches, matrices<float>{b.data, b.batch, b.column, b.row},
        matrices<float>{a.data, a.batch, a.column, a.row}, p.rows, p.depth, p.scratch, batched_epilogue(transposed, p.columns));
}

// ---- few rows: memory-bound, so nothing is packed ------------------------------------------------------------------

constexpr int max_few_rows = 4;

// Compute c[r][0..width) for r < Rows, as sums of rows of B.
template <int Rows, class E>
static void stream_rows(const Product& p, long batch, long row, long column, const E& emit) {
  constexpr int vectors = 4;
  const float *a = p.a + batch * p.a_batch + row * p.a_row, *b = p.b + batch * p.b_batch + column;
  vec<float> sum[Rows][vectors] = {};
  for (long k = 0; k < p.depth; ++k, b += p.b_row) {
    RL_UNROLL for (int j = 0; j < vectors; ++j) {
      const vec<float> value = load_bytes<vec<float>>(b + j * lanes);
      RL_UNROLL for (int r = 0; r < Rows; ++r) sum[r][j] += a[r * p.a_row + k * p.a_column] * value;
    }
  }
  RL_UNROLL for (int r = 0; r < Rows; ++r)
    RL_UNROLL for (int j = 0; j < vectors; ++j) emit(vector_lane{}, batch, row + r, column + j * lanes, sum[r][j]);
}

// Compute c[r][column] for r < Rows, as dot products of rows of A with one contiguous column of B.
template <int Rows, class E>
static void dot_rows(const Product& p, long batch, long row, long column, const E& emit) {
  const float *a = p.a + batch * p.a_batch + row * p.a_row, *b = p.b + batch * p.b_batch + column * p.b_column;
  vec<float> sum[Rows][2] = {};
  float rest[Rows] = {};
  long k = 0;
  for (; k + 2 * lanes <= p.depth; k += 2 * lanes)
    RL_UNROLL for (int half = 0; half < 2; ++half) {
      const vec<float> value = load_bytes<vec<float>>(b + k + half * lanes);
      RL_UNROLL for (int r = 0; r < Rows; ++r)
        sum[r][half] += load_bytes<vec<float>>(a + r * p.a_row + k + half * lanes) * value;
    }
  for (; k < p.depth; ++k)
    for (int r = 0; r < Rows; ++r) rest[r] += a[r * p.a_row + k] * b[k];
  for (int r = 0; r < Rows; ++r) {
    const vec<float> both = sum[r][0] + sum[r][1];
    float total = rest[r];
    for (int i = 0; i < lanes; ++i) total += both[i];
    emit(scalar_lane{}, batch, row + r, column, total);
  }
}

template <int Rows, class E> static void multiply_few_rows(const Product& p, long batch, long row, const E& emit) {
  if (p.b_row == 1 && p.a_column == 1) {
#pragma omp for schedule(static) nowait
    for (long column = 0; column < p.columns; ++column) dot_rows<Rows>(p, batch, row, column, emit);
    return;
  }
  constexpr long width = 4 * lanes;
  const long blocks = p.columns / width;
#pragma omp for schedule(static) nowait
  for (long block = 0; block < blocks; ++block) stream_rows<Rows>(p, batch, row, block * width, emit);
#pragma omp for schedule(static) nowait
  for (long column = blocks * width; column < p.columns; ++column) {
    const float *a = p.a + batch * p.a_batch + row * p.a_row, *b = p.b + batch * p.b_batch + column;
    float total[Rows] = {};
    for (long k = 0; k < p.depth; ++k)
      for (int r = 0; r < Rows; ++r) total[r] += a[r * p.a_row + k * p.a_column] * b[k * p.b_row];
    for (int r = 0; r < Rows; ++r) emit(scalar_lane{}, batch, row + r, column, total[r]);
  }
}

static bool has_few_rows(const Product& p) {
  return p.rows <= max_few_rows && (p.b_column == 1 || (p.b_row == 1 && p.a_column == 1));
}

template <class E> static void multiply_few(const Product& p, const E& emit) {
  for (long batch = 0; batch < p.batches; ++batch)
    switch (p.rows) {
      case 1: multiply_few_rows<1>(p, batch, 0, emit); break;
      case 2: multiply_few_rows<2>(p, batch, 0, emit); break;
      case 3: multiply_few_rows<3>(p, batch, 0, emit); break;
      default: multiply_few_rows<4>(p, batch, 0, emit);
    }
}

template <class E> static void choose(const Product& p, const E& emit) {
  if (has_few_rows(p)) multiply_few(p, emit);
  else multiply(p, emit);
}

void product(const Product* given) {
  const Product p = *given;
  float* c = p.c;
  if (!p.addend && p.alpha == 1.0f)
    return choose(p, [&](auto lane, long batch, long row, long column, auto value) {
      lane.store(c + batch * p.c_batch + row * p.c_row + column, value);
    });
  choose(p, [&](auto lane, long batch, long row, long column, auto value) {
    using V = decltype(value);
    V result = value * p.alpha;
    if (p.addend) {
      const float* at = p.addend + batch * p.addend_batch + row * p.addend_row + column * p.addend_column;
      result += (p.addend_column == 1 ? lane.load(at) : lane.load_strided(at, p.addend_column)) * p.beta;
    }
    lane.store(c + batch * p.c_batch + row * p.c_row + column, result);
  });
}

}  // namespace rl
