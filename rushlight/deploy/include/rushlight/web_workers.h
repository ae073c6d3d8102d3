// Threads of a handle in WebAssembly: workers that JavaScript starts over the same memory, which call `work` and stay in it until
// the handle ends. The main thread of a page may not sleep: it looks until the others are done.
#pragma once

#include <stdint.h>

#include <rushlight/team.h>

namespace rl_team {

class thread_pool : public helpers {
 public:
  thread_pool() {
    ready = make_ready;
    run = start;
  }
  ~thread_pool() {
    __atomic_store_n(&ends, true, __ATOMIC_RELEASE);
    announce();
    while (__atomic_load_n(&workers, __ATOMIC_ACQUIRE) > 0) wait_a_little(0);
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  // One more worker, which is about to call `work`.
  thread_pool* add() {
    __atomic_add_fetch(&workers, 1, __ATOMIC_RELAXED);
    return this;
  }

  void work() {
    int32_t seen = 0;
    for (;;) {
      for (int looks = 0; looks < max_polls && __atomic_load_n(&round, __ATOMIC_ACQUIRE) == seen; ++looks) wait_a_little(looks);
      while (__atomic_load_n(&round, __ATOMIC_ACQUIRE) == seen) __builtin_wasm_memory_atomic_wait32(&round, seen, -1);
      seen = __atomic_load_n(&round, __ATOMIC_ACQUIRE);
      if (__atomic_load_n(&ends, __ATOMIC_ACQUIRE)) break;
      const int index = begin();
      if (index == 0) continue;
      body(context, index);
      __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
    }
    __atomic_sub_fetch(&workers, 1, __ATOMIC_RELEASE);
  }

 private:
  int32_t round = 0;  // how often work was given
  int32_t workers = 0, done = 0;
  uint32_t turns = 0;  // how many may work << 16 | how many have begun
  void (*body)(void*, int) = nullptr;
  void* context = nullptr;
  bool ends = false;

  void announce() {
    __atomic_add_fetch(&round, 1, __ATOMIC_RELEASE);
    __builtin_wasm_memory_atomic_notify(&round, 0xffffffff);
  }

  // The number of a thread that begins; 0 where enough have begun, or all is done.
  int begin() {
    uint32_t seen = __atomic_load_n(&turns, __ATOMIC_ACQUIRE);
    while ((seen & 0xffff) < seen >> 16)
      if (__atomic_compare_exchange_n(&turns, &seen, seen + 1, true, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return (int)(seen & 0xffff);
    return 0;
  }

  static int make_ready(helpers* self, int threads) {
    const int there = __atomic_load_n(&((thread_pool*)self)->workers, __ATOMIC_ACQUIRE) + 1;
    return threads < there ? threads : there;
  }

  // A worker that has not begun when the caller is done finds nothing left, and does not begin.
  static void start(helpers* self, int threads, void (*body)(void*, int), void* context) {
    thread_pool& pool = *(thread_pool*)self;
    pool.body = body;
    pool.context = context;
    __atomic_store_n(&pool.done, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&pool.turns, (uint32_t)threads << 16 | 1, __ATOMIC_RELEASE);
    pool.announce();
    body(context, 0);
    const int others = (int)(__atomic_exchange_n(&pool.turns, 0, __ATOMIC_ACQ_REL) & 0xffff) - 1;
    while (__atomic_load_n(&pool.done, __ATOMIC_ACQUIRE) < others) wait_a_little(0);
  }
};

}  // namespace rl_team
