// How long each kernel of a graph takes, for programs that are built to be measured.
#pragma once

#include <rushlight/parallel.h>

extern "C" int clock_gettime(int clock, struct timespec* time);  // <time.h> is not included

namespace rl {

// Nanoseconds since some moment.
RL_INLINE int64_t nanoseconds() {
  long time[2];
  clock_gettime(1, (struct timespec*)time);  // CLOCK_MONOTONIC, of seconds and nanoseconds
  return (int64_t)time[0] * 1000000000 + time[1];
}

// The first thread looks at the time after each kernel, at whose end all threads wait for one another.
class kernel_clock {
 public:
  explicit kernel_clock(int64_t* spent) : spent_(spent) {}
  void start() {
    if (thread_index() == 0) last_ = nanoseconds();
  }
  void stop(int kernel) {
    if (thread_index() != 0) return;
    const int64_t now = nanoseconds();
    __atomic_fetch_add(spent_ + kernel, now - last_, __ATOMIC_RELAXED);
    last_ = nanoseconds();
  }

 private:
  int64_t* spent_;
  int64_t last_ = 0;
};

}  // namespace rl
