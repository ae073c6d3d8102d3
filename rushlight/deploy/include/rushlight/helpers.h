// Threads of a handle, for builds without OpenMP: they wait for work of in_team, and end with the handle.
#pragma once

#include <pthread.h>

#include <rushlight/team.h>

namespace rl_team {

constexpr int max_helpers = 63;

class thread_pool : public helpers {
 public:
  thread_pool() {
    ready = make_ready;
    run = start;
    pthread_mutex_init(&lock, nullptr);
    pthread_cond_init(&work_is_there, nullptr);
  }
  ~thread_pool() {
    pthread_mutex_lock(&lock);
    ends = true;
    pthread_cond_broadcast(&work_is_there);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < count; ++i) pthread_join(threads[i], nullptr);
    pthread_cond_destroy(&work_is_there);
    pthread_mutex_destroy(&lock);
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

 private:
  pthread_t threads[max_helpers];
  pthread_mutex_t lock;
  pthread_cond_t work_is_there;
  int count = 0;         // of threads that were started
  unsigned round = 0;    // how often work was given
  int wanted = 0, begun = 0, done = 0;
  void (*body)(void*, int) = nullptr;
  void* context = nullptr;
  bool ends = false;

  static int make_ready(helpers* self, int threads) {
    thread_pool& pool = *(thread_pool*)self;
    while (pool.count < threads - 1 && pool.count < max_helpers) {
      if (pthread_create(&pool.threads[pool.count], nullptr, wait_for_work, &pool) != 0) break;
      ++pool.count;
    }
    return threads < pool.count + 1 ? threads : pool.count + 1;
  }

  // A thread that has not begun when the caller is done finds nothing left, and does not begin.
  static void start(helpers* self, int threads, void (*body)(void*, int), void* context) {
    thread_pool& pool = *(thread_pool*)self;
    pthread_mutex_lock(&pool.lock);
    pool.body = body;
    pool.context = context;
    pool.wanted = threads;
    pool.begun = 1;
    __atomic_store_n(&pool.done, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&pool.round, 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&pool.work_is_there);
    pthread_mutex_unlock(&pool.lock);
    body(context, 0);
    pthread_mutex_lock(&pool.lock);
    pool.wanted = pool.begun;  // nobody begins any more
    const int others = pool.begun - 1;
    pthread_mutex_unlock(&pool.lock);
    for (int looks = 0; __atomic_load_n(&pool.done, __ATOMIC_ACQUIRE) < others; looks += looks <= max_polls)
      wait_a_little(looks);
  }

  static void* wait_for_work(void* self) {
    thread_pool& pool = *(thread_pool*)self;
    unsigned seen = 0;
    for (;;) {
      for (int looks = 0; looks < max_polls && __atomic_load_n(&pool.round, __ATOMIC_ACQUIRE) == seen; ++looks) wait_a_little(looks);
      pthread_mutex_lock(&pool.lock);
      while (pool.round == seen && !pool.ends) pthread_cond_wait(&pool.work_is_there, &pool.lock);
      seen = pool.round;
      if (pool.ends) {
        pthread_mutex_unlock(&pool.lock);
        return nullptr;
      }
      const int index = pool.begun < pool.wanted ? pool.begun++ : 0;
      void (*const body)(void*, int) = pool.body;
      void* const context = pool.context;
      pthread_mutex_unlock(&pool.lock);
      if (index == 0) continue;
      body(context, index);
      __atomic_add_fetch(&pool.done, 1, __ATOMIC_RELEASE);
    }
  }
};

}  // namespace rl_team
