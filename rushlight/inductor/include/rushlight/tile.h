// The register-tiled product that matrix products, attention and convolution share.
//
// B is packed in panels (pack.h) of NR = 2 vectors of columns and K rows, contiguous ([K][NR]) and padded with zeros. A may lie
// anywhere in memory, with a row and a column stride. A tile is a block of `rows` x NR results that stay in registers for the
// whole loop over K. The tile functions do not depend on the epilogue, so that all products of a translation unit share them;
// the epilogue is applied afterwards, from a small buffer that is still in the first-level cache. Panels may be stored in fewer
// bits than they are computed in (the storage type S is float, bfloat16, half or int8_t); A and the results are float.
#pragma once

#include <rushlight/pack.h>

namespace rl {

#if RL_LANES == 16 || defined(__aarch64__)
#define RL_TALL_TILES
constexpr int tile_rows = 12;  // 24 accumulators of 32 registers
#else
constexpr int tile_rows = 6;  // 12 accumulators of 16 registers
#endif

// A prefetch of `bytes` bytes into the second-level cache while a tile computes, spread over the tile's steps along K. Without
// it, the first tile that uses the next panel of weights would wait for memory.
struct read_ahead {
  const char* from = nullptr;
  long bytes = 0;

  // Return a read_ahead that prefetches these bytes in `steps` calls of step().
  RL_INLINE read_ahead over(long steps) const { return {from, steps ? (bytes + steps - 1) / steps : 0}; }
  RL_INLINE void step() {
    for (long i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
    from += bytes;
  }
};

// If a core's other hardware thread is busy, a tile gets only half of the core's instruction slots. Then every instruction
// besides the multiplications costs time. So tiles unroll several k, address them by constant displacements, and pin values to
// registers with empty asm statements: the compiler would otherwise hoist loads, which spills registers and adds copies.
#ifdef RL_WHOLE_REGISTERS
#define RL_PIN_SUMS(sum, x, b0, b1) asm volatile("" : "+v"((sum)[0]), "+v"((sum)[1]) : "v"(x), "v"(b0), "v"(b1))
#else
#define RL_PIN_SUMS(sum, x, b0, b1) (void)0
#endif
#define RL_PIN_ADDRESS(address) asm volatile("" : "+r"(address))

// The rows of A where K has unit stride. One pointer serves three rows (each half of the rows has its own), so that row stride
// times 0, 1 or 2 can be part of an x86 address; left alone, compilers keep more strides than there are registers.
template <int Rows, int Half = Rows> struct rows_along {
  static constexpr int steps = 8;  // values of k per loop iteration
  static constexpr int low = (Half + 2) / 3, count = low + (Rows - Half + 2) / 3;
  const float* at[count];
  long row;

  RL_INLINE rows_along(const float* first, const float* second, long row) : row(row) {
    RL_UNROLL for (int i = 0; i < count; ++i) at[i] = i < low ? first + 3 * i * row : second + 3 * (i - low) * row;
  }
  RL_INLINE float read(int r, int k) {
    RL_PIN_ADDRESS(row);
    return *(r < Half ? at[r / 3] + r % 3 * row + k : at[low + (r - Half) / 3] + (r - Half) % 3 * row + k);
  }
  RL_INLINE void next() {}
  RL_INLINE void advance(long count_k) { move(count_k); }

 protected:
  RL_INLINE void move(long by) {
    RL_UNROLL for (int i = 0; i < count; ++i) {
      at[i] += by;
      RL_PIN_ADDRESS(at[i]);
    }
  }
};

// The rows of A where K has any stride.
template <int Rows, int Half = Rows> struct rows_apart : rows_along<Rows, Half> {
  static constexpr int steps = 1;
  const long column;

  RL_INLINE rows_apart(const float* first, const float* second, long row, long column)
      : rows_along<Rows, Half>(first, second, row), column(column) {}
  RL_INLINE float read(int r, int) { return rows_along<Rows, Half>::read(r, 0); }
  RL_INLINE void next() { this->move(column); }
  RL_INLINE void advance(long) {}
};

// The rows of A where the rows are adjacent in memory (A is transposed).
struct rows_across {
  static constexpr int steps = 8;
  const float* at;
  const long column;

