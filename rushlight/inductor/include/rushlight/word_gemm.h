// Matrix products of narrow elements by 32-bit words: C[M, N] = A[M, K] * B[K, N] of 8-bit integers with sums in 32 bits, exact
// modulo 2^32, or of bfloat16 with sums in float.
//
// A word holds four bytes or two bfloat16 values with successive k. B is packed once into panels of NR columns of words,
// [ceil(N / NR)] [words of K][NR], padded with zeros; each panel is followed by the initial values of its sums. Where the
// processor multiplies unsigned by signed bytes (AVX-512 VNNI), 128 is added to A, and the sums start at -128 times the
// column's sum to compensate.
#pragma once

#include <rushlight/gemm.h>
#include <rushlight/tile_registers.h>

namespace rl {

#if RL_LANES == 16 && defined(__AVX512VNNI__)
#define RL_VNNI
constexpr int32_t byte_offset = 128;
#else
constexpr int32_t byte_offset = 0;
#endif

// The multiplication of words of elements T. `bits` is the integer type of an element in memory. begin() is an element's part of a
// sum's initial value. add_dot() adds the dot product of `word` with each lane's word of b. `in_tiles` is the kind of product in
// tile registers, which need no initial values.
template <class T> struct words;

template <> struct words<int8_t> {
  using sum = int32_t;
  using bits = uint8_t;
  using in_tiles = signed_by_signed;
  static constexpr int size = 4;

  static RL_INLINE int32_t begin(int8_t value) { return -byte_offset * value; }
  static RL_INLINE vec<int32_t> add_dot(vec<int32_t> sum, int32_t word, vec<int32_t> b) {
#ifdef RL_VNNI
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(splat<vec<int32_t>>(word ^ (int32_t)0x80808080)), "v"(b));
#else
    RL_UNROLL for (int i = 0; i < 4; ++i) sum += (int32_t)(int8_t)(word >> (8 * i)) * ((b << (24 - 8 * i)) >> 24);
#endif
    return sum;
  }
};

template <> struct words<bfloat16> {
  using sum = float;
  using bits = uint16_t;
  using in_tiles = bfloat16_pairs;
  static constexpr int size = 2;

  static RL_INLINE float begin(bfloat16) { return 0.0f; }
  static RL_INLINE vec<float> add_dot(vec<float> sum, int32_t word, vec<int32_t> b) {
#if RL_LANES == 16 && defined(__AVX512BF16__)
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(splat<vec<int32_t>>(word)), "v"(b));
#else
    constexpr int32_t high = (int32_t)0xffff0000;
    sum += bitcast<float>((uint32_t)word << 16) * bitcast<vec<float>>(b << 16);
    sum += bitcast<float>(word & high) * bitcast<vec<float>>(b & high);
#endif
    return sum;
  }
};

// The number of words that hold `depth` elements.
template <class T> constexpr long words_of(long depth) { return (depth + words<T>::size - 1) / words<T>::size; }
// The elements of a packed panel, with the initial values of its sums.
template <class T> constexpr long word_panel_size(long depth) { return (words_of<T>(depth) + 1) * tile_columns * words<T>::size; }

// Pack the whole words of a full panel whose rows are contiguous; return how many words of K were packed.
template <class T> RL_INLINE long pack_rows_of_words(const T* b, long k_stride, long depth, T* out) {
  constexpr int size = words<T>::size;
  const long count = depth / size;
  for (long word = 0; word < count; ++word, b += size * k_stride, out += tile_columns * size)
    RL_UNROLL for (int j = 0; j < 2; ++j) {
      vec<int32_t> row{};
      RL_UNROLL for (int i = 0; i < size; ++i) {
        const auto elements = load_bytes<vec<typename words<T>::bits>>(b + i * k_stride + j * lanes);
        row |= convert_lanes<vec<int32_t>>(elements) << (32 / size * i);
      }
      __builtin_memcpy(out + j * lanes * size, &row, sizeof row);
    }
  return count;
}

// Pack a panel's words. Whole words move at once if columns (or rows) are contiguous; the rest moves element by element.
template <class T>
RL_INLINE void pack_panel_words(const T* b, long k_stride, long n_stride, long depth, long width, T* out) {
  constexpr int size = words<T>::size;
  const bool whole = k_stride == 1 && n_stride % size == 0 && (uintptr_t)b % sizeof(int32_t) == 0;
  long moved = 0;
  if (whole) moved = depth / size / lanes * lanes;
  else if (n_stride == 1 && width == tile_columns) moved = pack_rows_of_words(b, k_stride, depth, out);
  for (long j = 0; whole && moved && j < tile_columns; j += lanes) {
    const long columns = width - j < 0 ? 0 : width - j < lanes ? width - j : lanes;
    pack_transposed((const float*)b + j * n_stride / size, n_stride / size, columns, moved, (float*)out + j, tile_columns);
  }
  __builtin_memset(out + moved * tile_columns * size, 0, (words_of<T>(depth) - moved) * tile_columns * sizeof(int32_t));
  for (long j = 0; j < width; ++j)
    for (long k = moved * size; k < depth; ++k)
      out[(k / size * tile_columns + j) * size + k % size] = b[k * k_stride + j * n_stride];
}

