// The time that each kernel of a graph takes, for programs that are built to be profiled.
#pragma once

#include <rushlight/parallel.h>

extern "C" int clock_gettime(int clock, struct timespec* time);  // <time.h> is not included

namespace rl {

// Nanoseconds since an arbitrary moment.
RL_INLINE int64_t nanoseconds() {
  long time[2];
  clock_gettime(1, (struct timespec*)time);  // CLOCK_MONOTONIC, in seconds and nanoseconds
  return (int64_t)time[0] * 1000000000 + time[1];
}

// Measures each kernel of a call. A kernel ends when all its pieces are done, even if some thread has not reached its end yet.
// So the first thread that passes the kernel reads the time; later threads see that it was read. One clock serves all threads
// of a call. `spent` has the nanoseconds of each of `kernels` kernels, then the number of calls.
class kernel_clock {
 public:
  kernel_clock(int64_t* spent, int kernels) : spent_(spent), kernels_(kernels) {}
  void start() {
    int before = waiting;
    if (!__atomic_compare_exchange_n(&next_, &before, busy, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) return;
    __atomic_fetch_add(spent_ + kernels_, 1, __ATOMIC_RELAXED);
    last_ = nanoseconds();
    __atomic_store_n(&next_, 0, __ATOMIC_RELEASE);
  }
  void stop(int kernel) {
    int next = __atomic_load_n(&next_, __ATOMIC_ACQUIRE);
    while (next == busy || next == kernel) {
      if (next == kernel && __atomic_compare_exchange_n(&next_, &next, busy, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        const int64_t now = nanoseconds();
        __atomic_fetch_add(spent_ + kernel, now - last_, __ATOMIC_RELAXED);
        last_ = nanoseconds();
        __atomic_store_n(&next_, kernel + 1, __ATOMIC_RELEASE);
        return;
      }
      next = __atomic_load_n(&next_, __ATOMIC_ACQUIRE);  // another thread updates it now
    }
  }

 private:
  static constexpr int waiting = -2, busy = -1;
  int64_t* const spent_;
  const int kernels_;
  int64_t last_ = 0;
  int next_ = waiting;  // the kernel that has not ended yet
};

}  // namespace rl
