// The register-tiled product that matrix products, attention and convolution share.
//
// B comes in panels (pack.h): NR = 2 vectors of columns, K rows, contiguous ([K][NR]), padded with zeros. A is anywhere in
// memory, with a row and a column stride. A tile is `rows` x NR results held in registers over the whole loop over K. The tile
// functions are independent of the epilogue, so that every product of a translation unit shares them; the epilogue is applied
// afterwards, from a small buffer that is still in the first-level cache. Panels may be stored in fewer bits than they are
// computed in (S: float, bfloat16, half or int8_t); A and the results are float.
#pragma once

#include <rushlight/pack.h>

namespace rl {

#if RL_LANES == 16 || defined(__aarch64__)
#define RL_TALL_TILES
constexpr int tile_rows = 12;  // 24 accumulators of 32 registers
#else
constexpr int tile_rows = 6;  // 12 accumulators of 16 registers
#endif

// What a tile brings into the second-level cache meanwhile, spread over its k: weights come from memory, and the first tile
// that met a panel would wait for it.
struct read_ahead {
  const char* from = nullptr;
  long bytes = 0;

  // The same, `bytes` being those of one of so many steps.
  RL_INLINE read_ahead over(long steps) const { return {from, steps ? (bytes + steps - 1) / steps : 0}; }
  RL_INLINE void step() {
    for (long i = 0; i < bytes; i += 64) __builtin_prefetch(from + i, 0, 2);
    from += bytes;
  }
};

// A core whose other hardware thread is busy too gives a tile half of the instructions a cycle that it can take. What counts
// then is how many there are beside the multiplications, so that tiles do several k in a row, reach them by displacements,
// and say where each value is in its register: what a compiler would move ahead of its use takes registers and costs copies.
#ifdef RL_WHOLE_REGISTERS
#define RL_SUMS_NOW(sum, x, b0, b1) asm volatile("" : "+v"((sum)[0]), "+v"((sum)[1]) : "v"(x), "v"(b0), "v"(b1))
#else
#define RL_SUMS_NOW(sum, x, b0, b1) (void)0
#endif
#define RL_ADDRESS_NOW(address) asm volatile("" : "+r"(address))

// Where the rows of A are, by a pointer for every third of each half, so that with one stride all are in reach of an address
// of the processor; a compiler left to itself takes more strides than there are registers. K has unit stride.
template <int Rows, int Half = Rows> struct rows_along {
  static constexpr int steps = 8;  // k in a row
  static constexpr int low = (Half + 2) / 3, count = low + (Rows - Half + 2) / 3;
  const float* at[count];
  long row;

  RL_INLINE rows_along(const float* first, const float* second, long row) : row(row) {
    RL_UNROLL for (int i = 0; i < count; ++i) at[i] = i < low ? first + 3 * i * row : second + 3 * (i - low) * row;
  }
  RL_INLINE float read(int r, int k) {
    RL_ADDRESS_NOW(row);
    return *(r < Half ? at[r / 3] + r % 3 * row + k : at[low + (r - Half) / 3] + (r - Half) % 3 * row + k);
  }
  RL_INLINE void next() {}
  RL_INLINE void advance(long count_k) { move(count_k); }

 protected:
  RL_INLINE void move(long by) {
    RL_UNROLL for (int i = 0; i < count; ++i) {
      at[i] += by;
      RL_ADDRESS_NOW(at[i]);
    }
  }
};

// The same where K has another stride.
template <int Rows, int Half = Rows> struct rows_apart : rows_along<Rows, Half> {
  static constexpr int steps = 1;
  const long column;

  RL_INLINE rows_apart(const float* first, const float* second, long row, long column)
      : rows_along<Rows, Half>(first, second, row), column(column) {}
  RL_INLINE float read(int r, int) { return rows_along<Rows, Half>::read(r, 0); }
  RL_INLINE void next() { this->move(column); }
  RL_INLINE void advance(long) {}
};

// Rows side by side.
struct rows_across {
  static constexpr int steps = 8;
  const float* at;
  const long column;

  RL_INLINE float read(int r, int) const { return at[r]; }
  RL_INLINE void next() {
    at += column;
    RL_ADDRESS_NOW(at);
  }
  RL_INLINE void advance(long) {}
};

// The rows of a panel.
template <class S> struct panel_rows {
  const S* at;

  RL_INLINE const S* read(int k) const { return at + k * tile_columns; }
  RL_INLINE void next() {}
  RL_INLINE void advance(long count_k) { at += count_k * tile_columns; }
};

// sum[r] += row r of A times a row of B, r < Rows, both `k` on from where A and B are.
template <int Rows, class A, class B> RL_INLINE void add_product(vec<float> (&sum)[Rows][2], A& a, B& b, int k) {
  const auto* const at = b.read(k);
  const vec<float> b0 = load_float(vector_lane{}, at), b1 = load_float(vector_lane{}, at + lanes);
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    const vec<float> x = splat<vec<float>>(a.read(r, k));
    sum[r][0] += x * b0;
    sum[r][1] += x * b1;
    if constexpr (Rows >= 4) RL_SUMS_NOW(sum[r], x, b0, b1);
  }
  a.next();
  b.next();
}

