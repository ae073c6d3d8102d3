// Packing of matrices into the panels that tile.h reads: [ceil(N / NR)][K][NR], zero padded, NR = rl::tile_columns.
// T is the type of the matrix and S that of the panels: T itself, or float.
#pragma once

#include <rushlight/parallel.h>

namespace rl {

constexpr int tile_columns = 2 * lanes;

// Elements of a packed K x N matrix.
constexpr long packed_size(long depth, long columns) {
  return (columns + tile_columns - 1) / tile_columns * tile_columns * depth;
}

template <class Lane, class T> RL_INLINE auto load_float(Lane lane, const T* p) {
  return cast<float, T>(lane.load(p));
}

template <class Lane, class S, class V> RL_INLINE void store_float(Lane lane, S* p, V value) {
  if constexpr (same<S, int8_t>) lane.store(p, cast<int8_t, float>(value));
  else lane.store(p, value);
}

// Select lane i of the result from the lanes of (low, high) by pick[i].
RL_INLINE vec<float> interleave(vec<float> low, vec<float> high, vec<int32_t> pick) {
#ifdef __clang__
  vec<float> out;
  RL_UNROLL for (int i = 0; i < lanes; ++i) out[i] = pick[i] < lanes ? low[pick[i]] : high[pick[i] - lanes];
  return out;
#else
  return __builtin_shuffle(low, high, pick);
#endif
}

// Transpose a square block: after the round of `step`, index bits of rows and lanes below 2 * step have been swapped.
RL_INLINE void transpose(vec<float> (&block)[lanes]) {
  const vec<int32_t> lane = convert_lanes<vec<int32_t>>(vector_lane::iota());
  RL_UNROLL for (int step = 1; step < lanes; step *= 2) {
    const vec<int32_t> odd = (lane & step) != 0;
    const vec<int32_t> to_low = odd ? lane + (lanes - step) : lane, to_high = odd ? lane + lanes : lane + step;
    RL_UNROLL for (int i = 0; i < lanes; ++i) {
      if (i & step) continue;
      const vec<float> low = block[i], high = block[i + step];
      block[i] = interleave(low, high, to_low);
      block[i + step] = interleave(low, high, to_high);
    }
  }
}

// Transpose `rows` <= lanes rows of b, with unit stride along k: out[k][j] = b[j][k]; the other columns of out become zero.
template <class T, class S>
__attribute__((noinline)) void pack_transposed(const T* b, long row_stride, long rows, long depth, S* out,
                                               long out_stride) {
  const vector_lane lane;
  long k = 0;
  for (; k + lanes <= depth; k += lanes) {
    vec<float> block[lanes];
    if (rows == lanes) {
      RL_UNROLL for (int j = 0; j < lanes; ++j) block[j] = load_float(lane, b + j * row_stride + k);
    } else {
      RL_UNROLL for (int j = 0; j < lanes; ++j) {
        block[j] = vec<float>{};
        if (j < rows) block[j] = load_float(lane, b + j * row_stride + k);
      }
    }
    transpose(block);
    RL_UNROLL for (int j = 0; j < lanes; ++j) store_float(lane, out + (k + j) * out_stride, block[j]);
  }
  for (; k < depth; ++k)
    for (long j = 0; j < lanes; ++j)
      store_float(scalar_lane{}, out + k * out_stride + j, j < rows ? load_float(scalar_lane{}, b + j * row_stride + k) : 0.0f);
}

// Transpose `count` rows of `rows` elements, `stride` apart: out[j][k] = in[k][j]. Columns of out beyond `count`, up to a whole
// vector, are written too.
template <class T> RL_INLINE void turn(const T* in, long stride, long rows, long count, float* out, long out_stride) {
  for (long k = 0; k < count; k += lanes)
    pack_transposed(in + k * stride, stride, count - k < lanes ? count - k : lanes, rows, out + k, out_stride);
}

// Pack one panel: out[k][j] = b[k * k_stride + j * n_stride] for j < columns, zero up to NR.
template <class T, class S>
__attribute__((noinline)) void pack_panel(const T* b, long k_stride, long n_stride, long depth, long columns, S* out) {
  if (k_stride == 1 && n_stride != 1) {
    for (long j = 0; j < tile_columns; j += lanes) {
      const long rows = columns - j < 0 ? 0 : columns - j < lanes ? columns - j : lanes;
      pack_transposed(b + j * n_stride, n_stride, rows, depth, out + j, tile_columns);
    }
  } else if (n_stride == 1 && columns == tile_columns) {
    const vector_lane lane;
    for (long k = 0; k < depth; ++k, b += k_stride, out += tile_columns) {
      store_float(lane, out, load_float(lane, b));
      store_float(lane, out + lanes, load_float(lane, b + lanes));
    }
  } else {
    for (long k = 0; k < depth; ++k, b += k_stride, out += tile_columns) {
      for (long j = 0; j < tile_columns; ++j)
        store_float(scalar_lane{}, out + j, j < columns ? load_float(scalar_lane{}, b + j * n_stride) : 0.0f);
    }
  }
}

// Pack the whole matrix B[k][n] = b[k * k_stride + n * n_stride]. Called by every thread of a parallel region, or by one thread
// outside.
template <class T, class S>
__attribute__((noinline)) void pack_b(const T* b, long k_stride, long n_stride, long depth, long columns, S* packed) {
  const long panels = (columns + tile_columns - 1) / tile_columns;
  for (const long panel : shared(panels)) {
    const long first = panel * tile_columns, width = columns - first;
    pack_panel(b + first * n_stride, k_stride, n_stride, depth, width < tile_columns ? width : tile_columns,
               packed + first * depth);
  }
}

#define RL_EXTERN_PACKING(T, S)                                                       \
  RL_EXTERN(void pack_transposed<T, S>(const T*, long, long, long, S*, long))         \
  RL_EXTERN(void pack_panel<T, S>(const T*, long, long, long, long, S*))              \
  RL_EXTERN(void pack_b<T, S>(const T*, long, long, long, long, S*))
RL_EXTERN_PACKING(float, float)
RL_EXTERN_PACKING(bfloat16, bfloat16) RL_EXTERN_PACKING(half, half) RL_EXTERN_PACKING(int8_t, int8_t)
RL_EXTERN_PACKING(bfloat16, float) RL_EXTERN_PACKING(half, float) RL_EXTERN_PACKING(int8_t, float)

}  // namespace rl
