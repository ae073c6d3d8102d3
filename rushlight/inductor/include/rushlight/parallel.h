// Work sharing between threads. A graph runs inside one `#pragma omp parallel`: every thread calls every kernel, and each
// kernel shares its loops among the threads by rl::shared. The end of a shared loop is a barrier. Outside a parallel region,
// one thread does all.
//
// A loop ends when all its pieces are done, not when all threads have reached it: if the cores also run other programs, a
// thread may be suspended for longer than whole kernels take. So a thread may reach a loop that ended long ago. Outside of
// shared loops a thread must write only to its stack, unless `rl::barrier()` follows before the kernel ends: its scratch memory
// may belong to a later kernel by then.
#pragma once

#if defined(_OPENMP) && !defined(RL_DEPLOYED)
#include <omp.h>
#endif

#include <rushlight/team.h>
#include <rushlight/vec.h>

namespace rl {

using rl_team::in_team;
using rl_team::loop_progress;
using rl_team::team_member;
constexpr int pieces_per_thread = 16;  // pieces into which a thread's share of a loop is divided

#if defined(RL_DEPLOYED)  // the caller may be in a parallel region of its own
RL_INLINE int thread_index() { return team_member::current ? team_member::current->index : 0; }
RL_INLINE int thread_count() { return team_member::current ? team_member::current->count : 1; }
#elif defined(_OPENMP)
RL_INLINE int thread_index() { return omp_get_thread_num(); }
RL_INLINE int thread_count() { return omp_get_num_threads(); }
#else
RL_INLINE int thread_index() { return 0; }
RL_INLINE int thread_count() { return 1; }
#endif

// Wait for all threads of the region.
RL_INLINE void barrier() {
#if defined(RL_DEPLOYED)
  if (team_member::current) team_member::current->meet();
#else
#pragma omp barrier
#endif
}

// A loop shared among all threads of a region, written `for (const long i : rl::shared(count))`; it ends when all iterations
// are done. Each thread has a run of iterations, divided into pieces, and takes pieces from the front. When its run is empty,
// it steals pieces from the back of the others' runs: a suspended thread delays the others by at most the piece that it has
// begun. Each thread of the region must have a team_member. A loop must not be left early.
class __attribute__((visibility("hidden"))) shared {
 public:
  long first = 0, last = 0;  // the current piece

  RL_INLINE explicit shared(long count) : count(count) {}

  // Advance to a remaining piece. If there is none, wait until all are done, and return false.
  bool next();

  struct end_of_loop {};
  struct iterator {
    shared& loop;
    long at;
    RL_INLINE long operator*() const { return at; }
    RL_INLINE void operator++() {
      if (++at == loop.last) at = loop.next() ? loop.first : -1;
    }
    RL_INLINE bool operator!=(end_of_loop) const { return at >= 0; }
  };
  RL_INLINE iterator begin() { return {*this, next() ? first : -1}; }
  RL_INLINE end_of_loop end() const { return {}; }

 private:
  const long count;
  int passed = 0;  // the number of threads, beginning with this one, whose runs are known to be empty
  long taken = 0;  // the number of pieces that this thread took
  unsigned number = 0;  // the number of the loop in its region, counted from 1
};

#ifndef RL_PREBUILT
RL_KERNEL bool shared::next() {
  const int threads = thread_count(), thread = thread_index();
  if (threads == 1) {
    last = count;
    if (passed++ == 0 && count > 0) return true;
    finish_streams();
    return false;
  }
  team_member& member = *team_member::current;
  const long most = (long)pieces_per_thread * threads, pieces = count < most ? count : most;
  if (number == 0) number = member.begin_loop(pieces);
  for (; passed < threads; ++passed) {
    const int owner = (thread + passed) % threads;
    const long begin = pieces * owner / threads, size = pieces * (owner + 1) / threads - begin;
    const long piece = begin + member.take(owner, number, size, passed == 0);
    if (piece < begin) continue;
    first = count * piece / pieces, last = count * (piece + 1) / pieces;
    ++taken;
    return true;
  }
  finish_streams();
  member.end_loop(taken);
  return false;
}
#endif

// The largest, and the smallest, of some sizes.
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

// Copy n elements, shared among the threads.
template <class T> __attribute__((noinline)) void copy_shared(T* to, const T* from, long n) {
  constexpr long step = 1024;
  for (const long block : shared((n + step - 1) / step))
    __builtin_memcpy(to + block * step, from + block * step, smallest(step, n - block * step) * sizeof(T));
}

// Call act(i), in order, for each i of [0, count) for which own(i) is true; each i must belong to exactly one thread. The
// own(i) of a block are recorded without branches: if they are random, half of the branches would be mispredicted.
template <class Own, class Act> RL_INLINE void for_own(long count, Own own, Act act) {
  if (thread_count() == 1) {
    for (long i = 0; i < count; ++i) act(i);
    return;
  }
  constexpr long block = 256;
  for (long first = 0; first < count; first += block) {
    long owned[block], found = 0;
    for (long i = first; i < smallest(first + block, count); ++i) {
      owned[found] = i;
      found += own(i);
    }
    for (long at = 0; at < found; ++at) act(owned[at]);
  }
}

}  // namespace rl
