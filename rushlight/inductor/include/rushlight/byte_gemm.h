// Matrix products of bytes: C[M, N] = A[M, K] * B[K, N] of unsigned activations and signed weights, with exact sums in 32 bits.
//
// A word holds the bytes of four successive k. B is packed once into panels of NR columns of words, [words of K][NR][4], padded
// with zeros; each panel is followed by the sums of its columns and by its limits (panel_facts). Rows of A are whole words;
// their padding may hold anything.
//
// Processors with an instruction that multiplies words of bytes (AVX-512 VNNI, ARM's dot products) always use it. Others add
// pairs of products in 16 bits, which can saturate: 255 * 127 * 2 > 32767. A panel's limit is the largest sum of weights of one
// sign that is added up in one 16-bit lane. If the limit times the largest activation fits into 16 bits, nothing can saturate;
// then several words may even be chained in 16 bits before the sums are widened. Usually few activations are large. So rows may
// be clipped at a lower cap, and the clipped excess (outliers) is multiplied separately. If neither helps, bytes are widened to
// 16 bits before they are multiplied.
#pragma once

#include <rushlight/tile_registers.h>
#include <rushlight/word_gemm.h>

namespace rl {

#if defined(__aarch64__) && defined(__ARM_FEATURE_DOTPROD) && RL_LANES == 4
#define RL_SIGNED_DOT
#elif defined(__x86_64__) && ((RL_LANES == 8 && defined(__AVX2__)) || (RL_LANES == 16 && defined(__AVX512BW__)))
#define RL_BYTE_PAIRS
#endif

constexpr int byte_word = 4;  // bytes in a word
constexpr int chain_lengths = 3;  // sums in 16 bits chain 1, 2 or 4 words
constexpr int largest_in_16_bits = 32767;

#ifdef RL_SIGNED_DOT
constexpr int activation_offset = 128;  // subtracted from activations before they are multiplied
#else
constexpr int activation_offset = 0;
#endif

// The words of a row: with tile registers rounded up, by fewer than 16, to whole equal steps.
constexpr long byte_words(long depth) {
  const long words = (depth + byte_word - 1) / byte_word;
#ifdef RL_TILES
  const long steps = (words + register_bytes / byte_word - 1) / (register_bytes / byte_word);
  return steps ? (words + steps - 1) / steps * steps : 0;
#else
  return words;
#endif
}

// The statistics stored after the words of a panel.
struct panel_facts {
  int32_t sums[tile_columns];  // the sum of each column's weights
  int32_t limits[16];          // the limits of chains of 1, 2 and 4 words; the others are zero
};

constexpr long byte_panel_bytes(long depth) {
  return byte_words(depth) * tile_columns * byte_word + (long)sizeof(panel_facts);
}
constexpr long byte_panels(long columns) { return (columns + tile_columns - 1) / tile_columns; }
constexpr long packed_bytes_size(long depth, long columns) { return byte_panels(columns) * byte_panel_bytes(depth); }

RL_INLINE const panel_facts* facts_of(const int8_t* panel, long depth) {
  return (const panel_facts*)(panel + byte_words(depth) * tile_columns * byte_word);
}

// Return the largest sum of weights of one sign that a chain of `length` words adds up in a 16-bit lane.
inline int chain_limit(const int8_t* panel, long words, int length) {
  int most = 0;
  for (long first = 0; first < words; first += length)
    for (int lane = 0; lane < 2 * tile_columns; ++lane) {
      int positive = 0, negative = 0;
      for (long word = first; word < first + length && word < words; ++word)
        for (int i = 0; i < 2; ++i) {
          const int weight = panel[word * tile_columns * byte_word + 2 * lane + i];
          if (weight > 0) positive += weight;
          else negative -= weight;
        }
      if (positive > most) most = positive;
      if (negative > most) most = negative;
    }
  return most;
}

// Pack the rows of a weight [columns, depth], row-major. Called by every thread of a parallel region, or by one thread outside.
inline void pack_bytes(const int8_t* weight, long depth, long columns, int8_t* packed) {
  for (const long panel : shared(byte_panels(columns))) {
    int8_t* const out = packed + panel * byte_panel_bytes(depth);
    panel_facts* const facts = (panel_facts*)(out + byte_words(depth) * tile_columns * byte_word);
    __builtin_memset(out, 0, byte_panel_bytes(depth));
    for (long j = 0; j < smallest((long)tile_columns, columns - panel * tile_columns); ++j) {
      const int8_t* row = weight + (panel * tile_columns + j) * depth;
      for (long k = 0; k < depth; ++k) {
        out[(k / byte_word * tile_columns + j) * byte_word + k % byte_word] = row[k];
        facts->sums[j] += row[k];
      }
    }
    for (int i = 0; i < chain_lengths; ++i) facts->limits[i] = chain_limit(out, byte_words(depth), 1 << i);
  }
}

// ---- tiles -------------------------------------------------------------------------------------------------------------

typedef int32_t __attribute__((may_alias, aligned(1))) word_in_row;

// Rows of A with one pointer for every three rows, as in word_rows; T is uint8_t, or int16_t for widened bytes.
template <int Rows, class T> struct rows_by_word {
  static constexpr int count = (Rows + 2) / 3;
  const T* at[count];
  long row;

  RL_INLINE rows_by_word(const T* first, long row) : row(row) {
    RL_UNROLL for (int i = 0; i < count; ++i) at[i] = first + 3 * i * row;
  }
  RL_INLINE const word_in_row& word(int r, int word) {
    RL_PIN_ADDRESS(row);
    return *(const word_in_row*)(at[r / 3] + r % 3 * row + word * (long)(sizeof(int32_t) / sizeof(T)));
  }
  RL_INLINE void advance(int words) {
    RL_UNROLL for (int i = 0; i < count; ++i) {
      at[i] += words * (long)(sizeof(int32_t) / sizeof(T));
      RL_PIN_ADDRESS(at[i]);
    }
  }
};

template <int Rows> using byte_sums = vec<int32_t>[Rows][2];

RL_INLINE const vec<int32_t>& panel_word(const int8_t* panel, int word, int j) {
  return *(const vec<int32_t>*)(panel + (word * tile_columns + j * lanes) * byte_word);
}

// The ways to multiply. add() adds the products of `words` words of rows and of a panel to sums. `max_rows` is the number of
// rows whose sums and operands fit into registers. A row has `row_words` 32-bit words for each word of bytes.

// Multiply words of bytes with one instruction, or with plain code where there is none.
struct whole_words {
  using element = uint8_t;
  static constexpr int words = 1, row_words = 1, max_rows = tile_rows;

