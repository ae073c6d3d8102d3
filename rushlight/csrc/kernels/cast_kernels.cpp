// Conversion between element types, transposition, and non-temporal copies.
#include <rushlight/pack.h>

#include "spans.h"
#include "variant.h"

#ifdef __x86_64__
#include <emmintrin.h>
#endif

namespace rl {

template <class From, class To> void cast_span(void* out, const void* in, int64_t n) {
  each(n, (To*)out, [](auto v) { return cast<To, From>(v); }, (const From*)in);
}

// Whether casts from and to this type are direct.
template <class From> constexpr bool wide = sizeof(From) >= 4 || same<From, bool>;

// Return the kernel of a cast. A cast between two narrow types has none: it takes two steps, through float32 or int32.
template <class From, class To> constexpr CastSpan cast_entry() {
  if constexpr (wide<From> || wide<To>) return cast_span<From, To>;
  else return nullptr;
}

#define RL_CASTS(From)                                                                                             \
  {cast_entry<From, bool>(), cast_entry<From, uint8_t>(), cast_entry<From, int8_t>(), cast_entry<From, int16_t>(), \
   cast_entry<From, int32_t>(), cast_entry<From, int64_t>(), cast_entry<From, half>(), cast_entry<From, bfloat16>(), \
   cast_entry<From, float>(), cast_entry<From, double>()}

extern const CastSpan cast_table[RL_DTYPE_COUNT][RL_DTYPE_COUNT] = {
    RL_CASTS(bool), RL_CASTS(uint8_t), RL_CASTS(int8_t), RL_CASTS(int16_t), RL_CASTS(int32_t), RL_CASTS(int64_t),
    RL_CASTS(half), RL_CASTS(bfloat16), RL_CASTS(float), RL_CASTS(double),
};

void transpose_tile(const void* in, int64_t in_stride, int64_t rows, int64_t columns, void* out, int64_t out_stride) {
  const char* from = (const char*)in;
  float* to = (float*)out;
  for (int64_t c = 0; c < columns; c += lanes)
    pack_transposed((const float*)(from + c * in_stride), in_stride / (int64_t)sizeof(float),
                    columns - c < lanes ? columns - c : lanes, rows, to + c, out_stride);
}

void stream(void* out, const void* in, int64_t bytes) {
#ifdef __x86_64__
  int64_t i = 0;
  typedef char line __attribute__((vector_size(64)));
  for (; i + 64 <= bytes; i += 64) {
    line whole;
    __builtin_memcpy(&whole, (const char*)in + i, 64);
#ifdef __AVX512F__
    typedef long long eight __attribute__((vector_size(64)));
    __builtin_ia32_movntdq512((eight*)((char*)out + i), (eight)whole);
#else
    __m128i part[4];
    __builtin_memcpy(part, &whole, 64);
    for (int j = 0; j < 4; ++j) _mm_stream_si128((__m128i*)((char*)out + i) + j, part[j]);
#endif
  }
  __builtin_memcpy((char*)out + i, (const char*)in + i, bytes - i);
#else
  __builtin_memcpy(out, in, bytes);
#endif
}

}  // namespace rl
