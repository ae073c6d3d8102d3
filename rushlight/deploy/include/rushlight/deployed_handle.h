// The handle of an exported model, which has `state_count` values from run to run. The C interface gives its address as that of
// an opaque type.
#pragma once

#if defined(RL_THREADS) && defined(__wasm__)
#include <rushlight/web_workers.h>
#elif defined(RL_THREADS)
#include <rushlight/helpers.h>
#endif

namespace rl {
namespace deployed {

struct model_handle : handle {
  slot states[state_count + 1];
  bool running = false;
#ifdef RL_THREADS
  rl_team::thread_pool pool;
#endif
};

}  // namespace deployed
}  // namespace rl