  template <int Rows> static RL_INLINE void add(byte_sums<Rows>& sum, rows_by_word<Rows, uint8_t>& a, const int8_t* panel) {
    const vec<int32_t> b[2] = {panel_word(panel, 0, 0), panel_word(panel, 0, 1)};
    RL_UNROLL for (int r = 0; r < Rows; ++r) {
      const int32_t word = a.word(r, 0);
      RL_UNROLL for (int j = 0; j < 2; ++j) add_word(sum[r][j], word, b[j]);
    }
  }

  static RL_INLINE void add_word(vec<int32_t>& sum, int32_t word, vec<int32_t> b) {
#if defined(RL_BYTE_PAIRS) && RL_LANES == 16
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(splat<vec<int32_t>>(word)), "v"(b));
#elif defined(RL_SIGNED_DOT)
    asm("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(splat<vec<int32_t>>(word ^ (int32_t)0x80808080)), "w"(b));
#else
    RL_UNROLL for (int i = 0; i < byte_word; ++i) sum += (int32_t)(uint8_t)(word >> (8 * i)) * ((b << (24 - 8 * i)) >> 24);
#endif
  }
};

#ifdef RL_BYTE_PAIRS
// Add products of bytes in 16 bits over `Length` words. Inline assembly makes the panel's words memory operands, so that the
// sums stay in registers and no separate loads are needed.
template <int Length> struct chained_words {
  using element = uint8_t;
  static constexpr int words = Length, row_words = 1, max_rows = RL_LANES == 16 ? tile_rows : Length == 1 ? 6 : 5;

  template <int Rows> static RL_INLINE void add(byte_sums<Rows>& sum, rows_by_word<Rows, uint8_t>& a, const int8_t* panel) {
    const vec<int32_t> ones = splat<vec<int32_t>>(0x00010001);
    RL_UNROLL for (int r = 0; r < Rows; ++r) {
      vec<int32_t> word, pairs[2], more;
      asm volatile("vpbroadcastd %1, %0" : "=v"(word) : "m"(a.word(r, 0)));
      RL_UNROLL for (int j = 0; j < 2; ++j)
        asm volatile("vpmaddubsw %1, %2, %0" : "=v"(pairs[j]) : "m"(panel_word(panel, 0, j)), "v"(word));
      RL_UNROLL for (int i = 1; i < Length; ++i) {
        asm volatile("vpbroadcastd %1, %0" : "=v"(word) : "m"(a.word(r, i)));
        RL_UNROLL for (int j = 0; j < 2; ++j)
          asm volatile("vpmaddubsw %2, %3, %1\n\tvpaddw %1, %0, %0"
                       : "+v"(pairs[j]), "=&v"(more) : "m"(panel_word(panel, i, j)), "v"(word));
      }
      RL_UNROLL for (int j = 0; j < 2; ++j)
        asm volatile("vpmaddwd %2, %1, %1\n\tvpaddd %1, %0, %0" : "+v"(sum[r][j]), "+v"(pairs[j]) : "v"(ones));
    }
  }
};

// Multiply bytes widened to 16 bits: widen_row has widened the rows, and add() widens the panel's words. Even and odd bytes are
// separate.
struct widened_words {
  using element = int16_t;
  static constexpr int words = 1, row_words = 2, max_rows = RL_LANES == 16 ? tile_rows : 5;

