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

// use(rows, ...) for every number of rows that a tile can have.
#if RL_LANES == 16
#define RL_EACH_TILE(use, ...)                                                                                          \
  use(1, __VA_ARGS__) use(2, __VA_ARGS__) use(3, __VA_ARGS__) use(4, __VA_ARGS__) use(5, __VA_ARGS__)                   \
  use(6, __VA_ARGS__) use(7, __VA_ARGS__) use(8, __VA_ARGS__) use(9, __VA_ARGS__) use(10, __VA_ARGS__)                  \
  use(11, __VA_ARGS__) use(12, __VA_ARGS__)
#else
#define RL_EACH_TILE(use, ...)                                                                                          \
  use(1, __VA_ARGS__) use(2, __VA_ARGS__) use(3, __VA_ARGS__) use(4, __VA_ARGS__) use(5, __VA_ARGS__) use(6, __VA_ARGS__)
#endif

#define RL_GIVEN_TILE(rows, S) \
  RL_GIVEN(void tile<rows, S>(const float*, long, long, const S*, long, float*, bool, read_ahead))
RL_EACH_TILE(RL_GIVEN_TILE, float) RL_EACH_TILE(RL_GIVEN_TILE, bfloat16) RL_EACH_TILE(RL_GIVEN_TILE, half)
RL_EACH_TILE(RL_GIVEN_TILE, int8_t)

// The rows [first, first + rows) of a product.
struct row_block {
  long first;
  int rows;
};

// How rows are cut into blocks of at most tile_rows, as equal as can be (128 = 7 x 12 + 4 x 11): `count` of them, the first
// `large_count` with `large` rows and the others with one less.
struct row_blocks {
  long rows, count, large_count;
  int large;

  RL_INLINE explicit row_blocks(long rows)
      : rows(rows), count((rows + tile_rows - 1) / tile_rows), large((int)(count ? (rows + count - 1) / count : 1)) {
    large_count = rows - count * (large - 1);
  }

  RL_INLINE int small() const { return large_count < count ? large - 1 : large; }
  RL_INLINE row_block at(long i) const {
    return i < large_count ? row_block{i * large, large} : row_block{i * (large - 1) + large_count, large - 1};
  }
  // The block that has a row.
  RL_INLINE long having(long row) const {
    return row < large_count * large ? row / large : (row - large_count) / (large - 1);
  }
};

// The same with the tiles that calculate the blocks. Hidden, so that every library has its own table of them.
template <class S> struct __attribute__((visibility("hidden"))) row_cut : row_blocks {
  using tile_function = void (*)(const float*, long, long, const S*, long, float*, bool, read_ahead);
  tile_function large_tile, small_tile;

  explicit row_cut(long rows);

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

#define RL_TILE_ADDRESS(rows, S) tile<rows, S>,
template <class S> row_cut<S>::row_cut(long rows) : row_blocks(rows) {
  static constexpr tile_function tiles[] = {RL_EACH_TILE(RL_TILE_ADDRESS, S)};
  large_tile = tiles[large - 1];
  small_tile = tiles[small() - 1];
}
RL_GIVEN(row_cut<float>::row_cut(long)) RL_GIVEN(row_cut<bfloat16>::row_cut(long)) RL_GIVEN(row_cut<half>::row_cut(long))
RL_GIVEN(row_cut<int8_t>::row_cut(long))

}  // namespace rl
