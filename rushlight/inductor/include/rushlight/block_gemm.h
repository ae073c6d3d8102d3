// Products with weights in blocks of few bits: C[M, N] = A[M, K] * W[N, K]^T, where W stays as it lies (block_layouts.h).
//
// A is rounded to bytes first, with a scale for each 32 elements of a row, so that products are of bytes and sums of 32-bit
// integers: each element of A is off by at most 1/254 of the largest among its 32. Sums over the parts of a row are in float.
#pragma once

#include <rushlight/block_layouts.h>
#include <rushlight/epilogue.h>
#include <rushlight/parallel.h>

namespace rl {

// Sums of four products each, of unsigned bytes below 128, or 128 itself, and of signed bytes above -128.
RL_INLINE quads dot_quads(part_unsigned w, part_bytes a) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  quads sum{};
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(a));
  return sum;
#elif defined(__AVX2__)
  part_words pairs;
  quads sum;
  asm("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(w), "x"(a));
  asm("vpmaddwd %2, %1, %0" : "=x"(sum) : "x"(pairs), "x"(part_words{} + (uint16_t)1));
  return sum;
#elif defined(__ARM_FEATURE_DOTPROD)
  using quarter = int32_t __attribute__((vector_size(16)));
  using bytes = int8_t __attribute__((vector_size(16)));
  quarter sums[2] = {};
  bytes left[2], right[2];
  __builtin_memcpy(left, &w, sizeof left);
  __builtin_memcpy(right, &a, sizeof right);
  for (int i = 0; i < 2; ++i) asm("sdot %0.4s, %1.16b, %2.16b" : "+w"(sums[i]) : "w"(left[i]), "w"(right[i]));
  return load_bytes<quads>(sums);
#else
  quads sum;
  for (int i = 0; i < 8; ++i) {
    int32_t all = 0;
    for (int j = 4 * i; j < 4 * i + 4; ++j) all += (int32_t)w[j] * a[j];
    sum[i] = all;
  }
  return sum;
#endif
}

RL_INLINE quads dot_quads(part_bytes w, part_bytes a) {
#if defined(__AVX2__)
  part_unsigned positive;
  part_bytes turned;
  asm("vpabsb %1, %0" : "=x"(positive) : "x"(w));
  asm("vpsignb %2, %1, %0" : "=x"(turned) : "x"(a), "x"(w));
  return dot_quads(positive, turned);
#elif defined(__ARM_FEATURE_DOTPROD)
  return dot_quads((part_unsigned)w, a);
#else
  const part_bytes below = w < 0;
  return dot_quads((part_unsigned)((w ^ below) - below), (a ^ below) - below);
#endif
}

RL_INLINE float sum_of(quad_floats v) {
  float all = 0;
  RL_UNROLL for (int i = 0; i < 4; ++i) all += v[i] + v[i + 4];
  return all;
}

// ---- rows as bytes ---------------------------------------------------------------------------------------------------

// Where the rows of A lie as bytes: their integers, then a scale for each part, then the sum of each part's elements.
struct byte_rows {
  const int8_t* integers;
  const float *scales, *sums;
  long depth;

  RL_INLINE byte_rows(const int8_t* data, long rows, long depth)
      : integers(data), scales((const float*)(data + rows * depth)), sums(scales + rows * (depth / part_size)), depth(depth) {}
};

constexpr float least_scale = 0x1p-126f;  // below it parts count as zeros

// A row of K floats, `step` apart, as bytes.
RL_INLINE void round_row(const float* a, long step, long depth, int8_t* integers, float* scales, float* sums) {
  for (long part = 0; part < depth / part_size; ++part, a += part_size * step, integers += part_size) {
    float values[part_size], most = 0, poison = 0;
    for (int i = 0; i < part_size; ++i) values[i] = a[i * step];
    for (int i = 0; i < part_size; ++i) {
      const float size = __builtin_fabsf(values[i]);
      most = size > most ? size : most;
      poison += values[i] - values[i];
    }
    if (!(poison == 0)) {  // infinity or NaN, which no byte holds: all sums become NaN
      __builtin_memset(integers, 0, part_size);
      scales[part] = sums[part] = poison;
      continue;
    }
    const float scale = most / 127, by = scale >= least_scale ? 1 / scale : 0;
    int32_t total = 0;
    for (int i = 0; i < part_size; ++i) {
      const int32_t integer = (int32_t)__builtin_rintf(values[i] * by);
      integers[i] = (int8_t)integer;
      total += integer;
    }
    scales[part] = scale;
    sums[part] = scale * (float)total;
  }
}

// Called by every thread of a parallel region, or by one outside.
template <class T>
__attribute__((noinline)) void pack_byte_rows(const float* a, long row, long step, long depth, long rows, T* out) {
  float* const scales = (float*)((int8_t*)out + rows * depth);
  const long parts = depth / part_size;
  for (const long i : shared(rows))
    round_row(a + i * row, step, depth, (int8_t*)out + i * depth, scales + i * parts, scales + (rows + i) * parts);
}

