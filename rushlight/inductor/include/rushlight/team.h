// The shared state of the threads in a parallel region: how far each thread has come with its share of a work-sharing loop. It
// has a namespace of its own because a library may hold code for several instruction sets, and all of them share this state.
#pragma once

#include <sched.h>

#if defined(RL_DEPLOYED) && defined(_OPENMP)
#include <omp.h>
#endif

namespace rl_team {

// The progress of one thread's share ("run") of a loop. `state` packs the loop's number << 32 | first remaining piece << 16 |
// end. `done`, used only in the first thread's entry, counts the finished pieces of all loops so far.
struct alignas(64) loop_progress {
  unsigned long long state = 0;
  alignas(64) unsigned long long done = 0;
};

constexpr int max_polls = 1 << 12;  // polls of a waiting thread before it yields its core: about 0.1 ms

// Pause briefly between polls; after `max_polls` polls, yield the core.
inline void wait_a_little(int looks) {
  if (looks > max_polls) sched_yield();
#if defined(__x86_64__) || defined(__i386__)
  else __builtin_ia32_pause();
#endif
}

// A thread in a parallel region; `runs` has one entry for each thread. Hidden visibility: each library of kernels has its own
// `current`.
class __attribute__((visibility("hidden"))) team_member {
 public:
  explicit team_member(loop_progress* runs, int index = 0, int count = 1) : index(index), count(count), runs(runs), outer(current) {
    current = this;
  }
  ~team_member() { current = outer; }

  team_member(const team_member&) = delete;
  team_member& operator=(const team_member&) = delete;

  // Enter the next loop, which has `pieces` pieces, and return its number. All threads run the same loops, so they agree on the
  // number.
  unsigned begin_loop(long pieces) {
    due += (unsigned long long)pieces;
    return ++loops;
  }

  // Leave a loop of which this thread has done `pieces`: wait until all pieces are done, by any thread.
  void end_loop(long pieces) const {
    unsigned long long* done = &runs[0].done;
    if (pieces) __atomic_fetch_add(done, (unsigned long long)pieces, __ATOMIC_RELEASE);
    for (int looks = 0; __atomic_load_n(done, __ATOMIC_ACQUIRE) < due; looks += looks <= max_polls) wait_a_little(looks);
  }

  // Barrier: wait until all threads have arrived.
  void meet() {
    if (count == 1) return;
    begin_loop(count);
    end_loop(1);
  }

  // Take a piece of the share of thread `owner`, `size` pieces long, in a loop; return -1 if none is left. The owner itself
  // (`own`) takes pieces from the front, other threads steal from the back. Whichever thread comes first starts the share, so
  // nobody waits for its owner. A slow thread may find that `state` already belongs to a later loop; then it gets -1 too.
  long take(int owner, unsigned loop, long size, bool own) const {
    unsigned long long* state = &runs[owner].state;
    unsigned long long seen = __atomic_load_n(state, __ATOMIC_RELAXED);
    for (;;) {
      if ((unsigned)(seen >> 32) > loop) return -1;
      const bool begun = (unsigned)(seen >> 32) == loop;
      const long first = begun ? seen >> 16 & 0xffff : 0, end = begun ? seen & 0xffff : size;
      if (first >= end) return -1;
      const long taken = own ? first : end - 1, next = own ? first + 1 : first, new_end = own ? end : end - 1;
      const unsigned long long left = (unsigned long long)loop << 32 | next << 16 | new_end;
      if (__atomic_compare_exchange_n(state, &seen, left, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return taken;
    }
  }

  inline static thread_local team_member* current = nullptr;
  const int index, count;  // the index of this thread in its region, and the number of threads

 private:
  loop_progress* const runs;
  team_member* const outer;
  unsigned loops = 0;
  unsigned long long due = 0;  // the number of pieces in all loops entered so far
};

#if !defined(RL_DEPLOYED)

// Run body() in each of `threads` threads.
template <class F> inline void in_team(int threads, const F& body) {
  loop_progress runs[threads];
#pragma omp parallel num_threads(threads)
  {
    team_member member(runs);
    body();
  }
}
#elif defined(_OPENMP)

template <class F> inline void in_team(int threads, const F& body) {
  loop_progress runs[threads];
  if (threads == 1) {
    team_member member(runs);
    body();
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    team_member member(runs, omp_get_thread_num(), omp_get_num_threads());
    body();
  }
}

#else

// A provider of additional threads, implemented by the host. ready() returns how many threads it can supply, at most `threads`.
// run() calls body(context, i) for each i of [0, threads) concurrently and returns when all calls are done.
struct helpers {
  int (*ready)(helpers* self, int threads);
  void (*run)(helpers* self, int threads, void (*body)(void* context, int index), void* context);
  inline static thread_local helpers* current = nullptr;  // the helpers of the handle whose code runs
};

template <class F> inline void in_team(int threads, const F& body) {
  threads = threads > 1 && helpers::current ? helpers::current->ready(helpers::current, threads) : 1;
  loop_progress runs[threads];
  if (threads == 1) {
    team_member member(runs);
    body();
    return;
  }
  struct work {
    const F& body;
    loop_progress* runs;
    int threads;
  } all{body, runs, threads};
  const auto one = [](void* context, int index) {
    work& all = *(work*)context;
    team_member member(all.runs, index, all.threads);
    all.body();
  };
  helpers::current->run(helpers::current, threads, one, &all);
}

#endif

}  // namespace rl_team
