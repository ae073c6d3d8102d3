// Rows of floats quantized to bytes, with a scale for every 32 elements, and dot products of bytes.
#pragma once

#include <rushlight/block_layouts.h>
#include <rushlight/parallel.h>

#if defined(__AVX2__) && !(defined(__AVX512VNNI__) && defined(__AVX512VL__))
#define RL_PAIRS_OF_BYTES  // products of bytes are first added in pairs, in 16 bits
#endif

namespace rl {

// ---- products --------------------------------------------------------------------------------------------------------

// few_products is the type in which products of bytes are added before they become 32-bit integers. steps_of() says how many
// times four products per lane can be added without overflow, for unsigned bytes up to `largest` and signed bytes of at least
// -127.
#ifdef RL_PAIRS_OF_BYTES
using few_products = part_words;
constexpr int steps_of(int largest) { return largest > 64 ? 1 : largest > 32 ? 2 : largest > 16 ? 4 : 8; }
#else
using few_products = quads;
constexpr int steps_of(int) { return part_size / 4; }
#endif

RL_INLINE void add_products(few_products& sum, part_unsigned w, part_bytes a) {
#if defined(RL_PAIRS_OF_BYTES)
  part_words pairs;
  asm("vpmaddubsw %2, %1, %0" : "=x"(pairs) : "x"(w), "x"(a));
  sum += pairs;
#elif defined(__AVX2__)
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(a));
#elif defined(__ARM_FEATURE_DOTPROD)
  using quarter = int32_t __attribute__((vector_size(16)));
  using bytes = int8_t __attribute__((vector_size(16)));
  quarter sums[2];
  bytes left[2], right[2];
  __builtin_memcpy(sums, &sum, sizeof sums);
  __builtin_memcpy(left, &w, sizeof left);
  __builtin_memcpy(right, &a, sizeof right);
  for (int i = 0; i < 2; ++i) asm("sdot %0.4s, %1.16b, %2.16b" : "+w"(sums[i]) : "w"(left[i]), "w"(right[i]));
  sum = load_bytes<quads>(sums);
#else
  for (int i = 0; i < 8; ++i)
    for (int j = 4 * i; j < 4 * i + 4; ++j) sum[i] += (int32_t)w[j] * a[j];
#endif
}

RL_INLINE quads in_quads(few_products sum) {
#ifdef RL_PAIRS_OF_BYTES
  quads made;
  asm("vpmaddwd %2, %1, %0" : "=x"(made) : "x"(sum), "x"(part_words{} + (uint16_t)1));
  return made;
#else
  return sum;
#endif
}

// Factors for an instruction that multiplies unsigned by signed bytes: w * a = size_of(w) * signed_like(a, w). Here size_of(w)
// is |w|, and signed_like(a, w) is a with its sign flipped if w is negative. With an instruction for signed bytes, they return
// w and a unchanged.
RL_INLINE part_unsigned size_of(part_bytes w) {
#if defined(__AVX2__)
  part_unsigned size;
  asm("vpabsb %1, %0" : "=x"(size) : "x"(w));
  return size;
#elif defined(__ARM_FEATURE_DOTPROD)  // ARM's products are of signed bytes
  return (part_unsigned)w;
#else
  const part_bytes below = w < 0;
  return (part_unsigned)((w ^ below) - below);
#endif
}

RL_INLINE part_bytes signed_like(part_bytes a, part_bytes w) {
#if defined(__AVX2__)
  part_bytes made;
  asm("vpsignb %2, %1, %0" : "=x"(made) : "x"(a), "x"(w));
  return made;
#elif defined(__ARM_FEATURE_DOTPROD)
  return a;
#else
  const part_bytes below = w < 0;
  return (a ^ below) - below;
#endif
}

// Return the sum of four products for each 32-bit lane.
RL_INLINE quads dot_quads(part_unsigned w, part_bytes a) {
  few_products sum{};
  add_products(sum, w, a);
  return in_quads(sum);
}

RL_INLINE quads dot_quads(part_bytes w, part_bytes a) { return dot_quads(size_of(w), signed_like(a, w)); }

// ---- rows as bytes ---------------------------------------------------------------------------------------------------

// The rows of A as bytes: all integers, then a scale for each part, then the sum of each part's elements.
struct byte_rows {
  const int8_t* integers;
  const float *scales, *sums;
  long depth;

  RL_INLINE byte_rows(const int8_t* data, long rows, long depth)
      : integers(data), scales((const float*)(data + rows * depth)), sums(scales + rows * (depth / part_size)), depth(depth) {}

  // Return pointers to an element of a row that begins a part.
  RL_INLINE const int8_t* integers_at(long row, long element) const { return integers + row * depth + element; }
  RL_INLINE const float* scales_at(long row, long element) const { return scales + (row * depth + element) / part_size; }
  RL_INLINE const float* sums_at(long row, long element) const { return sums + (row * depth + element) / part_size; }
};

constexpr float min_scale = 0x1p-126f;  // parts with a smaller scale count as zeros

// Quantize a row of `depth` floats, `step` apart, to bytes.
RL_INLINE void round_row(const float* a, long step, long depth, int8_t* integers, float* scales, float* sums) {
  for (long part = 0; part < depth / part_size; ++part, a += part_size * step, integers += part_size) {
    float values[part_size], most = 0, poison = 0;
    for (int i = 0; i < part_size; ++i) values[i] = a[i * step];
    for (int i = 0; i < part_size; ++i) {
      const float size = __builtin_fabsf(values[i]);
      most = size > most ? size : most;
      poison += values[i] - values[i];
    }
    if (!(poison == 0)) {  // infinity or NaN, which bytes can't represent: make all sums NaN
      __builtin_memset(integers, 0, part_size);
      scales[part] = sums[part] = poison;
      continue;
    }
    const float scale = most / 127, by = scale >= min_scale ? 1 / scale : 0;
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

// Quantize the rows of A. Called by every thread of a parallel region, or by one thread outside.
template <class T>
__attribute__((noinline)) void pack_byte_rows(const float* a, long row, long step, long depth, long rows, T* out) {
  float* const scales = (float*)((int8_t*)out + rows * depth);
  const long parts = depth / part_size;
  for (const long i : shared(rows))
    round_row(a + i * row, step, depth, (int8_t*)out + i * depth, scales + i * parts, scales + (rows + i) * parts);
}

}  // namespace rl
