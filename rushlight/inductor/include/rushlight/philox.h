// Random numbers by counter: Philox4x32 with 10 rounds (J. Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
//
// A 64-bit seed and an offset identify a stream. Element i of a stream is one 32-bit word, which does not depend on the thread
// or on the order of calls. Element i is this word of the block of this counter:
//
//     counter = (i / 64 * 16 + i % 16, high half of that, offset, 0)        word = i / 16 % 4        key = seed
//
// Thus 16 consecutive counters give 64 consecutive elements, in vectors of any length.
#pragma once

#include <rushlight/vec.h>

namespace rl {

template <class U> struct philox_block {
  U words[4];
};

// The 64-bit product m * x of each lane, as its high and low halves.
RL_INLINE void wide_product(uint32_t m, uint32_t x, uint32_t& high, uint32_t& low) {
  const uint64_t product = (uint64_t)m * x;
  high = (uint32_t)(product >> 32), low = (uint32_t)product;
}

namespace pairs {  // two 32-bit lanes as one of 64

typedef uint64_t wide __attribute__((vector_size(lanes * 4)));

// The products of the lower lanes. GCC does not find the instruction by itself.
RL_INLINE wide product_of_low(wide a, wide b) {
#if defined(RL_GCC_AVX512)
  typedef int ints __attribute__((vector_size(64)));
  typedef long long longs __attribute__((vector_size(64)));
  return (wide)__builtin_ia32_pmuludq512_mask((ints)a, (ints)b, (longs)a, -1);
#elif RL_LANES == 8 && defined(__AVX2__) && !defined(__clang__)
  typedef int ints __attribute__((vector_size(32)));
  return (wide)__builtin_ia32_pmuludq256((ints)a, (ints)b);
#elif RL_LANES == 4 && defined(__SSE2__) && !defined(__clang__)
  typedef int ints __attribute__((vector_size(16)));
  return (wide)__builtin_ia32_pmuludq128((ints)a, (ints)b);
#else
  return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

}  // namespace pairs

RL_INLINE void wide_product(uint32_t m, vec<uint32_t> x, vec<uint32_t>& high, vec<uint32_t>& low) {
  using pairs::wide;
  const wide factor = wide{} + m, both = bitcast<wide>(x);
  const wide even = pairs::product_of_low(both, factor), odd = pairs::product_of_low(both >> 32, factor);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "philox.h expects the lower lane of a pair first"
#endif
  const uint64_t upper = 0xffffffff00000000;
  high = bitcast<vec<uint32_t>>((even >> 32) | (odd & upper));
  low = bitcast<vec<uint32_t>>((even & ~upper) | (odd << 32));
}

// Compute the four words of each counter (c0, c1, c2, c3) under the key (k0, k1).
template <class U> RL_INLINE philox_block<U> philox(U c0, U c1, U c2, U c3, uint32_t k0, uint32_t k1) {
  RL_UNROLL for (int round = 0; round < 10; ++round) {
    U high0, low0, high1, low1;
    wide_product(0xD2511F53u, c0, high0, low0);
    wide_product(0xCD9E8D57u, c2, high1, low1);
    c0 = high1 ^ c1 ^ splat<U>(k0), c1 = low1;
    c2 = high0 ^ c3 ^ splat<U>(k1), c3 = low0;
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// One stream. It caches the last group of 64 elements, since loops read consecutive elements. Each thread has its own.
class philox_stream {
 public:
  philox_stream(int64_t seed, uint32_t offset) : seed_((uint64_t)seed), offset_(offset) {}

  // Return 32 random bits for each lane's element: elements `start`, `start` + 1, ..., or every `step`-th from `start`.
  RL_INLINE uint32_t words(scalar_lane, long start) {
    if (start >> 6 != group_) fill(start >> 6);
    return kept_[start & 63];
  }
  RL_INLINE vec<uint32_t> words(vector_lane lane, long start) {
    const int first = start & 63;
    if (first > 64 - lanes) return words(lane, start, 1);  // some of the lanes are in the next group
    if (start >> 6 != group_) fill(start >> 6);
    return load_bytes<vec<uint32_t>>(kept_ + first);
  }
  RL_INLINE uint32_t words(scalar_lane lane, long start, long) { return words(lane, start); }
  RL_INLINE vec<uint32_t> words(vector_lane, long start, long step) {
    uint32_t found[lanes];
    gather(start, step, found);
    return load_bytes<vec<uint32_t>>(found);
  }

  // The words as integers in [0, 2^32).
  template <class L, class... At> RL_INLINE auto bits(L lane, At... at) {
    return convert_lanes<like<decltype(words(lane, at...)), int64_t>>(words(lane, at...));
  }
  // Numbers in [0, 1), multiples of 2^-24.
  template <class L, class... At> RL_INLINE auto uniform(L lane, At... at) {
    const auto word = words(lane, at...);
    using I = like<decltype(word + 0), int32_t>;
    using F = like<decltype(word + 0), float>;
    return convert_lanes<F>(bitcast<I>(word >> 8)) * splat<F>(0x1p-24f);
  }

 private:
  __attribute__((noinline)) void fill(long group) {
    group_ = group;
    for (int lane = 0; lane < 16; lane += lanes) {
      vec<uint32_t> c0;
      RL_UNROLL for (int i = 0; i < lanes; ++i) c0[i] = (uint32_t)((uint64_t)group << 4) + lane + i;
      const auto made = block(c0, splat<vec<uint32_t>>((uint32_t)((uint64_t)group >> 28)));
      RL_UNROLL for (int word = 0; word < 4; ++word) {
        __builtin_memcpy(kept_ + 16 * word + lane, &made.words[word], sizeof made.words[word]);
      }
    }
  }

  __attribute__((noinline)) void gather(long start, long step, uint32_t* out) const {
    const vec<int64_t> index = vector_lane{}.index(start, step);
    const vec<int64_t> counter = (index >> 6 << 4) | (index & 15);
    const auto made = block(convert_lanes<vec<uint32_t>>(counter), convert_lanes<vec<uint32_t>>(counter >> 32));
    const vec<int32_t> word = convert_lanes<vec<int32_t>>(index >> 4) & 3;
    const vec<uint32_t> lower = word == 0 ? made.words[0] : made.words[1];
    const vec<uint32_t> upper = word == 2 ? made.words[2] : made.words[3];
    const vec<uint32_t> found = word < 2 ? lower : upper;
    __builtin_memcpy(out, &found, sizeof found);
  }

  RL_INLINE philox_block<vec<uint32_t>> block(vec<uint32_t> c0, vec<uint32_t> c1) const {
    using U = vec<uint32_t>;
    return philox(c0, c1, splat<U>(offset_), splat<U>(0u), (uint32_t)seed_, (uint32_t)(seed_ >> 32));
  }

  uint64_t seed_;
  uint32_t offset_;
  long group_ = -1;
  alignas(64) uint32_t kept_[64];
};

}  // namespace rl
