// Products of 8-bit integers with sums in 32 bits: C[M, N] = A[M, K] * B[K, N], exact modulo 2^32.
//
// B is packed once into panels of NR columns whose elements are words of four successive k: [ceil(N / NR)][ceil(K / 4)]
// [NR][4], padded with zeros, each panel followed by what its sums begin with. Where the processor multiplies unsigned by
// signed bytes (AVX-512 VNNI), A gets an offset of 128 and the sums begin with -128 times the column's.
#pragma once

#include <rushlight/tile.h>

namespace rl {

#if RL_LANES == 16 && defined(__AVX512VNNI__)
#define RL_VNNI
constexpr int32_t byte_offset = 128;
#else
constexpr int32_t byte_offset = 0;
#endif

constexpr long words_of(long depth) { return (depth + 3) / 4; }
constexpr long byte_panel_size(long depth) { return (words_of(depth) + 1) * tile_columns * 4; }

// Called by every thread of a parallel region, or by one outside.
RL_KERNEL void pack_bytes(const int8_t* b, long k_stride, long n_stride, long depth, long columns, int8_t* packed) {
  const long panels = (columns + tile_columns - 1) / tile_columns, words = words_of(depth);
  for (const long panel : shared(panels)) {
    int8_t* out = packed + panel * byte_panel_size(depth);
    int32_t total[tile_columns] = {};
    __builtin_memset(out, 0, words * tile_columns * 4);
    const long first = panel * tile_columns, width = columns - first < tile_columns ? columns - first : tile_columns;
    for (long j = 0; j < width; ++j)
      for (long k = 0; k < depth; ++k) {
        const int8_t value = b[k * k_stride + (first + j) * n_stride];
        out[(k / 4 * tile_columns + j) * 4 + k % 4] = value;
        total[j] -= byte_offset * value;
      }
    __builtin_memcpy(out + words * tile_columns * 4, total, sizeof total);
  }
}

// The sum of a word's four products with those of each lane, onto `sum`.
RL_INLINE vec<int32_t> add_dot(vec<int32_t> sum, int32_t word, vec<int32_t> b) {
#ifdef RL_VNNI
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(splat<vec<int32_t>>(word ^ (int32_t)0x80808080)), "v"(b));
#else
  RL_UNROLL for (int i = 0; i < 4; ++i) sum += (int32_t)(int8_t)(word >> (8 * i)) * ((b << (24 - 8 * i)) >> 24);
#endif
  return sum;
}

// Four successive bytes of a row, or the last ones and zeros.
RL_INLINE int32_t load_word(const int8_t* p, long left) {
  int32_t word = 0;
  if (left >= 4) __builtin_memcpy(&word, p, 4);
  else
    for (long i = 0; i < left; ++i) word |= (int32_t)(uint8_t)p[i] << (8 * i);
  return word;
}

// c[r][0..NR) = the sums over K of A's row r times one panel.
template <int Rows>
__attribute__((noinline)) void byte_tile(const int8_t* a, long a_row, const int8_t* panel, long depth, int32_t* c) {
  const long words = words_of(depth);
  vec<int32_t> sum[Rows][2];
  RL_UNROLL for (int r = 0; r < Rows; ++r)
    RL_UNROLL for (int j = 0; j < 2; ++j)
      sum[r][j] = load_bytes<vec<int32_t>>(panel + (words * tile_columns + j * lanes) * 4);
  for (long k = 0; k < depth / 4; ++k, panel += tile_columns * 4) {
    const auto b0 = load_bytes<vec<int32_t>>(panel), b1 = load_bytes<vec<int32_t>>(panel + lanes * 4);
    RL_UNROLL for (int r = 0; r < Rows; ++r) {
      const int32_t word = load_word(a + r * a_row + 4 * k, 4);
      sum[r][0] = add_dot(sum[r][0], word, b0);
      sum[r][1] = add_dot(sum[r][1], word, b1);
    }
  }
  if (depth % 4) {
    const auto b0 = load_bytes<vec<int32_t>>(panel), b1 = load_bytes<vec<int32_t>>(panel + lanes * 4);
    RL_UNROLL for (int r = 0; r < Rows; ++r) {
      const int32_t word = load_word(a + r * a_row + depth / 4 * 4, depth % 4);
      sum[r][0] = add_dot(sum[r][0], word, b0);
      sum[r][1] = add_dot(sum[r][1], word, b1);
    }
  }
  __builtin_memcpy(c, sum, sizeof sum);
}

// Hands a tile's results to the epilogue: emit(lane, row, column, value), for columns below N.
template <class E>
RL_INLINE void emit_tile(const int32_t* c, row_block block, long first_column, long columns, const E& emit) {
  const long left = columns - first_column, width = left < tile_columns ? left : tile_columns;
  for (int r = 0; r < block.rows; ++r) {
    const int32_t* values = c + r * tile_columns;
    long j = 0;
    for (; j + lanes <= width; j += lanes)
      emit(vector_lane{}, block.first + r, first_column + j, load_bytes<vec<int32_t>>(values + j));
    if (columns % lanes)  // known to be zero at compile time for most shapes, which spares the scalar epilogue
      for (; j < width; ++j) emit(scalar_lane{}, block.first + r, first_column + j, values[j]);
  }
}

// emit(lane, row, column, value) with int32 values; A has unit stride along K. Called by all threads of a parallel
// region; ends with a barrier.
template <class E>
RL_INLINE void byte_gemm(long m, const int8_t* a, long a_row, const int8_t* packed, long columns, long depth,
                         const E& emit) {
  const long panels = (columns + tile_columns - 1) / tile_columns, full = m / tile_rows;
  const long blocks = full + (m % tile_rows + 3) / 4;  // few tiles are compiled for every graph: what is left goes by fours
  for (const long task : shared(panels * blocks)) {
    alignas(64) int32_t c[tile_rows * tile_columns];
    const long i = task % blocks, first = i < full ? i * tile_rows : full * tile_rows + (i - full) * 4;
    const row_block block = {first, i < full ? tile_rows : (int)smallest(m - first, 4)};
    const int8_t *rows = a + block.first * a_row, *panel = packed + task / blocks * byte_panel_size(depth);
    switch (block.rows) {
      case 1: byte_tile<1>(rows, a_row, panel, depth, c); break;
      case 2: byte_tile<2>(rows, a_row, panel, depth, c); break;
      case 3: byte_tile<3>(rows, a_row, panel, depth, c); break;
      case 4: byte_tile<4>(rows, a_row, panel, depth, c); break;
      default: byte_tile<tile_rows>(rows, a_row, panel, depth, c);
    }
    emit_tile(c, block, task / blocks * tile_columns, columns, emit);
  }
}

}  // namespace rl