  RL_INLINE float read(int r, int) const { return at[r]; }
  RL_INLINE void next() {
    at += column;
    RL_PIN_ADDRESS(at);
  }
  RL_INLINE void advance(long) {}
};

// The rows of a panel of B.
template <class S> struct panel_rows {
  const S* at;

  RL_INLINE const S* read(int k) const { return at + k * tile_columns; }
  RL_INLINE void next() {}
  RL_INLINE void advance(long count_k) { at += count_k * tile_columns; }
};

// sum[r] += (row r of A at k) * (row k of B) for r < Rows; k counts from the current positions of a and b.
template <int Rows, class A, class B> RL_INLINE void add_product(vec<float> (&sum)[Rows][2], A& a, B& b, int k) {
  const auto* const at = b.read(k);
  const vec<float> b0 = load_float(vector_lane{}, at), b1 = load_float(vector_lane{}, at + lanes);
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    const vec<float> x = splat<vec<float>>(a.read(r, k));
    sum[r][0] += x * b0;
    sum[r][1] += x * b1;
    if constexpr (Rows >= 4) RL_PIN_SUMS(sum[r], x, b0, b1);
  }
  a.next();
  b.next();
}

// sum[r] += the sum over the next `depth` k of (row r of A at k) * (row k of B), r < Rows. Advances b.
template <int Rows, class A, class B>
RL_INLINE void add_products(vec<float> (&sum)[Rows][2], A a, B& b, long depth, read_ahead ahead = {}) {
  const long groups = depth / A::steps;
  ahead = ahead.over(groups);
  RL_ROLLED for (long group = 0; group < groups; ++group) {
    RL_UNROLL for (int k = 0; k < A::steps; ++k) add_product(sum, a, b, k);
    ahead.step();
    a.advance(A::steps);
    b.advance(A::steps);
  }
  RL_ROLLED for (long k = groups * A::steps; k < depth; ++k) {
    add_product(sum, a, b, 0);
    a.advance(1);
    b.advance(1);
  }
}

// Write sum[r] to c[r][0..NR), or add it if `accumulate`.
template <int Rows> RL_INLINE void write_sums(vec<float> (&sum)[Rows][2], float* c, bool accumulate) {
  if (accumulate) {  // added only at the end: the parts of a long sum are first summed separately
    RL_UNROLL for (int r = 0; r < Rows; ++r) {
      sum[r][0] += load_bytes<vec<float>>(c + r * tile_columns);
      sum[r][1] += load_bytes<vec<float>>(c + r * tile_columns + lanes);
    }
  }
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    __builtin_memcpy(c + r * tile_columns, &sum[r][0], sizeof(vec<float>));
    __builtin_memcpy(c + r * tile_columns + lanes, &sum[r][1], sizeof(vec<float>));
  }
}

// add_products for few rows: several k are accumulated in separate sums, which are independent chains of additions.
template <int Rows, class A, class B>
RL_INLINE void add_products_of_few_rows(vec<float> (&sum)[Rows][2], A a, B& b, long depth, read_ahead ahead) {
  constexpr int steps = Rows >= 2 ? 2 : 4;
  vec<float> part[steps][Rows][2] = {};
  const long groups = depth / steps;
  ahead = ahead.over(groups);
  RL_ROLLED for (long group = 0; group < groups; ++group) {
    RL_UNROLL for (int s = 0; s < steps; ++s) {
      add_product(part[s], a, b, 0);
      b.advance(1);
    }
    ahead.step();
  }
  add_products(sum, a, b, depth - groups * steps);
  RL_UNROLL for (int s = 0; s < steps; ++s)
    RL_UNROLL for (int r = 0; r < Rows; ++r) {
      sum[r][0] += part[s][r][0];
      sum[r][1] += part[s][r][1];
    }
}

// Compute c[r][0..NR) = (or += if `accumulate`) the sum over k of a[r * a_row + k * a_column] * b[k][0..NR), r < Rows. Rows of
// c have NR floats.
template <int Rows, class S>
__attribute__((noinline)) void tile(const float* a, long a_row, long a_column, const S* b, long depth, float* c,
                                    bool accumulate, read_ahead ahead) {
  vec<float> sum[Rows][2] = {};
  panel_rows<S> panel = {b};
  if constexpr (Rows < 4) add_products_of_few_rows(sum, rows_apart<Rows>(a, a, a_row, a_column), panel, depth, ahead);
  else if (a_column == 1) add_products(sum, rows_along<Rows>(a, a, a_row), panel, depth, ahead);
  else if (a_row == 1) add_products(sum, rows_across{a, a_column}, panel, depth, ahead);
  else add_products(sum, rows_apart<Rows>(a, a, a_row, a_column), panel, depth, ahead);
  write_sums(sum, c, accumulate);
}

template <int Rows, class S>
RL_INLINE void tile(const float* a, long a_row, long a_column, const S* b, long depth, float* c, bool accumulate) {
  tile<Rows>(a, a_row, a_column, b, depth, c, accumulate, {});
}

// Expand use(rows, ...) for every number of rows that a tile can have.
#ifdef RL_TALL_TILES
#define RL_EACH_TILE(use, ...)                                                                                          \
  use(1, __VA_ARGS__) use(2, __VA_ARGS__) use(3, __VA_ARGS__) use(4, __VA_ARGS__) use(5, __VA_ARGS__)                   \
  use(6, __VA_ARGS__) use(7, __VA_ARGS__) use(8, __VA_ARGS__) use(9, __VA_ARGS__) use(10, __VA_ARGS__)                  \
  use(11, __VA_ARGS__) use(12, __VA_ARGS__)
