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

  // Whether a run of this handle has put a value there, which the next run replaces.
  bool is_own(const value& result) const {
    if (result.kind != RL_CONSTANT(TENSOR)) return true;
    const void* data = result.as.tensor.data;
    bool found = turns[0].holds(data) || turns[1].holds(data);
    for (const slot& each : states) found |= each.pools[0].holds(data) || each.pools[1].holds(data);
    return found;
  }
};

}  // namespace deployed
}  // namespace rl
