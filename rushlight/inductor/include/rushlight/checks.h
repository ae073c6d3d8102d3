// Checks that generated kernels make on data: for example, an index read from memory must be in range.
#pragma once

#include <rushlight/vec.h>

namespace rl {

constexpr int index_error = 1;  // an index is out of range, or another error that eager reports
constexpr int no_solution = 2;  // a matrix is singular or not positive-definite, or an iteration does not converge

RL_INLINE void report(int* status, int reason) { __atomic_store_n(status, reason, __ATOMIC_RELAXED); }

// Return `index` if it is in [0, size); with Wrap, negative ones count from the end. Otherwise return 0 and set *status.
template <bool Wrap> RL_INLINE long checked_index(int64_t index, long size, int* status) {
  if (Wrap && index < 0) index += size;
  if ((uint64_t)index < (uint64_t)size) return (long)index;
  __atomic_store_n(status, index_error, __ATOMIC_RELAXED);
  return 0;
}

// Check one index, or the index of each lane.
template <bool Wrap> RL_INLINE int64_t checked_places(int64_t index, long size, int* status) {
  return checked_index<Wrap>(index, size, status);
}
template <bool Wrap> RL_INLINE vec<int64_t> checked_places(vec<int64_t> index, long size, int* status) {
  const auto below = [](auto x, auto y) { return x < y; };
  const vec<int64_t> zero{}, end = splat<vec<int64_t>>((int64_t)size);
  if (Wrap) index = choose(compare(index, zero, below), index + (int64_t)size, index);
  const mask outside = compare(index, zero, below) | ~compare(index, end, below);
  if (__builtin_expect(!any_bit(outside), 1)) return index;
  __atomic_store_n(status, index_error, __ATOMIC_RELAXED);
  return choose(outside, zero, index);
}

// Return v, a divisor; set *status if it (or any lane) is 0.
template <class V> RL_INLINE V nonzero_divisor(V v, int* status) {
  bool found;
  if constexpr (is_vector<V>) found = any_bit(compare(v, splat<V>(0), [](auto x, auto y) { return x == y; }));
  else found = v == 0;
  if (__builtin_expect(found, 0)) __atomic_store_n(status, index_error, __ATOMIC_RELAXED);
  return v;
}

// Return v; set *status unless `holds` is true (in all lanes).
template <class V, class M> RL_INLINE V required(V v, M holds, int* status) {
  bool found;
  if constexpr (is_vector<V>) found = any_bit(~holds);
  else found = !holds;
  if (__builtin_expect(found, 0)) __atomic_store_n(status, index_error, __ATOMIC_RELAXED);
  return v;
}

// Clamp `place` to [0, count].
RL_INLINE long within(long place, long count) { return place < 0 ? 0 : place < count ? place : count; }

}  // namespace rl