#else
#define RL_EACH_TILE(use, ...)                                                                                          \
  use(1, __VA_ARGS__) use(2, __VA_ARGS__) use(3, __VA_ARGS__) use(4, __VA_ARGS__) use(5, __VA_ARGS__) use(6, __VA_ARGS__)
#endif

#define RL_EXTERN_TILE(rows, S) \
  RL_EXTERN(void tile<rows, S>(const float*, long, long, const S*, long, float*, bool, read_ahead))
RL_EACH_TILE(RL_EXTERN_TILE, float) RL_EACH_TILE(RL_EXTERN_TILE, bfloat16) RL_EACH_TILE(RL_EXTERN_TILE, half)
RL_EACH_TILE(RL_EXTERN_TILE, int8_t)

// The rows [first, first + rows) of a product.
struct row_block {
  long first;
  int rows;
};

// A partition of rows into blocks of nearly equal size, at most `max_size` (128 = 7 x 12 + 4 x 11), the larger ones first.
// There are `count` blocks: `large_count` blocks have `large` rows, the others one less. With several `shares`, the rows are
// first divided into that many nearly equal parts, each of which is then cut into the same number of blocks.
struct row_blocks {
  long rows, shares, count, large_count;
  int large;

  RL_INLINE explicit row_blocks(long rows, int max_size = tile_rows, long shares = 1) : rows(rows), shares(shares) {
    const long longest = (rows + shares - 1) / shares, blocks = (longest + max_size - 1) / max_size;
    count = blocks * shares;
    large = (int)(blocks ? (longest + blocks - 1) / blocks : 1);
    large_count = rows - count * (large - 1);
  }

  RL_INLINE int small() const { return large_count < count ? large - 1 : large; }
  RL_INLINE row_block at(long i) const {
    if (shares == 1) return block_at(i, large_count);
    const long blocks = count / shares, share = i / blocks, begin = rows * share / shares;
    row_block block = block_at(i % blocks, rows * (share + 1) / shares - begin - blocks * (large - 1));
    block.first += begin;
    return block;
  }
  // Return the index of the block that contains a row. Only for one share.
  RL_INLINE long block_of_row(long row) const {
    return row < large_count * large ? row / large : (row - large_count) / (large - 1);
  }

 private:
  RL_INLINE row_block block_at(long i, long large_count) const {
    return i < large_count ? row_block{i * large, large} : row_block{i * (large - 1) + large_count, large - 1};
  }
};

// A tile function for a fixed number of rows.
template <class S> using tile_function = void (*)(const float*, long, long, const S*, long, float*, bool, read_ahead);

// Row blocks with the tile functions that compute them. Hidden visibility: every library has its own table of functions.
template <class S> struct __attribute__((visibility("hidden"))) row_cut : row_blocks {
  tile_function<S> large_tile, small_tile;

  explicit row_cut(long rows, long shares = 1);

  // Compute one block; a is the start of the whole matrix.
  RL_INLINE void run(row_block block, const float* a, long a_row, long a_column, const S* b, long depth, float* c,
                     bool accumulate, read_ahead ahead) const {
    const tile_function<S> tile = block.rows == large ? large_tile : small_tile;
    tile(a + block.first * a_row, a_row, a_column, b, depth, c, accumulate, ahead);
  }
  RL_INLINE void run(row_block block, const float* a, long a_row, long a_column, const S* b, long depth, float* c,
                     bool accumulate) const {
    run(block, a, a_row, a_column, b, depth, c, accumulate, {});
  }

 protected:
  // For blocks of at most `max_size` rows; tiles[i] computes i + 1 rows.
  RL_INLINE row_cut(long rows, int max_size, const tile_function<S>* tiles)
      : row_blocks(rows, max_size), large_tile(tiles[large - 1]), small_tile(tiles[small() - 1]) {}
};

#define RL_TILE_ADDRESS(rows, S) tile<rows, S>,
template <class S> row_cut<S>::row_cut(long rows, long shares) : row_blocks(rows, tile_rows, shares) {
  static constexpr tile_function<S> tiles[] = {RL_EACH_TILE(RL_TILE_ADDRESS, S)};
  static_assert(sizeof tiles / sizeof *tiles == tile_rows, "a tile for every number of rows");
  large_tile = tiles[large - 1];
  small_tile = tiles[small() - 1];
}
RL_EXTERN(row_cut<float>::row_cut(long, long)) RL_EXTERN(row_cut<bfloat16>::row_cut(long, long))
RL_EXTERN(row_cut<half>::row_cut(long, long)) RL_EXTERN(row_cut<int8_t>::row_cut(long, long))

}  // namespace rl
