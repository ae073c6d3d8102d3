// Chooses the instruction set and the number of threads.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

namespace {

// the work, in elements, that each thread should get: with less, another thread costs more than it gains
constexpr int64_t MIN_THREAD_WORK = 32768;

int thread_limit = 1;
bool forked = false;  // OpenMP threads do not survive a fork; a child process that waits for them would hang

const Variant* chosen = &rushlight_variant_baseline;

bool supported(const char* name) {
#ifdef RUSHLIGHT_HAVE_avx512
  if (!strcmp(name, "avx512"))
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#endif
#ifdef RUSHLIGHT_HAVE_avx2
  if (!strcmp(name, "avx2")) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
  return !strcmp(name, "baseline");
}

const Variant* const variants[] = {
#ifdef RUSHLIGHT_HAVE_avx512
    &rushlight_variant_avx512,
#endif
#ifdef RUSHLIGHT_HAVE_avx2
    &rushlight_variant_avx2,
#endif
    &rushlight_variant_baseline,
};

}  // namespace

const Variant* rushlight_variant() { return chosen; }

int rushlight_choose_variant(const char* wanted) {
#if defined(__x86_64__)
  __builtin_cpu_init();
#endif
  for (const Variant* variant : variants)
    if ((!wanted || !strcmp(wanted, variant->name)) && supported(variant->name)) {
      chosen = variant;
      return 1;
    }
  return 0;
}

void rushlight_watch_forks() {
  pthread_atfork(nullptr, nullptr, [] {
    forked = true;
#ifdef _OPENMP
    omp_set_max_active_levels(0);  // compiled graphs ask for their own number of threads, but get one after a fork
#endif
  });
}

void rushlight_set_threads(int count) { __atomic_store_n(&thread_limit, count < 1 ? 1 : count, __ATOMIC_RELAXED); }

int rushlight_get_threads() { return forked ? 1 : __atomic_load_n(&thread_limit, __ATOMIC_RELAXED); }

int rushlight_threads_for(int64_t work) {
  const int limit = rushlight_get_threads();
  const int64_t useful = work / MIN_THREAD_WORK + 1;
  return useful < limit ? (int)useful : limit;
}
