// The register-tiled product that matrix products, attention and convolution share.
//
// B comes in panels (pack.h): NR = 2 vectors of columns, K rows, contiguous ([K][NR]), padded with zeros. A lies
// anywhere in memory, by a row and a column stride. A tile is `rows` x NR results held in registers over the whole loop
// over K. The tile functions know nothing of what happens to the results, so every product of a unit shares them; an
// epilogue is applied afterwards from a small buffer that is still in the first-level cache. Panels may be stored in
// fewer bits than they are computed in (S: float, bfloat16, half or int8_t); A and the results are float.
#pragma once

#include <rushlight/pack.h>

namespace rl {

#if RL_LANES == 16 || defined(__aarch64__)
constexpr int tile_rows = 12;  // 24 accumulators of 32 registers
#else
constexpr int tile_rows = 6;  // 12 accumulators of 16 registers
#endif

// What a tile brings into the second-level cache meanwhile, `step` bytes at each k: weights come from memory, and the
// first tile that met a panel would wait for it. One that wants nothing names what it reads itself.
struct read_ahead {
  const char* from;
  long step;
};

// Where the rows of A are: a pointer for every third, so that with one stride all are in reach of an address of the
// processor. A compiler left to itself takes more strides than there are registers.
template <int Rows> struct row_pointers {
  static constexpr int count = (Rows + 2) / 3;
  const float* at[count];
  long row;

  RL_INLINE row_pointers(const float* a, long a_row) : row(a_row) {
    RL_UNROLL for (int i = 0; i < count; ++i) at[i] = a + 3 * i * a_row;
  }
  RL_INLINE float operator[](int r) const { return at[r / 3][r % 3 * row]; }
  RL_INLINE void advance(long step) {
    RL_UNROLL for (int i = 0; i < count; ++i) {
      at[i] += step;
      asm("" : "+r"(at[i]));  // not to be made of the others
    }
  }
};

// c[r][0..NR) (=, or += when `accumulate`) the sum over k of a[r * a_row + k * a_column] * b[k][0..NR), r < Rows.
// c has rows of NR floats. Few rows are computed over several k at once, or each sum would wait for the one before.
template <int Rows, class S>
__attribute__((noinline)) void tile(const float* a, long a_row, long a_column, const S* b, long depth, float* c,
                                    bool accumulate, read_ahead ahead) {
  const vector_lane lane;
  constexpr int steps = Rows >= 4 ? 1 : Rows >= 2 ? 2 : 4;
  vec<float> sum[steps][Rows][2] = {};
  row_pointers<Rows> rows(a, a_row);
  const S* const end = b + depth * tile_columns;
  RL_ROLLED for (long k = 0; k < depth / steps; ++k) {
    RL_UNROLL for (int s = 0; s < steps; ++s) {
      const vec<float> b0 = load_float(lane, b), b1 = load_float(lane, b + lanes);
      RL_UNROLL for (int r = 0; r < Rows; ++r) {
        const float x = rows[r];
        sum[s][r][0] += x * b0;
        sum[s][r][1] += x * b1;
      }
      __builtin_prefetch(ahead.from, 0, 2);
      ahead.from += ahead.step;
      rows.advance(a_column);
      b += tile_columns;
    }
  }
  if constexpr (steps > 1) {
    for (; b != end; rows.advance(a_column), b += tile_columns) {
      RL_UNROLL for (int r = 0; r < Rows; ++r) {
        sum[0][r][0] += rows[r] * load_float(lane, b);
        sum[0][r][1] += rows[r] * load_float(lane, b + lanes);
      }
    }
    RL_UNROLL for (int s = 1; s < steps; ++s)
      RL_UNROLL for (int r = 0; r < Rows; ++r) {
        sum[0][r][0] += sum[s][r][0];
        sum[0][r][1] += sum[s][r][1];
      }
  }
  if (accumulate) {  // only now, so that the parts of a long sum are added up by themselves first
    RL_UNROLL for (int r = 0; r < Rows; ++r) {
      sum[0][r][0] += load_bytes<vec<float>>(c + r * tile_columns);
      sum[0][r][1] += load_bytes<vec<float>>(c + r * tile_columns + lanes);
    }
  }
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    __builtin_memcpy(c + r * tile_columns, &sum[0][r][0], sizeof(vec<float>));
    __builtin_memcpy(c + r * tile_columns + lanes, &sum[0][r][1], sizeof(vec<float>));
  }
}

template <int Rows, class S>
RL_INLINE void tile(const float* a, long a_row, long a_column, const S* b, long depth, float* c, bool accumulate) {
  tile<Rows>(a, a_row, a_column, b, depth, c, accumulate, {(const char*)b, tile_columns * (long)sizeof(S)});
}

#define RL_GIVEN_TILE(rows, S) \
  RL_GIVEN(void tile<rows, S>(const float*, long, long, const S*, long, float*, bool, read_ahead))
#if RL_LANES == 16
#define RL_GIVEN_TILES(S)                                                                                             \
  RL_GIVEN_TILE(1, S) RL_GIVEN_TILE(2, S) RL_GIVEN_TILE(3, S) RL_GIVEN_TILE(4, S) RL_GIVEN_TILE(5, S)                 \
  RL_GIVEN_TILE(6, S) RL_GIVEN_TILE(7, S) RL_GIVEN_TILE(8, S) RL_GIVEN_TILE(9, S) RL_GIVEN_TILE(10, S)                \
  RL_GIVEN_TILE(11, S) RL_GIVEN_TILE(12, S)
