// Weights in blocks of few bits, as GGUF files hold them: how the bytes of a block become integers and scales, 32 elements (a
// part) at a time. Each layout calls each(part, integers, scale, offset) for the parts of a block; an element is scale * integer
// + offset. A scale is one float, or one for each run of four elements.
#pragma once

#include <rushlight/vec.h>

namespace rl {

constexpr int part_size = 32;
using part_bytes = int8_t __attribute__((vector_size(part_size)));
using part_unsigned = uint8_t __attribute__((vector_size(part_size)));
using part_words = uint16_t __attribute__((vector_size(part_size)));
using half_part = uint8_t __attribute__((vector_size(part_size / 2)));
using quads = int32_t __attribute__((vector_size(part_size)));       // a sum for each run of four elements
using quad_floats = float __attribute__((vector_size(part_size)));

RL_INLINE float half_at(const uint8_t* p) {
  uint16_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
#if defined(__F16C__) && !defined(__clang__)
  return __builtin_ia32_vcvtph2ps((short __attribute__((vector_size(16)))){(short)bits})[0];
#else
  return half_to_float((int32_t)bits);
#endif
}

// Sixteen elements of each of two vectors, one behind the other.
RL_INLINE part_unsigned joined(half_part low, half_part high) {
  const half_part both[2] = {low, high};
  return load_bytes<part_unsigned>(both);
}

// Bits [first, first + count) of each byte. Processors shift words, not bytes.
RL_INLINE part_unsigned bits_at(part_unsigned bytes, int first, int count) {
  return (part_unsigned)((part_words)bytes >> first) & (uint8_t)((1 << count) - 1);
}
RL_INLINE half_part bits_at(half_part bytes, int first, int count) {
  using words = uint16_t __attribute__((vector_size(part_size / 2)));
  return (half_part)((words)bytes >> first) & (uint8_t)((1 << count) - 1);
}

// Four bits of 32 elements in 16 bytes: the lower ones are the first half's.
RL_INLINE part_unsigned nibbles_of(const uint8_t* p) {
  const auto both = load_bytes<half_part>(p);
  return joined(both & (uint8_t)15, bits_at(both, 4, 4));
}

// A bit of 32 elements in 4 bytes, as 0 or 16.
RL_INLINE part_unsigned fifth_bits(const uint8_t* p) {
  uint8_t spread[part_size];
  RL_UNROLL for (int i = 0; i < 4; ++i) __builtin_memset(spread + 8 * i, p[i], 8);
  const part_unsigned one = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
                             1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const part_unsigned set = load_bytes<part_unsigned>(spread) & one;
  return (part_unsigned)(set == one) & (uint8_t)16;
}

struct q8_0 {
  static constexpr int elements = 32, nbytes = 34;
  static constexpr bool is_signed = true, has_offset = false;
  template <class F> static RL_INLINE void each(const uint8_t* p, const F& each) {
    each(0, load_bytes<part_bytes>(p + 2), half_at(p), 0.0f);
  }
};

struct q4_0 {
  static constexpr int elements = 32, nbytes = 18;
  static constexpr bool is_signed = false, has_offset = true;
  template <class F> static RL_INLINE void each(const uint8_t* p, const F& each) {
    const float scale = half_at(p);
    each(0, nibbles_of(p + 2), scale, -8 * scale);
  }
};

struct q4_1 {
  static constexpr int elements = 32, nbytes = 20;
  static constexpr bool is_signed = false, has_offset = true;
  template <class F> static RL_INLINE void each(const uint8_t* p, const F& each) {
    each(0, nibbles_of(p + 4), half_at(p), half_at(p + 2));
  }
};

struct q5_0 {
  static constexpr int elements = 32, nbytes = 22;
  static constexpr bool is_signed = false, has_offset = true;
  template <class F> static RL_INLINE void each(const uint8_t* p, const F& each) {
    const float scale = half_at(p);
    each(0, nibbles_of(p + 6) | fifth_bits(p + 2), scale, -16 * scale);
  }
};

struct q5_1 {
  static constexpr int elements = 32, nbytes = 24;
  static constexpr bool is_signed = false, has_offset = true;
  template <class F> static RL_INLINE void each(const uint8_t* p, const F& each) {
    each(0, nibbles_of(p + 8) | fifth_bits(p + 4), half_at(p), half_at(p + 2));
  }
};

// Eight parts, whose scales and offsets are 6 bits each of twelve bytes.
struct eighths {
  float scale, offset;
  uint8_t scales[8], offsets[8];