// Pack B. Called by every thread of a parallel region, or by one thread outside.
template <class T>
__attribute__((noinline)) void pack_words(const T* b, long k_stride, long n_stride, long depth, long columns, T* packed) {
  const long panels = (columns + tile_columns - 1) / tile_columns;
  for (const long panel : shared(panels)) {
    T* out = packed + panel * word_panel_size<T>(depth);
    const T* from = b + panel * tile_columns * n_stride;
    const long width = smallest(columns - panel * tile_columns, (long)tile_columns);
    pack_panel_words(from, k_stride, n_stride, depth, width, out);
    typename words<T>::sum total[tile_columns] = {};
    if (words<T>::begin(T{1}) != 0)
      for (long j = 0; j < width; ++j)
        for (long k = 0; k < depth; ++k) total[j] += words<T>::begin(from[k * k_stride + j * n_stride]);
    __builtin_memcpy(out + words_of<T>(depth) * tile_columns * words<T>::size, total, sizeof total);
  }
}

// Load a word of a row; if fewer elements are left, fill it with zeros.
template <class T> RL_INLINE int32_t load_word(const T* p, long left) {
  int32_t word = 0;
  if (left >= words<T>::size) __builtin_memcpy(&word, p, sizeof word);
  else
    for (long i = 0; i < left; ++i) __builtin_memcpy((char*)&word + i * sizeof(T), p + i, sizeof(T));
  return word;
}

// The words of `Rows` rows of A, with one pointer for every three rows like rows_along.
template <int Rows, class T> struct word_rows {
  static constexpr int count = (Rows + 2) / 3;
  const T* at[count];
  long row;

  RL_INLINE word_rows(const T* first, long row) : row(row) {
    RL_UNROLL for (int i = 0; i < count; ++i) at[i] = first + 3 * i * row;
  }
  RL_INLINE int32_t read(int r, int word, long left) {
    RL_PIN_ADDRESS(row);
    return load_word(at[r / 3] + r % 3 * row + word * words<T>::size, left);
  }
  RL_INLINE void advance(int count_words) {
    RL_UNROLL for (int i = 0; i < count; ++i) {
      at[i] += count_words * words<T>::size;
      RL_PIN_ADDRESS(at[i]);
    }
  }
};

// sum[r] += (a word of row r of A) * (a row of words of the panel), r < Rows.
template <int Rows, class T, class V>
RL_INLINE void add_words(V (&sum)[Rows][2], word_rows<Rows, T>& a, int word, long left, const T* panel) {
  const auto b0 = load_bytes<vec<int32_t>>(panel), b1 = load_bytes<vec<int32_t>>(panel + lanes * words<T>::size);
  RL_UNROLL for (int r = 0; r < Rows; ++r) {
    const int32_t x = a.read(r, word, left);
    sum[r][0] = words<T>::add_dot(sum[r][0], x, b0);
    sum[r][1] = words<T>::add_dot(sum[r][1], x, b1);
    if constexpr (Rows >= 4) RL_PIN_SUMS(sum[r], b0, b0, b1);
  }
}

// Compute c[r][0..NR) = the sums over K of row r of A times one panel.
template <int Rows, class T>
__attribute__((noinline)) void word_tile(const T* a, long a_row, const T* panel, long depth, typename words<T>::sum* c,
                                         read_ahead ahead) {
  constexpr int size = words<T>::size, steps = 4;
  constexpr long width = tile_columns * size;
  using V = vec<typename words<T>::sum>;
  V sum[Rows][2];
  RL_UNROLL for (int r = 0; r < Rows; ++r)
    RL_UNROLL for (int j = 0; j < 2; ++j) sum[r][j] = load_bytes<V>(panel + words_of<T>(depth) * width + j * lanes * size);
  word_rows<Rows, T> rows(a, a_row);
  const long groups = depth / (size * steps);
  ahead = ahead.over(groups);
  RL_ROLLED for (long group = 0; group < groups; ++group, panel += width * steps) {
    RL_UNROLL for (int i = 0; i < steps; ++i) add_words(sum, rows, i, size, panel + i * width);
    ahead.step();
    rows.advance(steps);
  }
  RL_ROLLED for (long left = depth - groups * size * steps; left > 0; left -= size, panel += width) {
    add_words(sum, rows, 0, left, panel);
    rows.advance(1);
  }
  RL_UNROLL for (int r = 0; r < Rows; ++r)
    RL_UNROLL for (int j = 0; j < 2; ++j) __builtin_memcpy(c + r * tile_columns + j * lanes, &sum[r][j], sizeof(V));
}