#else
#define RL_GIVEN_TILES(S)                                                                                             \
  RL_GIVEN_TILE(1, S) RL_GIVEN_TILE(2, S) RL_GIVEN_TILE(3, S) RL_GIVEN_TILE(4, S) RL_GIVEN_TILE(5, S) RL_GIVEN_TILE(6, S)
#endif
RL_GIVEN_TILES(float) RL_GIVEN_TILES(bfloat16) RL_GIVEN_TILES(half) RL_GIVEN_TILES(int8_t)

// Rows [first, first + rows) of a product; the first `done` of them belong to the block before and are not emitted.
struct row_block {
  long first;
  int rows, done;
};

// How M rows are cut into tiles. With M known at compile time the tiles are as equal as can be (128 = 7 x 12 + 4 x 11),
// so at most two sizes are compiled. With M = 0 the count comes at run time: tiles are full, the last one overlapping
// the one before; fewer rows than a full tile go by fours.
template <long M> struct row_split {
  static constexpr long known_count = M ? (M + tile_rows - 1) / tile_rows : 1;
  static constexpr int large = (int)((M + known_count - 1) / known_count), small = large > 1 ? large - 1 : 1;
  static constexpr long large_count = M - known_count * (large - 1);

  static RL_INLINE long count(long m) {
    if constexpr (M > 0) return known_count;
    else return m >= tile_rows ? (m + tile_rows - 1) / tile_rows : (m + 3) / 4;
  }

  static RL_INLINE row_block at(long m, long i) {
    if constexpr (M > 0) {
      return i < large_count ? row_block{i * large, large, 0}
                             : row_block{large_count * large + (i - large_count) * small, small, 0};
    } else if (m >= tile_rows) {
      const long first = i * tile_rows, last = m - tile_rows;
      return first <= last ? row_block{first, tile_rows, 0} : row_block{last, tile_rows, (int)(first - last)};
    } else {
      return {i * 4, (int)(m - i * 4 < 4 ? m - i * 4 : 4), 0};
    }
  }
};

// The same as values: `count` blocks, the first `large_count` of them with `large` rows and the others with `small`, and the
// tiles that calculate them.
template <class S> struct row_cut {
  using tile_function = void (*)(const float*, long, long, const S*, long, float*, bool, read_ahead);
  long rows, count, large_count;
  int large, small;
  tile_function large_tile, small_tile;

  // Where large blocks are more rows than there are, the last one overlaps the one before.
  RL_INLINE row_block at(long i) const {
    if (i >= large_count) return {large_count * large + (i - large_count) * small, small, 0};
    const long first = i * large, last = rows - large;
    return first <= last ? row_block{first, large, 0} : row_block{last, large, (int)(first - last)};
  }

  // a is the matrix's beginning.
  RL_INLINE void run(row_block block, const float* a, long a_row, long a_column, const S* b, long depth, float* c,
                     bool accumulate, read_ahead ahead) const {
    const tile_function tile = block.rows == large ? large_tile : small_tile;
    tile(a + block.first * a_row, a_row, a_column, b, depth, c, accumulate, ahead);
  }
  RL_INLINE void run(row_block block, const float* a, long a_row, long a_column, const S* b, long depth, float* c,
                     bool accumulate) const {
    run(block, a, a_row, a_column, b, depth, c, accumulate, {(const char*)b, tile_columns * (long)sizeof(S)});
  }
};

template <long M, class S> row_cut<S> cut_rows(long m) {
  using split = row_split<M>;
  if constexpr (M > 0) {
    constexpr int small = split::large_count < split::known_count ? split::small : split::large;
    return {M, split::known_count, split::large_count, split::large, small, tile<split::large, S>, tile<small, S>};
  } else {
    const long count = split::count(m);
    if (m >= tile_rows) return {m, count, count, tile_rows, tile_rows, tile<tile_rows, S>, tile<tile_rows, S>};
    const typename row_cut<S>::tile_function rest[] = {tile<4, S>, tile<1, S>, tile<2, S>, tile<3, S>};
    return {m, count, m / 4, 4, m % 4 ? (int)(m % 4) : 4, rest[0], rest[m % 4]};
  }
}

// Hands a tile's results to the epilogue: emit(lane, row, column, value), for columns below N.
template <class T, class E>
RL_INLINE void emit_tile(const T* c, row_block block, long first_column, long columns, const E& emit) {
  const long left = columns - first_column, width = left < tile_columns ? left : tile_columns;
  for (int r = block.done; r < block.rows; ++r) {
    const T* values = c + r * tile_columns;
    long j = 0;
    for (; j + lanes <= width; j += lanes)
      emit(vector_lane{}, block.first + r, first_column + j, load_bytes<vec<T>>(values + j));
    if (columns % lanes)  // known to be zero at compile time for most shapes, which spares the scalar epilogue
      for (; j < width; ++j) emit(scalar_lane{}, block.first + r, first_column + j, values[j]);
  }
}

}  // namespace rl
