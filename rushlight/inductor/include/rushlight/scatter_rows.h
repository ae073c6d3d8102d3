// Sums of rows that go to given places, as the gradient of an embedding is: deterministic, and without atomics.
#pragma once

#include <rushlight/elementwise.h>
#include <rushlight/parallel.h>

namespace rl {

// out[r][0..columns) = the sum, in order, of rows[t][0..columns) over the t < count with index[t] == r, for r < places;
// `left_out` is an r whose sum is 0. Every thread has a range of places of its own and looks at all indices. Called by
// all threads of a parallel region; ends with a barrier.
template <class I>
void scatter_rows(const float* rows, long row_stride, const I* index, long index_stride, long count, long columns,
                  long places, long left_out, float* out) {
  const long first = places * thread_index() / thread_count(), last = places * (thread_index() + 1) / thread_count();
  __builtin_memset(out + first * columns, 0, (last - first) * columns * (long)sizeof(float));
  for (long t = 0; t < count; ++t) {
    const long place = (long)index[t * index_stride];
    if (place < first || place >= last || place == left_out) continue;
    const float* from = rows + t * row_stride;
    float* to = out + place * columns;
    for_each(columns, [&](auto lane, long j) { lane.store(to + j, lane.load(to + j) + lane.load(from + j)); });
  }
#pragma omp barrier
}

}  // namespace rl
