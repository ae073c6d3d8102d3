// Matrix products with weights quantized in blocks: C[M, N] = A[M, K] * W[N, K]^T; W is read in its own layout
// (block_layouts.h).
//
// A is first rounded to bytes, with a scale for every 32 elements of a row, so that bytes are multiplied and summed in 32-bit
// integers. The error of an element of A is at most 1/254 of the largest among its 32. Sums over the parts of a row are in
// float.
#pragma once

#include <rushlight/block_panels.h>
#include <rushlight/epilogue.h>

namespace rl {

// The sum of the lanes.
RL_INLINE float sum_of(quad_floats v) {
  float all = 0;
  RL_UNROLL for (int i = 0; i < 4; ++i) all += v[i] + v[i + 4];
  return all;
}

// Compute c[r] = the dot products of `Rows` rows of A with one row of W; rows of A from `rows` on repeat the last one. Weights
// are read in memory order and prefetched one page ahead, because the hardware prefetcher stops at page boundaries.
template <class Layout, int Rows>
RL_INLINE void block_row(const byte_rows& a, long first, long rows, const uint8_t* w, float* c) {
  constexpr int parts = Layout::elements / part_size, chains = Rows == 1 ? 4 : 1;
  constexpr int blocks_at_once = chains / (parts < chains ? parts : chains);
  constexpr long page = 4096;
  const long blocks = a.depth / Layout::elements;
  quad_floats sums[Rows][chains] = {};
  const int8_t* integers[Rows];
  const float *scales[Rows], *totals[Rows];
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    const long row = first + (r < rows ? r : rows - 1);
    integers[r] = a.integers_at(row, 0), scales[r] = a.scales_at(row, 0), totals[r] = a.sums_at(row, 0);
  }
  const auto add_block = [&](long block, int chain) __attribute__((always_inline)) {
    const auto add = [&](int part, auto weights, auto scale) __attribute__((always_inline)) {
      const long place = block * parts + part;
      RL_UNROLL for (int r = 0; r < Rows; ++r) {
        const quads dots = dot_quads(weights, load_bytes<part_bytes>(integers[r] + place * part_size));
        sums[r][(chain + part) % chains] += __builtin_convertvector(dots, quad_floats) * (scale * scales[r][place]);
      }
    };
    Layout::each(w + block * Layout::nbytes, add, [&](int part, auto offsets) __attribute__((always_inline)) {
      RL_UNROLL for (int r = 0; r < Rows; ++r) {
        const float* const sum = totals[r] + block * parts + part;
        if constexpr (same<decltype(offsets), float>) sums[r][(chain + part) % chains] += quad_floats{} + offsets * *sum;
        else sums[r][chain] += offsets * load_bytes<quad_floats>(sum);
      }
    });
  };
  long block = 0;
  for (; block + blocks_at_once <= blocks; block += blocks_at_once) {
    RL_UNROLL for (int line = 0; line < blocks_at_once * Layout::nbytes; line += 64)
      __builtin_prefetch(w + block * Layout::nbytes + page + line);
    RL_UNROLL for (int i = 0; i < blocks_at_once; ++i) add_block(block + i, i);
  }
  for (; block < blocks; ++block) add_block(block, 0);
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    RL_UNROLL for (int i = 1; i < chains; ++i) sums[r][0] += sums[r][i];
    if (r < rows) c[r * tile_columns] = sum_of(sums[r][0]);
  }
}

template <class Layout, int Rows>
__attribute__((noinline)) void few_rows(const byte_rows& a, long first, long rows, const uint8_t* w, long row_bytes, long columns,
                                        float* c) {
  for (long n = 0; n < columns; ++n) block_row<Layout, Rows>(a, first, rows, w + n * row_bytes, c + n);
}

// `packed` holds A's rows, packed by pack_byte_rows. Called by all threads of a parallel region; ends with a barrier.
template <class Layout>
RL_INLINE void block_gemm(long m, const int8_t* packed, const uint8_t* w, long row_bytes, long columns, long depth,
                          const epilogue& emit) {
  constexpr long chunk_rows = 128;
  const byte_rows a(packed, m, depth);
  const long panels = (columns + tile_columns - 1) / tile_columns, chunks = (m + chunk_rows - 1) / chunk_rows;
  for (const long task : shared(panels * chunks)) {
    alignas(64) float c[chunk_rows * tile_columns];
    const long column = task % panels * tile_columns, first = task / panels * chunk_rows;
    const long width = smallest(columns - column, (long)tile_columns), rows = smallest(m - first, chunk_rows);
    const uint8_t* const panel = w + column * row_bytes;
    if (rows == 1) few_rows<Layout, 1>(a, first, 1, panel, row_bytes, width, c);
    else if (rows <= 4) few_rows<Layout, 4>(a, first, rows, panel, row_bytes, width, c);
    else many_rows<Layout>(a, first, rows, panel, row_bytes, width, c);
    emit(c, first, rows, column, width);
  }
}

// ---- dequantization --------------------------------------------------------------------------------------------------

// Convert rows of blocks to floats. Called by all threads of a parallel region; ends with a barrier.
template <class Layout>
RL_INLINE void block_rows(long rows, const uint8_t* w, long row_bytes, long columns, const epilogue& emit) {
  for (const long row : shared(rows))
    for (long column = 0; column < columns; column += Layout::elements) {
      alignas(64) float values[Layout::elements];
      widen_block<Layout>(w + row * row_bytes + column / Layout::elements * Layout::nbytes, values);
      for (long j = 0; j < Layout::elements; j += tile_columns)
        emit(values + j, row, 1, column + j, smallest((long)Layout::elements - j, (long)tile_columns));
    }
}

}  // namespace rl