  template <int Rows> static RL_INLINE void add(byte_sums<Rows>& sum, rows_by_word<Rows, int16_t>& a, const int8_t* panel) {
    vec<int32_t> even[2], odd[2];
    RL_UNROLL for (int j = 0; j < 2; ++j)
      asm volatile("vpsllw $8, %2, %0\n\tvpsraw $8, %0, %0\n\tvpsraw $8, %2, %1"
                   : "=&v"(even[j]), "=v"(odd[j]) : "v"(panel_word(panel, 0, j)));
    RL_UNROLL for (int r = 0; r < Rows; ++r) add_row(sum[r], a.word(r, 0), even), add_row(sum[r], a.word(r, 1), odd);
  }

  static RL_INLINE void add_row(vec<int32_t> (&sum)[2], const word_in_row& at, const vec<int32_t> (&b)[2]) {
    vec<int32_t> word, product;
    asm volatile("vpbroadcastd %3, %1\n\tvpmaddwd %4, %1, %2\n\tvpaddd %2, %0, %0"
                 : "+v"(sum[0]), "=&v"(word), "=&v"(product) : "m"(at), "v"(b[0]));
    asm volatile("vpmaddwd %2, %1, %1\n\tvpaddd %1, %0, %0" : "+v"(sum[1]), "+v"(word) : "v"(b[1]));
  }
};
#endif

// The way to multiply the words left over at the end, which are too few for a chain.
template <class Way> struct single_words { using type = Way; };
#ifdef RL_BYTE_PAIRS
template <int Length> struct single_words<chained_words<Length>> { using type = chained_words<1>; };
#endif

// Widen the words of a row to twice as many 16-bit words: the even bytes of each word, and the odd ones.
RL_INLINE void widen_row(const uint8_t* row, long words, int16_t* out) {
  constexpr uint32_t even = 0x00ff00ff;
  for (long i = 0; i < words; ++i) {
    uint32_t word;
    __builtin_memcpy(&word, row + i * byte_word, sizeof word);
    const uint32_t wide[2] = {word & even, word >> 8 & even};
    __builtin_memcpy(out + i * byte_word, wide, sizeof wide);
  }
}

// Compute c[r][0..NR) = the sums over K of row r of A times one panel.
template <class Way, int Rows>
__attribute__((noinline)) void byte_tile(const void* a, long a_row, const int8_t* panel, long words, int32_t* c) {
  constexpr long width = tile_columns * byte_word;
  constexpr int together = Way::words == 1 ? 2 : 1;
  byte_sums<Rows> sum = {};
  rows_by_word<Rows, typename Way::element> rows((const typename Way::element*)a, a_row);
  long left = words;
  RL_ROLLED for (; left >= together * Way::words; left -= together * Way::words) {
    RL_UNROLL for (int i = 0; i < together; ++i) {
      Way::template add<Rows>(sum, rows, panel);
      rows.advance(Way::words * Way::row_words);
      panel += Way::words * width;
    }
  }
  using single = typename single_words<Way>::type;
  RL_ROLLED for (; left > 0; --left, panel += width) {
    single::template add<Rows>(sum, rows, panel);
    rows.advance(Way::row_words);
  }
  RL_UNROLL for (int r = 0; r < Rows; ++r)
    RL_UNROLL for (int j = 0; j < 2; ++j) __builtin_memcpy(c + r * tile_columns + j * lanes, &sum[r][j], sizeof sum[r][j]);
}

// ---- choosing the way to multiply ----------------------------------------------------------------------------------------

using byte_tile_function = void (*)(const void*, long, const int8_t*, long, int32_t*);

// A way to multiply with its tile functions: tiles[r] computes r + 1 rows.
struct byte_way {
  const byte_tile_function* tiles;
  int max_rows;
  bool widens;  // rows must be widened by widen_row
};

template <class Way, int... Rows> inline const byte_tile_function byte_tiles[] = {byte_tile<Way, Rows>...};

template <class Way> RL_INLINE byte_way way_of() {
#ifdef RL_TALL_TILES
  if constexpr (Way::max_rows == 12)
    return {byte_tiles<Way, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>, 12, Way::row_words == 2};
#endif
  if constexpr (Way::max_rows == 6) return {byte_tiles<Way, 1, 2, 3, 4, 5, 6>, 6, Way::row_words == 2};
  else if constexpr (Way::max_rows == 5) return {byte_tiles<Way, 1, 2, 3, 4, 5>, 5, Way::row_words == 2};
}

#ifdef RL_BYTE_PAIRS
#if defined(__AVX512VNNI__)
RL_INLINE bool multiplies_words() { return true; }
#elif RL_LANES == 16 && (defined(RL_VARIANT) || defined(RL_ARCHIVE))
RL_INLINE bool multiplies_words() { return __builtin_cpu_supports("avx512vnni"); }
#else
RL_INLINE bool multiplies_words() { return false; }
#endif

// Return the fastest way that is exact for a panel with these limits and activations of at most `largest`.
inline byte_way byte_way_for(const int32_t* limits, int largest) {
  if (multiplies_words()) return way_of<whole_words>();
  if (limits[2] * largest <= largest_in_16_bits) return way_of<chained_words<4>>();
  if (limits[1] * largest <= largest_in_16_bits) return way_of<chained_words<2>>();
  if (limits[0] * largest <= largest_in_16_bits) return way_of<chained_words<1>>();
  return way_of<widened_words>();
}
#else
RL_INLINE bool multiplies_words() { return true; }
inline byte_way byte_way_for(const int32_t*, int) { return way_of<whole_words>(); }
#endif

typedef uint8_t byte_vector __attribute__((vector_size(4 * lanes)));

// Return the largest of `count` bytes.
inline int largest_byte(const uint8_t* x, long count) {
  constexpr long width = sizeof(byte_vector);
  byte_vector most{};
  long i = 0;
  for (; i + width <= count; i += width) {
    const byte_vector bytes = load_bytes<byte_vector>(x + i);
    most = bytes > most ? bytes : most;
  }
  uint8_t found = 0;
  for (int j = 0; j < width; ++j) found = most[j] > found ? most[j] : found;
  for (; i < count; ++i) found = x[i] > found ? x[i] : found;
  return found;
}

// ---- outliers ----------------------------------------------------------------------------------------------------------

// The outliers of clipped rows: row i has found[starts[i]..starts[i + 1]), each of which is k + 2^16 * (activation - cap).
struct byte_outliers {
  int32_t* starts;
  int32_t* found;
  long room;
};

#ifdef RL_BYTE_PAIRS
// Clip a row at `cap`. Return false if there is no room for its outliers.
RL_INLINE bool cut_row(uint8_t* row, long depth, int cap, byte_outliers& out, int32_t& count) {
  typedef uint8_t part __attribute__((vector_size(32)));
  typedef char signs __attribute__((vector_size(32)));
  const part most = part{} + (uint8_t)cap;
  long k = 0;
  for (; k + 32 <= depth; k += 32) {
    if (k + 64 <= depth) {  // usually neither of two parts has an outlier
      const part first = load_bytes<part>(row + k), second = load_bytes<part>(row + k + 32);
      if (!__builtin_ia32_pmovmskb256(bitcast<signs>((first > most) | (second > most)))) {
        k += 32;
        continue;
      }
    }
    const part bytes = load_bytes<part>(row + k);
    unsigned large = (unsigned)__builtin_ia32_pmovmskb256(bitcast<signs>(bytes > most));
    if (!large) continue;
    if (count + 32 > out.room) return false;
    for (; large; large &= large - 1) {
      const int at = __builtin_ctz(large);
      out.found[count++] = (int32_t)(k + at) | (row[k + at] - cap) << 16;
    }
    const part cut = bytes < most ? bytes : most;
    __builtin_memcpy(row + k, &cut, sizeof cut);
  }
  if (count + 32 > out.room) return false;
  for (; k < depth; ++k)
    if (row[k] > cap) {
      out.found[count++] = (int32_t)k | (row[k] - cap) << 16;
      row[k] = (uint8_t)cap;
    }
  return true;
}

// Add to c[r][0..NR) the outliers of row first + r times the panel.
RL_INLINE void add_outliers(const byte_outliers& outliers, row_block rows, const int8_t* panel, int32_t* c) {
  for (int r = 0; r < rows.rows; ++r)
    for (long i = outliers.starts[rows.first + r]; i < outliers.starts[rows.first + r + 1]; ++i) {
      const int32_t k = outliers.found[i] & 0xffff, more = outliers.found[i] >> 16;
      RL_UNROLL for (int j = 0; j < 2; ++j) {
        int32_t* const at = c + r * tile_columns + j * lanes;
        const vec<int32_t> weights = panel_word(panel + k / byte_word * tile_columns * byte_word, 0, j) << (24 - k % byte_word * 8);
        const vec<int32_t> sum = load_bytes<vec<int32_t>>(at) + (weights >> 24) * more;
        __builtin_memcpy(at, &sum, sizeof sum);
      }
    }
}

constexpr float chain_costs[chain_lengths] = {7, 6, 5.5f};  // the instructions that a word of a row takes with one panel
constexpr float outlier_cost = 20, widened_cost = 12;  // instructions for an outlier, and for a widened word
constexpr long sampled = 1024;                         // at most about this many activations are examined

// Return the value at which to clip rows of activations of at most `largest`; `largest` itself if clipping does not pay. It is
// the largest activation for which chains of words are exact, if few activations exceed it. `limits` are the common limits of
// all panels; only a sample of the activations is examined.
inline int choose_cap(const int32_t* limits, int largest, const uint8_t* rows, long row, long count, long depth) {
  if (multiplies_words()) return largest;
  int caps[chain_lengths];
  for (int i = 0; i < chain_lengths; ++i) caps[i] = (int)smallest((long)largest, limits[i] ? largest_in_16_bits / limits[i] : 255);
  long above[chain_lengths] = {}, seen = 0;
  const long step = count * depth / sampled + 1;
  for (long i = 0, at = 0; i < count; ++seen) {
    for (int j = 0; j < chain_lengths; ++j) above[j] += rows[i * row + at] > caps[j];
    for (at += step; at >= depth && i < count; at -= depth) ++i;
  }
  float least = widened_cost;
  int chosen = largest;
  for (int i = 0; i < chain_lengths; ++i) {
    const float cost = chain_costs[i] + outlier_cost * byte_word * (float)above[i] / (float)(seen ? seen : 1);
    if (cost < least) least = cost, chosen = caps[i];
  }
  return chosen;
}
#else
RL_INLINE bool cut_row(uint8_t*, long, int, byte_outliers&, int32_t&) { return false; }
RL_INLINE void add_outliers(const byte_outliers&, row_block, const int8_t*, int32_t*) {}
inline int choose_cap(const int32_t*, int largest, const uint8_t*, long, long, long) { return largest; }
#endif

}  // namespace rl
