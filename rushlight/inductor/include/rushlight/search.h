// Search in sorted rows, for all lanes in step: linear counting in short rows, and branch-free binary search in longer ones
// (Knuth, The Art of Computer Programming 3, 6.2.1).
#pragma once

#include <rushlight/elementwise.h>

namespace rl {

constexpr long max_linear_items = 32;  // rows of at most this many elements are searched linearly

// Load row[place] for each lane.
template <class T> RL_INLINE compute<T> gather_elements(const T* row, int32_t place) { return scalar_lane{}.load(row + place); }
template <class T> RL_INLINE vec<T> gather_elements(const T* row, vec<int32_t> place) {
#ifdef RL_GCC_AVX512
  if constexpr (same<T, float>) return __builtin_ia32_gathersiv16sf(vec<float>{}, row, place, -1, sizeof(T));
#endif
  T block[lanes];
  RL_UNROLL for (int i = 0; i < lanes; ++i) block[i] = row[place[i]];
  return vector_lane{}.load(block);
}

// Test whether `item` sorts before the place where `value` would be inserted.
template <bool Right, class V> RL_INLINE auto precedes_value(V item, V value) {
  const auto before = Right ? le(item, value) : lt(item, value);
  if constexpr (is_floating<element<V>>) return logical_or(before, isnan(value));
  else return before;
}

// Return how many of the `count` sorted elements, `step` apart, are smaller than `value`; with Right, smaller or equal. Every
// element counts as smaller than a NaN `value`; a NaN in the row is never smaller than a number. If indices don't fit in 32
// bits, *status becomes 1 and the caller falls back to the eager kernel.
template <bool Right, class Lane, class T, class V>
RL_INLINE like<V, int64_t> search(Lane lane, const T* row, long step, long count, V value, int* status) {
  using I = like<V, int32_t>;
  I place = splat<I>(0);
  if (count <= max_linear_items) {
    for (long i = 0; i < count; ++i)
      place = where(precedes_value<Right>(lane.broadcast(scalar_lane{}.load(row + i * step)), value), (I)(place + 1), place);
    return convert_lanes<like<V, int64_t>>(place);
  }
  if (count > INT32_MAX / step) {
    __atomic_store_n(status, 1, __ATOMIC_RELAXED);
    return splat<like<V, int64_t>>(0);
  }
  for (int left = (int)count; left > 0;) {
    const int half = (left + 1) / 2;
    const V middle = gather_elements(row, (I)((place + (half - 1)) * (int)step));
    place = where(precedes_value<Right>(middle, value), (I)(place + half), place);
    left -= half;
  }
  return convert_lanes<like<V, int64_t>>(place);
}

}  // namespace rl
