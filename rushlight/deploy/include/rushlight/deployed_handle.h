// The handle of an exported model, which has `state_count` values from run to run. RL_HANDLE is its type.
#pragma once

#include <new>

#if defined(RL_THREADS) && defined(__wasm__)
#include <rushlight/web_workers.h>
#elif defined(RL_THREADS)
#include <rushlight/helpers.h>
#endif

struct RL_HANDLE : rl::deployed::handle {
  // Inlined: the builds of several levels in one library share this name, and must not share code.
  __attribute__((always_inline)) RL_HANDLE() {}
  __attribute__((always_inline)) ~RL_HANDLE() {}
  rl::deployed::slot states[state_count + 1];
  bool running = false;
#ifdef RL_THREADS
  rl_team::thread_pool pool;
#endif
};
