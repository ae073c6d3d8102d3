// The most frequent value of each row.
#pragma once

#include <rushlight/checks.h>
#include <rushlight/parallel.h>
#include <rushlight/sort.h>

namespace rl {

template <class T> constexpr long mode_scratch_bytes(long count) { return (2 * count * (long)sizeof(keyed<key_for<T>>) + 63) / 64 * 64; }

// Find the smallest of the most frequent values, and the index of its last occurrence. A NaN equals no other value.
template <class T> inline void mode(const T* rows, T* values, int64_t* places, long batch, long count, char* scratch, int* status) {
  using K = key_for<T>;
  if (count > (long)UINT32_MAX) return report(status, index_error);
  const auto is_same = [](K one, K other) { return one == other && (infinity_bits<T> == 0 || one != (K)~(K)0); };
  keyed<K>* const items = (keyed<K>*)(scratch + thread_index() * mode_scratch_bytes<T>(count));
  for (const long i : shared(batch)) {
    const T* const row = rows + i * count;
    for (long at = 0; at < count; ++at) items[at] = keyed_at<false>(row, at);
    const keyed<K>* const sorted = sort_items(items, items + count, count);
    long best = 0, most = 0;
    for (long first = 0, last = 0; first < count; first = last + 1) {
      for (last = first; last + 1 < count && is_same(sorted[last + 1].key, sorted[first].key);) ++last;
      if (last + 1 - first <= most) continue;
      most = last + 1 - first;
      best = sorted[last].place;
    }
    if (values) values[i] = row[best];
    if (places) places[i] = best;
  }
}

}  // namespace rl