// Hand a tile's results to the epilogue, for columns below N: emit(lane, row, column, value), or an `epilogue` object.
template <class E>
RL_INLINE void emit_words(const int32_t* c, row_block block, long first_column, long columns, const E& emit) {
  const long left = columns - first_column, width = left < tile_columns ? left : tile_columns;
  for (int r = 0; r < block.rows; ++r) {
    const int32_t* values = c + r * tile_columns;
    long j = 0;
    for (; j + lanes <= width; j += lanes)
      emit(vector_lane{}, block.first + r, first_column + j, load_bytes<vec<int32_t>>(values + j));
    if (columns % lanes)  // for most shapes a compile-time zero, which avoids compiling the scalar epilogue
      for (; j < width; ++j) emit(scalar_lane{}, block.first + r, first_column + j, values[j]);
  }
}
RL_INLINE void emit_words(const float* c, row_block block, long first_column, long columns, const epilogue& emit) {
  emit_block(c, block, 0, first_column, columns, emit);
}

constexpr long rows_in_tiles = 128;  // rows that stay in the cache while they are multiplied by a panel

// Compute the product of at least 16 rows in tile registers.
template <class T, class E>
RL_INLINE void word_gemm_in_tiles(long m, const T* a, long a_row, const T* packed, long columns, long depth, const E& emit) {
  const long panels = (columns + tile_columns - 1) / tile_columns, blocks = (m + rows_in_tiles - 1) / rows_in_tiles;
  for (const long task : shared(panels * blocks)) {
    const long first = m * (task % blocks) / blocks, end = m * (task % blocks + 1) / blocks, panel = task / blocks;
    const auto emit_rows = [&](const typename words<T>::sum* c, long row, long rows) {
      emit_words(c, {first + row, (int)rows}, panel * tile_columns, columns, emit);
    };
    multiply_rows_in_tiles<typename words<T>::in_tiles>(a + first * a_row, a_row * (long)sizeof(T), end - first,
                                                        depth * (long)sizeof(T), packed + panel * word_panel_size<T>(depth),
                                                        words_of<T>(depth), emit_rows);
  }
}

// Compute the product. `emit` is emit(lane, row, column, value) for int32 sums, or an `epilogue` for float sums. A has unit
// stride along K. Called by all threads of a parallel region; ends with a barrier.
template <class T, class E>
RL_INLINE void word_gemm(long m, const T* a, long a_row, const T* packed, long columns, long depth, const E& emit) {
  {
    const tile_region in_tiles(m >= register_rows && has_tiles<typename words<T>::in_tiles>());
    if (in_tiles) return word_gemm_in_tiles(m, a, a_row, packed, columns, depth, emit);
  }
  const long panels = (columns + tile_columns - 1) / tile_columns, full = m / tile_rows;
  // the remaining rows go in tiles of at most 4, because each tile size is compiled again for every graph
  const long blocks = full + (m % tile_rows + 3) / 4;
  const long share = word_panel_size<T>(depth) * (long)sizeof(T) / (blocks ? blocks : 1);
  for (const long task : shared(panels * blocks)) {
    alignas(64) typename words<T>::sum c[tile_rows * tile_columns];
    const long i = task % blocks, first = i < full ? i * tile_rows : full * tile_rows + (i - full) * 4;
    const row_block block = {first, i < full ? tile_rows : (int)smallest(m - first, 4)};
    const T *rows = a + block.first * a_row, *panel = packed + task / blocks * word_panel_size<T>(depth);
    const long next = task / blocks + 1 < panels ? task / blocks + 1 : 0;
    const read_ahead ahead = {(const char*)(packed + next * word_panel_size<T>(depth)) + i * share, share};
    switch (block.rows) {
      case 1: word_tile<1>(rows, a_row, panel, depth, c, ahead); break;
      case 2: word_tile<2>(rows, a_row, panel, depth, c, ahead); break;
      case 3: word_tile<3>(rows, a_row, panel, depth, c, ahead); break;
      case 4: word_tile<4>(rows, a_row, panel, depth, c, ahead); break;
      default: word_tile<tile_rows>(rows, a_row, panel, depth, c, ahead);
    }
    emit_words(c, block, task / blocks * tile_columns, columns, emit);
  }
}

}  // namespace rl
