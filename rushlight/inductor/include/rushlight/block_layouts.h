// Quantized weights in the block layouts of GGUF files: each layout struct decodes a block to integers and scales, 32 elements
// (a "part") at a time. Layout::each(bytes, each, low) calls each(part, integers, scale) for every part of a block. A scale is
// one float, or one for each run of four elements. An element is scale * integer + offset. If the layout has offsets, it also
// calls low(part, offsets): with one eighth of the part's offset as a float (it is added once for each of eight lanes), or with
// a vector of the offsets of eight parts. Integers are signed in layouts without offsets.
#pragma once

#include <rushlight/vec.h>

namespace rl {

constexpr int part_size = 32;
using part_bytes = int8_t __attribute__((vector_size(part_size)));
using part_unsigned = uint8_t __attribute__((vector_size(part_size)));
using part_words = uint16_t __attribute__((vector_size(part_size)));
using dwords = uint32_t __attribute__((vector_size(part_size)));
using half_part = uint8_t __attribute__((vector_size(part_size / 2), aligned(1), may_alias));
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

// Return bits [first, first + count) of each byte. Vector shifts work on words, not bytes.
RL_INLINE part_unsigned bits_at(part_unsigned bytes, int first, int count) {
  return (part_unsigned)((part_words)bytes >> first) & (uint8_t)((1 << count) - 1);
}

// Expand 16 bytes to 32 elements of four bits: the low nibbles are the first half.
RL_INLINE part_unsigned nibbles_of(const uint8_t* p) {
  part_unsigned twice;
#ifdef __AVX2__
  asm("vbroadcasti128 %1, %0" : "=x"(twice) : "m"(*(const half_part*)p));
#else
  __builtin_memcpy(&twice, p, part_size / 2);
  __builtin_memcpy((char*)&twice + part_size / 2, p, part_size / 2);
#endif
  return (part_unsigned)((dwords)twice >> dwords{0, 0, 0, 0, 4, 4, 4, 4}) & (uint8_t)15;
}

// Expand 4 bytes to 32 elements of one bit, as 0 or 16.
RL_INLINE part_unsigned fifth_bits(const uint8_t* p) {
  uint32_t word;
  __builtin_memcpy(&word, p, sizeof word);
  const part_unsigned four = (part_unsigned)(dwords{} + word);
#define RL_EIGHT(i) i, i, i, i, i, i, i, i
#ifdef __clang__
  const part_unsigned spread = __builtin_shufflevector(four, four, RL_EIGHT(0), RL_EIGHT(1), RL_EIGHT(18), RL_EIGHT(19));
#else
  const part_unsigned spread = __builtin_shuffle(four, part_unsigned{RL_EIGHT(0), RL_EIGHT(1), RL_EIGHT(18), RL_EIGHT(19)});
#endif
#undef RL_EIGHT
  const part_unsigned one = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
                             1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  return (part_unsigned)((spread & one) == one) & (uint8_t)16;
}

// The constants of a layout: elements and bytes of a block, the largest magnitude of an integer, and the scales of a part.
template <int Elements, int Bytes, int Largest, bool HasOffset, int Scales = 1> struct block_layout {
  static constexpr int elements = Elements, nbytes = Bytes, largest = Largest, scales = Scales;
  static constexpr bool has_offset = HasOffset;
};

struct q8_0 : block_layout<32, 34, 128, false> {
  template <class F, class L> static RL_INLINE void each(const uint8_t* p, const F& each, const L&) {
    each(0, load_bytes<part_bytes>(p + 2), half_at(p));
  }
};

struct q4_0 : block_layout<32, 18, 15, true> {
  template <class F, class L> static RL_INLINE void each(const uint8_t* p, const F& each, const L& low) {
    const float scale = half_at(p);
    each(0, nibbles_of(p + 2), scale);
    low(0, -scale);
  }
};

struct q4_1 : block_layout<32, 20, 15, true> {
  template <class F, class L> static RL_INLINE void each(const uint8_t* p, const F& each, const L& low) {
    each(0, nibbles_of(p + 4), half_at(p));
    low(0, half_at(p + 2) * 0.125f);
  }
};

struct q5_0 : block_layout<32, 22, 31, true> {
  template <class F, class L> static RL_INLINE void each(const uint8_t* p, const F& each, const L& low) {
    const float scale = half_at(p);
    each(0, nibbles_of(p + 6) | fifth_bits(p + 2), scale);
    low(0, -2 * scale);
  }
};

struct q5_1 : block_layout<32, 24, 31, true> {
  template <class F, class L> static RL_INLINE void each(const uint8_t* p, const F& each, const L& low) {
    each(0, nibbles_of(p + 8) | fifth_bits(p + 4), half_at(p));
    low(0, half_at(p + 2) * 0.125f);
  }
};

// The scales and offsets of eight parts: 6 bits each, packed into twelve bytes.
struct eighths {
  float scales[8];
  quad_floats offsets;