  RL_INLINE explicit eighths(const uint8_t* p) : scale(half_at(p)), offset(-half_at(p + 2)) {
    const uint8_t* bits = p + 4;
    RL_UNROLL for (int i = 0; i < 4; ++i) {
      scales[i] = bits[i] & 63;
      offsets[i] = bits[4 + i] & 63;
      scales[4 + i] = (uint8_t)((bits[8 + i] & 15) | bits[i] >> 6 << 4);
      offsets[4 + i] = (uint8_t)(bits[8 + i] >> 4 | bits[4 + i] >> 6 << 4);
    }
  }
};

struct q4_k {
  static constexpr int elements = 256, nbytes = 144;
  static constexpr bool is_signed = false, has_offset = true;
  template <class F> static RL_INLINE void each(const uint8_t* p, const F& each) {
    const eighths by(p);
    for (int i = 0; i < 8; i += 2) {
      const auto both = load_bytes<part_unsigned>(p + 16 + 16 * i);
      each(i, both & (uint8_t)15, by.scale * by.scales[i], by.offset * by.offsets[i]);
      each(i + 1, bits_at(both, 4, 4), by.scale * by.scales[i + 1], by.offset * by.offsets[i + 1]);
    }
  }
};

struct q5_k {
  static constexpr int elements = 256, nbytes = 176;
  static constexpr bool is_signed = false, has_offset = true;
  template <class F> static RL_INLINE void each(const uint8_t* p, const F& each) {
    const eighths by(p);
    const auto high = load_bytes<part_unsigned>(p + 16);
    for (int i = 0; i < 8; i += 2) {
      const auto both = load_bytes<part_unsigned>(p + 48 + 16 * i);
      const part_unsigned low = (both & (uint8_t)15) + bits_at(high, i, 1) * (uint8_t)16;
      const part_unsigned next = bits_at(both, 4, 4) + bits_at(high, i + 1, 1) * (uint8_t)16;
      each(i, low, by.scale * by.scales[i], by.offset * by.offsets[i]);
      each(i + 1, next, by.scale * by.scales[i + 1], by.offset * by.offsets[i + 1]);
    }
  }
};

struct q6_k {
  static constexpr int elements = 256, nbytes = 210;
  static constexpr bool is_signed = true, has_offset = false;
  template <class F> static RL_INLINE void each(const uint8_t* p, const F& each) {
    const float scale = half_at(p + 208);
    const int8_t* scales = (const int8_t*)p + 192;
    for (int half = 0; half < 2; ++half) {
      const auto high = load_bytes<part_unsigned>(p + 128 + 32 * half);
      RL_UNROLL for (int i = 0; i < 4; ++i) {
        const auto both = load_bytes<part_unsigned>(p + 64 * half + 32 * (i & 1));
        const part_unsigned low = i < 2 ? both & (uint8_t)15 : bits_at(both, 4, 4);
        const part_unsigned integers = low + bits_at(high, 2 * i, 2) * (uint8_t)16;
        const float first = scale * scales[8 * half + 2 * i], second = scale * scales[8 * half + 2 * i + 1];
        const quad_floats by = {first, first, first, first, second, second, second, second};
        each(4 * half + i, (part_bytes)(integers - (uint8_t)32), by, 0.0f);
      }
    }
  }
};

// The elements of a block as floats.
template <class Layout> RL_INLINE void widen_block(const uint8_t* block, float* out) {
  Layout::each(block, [&](int part, auto integers, auto scale, float offset) {
    for (int i = 0; i < part_size; ++i) {
      float by;
      if constexpr (same<decltype(scale), float>) by = scale;
      else by = scale[i / 4];
      const float value = by * (float)integers[i];
      out[part * part_size + i] = Layout::has_offset ? value + offset : value;
    }
  });
}

}  // namespace rl
