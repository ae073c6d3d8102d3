// Checks that generated kernels make on data: an index read from memory must lie inside what it indexes. And of places.
#pragma once

#include <rushlight/vec.h>

namespace rl {

constexpr int index_error = 1;

// `index` if it is in [0, size), counted from the end when Wrap and negative; otherwise 0, and *status is set.
template <bool Wrap> RL_INLINE long checked_index(long index, long size, int* status) {
  if (Wrap && index < 0) index += size;
  if ((unsigned long)index < (unsigned long)size) return index;
  __atomic_store_n(status, index_error, __ATOMIC_RELAXED);
  return 0;
}

// `place` where it is one of 0..count, else the nearer of those.
RL_INLINE long within(long place, long count) { return place < 0 ? 0 : place < count ? place : count; }

}  // namespace rl
