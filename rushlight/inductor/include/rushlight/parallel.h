// Who runs a kernel. A graph runs inside one `#pragma omp parallel`; every thread calls every kernel, and kernels share
// their loops by orphaned `#pragma omp for`, whose barrier orders them. Outside a parallel region one thread does all.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

#include <rushlight/vec.h>

namespace rl {

#ifdef _OPENMP
RL_INLINE int thread_index() { return omp_get_thread_num(); }
RL_INLINE int thread_count() { return omp_get_num_threads(); }
#else
RL_INLINE int thread_index() { return 0; }
RL_INLINE int thread_count() { return 1; }
#endif

// The part of `count` pieces of work, [first, last), that this thread takes.
struct share_of_thread {
  long first, last;
  RL_INLINE explicit share_of_thread(long count)
      : first(count * thread_index() / thread_count()), last(count * (thread_index() + 1) / thread_count()) {}
};

// The largest and the smallest of some sizes.
constexpr long largest(long size) { return size; }
template <class... Rest> constexpr long largest(long size, Rest... rest) {
  const long other = largest(rest...);
  return size > other ? size : other;
}

constexpr long smallest(long size) { return size; }
template <class... Rest> constexpr long smallest(long size, Rest... rest) {
  const long other = smallest(rest...);
  return size < other ? size : other;
}

// for_each shared among the threads, each taking runs of about `grain` elements; ends with a barrier.
template <class F> RL_INLINE void for_each_shared(long n, const F& f, long grain = 1024) {
  const long step = grain < lanes ? lanes : grain / lanes * lanes;
#pragma omp for schedule(static)
  for (long first = 0; first < n; first += step) {
    const long count = n - first < step ? n - first : step;
    for_each(count, [&](auto lane, long i) { f(lane, first + i); });
  }
}

}  // namespace rl
