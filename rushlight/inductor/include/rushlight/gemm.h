// Matrix products in fp32: C[M, N] = A[M, K] * B[K, N], B in panels (pack.h; in float, bfloat16, half or int8_t),
// and batched products of unpacked operands. Results go to an epilogue, a functor that stores them itself, so that bias,
// activation and residual need no pass of their own:
//
//     rl::gemm<128>(a, 384, packed, 1536, 384, [&](auto lane, long row, long column, auto value) {
//       lane.store(out + row * 1536 + column, rl::gelu_erf(value + lane.load(bias + column)));
//     });
//
// The lane is a vector_lane for whole vectors of columns and a scalar_lane for the rest (see vec.h). Every function is
// called by all threads of a parallel region, shares the work among them and ends with a barrier; outside a region one
// thread does it all.
#pragma once

#include <rushlight/parallel.h>
#include <rushlight/tile.h>

namespace rl {

// Longer sums are cut into parts, so that a part of a panel stays in the second-level cache while rows pass over it.
constexpr long depth_block = 4096;
constexpr int group_limit = 8;  // row blocks whose partial sums wait on the stack between parts

// The size of equal groups of at most `limit`, at least 1.
RL_INLINE long group_size(long count, long limit) {
  const long groups = (count + limit - 1) / limit;
  return groups ? (count + groups - 1) / groups : 1;
}

// What is read after `blocks` row blocks from `first` on had the present panel: each brings a share of it, as many bytes as
// a panel has, into the cache meanwhile.
struct read_next {
  const void* from;
  long first, blocks;
};

// The panels of B, all packed before.
template <class S> struct packed_panels {
  const S* packed;

  RL_INLINE const S* panel(long column, long, long depth) const { return packed + column * depth; }
  RL_INLINE const void* read_for(long column, long depth) const { return packed + column * depth; }
};

// Panels that are kept from one run to the next; or, where there are none yet (`kept` is null), each made of the matrix b by
// the thread that needs it, just before rows pass over it, in its part of `own`: kept_panels_bytes<S>(depth) per thread.
template <class S> constexpr long kept_panels_bytes(long depth) { return tile_columns * depth * (long)sizeof(S); }

template <class S, class T> struct kept_panels {
  const S* kept;
  const T* b;
  long b_row, b_column;
  void* own;
  long made = -1;

  RL_INLINE kept_panels(const S* kept, const T* b, long b_row, long b_column, void* own)
      : kept(kept), b(b), b_row(b_row), b_column(b_column), own(own) {}

  RL_INLINE S* own_panel(long depth) const { return (S*)((char*)own + thread_index() * kept_panels_bytes<S>(depth)); }

  RL_INLINE const S* panel(long column, long columns, long depth) {
    if (kept) return kept + column * depth;
    S* const out = own_panel(depth);
    if (made != column) {
      const long width = columns - column < tile_columns ? columns - column : tile_columns;
      pack_panel(b + column * b_column, b_row, b_column, depth, width, out);
      made = column;
    }
    return out;
  }

  RL_INLINE const void* read_for(long column, long depth) const {
    if (kept) return kept + column * depth;
    const bool together = b_row == 1 && b_column == depth && sizeof(T) == sizeof(S);
    return together ? (const void*)(b + column * b_column) : own_panel(depth);
  }
};

// One panel times the row blocks [first, last), at most group_limit of them where K has parts; then the epilogue.
template <long M, class S, class E>
RL_INLINE void multiply_group(long m, long first, long last, const float* a, long a_row, long a_column,
                              const S* panel, read_next next, long first_column, long columns, long depth,
                              const E& emit) {
  using split = row_split<M>;
  alignas(64) float sums[group_limit * tile_rows * tile_columns];
  const long parts = depth > depth_block ? (depth + depth_block - 1) / depth_block : 1;
  const long step = tile_columns * (long)sizeof(S) / next.blocks;
  for (long part = 0; part < parts; ++part) {
    const long k = depth * part / parts, k_end = depth * (part + 1) / parts;
    for (long i = first; i < last; ++i) {
      const row_block block = split::at(m, i);
      float* c = sums + (parts > 1 ? i - first : 0) * tile_rows * tile_columns;
      split::run(block, a + k * a_column, a_row, a_column, panel + k * tile_columns, k_end - k, c, part > 0,
                 {(const char*)next.from + ((i - next.first) * depth + k) * step, step});
      if (part + 1 == parts) emit_tile(c, block, first_column, columns, emit);
    }
  }
}

// Rows pass over the panels `rows_at_once` at a time, or all together where that is 0: more rows read the panels less
// often from memory, fewer stay in the second-level cache themselves.
template <long M, class P, class E>
RL_INLINE void gemm_rows(long m, const float* a, long a_row, P b, long columns, long depth, const E& emit,
                         long rows_at_once) {
  const long panels = (columns + tile_columns - 1) / tile_columns, blocks = row_split<M>::count(m);
  const long group = group_size(blocks, depth > depth_block ? group_limit : 1), groups = (blocks + group - 1) / group;
  const long wanted = rows_at_once / (group * tile_rows), pass = wanted && wanted < groups ? wanted : groups;
  for (const long task : shared(panels * groups)) {  // panel by panel, so that a thread keeps its panel cached
    const long begin = task / (panels * pass) * pass, size = groups - begin < pass ? groups - begin : pass;
    const long place = task - begin * panels, panel = place / size, column = panel * tile_columns;
    const long first = (begin + place % size) * group, last = first + group < blocks ? first + group : blocks;
    const long next = panel + 1 < panels ? panel + 1 : 0;
    multiply_group<M>(m, first, last, a, a_row, 1, b.panel(column, columns, depth),
                      read_next{b.read_for(next * tile_columns, depth), begin * group, size * group}, column, columns,
                      depth, emit);
  }
}

template <class S> RL_INLINE packed_panels<S> panels_of(const S* packed) { return {packed}; }
template <class S, class T> RL_INLINE kept_panels<S, T> panels_of(const kept_panels<S, T>& kept) { return kept; }

// emit(lane, row, column, value) for C = A * B; A has unit stride along K. M is the number of rows. b: a pointer to all of
// B's panels, or kept_panels.
template <long M, class B, class E>
RL_INLINE void gemm(const float* a, long a_row, const B& b, long columns, long depth, const E& emit,
                    long rows_at_once = 0) {
  static_assert(M > 0, "for a row count known only at run time, call gemm(m, ...)");
  gemm_rows<M>(M, a, a_row, panels_of(b), columns, depth, emit, rows_at_once);
}

// The same with the number of rows given at run time.
template <class B, class E>
RL_INLINE void gemm(long m, const float* a, long a_row, const B& b, long columns, long depth, const E& emit,
                    long rows_at_once = 0) {
  gemm_rows<0>(m, a, a_row, panels_of(b), columns, depth, emit, rows_at_once);
}

// ---- A by columns ----------------------------------------------------------------------------------------------------

constexpr int column_group = 5;  // row blocks that are packed side by side, so that whole cache lines are read

// Bytes of scratch that a thread of gemm_columns needs for its rows of A.
constexpr long gemm_columns_scratch_bytes(long depth) { return column_group * tile_rows * depth * (long)sizeof(float); }

// out[block][k][0..tile_rows) = the elements of column k of A in each row block: unit stride along the rows of A.
template <long M>
RL_INLINE void pack_row_blocks(long m, long first, long last, const float* a, long a_column, long depth, float* out) {
  for (long k = 0; k < depth; ++k, a += a_column, out += tile_rows)
    for (long i = first; i < last; ++i) {
      const row_block block = row_split<M>::at(m, i);
      float* to = out + (i - first) * tile_rows * depth;
      if (block.rows == tile_rows) __builtin_memcpy(to, a + block.first, tile_rows * sizeof(float));
      else
        for (int r = 0; r < block.rows; ++r) to[r] = a[block.first + r];
    }
}

template <long M, class S, class E>
RL_INLINE void gemm_columns_rows(long m, const float* a, long a_column, const S* packed, long columns, long depth,
                                 void* scratch, const E& emit) {
  using split = row_split<M>;
  const long panels = (columns + tile_columns - 1) / tile_columns, blocks = split::count(m);
  const long group = group_size(blocks, column_group), groups = (blocks + group - 1) / group;
  // Few rows are also cut by columns, as far as the threads need it: every cut packs its rows again.
  const long wanted = groups < thread_count() ? (thread_count() + groups - 1) / groups : 1;
  const long share = (panels + wanted - 1) / wanted, cuts = (panels + share - 1) / share;
  float* rows = (float*)((char*)scratch + thread_index() * gemm_columns_scratch_bytes(depth));
  for (const long task : shared(groups * cuts)) {
    const long first = task / cuts * group, last = first + group < blocks ? first + group : blocks;
    pack_row_blocks<M>(m, first, last, a, a_column, depth, rows);
    const long panel_end = (task % cuts + 1) * share < panels ? (task % cuts + 1) * share : panels;
    for (long panel = task % cuts * share; panel < panel_end; ++panel) {
      alignas(64) float sums[column_group * tile_rows * tile_columns];
      const long parts = (depth + depth_block - 1) / depth_block, column = panel * tile_columns;
      for (long part = 0; part < parts; ++part) {
        const long k = depth * part / parts, k_end = depth * (part + 1) / parts;
        for (long i = first; i < last; ++i) {
          const row_block block = split::at(m, i);
          float* c = sums + (i - first) * tile_rows * tile_columns;
          split::run({0, block.rows, 0}, rows + ((i - first) * depth + k) * tile_rows, 1, tile_rows,
                     packed + column * depth + k * tile_columns, k_end - k, c, part > 0);
          if (part + 1 == parts) emit_tile(c, block, column, columns, emit);
        }
      }
    }
  }
}

// Like gemm, of a matrix A with unit stride along its rows' direction, as the transposed of a row-major one has.
// scratch: gemm_columns_scratch_bytes(K) per thread.
template <long M, class S, class E>
RL_INLINE void gemm_columns(const float* a, long a_column, const S* packed, long columns, long depth, void* scratch,
                            const E& emit) {
  static_assert(M > 0, "for a row count known only at run time, call gemm_columns(m, ...)");
  gemm_columns_rows<M>(M, a, a_column, packed, columns, depth, scratch, emit);
}

template <class S, class E>
RL_INLINE void gemm_columns(long m, const float* a, long a_column, const S* packed, long columns, long depth,
                            void* scratch, const E& emit) {
  gemm_columns_rows<0>(m, a, a_column, packed, columns, depth, scratch, emit);
}

// ---- batches -------------------------------------------------------------------------------------------------------

// Bytes of scratch that a thread of bgemm needs for one panel.
constexpr long bgemm_scratch_bytes(long depth) { return depth * tile_columns * (long)sizeof(float); }

template <long M, class A, class B, class E>
RL_INLINE void bgemm_rows(long m, long batches, const A& a, long a_row, long a_column, const B& b, long b_row,
                          long b_column, long columns, long depth, void* scratch, const E& emit) {
  const long panels = (columns + tile_columns - 1) / tile_columns, blocks = row_split<M>::count(m);
  const long limit = depth > depth_block ? group_limit : blocks;
  float* panel_data = (float*)((char*)scratch + thread_index() * bgemm_scratch_bytes(depth));
  decltype(b(0)) held = nullptr;
  for (shared work(panels * batches * blocks); work.next();)
    for (long at = work.first, count; at < work.last; at += count) {
      const long first = at % blocks, batch = at / blocks % batches;
      const long column = at / blocks / batches * tile_columns, left = columns - column;
      count = smallest(blocks - first, limit, work.last - at);
      const auto* source = b(batch) + column * b_column;
      if (source != held) {
        pack_panel(source, b_row, b_column, depth, left < tile_columns ? left : tile_columns, panel_data);
        held = source;
      }
      multiply_group<M>(m, first, first + count, a(batch), a_row, a_column, (const float*)panel_data,
                        read_next{panel_data, 0, blocks}, column, columns, depth,
                        [&](auto lane, long row, long at, auto value) { emit(lane, batch, row, at, value); });
    }
}

// Batched products of operands that lie anywhere: a(batch) and b(batch) give the matrices' first elements, a's in
// float and b's in any storage type, the strides are in elements, emit(lane, batch, row, column, value) takes the
// results. scratch: bgemm_scratch_bytes(K) per thread, aligned to a vector.
template <long M, class A, class B, class E>
RL_INLINE void bgemm(long batches, const A& a, long a_row, long a_column, const B& b, long b_row, long b_column,
                     long columns, long depth, void* scratch, const E& emit) {
  static_assert(M > 0, "for a row count known only at run time, call bgemm(m, ...)");
  bgemm_rows<M>(M, batches, a, a_row, a_column, b, b_row, b_column, columns, depth, scratch, emit);
}

// One product of such operands. Threads pack each panel themselves just before rows pass over it, so that it need not come
// from memory again; the rows should stay in the second-level cache meanwhile.
template <long M, class S, class E>
RL_INLINE void gemm_by_panels(const float* a, long a_row, long a_column, const S* b, long b_row, long b_column, long columns,
                              long depth, void* scratch, const E& emit) {
  bgemm<M>(1, [&](long) { return a; }, a_row, a_column, [&](long) { return b; }, b_row, b_column, columns, depth, scratch,
           [&](auto lane, long, long row, long column, auto value) { emit(lane, row, column, value); });
}

template <class A, class B, class E>
RL_INLINE void bgemm(long m, long batches, const A& a, long a_row, long a_column, const B& b, long b_row, long b_column,
                     long columns, long depth, void* scratch, const E& emit) {
  bgemm_rows<0>(m, batches, a, a_row, a_column, b, b_row, b_column, columns, depth, scratch, emit);
}

// ---- B by columns ----------------------------------------------------------------------------------------------------

// The result's transposed, of the transposed operands: B's columns, which lie in one piece each, are read as they are, and
// A, the smaller one, is packed instead.

// emit for a square of the turned result: c[j][i] is the element in row + i and column + j.
template <class E>
RL_INLINE void emit_turned(const float* c, long row, long rows, long column, long columns, const E& emit) {
  vec<float> block[lanes];
  RL_UNROLL for (int j = 0; j < lanes; ++j) block[j] = load_bytes<vec<float>>(c + j * tile_columns);
  transpose(block);
  for (long i = 0; i < lanes && i < rows; ++i) {
    if (columns >= lanes) emit(vector_lane{}, row + i, column, block[i]);
    else
      for (long j = 0; j < columns; ++j) emit(scalar_lane{}, row + i, column + j, block[i][j]);
  }
}

// C = A * B for M rows, N columns and a depth of at most depth_block. packed_rows: A's transposed in panels, by pack_b with
// the strides of A swapped. B has unit stride along K, and b_column is the distance of its columns.
template <long M, long N, class E>
RL_INLINE void gemm_turned(const float* packed_rows, const float* b, long b_column, long depth, const E& emit) {
  constexpr long across = (M + tile_columns - 1) / tile_columns, down = (N + tile_columns - 1) / tile_columns;
  constexpr long rest = N - (down - 1) * tile_columns;
  const auto turn_block = [&](auto split, long column, const float* panel, long row) {
    alignas(64) float c[tile_columns * tile_columns] = {};
    for (long i = 0; i < split.known_count; ++i) {
      const row_block block = split.at(0, i);
      split.run(block, b + column * b_column, b_column, 1, panel, depth, c + block.first * tile_columns, false);
    }
    for (long j = 0; j < tile_columns && column + j < N; j += lanes)
      for (long i = 0; i < tile_columns && row + i < M; i += lanes)
        emit_turned(c + j * tile_columns + i, row + i, M - row - i, column + j, N - column - j, emit);
  };
  for (const long at : shared(down * across)) {
    const long column = at / across * tile_columns, row = at % across * tile_columns;
    const float* panel = packed_rows + row * depth;
    if (rest == tile_columns || column + tile_columns <= N) turn_block(row_split<tile_columns>{}, column, panel, row);
    else turn_block(row_split<rest>{}, column, panel, row);
  }
}

}  // namespace rl
