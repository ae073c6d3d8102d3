// Matrix products in fp32: C[M, N] = A[M, K] * B[K, N] with B in panels (pack.h; stored as float, bfloat16, half or int8_t),
// and batched products of unpacked operands. Results go to an epilogue (epilogue.h), so that bias, activation and residual need
// no pass of their own, and the product is compiled once for all epilogues:
//
//     rl::gemm(128, a, 384, rl::b_panels(packed), 1536, 384, rl::epilogue_of<32>([=](auto lane, long row, long column,
//                                                                                    auto value) {
//       lane.store(out + row * 1536 + column, rl::gelu_erf(value + lane.load(bias + column)));
//     }));
//
// The lane is a vector_lane for whole vectors of columns and a scalar_lane for the remainder (see vec.h). Every function is
// called by all threads of a parallel region, shares the work among them and ends with a barrier; outside a region, one thread
// does all the work.
#pragma once

#include <rushlight/epilogue.h>
#include <rushlight/parallel.h>
#include <rushlight/tile.h>

namespace rl {

// A large K is cut into parts of at most this depth, so that a part of a panel stays in the second-level cache while rows pass
// over it.
constexpr long depth_block = 4096;
constexpr int max_group_blocks = 8;  // at most this many row blocks keep partial sums on the stack between parts

// Return the size of a group if `count` items are divided into equal groups of at most `limit`; at least 1.
RL_INLINE long group_size(long count, long limit) {
  const long groups = (count + limit - 1) / limit;
  return groups ? (count + groups - 1) / groups : 1;
}

// Data to prefetch while `blocks` row blocks from `first` use the current panel: each row block prefetches its share of the
// next panel, which is as large as the current one.
struct read_next {
  const void* from;
  long first, blocks;
};

// Pass the results of a row block to the epilogue; `row` is added to its row numbers.
RL_INLINE void emit_block(const float* c, row_block block, long row, long column, long columns, const epilogue& emit) {
  const long left = columns - column;
  emit(c, row + block.first, block.rows, column, left < tile_columns ? left : tile_columns);
}

// Multiply the row blocks [first, last) by one panel, and apply the epilogue; `row` is added to row numbers. If K has parts,
// there are at most max_group_blocks blocks.
template <class S>
RL_INLINE void multiply_group(const row_cut<S>& cut, long first, long last, const float* a, long a_row, long a_column,
                              const S* panel, read_next next, long first_column, long columns, long depth, long row,
                              const epilogue& emit) {
  alignas(64) float sums[max_group_blocks * tile_rows * tile_columns];
  const long parts = depth > depth_block ? (depth + depth_block - 1) / depth_block : 1;
  constexpr long width = tile_columns * (long)sizeof(S);
  for (long part = 0; part < parts; ++part) {
    const long k = part ? depth * part / parts : 0, k_end = part + 1 < parts ? depth * (part + 1) / parts : depth;
    for (long i = first; i < last; ++i) {
      const row_block block = cut.at(i);
      float* c = sums + (parts > 1 ? i - first : 0) * tile_rows * tile_columns;
      cut.run(block, a + k * a_column, a_row, a_column, panel + k * tile_columns, k_end - k, c, part > 0,
              {(const char*)next.from + width * ((i - next.first) * depth + k) / next.blocks, width * (k_end - k) / next.blocks});
      if (part + 1 == parts) emit_block(c, block, row, first_column, columns, emit);
    }
  }
}

// ---- B in panels -----------------------------------------------------------------------------------------------------

// The bytes of scratch memory in which a thread can pack a panel.
template <class S> constexpr long own_panel_bytes(long depth) { return tile_columns * depth * (long)sizeof(S); }

// The panels of B, packed in advance (`packed`). If `packed` is null, each thread packs a panel of the matrix b just before rows
// pass over it, in its part of the scratch memory `own`, own_panel_bytes<S>(depth) per thread.
template <class S> struct b_panels {
  const S* packed;
  const S* b = nullptr;
  long b_row = 0, b_column = 0;
  void* own = nullptr;
  long made = -1;

  RL_INLINE explicit b_panels(const S* packed) : packed(packed) {}
  RL_INLINE b_panels(const S* packed, const S* b, long b_row, long b_column, void* own)
      : packed(packed), b(b), b_row(b_row), b_column(b_column), own(own) {}

  RL_INLINE S* own_panel(long depth) const { return (S*)((char*)own + thread_index() * own_panel_bytes<S>(depth)); }

  RL_INLINE const S* panel(long column, long columns, long depth) {
    if (packed) return packed + column * depth;
    S* const out = own_panel(depth);
    if (made != column) {
      const long width = columns - column < tile_columns ? columns - column : tile_columns;
      pack_panel(b + column * b_column, b_row, b_column, depth, width, out);
      made = column;
    }
    return out;
  }

  // Return the address of the data that is read for a panel, for prefetching, if that data is contiguous.
  RL_INLINE const void* read_for(long column, long depth) const {
    if (packed) return packed + column * depth;
    return b_row == 1 && b_column == depth ? b + column * b_column : own_panel(depth);
  }
};

// Multiply A by all panels, with the rows cut into `passes` equal passes over the panels. Fewer passes read the panels from
// memory less often; with more passes, the rows of a pass stay in the second-level cache.
template <class S>
__attribute__((noinline)) void multiply_panels(const row_cut<S>& cut, const float* a, long a_row, b_panels<S> b, long columns,
                                               long depth, epilogue emit, long passes) {
  const long panels = (columns + tile_columns - 1) / tile_columns, blocks = cut.count;
  const long group = group_size(blocks, depth > depth_block ? max_group_blocks : 1), groups = (blocks + group - 1) / group;
  const long pass = (groups + passes - 1) / passes;
  for (shared work(panels * groups); work.next();)  // panel by panel, so that a thread's panel stays cached
    for (long at = work.first, count; at < work.last; at += count) {
      const long begin = at / (panels * pass) * pass, size = smallest(groups - begin, pass), place = at - begin * panels;
      const long panel = place / size, next = panel + 1 < panels ? panel + 1 : 0, column = panel * tile_columns;
      const long first = (begin + place % size) * group;
      count = depth > depth_block ? 1 : smallest(size - place % size, work.last - at);
      multiply_group(cut, first, smallest(first + count * group, blocks), a, a_row, 1, b.panel(column, columns, depth),
                     {b.read_for(next * tile_columns, depth), begin * group, size * group}, column, columns, depth, 0, emit);
    }
}

// C = A * B. Each pass over the panels takes `rows_at_once` rows, or all if that is 0; A has unit stride along K.
template <class S>
RL_INLINE void gemm(long rows, const float* a, long a_row, const b_panels<S>& b, long columns, long depth,
                    const epilogue& emit, long rows_at_once = 0) {
  const long passes = rows_at_once && rows ? (rows + rows_at_once - 1) / rows_at_once : 1;
  multiply_panels(row_cut<S>(rows, passes), a, a_row, b, columns, depth, emit, passes);
}

// ---- transposed A ----------------------------------------------------------------------------------------------------

constexpr int column_group = 5;  // row blocks packed together, so that whole cache lines of A are read

// The bytes of scratch memory that a thread of gemm_columns needs for its rows of A.
constexpr long gemm_columns_scratch_bytes(long depth) { return column_group * tile_rows * depth * (long)sizeof(float); }

// Copy the `rows` elements of one column of a row block.
RL_INLINE void copy_rows(const float* from, int rows, float* to) {
  // copies of this many elements, at the beginning and at the end, may overlap: no loop
  constexpr int most = tile_rows * 2 / 3;
  if (rows < most) {
    for (int r = 0; r < rows; ++r) to[r] = from[r];
  } else {
    __builtin_memcpy(to, from, most * sizeof(float));
    __builtin_memcpy(to + rows - most, from + rows - most, most * sizeof(float));
  }
}

// Pack out[block][k][0..tile_rows) = the elements of column k of A in each row block; blocks are `pitch` columns apart. A has
// unit stride along its columns.
template <class S>
RL_INLINE void pack_row_blocks(const row_cut<S>& cut, long first, long last, const float* a, long a_column, long depth,
                               float* out, long pitch) {
  const long large = smallest(last, cut.large_count), step = tile_rows * pitch;
  for (a += cut.at(first).first; depth; --depth, a += a_column, out += tile_rows) {
    const float* from = a;
    float* to = out;
    long i = first;
    for (; i < large; ++i, from += cut.large, to += step) copy_rows(from, cut.large, to);
    for (; i < last; ++i, from += cut.large - 1, to += step) copy_rows(from, cut.large - 1, to);
  }
}

template <class S>
__attribute__((noinline)) void multiply_columns(const row_cut<S>& cut, const float* a, long a_column, const S* packed,
                                                long columns, long depth, void* scratch, epilogue emit) {
  const long panels = (columns + tile_columns - 1) / tile_columns, blocks = cut.count;
  const long group = group_size(blocks, column_group), groups = (blocks + group - 1) / group;
  // With few rows, columns are divided among threads too, but no more than needed: every division packs its rows again.
  const long wanted = groups < thread_count() ? (thread_count() + groups - 1) / groups : 1;
  const long share = (panels + wanted - 1) / wanted, cuts = (panels + share - 1) / share;
  float* rows = (float*)((char*)scratch + thread_index() * gemm_columns_scratch_bytes(depth));
  for (const long task : shared(groups * cuts)) {
    const long first = task / cuts * group, last = first + group < blocks ? first + group : blocks;
    pack_row_blocks(cut, first, last, a, a_column, depth, rows, depth);
    const long panel_end = (task % cuts + 1) * share < panels ? (task % cuts + 1) * share : panels;
    for (long panel = task % cuts * share; panel < panel_end; ++panel) {
      alignas(64) float sums[column_group * tile_rows * tile_columns];
      const long parts = (depth + depth_block - 1) / depth_block, column = panel * tile_columns;
      for (long part = 0; part < parts; ++part) {
        const long k = depth * part / parts, k_end = depth * (part + 1) / parts;
        for (long i = first; i < last; ++i) {
          const row_block block = cut.at(i);
          float* c = sums + (i - first) * tile_rows * tile_columns;
          cut.run({0, block.rows}, rows + ((i - first) * depth + k) * tile_rows, 1, tile_rows,
                  packed + column * depth + k * tile_columns, k_end - k, c, part > 0);
          if (part + 1 == parts) emit_block(c, block, 0, column, columns, emit);
        }
      }
    }
  }
}

// Like gemm, for an A with unit stride along its columns (a transposed row-major matrix), and panels packed in advance.
// scratch: gemm_columns_scratch_bytes(K) per thread.
template <class S>
RL_INLINE void gemm_columns(long rows, const float* a, long a_column, const S* packed, long columns, long depth,
                            void* scratch, const epilogue& emit) {
  multiply_columns(row_cut<S>(rows), a, a_column, packed, columns, depth, scratch, emit);
}

// ---- batches -------------------------------------------------------------------------------------------------------

// A batch of matrices with any strides, in elements.
template <class T> struct matrices {
  const T* data;
  long batch, row, column;
  RL_INLINE const T* operator()(long at) const { return data + at * batch; }
};
template <class T> matrices(const T*, long, long, long) -> matrices<T>;

// The bytes of scratch memory that a thread of bgemm needs for one panel.
constexpr long bgemm_scratch_bytes(long depth) { return own_panel_bytes<float>(depth); }

// cached_row_floats: floats of rows that stay in a core's second-level cache while panels pass. max_pass_traffic: several passes over the panels
// are preferred if they cause less than this share of the memory traffic of a single pass. They equal `kept` and FEWER of
// costs.py.
constexpr long cached_row_floats = lanes * 8192L;
constexpr float max_pass_traffic = 0.7f;

// Return how many of the `blocks` row blocks that share their panels should pass over all panels together.
RL_INLINE long blocks_of_pass(long blocks, long panels, long depth) {
  const long times = (blocks * tile_rows * depth + cached_row_floats - 1) / cached_row_floats;
  const float apart = (float)(blocks * tile_rows + times * panels * tile_columns), together = (float)(panels * blocks * tile_rows);
  return times > 1 && apart < max_pass_traffic * together ? (blocks + times - 1) / times : blocks;
}

template <class S>
__attribute__((noinline)) void multiply_batches(const row_cut<float>& cut, long batches, matrices<float> a, matrices<S> b,
                                                long columns, long depth, void* scratch, epilogue emit) {
  const long panels = (columns + tile_columns - 1) / tile_columns, blocks = cut.count;
  const long limit = depth > depth_block ? max_group_blocks : blocks;
  const long sharing = b.batch == 0 ? batches * blocks : blocks, pass = blocks_of_pass(sharing, panels, depth);
  float* panel_data = (float*)((char*)scratch + thread_index() * bgemm_scratch_bytes(depth));
  const S* held = nullptr;
  long held_column = -1;  // a matrix may have the same address for all columns, if its column stride is 0
  for (shared work(panels * batches * blocks); work.next();)
    for (long at = work.first, count; at < work.last; at += count) {
      const long apart = at / (panels * sharing), left = at % (panels * sharing), begin = left / (panels * pass) * pass;
      const long size = smallest(sharing - begin, pass), place = left - begin * panels, column = place / size * tile_columns;
      const long block = apart * sharing + begin + place % size, first = block % blocks, batch = block / blocks;
      count = smallest(size - place % size, blocks - first, limit, work.last - at);
      const S* source = b(batch) + column * b.column;
      if (source != held || column != held_column) {
        pack_panel(source, b.row, b.column, depth, smallest(columns - column, (long)tile_columns), panel_data);
        held = source, held_column = column;
      }
      multiply_group<float>(cut, first, first + count, a(batch), a.row, a.column, panel_data, {panel_data, 0, blocks}, column,
                            columns, depth, batch * cut.rows, emit);
    }
}

// Batched products of `rows` rows each. b is of any storage type. The epilogue counts rows through all batches:
// batch * rows + row. scratch: bgemm_scratch_bytes(K) per thread, aligned to a vector.
template <class S>
RL_INLINE void bgemm(long rows, long batches, const matrices<float>& a, const matrices<S>& b, long columns, long depth,
                     void* scratch, const epilogue& emit) {
  multiply_batches(row_cut<float>(rows), batches, a, b, columns, depth, scratch, emit);
}

// Compute one product. Each thread packs a panel just before rows pass over it, so that the panel is still cached; the rows
// should stay in the second-level cache meanwhile.
template <class S>
RL_INLINE void gemm_by_panels(long rows, const float* a, long a_row, long a_column, const S* b, long b_row, long b_column,
                              long columns, long depth, void* scratch, const epilogue& emit) {
  bgemm(rows, 1, matrices<float>{a, 0, a_row, a_column}, matrices<S>{b, 0, b_row, b_column}, columns, depth, scratch, emit);
}

// ---- transposed B ----------------------------------------------------------------------------------------------------

// gemm_turned computes C^T = B^T * A^T: the columns of B are contiguous and read in place, and A, the smaller operand, is
// packed instead.

// Transpose a square of NR x NR: out[i][j] = c[j][i].
RL_INLINE void transpose_square(const float* c, float* out) {
  for (long j = 0; j < tile_columns; j += lanes)
    for (long i = 0; i < tile_columns; i += lanes) {
      vec<float> block[lanes];
      RL_UNROLL for (int at = 0; at < lanes; ++at) block[at] = vector_lane{}.load(c + (j + at) * tile_columns + i);
      transpose(block);
      RL_UNROLL for (int at = 0; at < lanes; ++at) vector_lane{}.store(out + (i + at) * tile_columns + j, block[at]);
    }
}

// Compute C = A * B for a depth of at most depth_block. packed_rows: A^T in panels, by pack_b with the strides of A swapped. B
// has unit stride along K, and b_column is the distance of its columns.
void gemm_turned(long rows, const float* packed_rows, const float* b, long b_column, long columns, long depth, epilogue emit);

#ifndef RL_PREBUILT
RL_KERNEL void gemm_turned(long rows, const float* packed_rows, const float* b, long b_column, long columns, long depth,
                           epilogue emit) {
  const long across = (rows + tile_columns - 1) / tile_columns, down = (columns + tile_columns - 1) / tile_columns;
  const row_cut<float> whole(tile_columns), rest(columns % tile_columns);
  for (const long at : shared(down * across)) {
    const long column = at / across * tile_columns, row = at % across * tile_columns;
    const long wide = columns - column < tile_columns ? columns - column : tile_columns;
    const row_cut<float>& cut = wide < tile_columns ? rest : whole;
    alignas(64) float c[tile_columns * tile_columns] = {}, turned[tile_columns * tile_columns];
    for (long i = 0; i < cut.count; ++i) {
      const row_block block = cut.at(i);
      cut.run(block, b + column * b_column, b_column, 1, packed_rows + row * depth, depth, c + block.first * tile_columns, false);
    }
    transpose_square(c, turned);
    emit(turned, row, rows - row < tile_columns ? rows - row : tile_columns, column, wide);
  }
}
#endif  // RL_PREBUILT

#define RL_EXTERN_PRODUCTS(S)                                                                                             \
  RL_EXTERN(void multiply_panels(const row_cut<S>&, const float*, long, b_panels<S>, long, long, epilogue, long))         \
  RL_EXTERN(void multiply_columns(const row_cut<S>&, const float*, long, const S*, long, long, void*, epilogue))          \
  RL_EXTERN(void multiply_batches(const row_cut<float>&, long, matrices<float>, matrices<S>, long, long, void*, epilogue))
RL_EXTERN_PRODUCTS(float) RL_EXTERN_PRODUCTS(bfloat16) RL_EXTERN_PRODUCTS(half) RL_EXTERN_PRODUCTS(int8_t)

}  // namespace rl
