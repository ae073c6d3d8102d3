// Optimizer steps over lists of parameters, whose elements are shared out evenly.
#include "engine.h"

namespace {

template <class O, class F>
int step(const O* options, int dtype, const RlParameter* parameters, int64_t count, const F& kernel) {
  if (dtype != RL_FLOAT32 && dtype != RL_FLOAT64) return 0;
  int64_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += parameters[i].count;
  in_parallel(rushlight_threads_for(total), [&](int thread, int threads) {
    const int64_t unit = 64, units = (total + unit - 1) / unit;
    const int64_t begin = units * thread / threads * unit, end = units * (thread + 1) / threads * unit;
    int64_t start = 0;
    for (int64_t i = 0; i < count; start += parameters[i++].count) {
      const int64_t first = begin > start ? begin - start : 0;
      const int64_t rest = end - start, last = rest < parameters[i].count ? rest : parameters[i].count;
      if (first < last) kernel(options, dtype, &parameters[i], first, last);
    }
  });
  return 1;
}

}  // namespace

int rushlight_adam(const RlAdam* options, int dtype, const RlParameter* parameters, int64_t count) {
  return step(options, dtype, parameters, count, rushlight_variant()->adam);
}

int rushlight_sgd(const RlSgd* options, int dtype, const RlParameter* parameters, int64_t count) {
  return step(options, dtype, parameters, count, rushlight_variant()->sgd);
}
