// Scratch memory, which each thread keeps from call to call.
#include <pthread.h>
#include <stdlib.h>

#include "engine.h"

namespace {

constexpr int64_t MAX_KEPT_BYTES = 64 << 20;  // bytes; larger scratch memory is freed at the next request for less

struct Kept {
  void* memory[SCRATCH_COUNT];
  int64_t bytes[SCRATCH_COUNT];
};

pthread_key_t key;
pthread_once_t once = PTHREAD_ONCE_INIT;

void release(void* given) {
  Kept* kept = (Kept*)given;
  for (void* memory : kept->memory) free(memory);
  free(kept);
}

Kept* of_this_thread() {
  pthread_once(&once, [] { pthread_key_create(&key, release); });
  Kept* kept = (Kept*)pthread_getspecific(key);
  if (!kept && (kept = (Kept*)calloc(1, sizeof *kept))) pthread_setspecific(key, kept);
  return kept;
}

}  // namespace

void* rushlight_scratch(int64_t bytes, ScratchUse use) {
  Kept* kept = of_this_thread();
  if (!kept) return nullptr;
  if (kept->bytes[use] < bytes || (kept->bytes[use] > MAX_KEPT_BYTES && bytes <= MAX_KEPT_BYTES)) {
    free(kept->memory[use]);
    kept->bytes[use] = 0;
    kept->memory[use] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (kept->memory[use]) kept->bytes[use] = bytes;
  }
  return kept->memory[use];
}
