// The handle of an exported model, which has `state_count` values from run to run. RL_HANDLE is its type.
#pragma once

#include <new>

#ifdef RL_THREADS
#include <rushlight/helpers.h>
#endif

struct RL_HANDLE : rl::deployed::handle {
  rl::deployed::slot states[state_count + 1];
  bool running = false;
#ifdef RL_THREADS
  rl_team::thread_pool pool;
#endif
};
