// Loops over contiguous elements in whole vectors. The remainder goes through a padded copy, so that a kernel's body is
// compiled only once, and a remainder costs one vector operation.
#pragma once

#include <rushlight/vec.h>

namespace rl {

template <class T> RL_INLINE auto load_first(const T* p, long count) {
  alignas(64) T block[lanes] = {};
  __builtin_memcpy(block, p, count * sizeof(T));
  return vector_lane{}.load(block);
}

template <class T, class V> RL_INLINE void store_first(T* p, V v, long count) {
  alignas(64) T block[lanes];
  vector_lane{}.store(block, v);
  __builtin_memcpy(p, block, count * sizeof(T));
}

// Call body(value, ...) for n elements of the inputs, and store its results as R in out.
template <class R, class F, class... T> RL_INLINE void each(long n, R* out, const F& body, const T*... inputs) {
  const vector_lane lane;
  long i = 0;
  for (; i + lanes <= n; i += lanes) lane.store(out + i, body(lane.load(inputs + i)...));
  if (i < n) store_first(out + i, body(load_first(inputs + i, n - i)...), n - i);
}

}  // namespace rl