  RL_INLINE explicit eighths(const uint8_t* p) {
    uint32_t words[3];
    __builtin_memcpy(words, p + 4, sizeof words);
    constexpr uint32_t six = 0x3f3f3f3f, four = 0x0f0f0f0f, two = 0x03030303;
    const uint32_t next_scales = (words[2] & four) | (words[0] >> 6 & two) << 4;
    const uint32_t next_offsets = (words[2] >> 4 & four) | (words[1] >> 6 & two) << 4;
    const quad_floats made = in_floats(words[0] & six, next_scales) * half_at(p);
    __builtin_memcpy(scales, &made, sizeof made);
    offsets = in_floats(words[1] & six, next_offsets) * -half_at(p + 2);
  }

 private:
  static RL_INLINE quad_floats in_floats(uint32_t first, uint32_t second) {
    using eight = uint8_t __attribute__((vector_size(8)));
    return __builtin_convertvector((eight)(first | (uint64_t)second << 32), quad_floats);
  }
};

struct q4_k : block_layout<256, 144, 15, true> {
  template <class F, class L> static RL_INLINE void each(const uint8_t* p, const F& each, const L& low) {
    const eighths by(p);
    RL_UNROLL for (int i = 0; i < 8; i += 2) {
      const auto both = load_bytes<part_unsigned>(p + 16 + 16 * i);
      each(i, both & (uint8_t)15, by.scales[i]);
      each(i + 1, bits_at(both, 4, 4), by.scales[i + 1]);
    }
    low(0, by.offsets);
  }
};

struct q5_k : block_layout<256, 176, 31, true> {
  template <class F, class L> static RL_INLINE void each(const uint8_t* p, const F& each, const L& low) {
    const eighths by(p);
    const auto high = load_bytes<part_unsigned>(p + 16);
    RL_UNROLL for (int i = 0; i < 8; i += 2) {
      const auto both = load_bytes<part_unsigned>(p + 48 + 16 * i);
      each(i, (both & (uint8_t)15) | raised(high, i), by.scales[i]);
      each(i + 1, bits_at(both, 4, 4) | raised(high, i + 1), by.scales[i + 1]);
    }
    low(0, by.offsets);
  }

  // Move bit number `bit` of each byte to bit 4, and clear the others.
  static RL_INLINE part_unsigned raised(part_unsigned bytes, int bit) {
    return (part_unsigned)(bit < 4 ? (part_words)bytes << (4 - bit) : (part_words)bytes >> (bit - 4)) & (uint8_t)16;
  }
};

struct q6_k : block_layout<256, 210, 32, false, 2> {
  template <class F, class L> static RL_INLINE void each(const uint8_t* p, const F& each, const L&) {
    using eight = int8_t __attribute__((vector_size(8)));
    float scales[16];
    RL_UNROLL for (int i = 0; i < 16; i += 8) {
      const quad_floats made = __builtin_convertvector(load_bytes<eight>(p + 192 + i), quad_floats) * half_at(p + 208);
      __builtin_memcpy(scales + i, &made, sizeof made);
    }
    for (int half = 0; half < 2; ++half) {
      const auto high = load_bytes<part_unsigned>(p + 128 + 32 * half);
      RL_UNROLL for (int i = 0; i < 4; ++i) {
        const auto both = load_bytes<part_unsigned>(p + 64 * half + 32 * (i & 1));
        const part_unsigned low = i < 2 ? both & (uint8_t)15 : bits_at(both, 4, 4);
        const part_unsigned shifted = (part_unsigned)(i < 2 ? (part_words)high << (4 - 2 * i) : (part_words)high >> (2 * i - 4));
        const float first = scales[8 * half + 2 * i], second = scales[8 * half + 2 * i + 1];
        const quad_floats by = {first, first, first, first, second, second, second, second};
        each(4 * half + i, (part_bytes)((low | (shifted & (uint8_t)48)) - (uint8_t)32), by);
      }
    }
  }
};

// Groups of a row: scale and offset in float32, then the parts with q4_0's layout.
template <int Group> struct int4_groups : block_layout<Group, 8 + Group / 2, 15, true> {
  template <class F, class L> static RL_INLINE void each(const uint8_t* p, const F& each, const L& low) {
    const float scale = load_bytes<float>(p), offset = load_bytes<float>(p + 4) * 0.125f;
    RL_UNROLL for (int part = 0; part < Group / part_size; ++part) {
      each(part, nibbles_of(p + 8 + part * part_size / 2), scale);
      low(part, offset);
    }
  }
};
using int4_32 = int4_groups<32>;
using int4_64 = int4_groups<64>;
using int4_128 = int4_groups<128>;
using int4_256 = int4_groups<256>;

// Convert a block's elements to floats.
template <class Layout> RL_INLINE void widen_block(const uint8_t* block, float* out) {
  const auto parts = [&](int part, auto integers, auto scale) {
    for (int i = 0; i < part_size; ++i) {
      if constexpr (same<decltype(scale), float>) out[part * part_size + i] = scale * (float)integers[i];
      else out[part * part_size + i] = scale[i / 4] * (float)integers[i];
    }
  };
  Layout::each(block, parts, [&](int part, auto offsets) {
    if constexpr (same<decltype(offsets), float>)
      for (int i = part * part_size; i < (part + 1) * part_size; ++i) out[i] += 8 * offsets;
    else
      for (int i = 0; i < Layout::elements; ++i) out[i] += offsets[i / part_size];
  });
}

}  // namespace rl
