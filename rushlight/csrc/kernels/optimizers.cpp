// Optimizer steps over lists of parameters, whose elements are divided evenly among threads.
#include "engine.h"

namespace {

// Update one thread's share of all elements, parameter by parameter.
void step_of_thread(int code, const double* options, const RlParameter* parameters, int64_t count, Part part) {
  int64_t start = 0;
  for (int64_t i = 0; i < count; start += parameters[i++].count) {
    const int64_t first = part.first > start ? part.first - start : 0;
    const int64_t rest = part.last - start, last = rest < parameters[i].count ? rest : parameters[i].count;
    if (first < last) rushlight_variant()->optimizer(code, options, &parameters[i], first, last);
  }
}

// Update whole parameters: each goes to the next free thread.
int step_of_matrices(const double* options, const RlParameter* parameters, int64_t count, int threads) {
  int64_t widest = 0, next = 0;
  for (int64_t i = 0; i < count; ++i)
    if (parameters[i].columns > widest) widest = parameters[i].columns;
  const int64_t bytes = (2 * widest + 64) * (int64_t)sizeof(double);
  char* sums = (char*)rushlight_scratch(bytes * threads, BUFFERS);
  if (!sums) return 0;
  in_parallel(threads, [&](int thread, int) {
    for (int64_t i; (i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < count;)
      if (parameters[i].count)
        rushlight_variant()->adafactor((const RlAdafactor*)options, &parameters[i], sums + bytes * thread);
  });
  return 1;
}

// Compute ASGD's learning rate and averaging weight after step number `step`, rounded as float32 tensors would.
void advance_asgd(const RlAsgd& o, double step, double* scalars) {
  const double late = step - o.t0;
  scalars[1] = o.lr / __builtin_pow(1 + o.lambd * o.lr * step, o.alpha);
  scalars[2] = 1 / (late > 1 ? late : 1);
}

void advance(int code, const double* options, double* scalars) {
  if (code == RL_OPTIMIZER_sgd) return;
  const double step = scalars[0] += 1;
  if (code == RL_OPTIMIZER_asgd) advance_asgd(*(const RlAsgd*)options, step, scalars);
  if (code != RL_OPTIMIZER_nadam) return;
  const RlNadam& o = *(const RlNadam*)options;
  scalars[1] = (float)scalars[1] * (float)(o.beta1 * (1 - 0.5 * __builtin_pow(0.96, step * o.momentum_decay)));
}

}  // namespace

int rushlight_optimizer(int code, const double* options, RlParameter* parameters, int64_t count) {
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (parameters[i].dtype != RL_FLOAT32 && parameters[i].dtype != RL_FLOAT64) return 0;
    total += parameters[i].count;
  }
  const int threads = rushlight_threads_for(total);
  if (code == RL_OPTIMIZER_adafactor) {
    if (!step_of_matrices(options, parameters, count, threads)) return 0;
  } else {
    in_parallel(threads, [&](int thread, int started) {
      step_of_thread(code, options, parameters, count, part_of(total, thread, started, 64));
    });
  }
  for (int64_t i = 0; i < count; ++i) advance(code, options, parameters[i].scalars);
  return 1;
}