// sum[r] += the sum over the next `depth` k of row r of A times row k of B, r < Rows. Advances B.
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

// c[r][0..NR) =, or += when `accumulate`, sum[r].
template <int Rows> RL_INLINE void write_sums(vec<float> (&sum)[Rows][2], float* c, bool accumulate) {
  if (accumulate) {  // only at the end, so that the parts of a long sum are added up separately first
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

// Few rows are computed over several k at once; otherwise each sum would wait for the previous one.
template <int Rows, class A, class B>
RL_INLINE void add_few(vec<float> (&sum)[Rows][2], A a, B& b, long depth, read_ahead ahead) {
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

// c[r][0..NR) (=, or += when `accumulate`) the sum over k of a[r * a_row + k * a_column] * b[k][0..NR), r < Rows.
// c has rows of NR floats.
template <int Rows, class S>
__attribute__((noinline)) void tile(const float* a, long a_row, long a_column, const S* b, long depth, float* c,
                                    bool accumulate, read_ahead ahead) {
  vec<float> sum[Rows][2] = {};
  panel_rows<S> panel = {b};
  if constexpr (Rows < 4) add_few(sum, rows_apart<Rows>(a, a, a_row, a_column), panel, depth, ahead);
  else if (a_column == 1) add_products(sum, rows_along<Rows>(a, a, a_row), panel, depth, ahead);
  else if (a_row == 1) add_products(sum, rows_across{a, a_column}, panel, depth, ahead);
  else add_products(sum, rows_apart<Rows>(a, a, a_row, a_column), panel, depth, ahead);
  write_sums(sum, c, accumulate);
}

template <int Rows, class S>
RL_INLINE void tile(const float* a, long a_row, long a_column, const S* b, long depth, float* c, bool accumulate) {
  tile<Rows>(a, a_row, a_column, b, depth, c, accumulate, {});
}

// Calls use(rows, ...) for every number of rows that a tile can have.
#ifdef RL_TALL_TILES
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

// Cuts rows into blocks of nearly equal size, at most `most` (128 = 7 x 12 + 4 x 11), the larger ones first: `count` blocks, of
// which `large_count` have `large` rows and the others one less. If cut for several `shares`, the same number of blocks covers
// each of these equal parts of the rows.
struct row_blocks {
  long rows, shares, count, large_count;
  int large;

  RL_INLINE explicit row_blocks(long rows, int most = tile_rows, long shares = 1) : rows(rows), shares(shares) {
    const long longest = (rows + shares - 1) / shares, blocks = (longest + most - 1) / most;
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
  // Returns the block that contains a row, if there is one share.
  RL_INLINE long having(long row) const {
    return row < large_count * large ? row / large : (row - large_count) / (large - 1);
  }

 private:
  RL_INLINE row_block block_at(long i, long large_count) const {
    return i < large_count ? row_block{i * large, large} : row_block{i * (large - 1) + large_count, large - 1};
  }
};

// Calculates one block of rows, of as many as it is for.
template <class S> using tile_function = void (*)(const float*, long, long, const S*, long, float*, bool, read_ahead);

// The same with the tile functions for the blocks. The table has hidden visibility, so that every library has its own.
template <class S> struct __attribute__((visibility("hidden"))) row_cut : row_blocks {
  tile_function<S> large_tile, small_tile;

  explicit row_cut(long rows, long shares = 1);

  // a is the start of the matrix.
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
  // Blocks of at most `most` rows; tiles[i] computes i + 1 rows.
  RL_INLINE row_cut(long rows, int most, const tile_function<S>* tiles)
      : row_blocks(rows, most), large_tile(tiles[large - 1]), small_tile(tiles[small() - 1]) {}
};

#define RL_TILE_ADDRESS(rows, S) tile<rows, S>,
template <class S> row_cut<S>::row_cut(long rows, long shares) : row_blocks(rows, tile_rows, shares) {
  static constexpr tile_function<S> tiles[] = {RL_EACH_TILE(RL_TILE_ADDRESS, S)};
  static_assert(sizeof tiles / sizeof *tiles == tile_rows, "a tile for every number of rows");
  large_tile = tiles[large - 1];
  small_tile = tiles[small() - 1];
}
RL_GIVEN(row_cut<float>::row_cut(long, long)) RL_GIVEN(row_cut<bfloat16>::row_cut(long, long))
RL_GIVEN(row_cut<half>::row_cut(long, long)) RL_GIVEN(row_cut<int8_t>::row_cut(long, long))

}  // namespace rl
