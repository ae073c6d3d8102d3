// What the threads of a parallel region know of one another: how far each has come with its run of a shared loop. Has a
// namespace of its own, since it is the same for all sets of instructions that a library holds code for.
#pragma once

#include <sched.h>

#if defined(RL_DEPLOYED) && defined(_OPENMP)
#include <omp.h>
#endif

namespace rl_team {

// What is left of a thread's run of a loop: the loop's number << 32 | first piece << 16 | end. Of the first thread also how many
// pieces of all loops so far are done.
struct alignas(64) run_left {
  unsigned long long state = 0;
  alignas(64) unsigned long long done = 0;
};

constexpr int short_waits = 1 << 12;  // a waiting thread polls so often before it yields its core: about 0.1 ms

inline void wait_a_little(int looks) {
  if (looks > short_waits) sched_yield();
#if defined(__x86_64__) || defined(__i386__)
  else __builtin_ia32_pause();
#endif
}

// A thread in a parallel region, and where the runs of all its threads are, one for each. Hidden: every library of kernels
// has its own.
class __attribute__((visibility("hidden"))) team_member {
 public:
  explicit team_member(run_left* runs, int index = 0, int count = 1) : index(index), count(count), runs(runs), outer(current) {
    current = this;
  }
  ~team_member() { current = outer; }

  team_member(const team_member&) = delete;
  team_member& operator=(const team_member&) = delete;

  // The number of the loop of so many pieces that this thread comes to: the same in all threads, as they come to the same loops.
  unsigned begin_loop(long pieces) {
    due += (unsigned long long)pieces;
    return ++loops;
  }

  // The end of a loop of which this thread has done `pieces`: returns when all of them are done, by whomever.
  void end_loop(long pieces) const {
    unsigned long long* done = &runs[0].done;
    if (pieces) __atomic_fetch_add(done, (unsigned long long)pieces, __ATOMIC_RELEASE);
    for (int looks = 0; __atomic_load_n(done, __ATOMIC_ACQUIRE) < due; looks += looks <= short_waits) wait_a_little(looks);
  }

  // Barrier: returns when all threads have arrived.
  void meet() {
    if (count == 1) return;
    begin_loop(count);
    end_loop(1);
  }

  // A piece of the run of `owner` in a loop, whose run has `size` pieces: from the front if it is the caller, else from the
  // back; -1 if none is left. Whoever comes first begins the run, so that nobody waits for its owner. A thread that comes late
  // finds runs of later loops.
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
  run_left* const runs;
  team_member* const outer;
  unsigned loops = 0;
  unsigned long long due = 0;  // pieces of these loops
};

#if !defined(RL_DEPLOYED)

// Runs body() in each of `threads` threads.
template <class F> inline void in_team(int threads, const F& body) {
  run_left runs[threads];
#pragma omp parallel num_threads(threads)
  {
    team_member member(runs);
    body();
  }
}
#elif defined(_OPENMP)

template <class F> inline void in_team(int threads, const F& body) {
  run_left runs[threads];
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

// Who brings further threads: `ready` says how many there may be, at most as many as asked for; `run` calls body(context, i) for
// each i of [0, threads), side by side, and returns when all are done.
struct helpers {
  int (*ready)(helpers* self, int threads);
  void (*run)(helpers* self, int threads, void (*body)(void* context, int index), void* context);
  inline static thread_local helpers* current = nullptr;  // of the handle whose code runs
};

template <class F> inline void in_team(int threads, const F& body) {
  threads = threads > 1 && helpers::current ? helpers::current->ready(helpers::current, threads) : 1;
  run_left runs[threads];
  if (threads == 1) {
    team_member member(runs);
    body();
    return;
  }
  struct work {
    const F& body;
    run_left* runs;
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