// ---- products --------------------------------------------------------------------------------------------------------

// c[r][n] = the products of Rows rows of A, from `first` on, of which those from `rows` on are the last one again, with Columns
// rows of W.
template <class Layout, int Rows, int Columns>
RL_INLINE void block_tile(const byte_rows& a, long first, long rows, const uint8_t* w, long row_bytes, float* c) {
  constexpr int parts = Layout::elements / part_size;
  constexpr long ahead = 3;  // tiles
  const long blocks = a.depth / Layout::elements, all_parts = a.depth / part_size;
  quad_floats sum[Rows][Columns] = {};
  long at[Rows];
  RL_UNROLL for (int r = 0; r < Rows; ++r) at[r] = first + (r < rows ? r : rows - 1);
  for (long block = 0; block < blocks; ++block)
    RL_UNROLL for (int n = 0; n < Columns; ++n) {
      if constexpr (Rows == 1)  // rows are short, and the processor looks ahead along each for itself
        RL_UNROLL for (int line = 0; line < Layout::nbytes; line += 64)
          __builtin_prefetch(w + (n + ahead * Columns) * row_bytes + block * Layout::nbytes + line);
      const auto add = [&](int part, auto integers, auto scale) {
        const long place = block * parts + part;
        RL_UNROLL for (int r = 0; r < Rows; ++r) {
          const quads dots = dot_quads(integers, load_bytes<part_bytes>(a.integers + at[r] * a.depth + place * part_size));
          sum[r][n] += __builtin_convertvector(dots, quad_floats) * a.scales[at[r] * all_parts + place] * scale;
        }
      };
      Layout::each(w + n * row_bytes + block * Layout::nbytes, add, [&](auto offsets) {
        RL_UNROLL for (int r = 0; r < Rows; ++r) {
          const float* sums = a.sums + at[r] * all_parts + block * parts;
          if constexpr (same<decltype(offsets), float>) sum[r][n] += quad_floats{} + offsets * *sums;
          else sum[r][n] += offsets * load_bytes<quad_floats>(sums);
        }
      });
    }
  RL_UNROLL for (int r = 0; r < Rows; ++r)
    RL_UNROLL for (int n = 0; n < Columns; ++n)
      if (r < rows) c[r * tile_columns + n] = sum_of(sum[r][n]);
}

template <class Layout>
__attribute__((noinline)) void few_rows(const byte_rows& a, long first, const uint8_t* w, long row_bytes, long columns, float* c) {
  long n = 0;
  for (; n + 4 <= columns; n += 4) block_tile<Layout, 1, 4>(a, first, 1, w + n * row_bytes, row_bytes, c + n);
  for (; n < columns; ++n) block_tile<Layout, 1, 1>(a, first, 1, w + n * row_bytes, row_bytes, c + n);
}

template <class Layout, int Rows>
__attribute__((noinline)) void many_rows(const byte_rows& a, long first, long rows, const uint8_t* w, long row_bytes, long columns,
                                         float* c) {
  for (long n = 0; n < columns; ++n) block_tile<Layout, Rows, 1>(a, first, rows, w + n * row_bytes, row_bytes, c + n);
}

// `packed` are A's rows by pack_byte_rows. Called by all threads of a parallel region; ends with a barrier.
template <class Layout>
RL_INLINE void block_gemm(long m, const int8_t* packed, const uint8_t* w, long row_bytes, long columns, long depth,
                          const epilogue& emit) {
  constexpr long chunk_rows = 32, tile = 8;
  const byte_rows a(packed, m, depth);
  const long panels = (columns + tile_columns - 1) / tile_columns, chunks = (m + chunk_rows - 1) / chunk_rows;
  for (const long task : shared(panels * chunks)) {
    alignas(64) float c[chunk_rows * tile_columns];
    const long column = task % panels * tile_columns, first = task / panels * chunk_rows;
    const long width = smallest(columns - column, (long)tile_columns), rows = smallest(m - first, chunk_rows);
    const uint8_t* panel = w + column * row_bytes;
    for (long r = 0; r < rows;) {
      float* out = c + r * tile_columns;
      const long left = rows - r;
      if (left == 1) few_rows<Layout>(a, first + r, panel, row_bytes, width, out);
      else if (left <= 4) many_rows<Layout, 4>(a, first + r, left, panel, row_bytes, width, out);
      else many_rows<Layout, tile>(a, first + r, left, panel, row_bytes, width, out);
      r += left == 1 ? 1 : left <= 4 ? 4 : tile;
    }
    emit(c, first, rows, column, width);
  }
}

// ---- the elements themselves -----------------------------------------------------------------------------------------

// Rows of blocks as floats. Called by all threads of a parallel region; ends with a barrier.
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
