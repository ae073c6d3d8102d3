// Search in sorted rows, for all lanes in step: linear counting in short rows, and branch-free binary search in longer ones
// (Knuth, The Art of Computer Programming 3, 6.2.1).
#pragma once

#include <rushlight/elementwise.h>

namespace rl {

constexpr long counted_items = 32;  // rows of at most so many elements are searched linearly

// row[place] of each lane.
template <class T> RL_INLINE compute<T> read_places(const T* row, int32_t place) { return scalar_lane{}.load(row + place); }
template <class T> RL_INLINE vec<T> read_places(const T* row, vec<int32_t> place) {
#ifdef RL_GCC_AVX512
  if constexpr (same<T, float>) return __builtin_ia32_gathersiv16sf(vec<float>{}, row, place, -1, sizeof(T));
#endif
  T block[lanes];
  RL_UNROLL for (int i = 0; i < lanes; ++i) block[i] = row[place[i]];
  return vector_lane{}.load(block);
}

template <bool Right, class V> RL_INLINE auto comes_first(V item, V value) {
  const auto before = Right ? le(item, value) : lt(item, value);
  if constexpr (is_floating<element<V>>) return logical_or(before, isnan(value));
  else return before;
}

// Counts how many of `count` sorted elements, `step` apart, come before `value`: the smaller ones, and with Right also equal
// ones. Every element comes before NaN; a NaN in the row comes before no number. Rows of 2^31 elements are left to eager.
template <bool Right, class Lane, class T, class V>
RL_INLINE like<V, int64_t> search(Lane lane, const T* row, long step, long count, V value, int* status) {
  using I = like<V, int32_t>;
  I place = splat<I>(0);
  if (count <= counted_items) {
    for (long i = 0; i < count; ++i)
      place = where(comes_first<Right>(lane.broadcast(scalar_lane{}.load(row + i * step)), value), (I)(place + 1), place);
    return convert_lanes<like<V, int64_t>>(place);
  }
  if (count > INT32_MAX / step) {
    __atomic_store_n(status, 1, __ATOMIC_RELAXED);
    return splat<like<V, int64_t>>(0);
  }
  for (int left = (int)count; left > 0;) {
    const int half = (left + 1) / 2;
    const V middle = read_places(row, (I)((place + (half - 1)) * (int)step));
    place = where(comes_first<Right>(middle, value), (I)(place + half), place);
    left -= half;
  }
  return convert_lanes<like<V, int64_t>>(place);
}

}  // namespace rl
