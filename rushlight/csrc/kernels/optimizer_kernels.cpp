// One step of an optimizer over a range of a parameter's elements.
#include <rushlight/elementwise.h>

#include "spans.h"
#include "variant.h"

namespace rl {

// body(lane values...) over [first, last) of arrays that it reads and writes by index.
template <class T, class F> RL_INLINE void each_index(int64_t first, int64_t last, const F& body) {
  int64_t i = first;
  for (; i + lanes <= last; i += lanes) body(vector_lane{}, i);
  for (; i < last; ++i) body(scalar_lane{}, i);
}

static double power(double base, double exponent) { return __builtin_pow(base, exponent); }

template <class T> void adam(const RlAdam& o, const RlParameter& given, int64_t first, int64_t last) {
  T *parameter = (T*)given.parameter, *mean = (T*)given.exp_avg, *square = (T*)given.exp_avg_sq;
  T* largest = (T*)given.max_exp_avg_sq;
  const T* gradient = (const T*)given.gradient;
  const T step_size = (T)(-o.lr / (1 - power(o.beta1, given.step)));
  const T correction = (T)__builtin_sqrt(1 - power(o.beta2, given.step));
  const T shrink = o.decoupled_weight_decay ? (T)(1 - o.lr * o.weight_decay) : (T)1;
  const T decay = o.decoupled_weight_decay ? (T)0 : (T)o.weight_decay;
  const T weight = (T)(1 - o.beta1), beta2 = (T)o.beta2, rest2 = (T)(1 - o.beta2), eps = (T)o.eps;
  const T direction = o.maximize ? (T)-1 : (T)1;
  each_index<T>(first, last, [&](auto lane, int64_t i) {
    auto p = lane.load(parameter + i) * shrink;
    auto g = lane.load(gradient + i) * direction;
    if (decay != (T)0) g = g + p * decay;
    auto m = lane.load(mean + i), v = lane.load(square + i) * beta2 + g * g * rest2;
    m = m + (g - m) * weight;
    lane.store(mean + i, m);
    lane.store(square + i, v);
    if (o.amsgrad) {
      v = maximum(lane.load(largest + i), v);
      lane.store(largest + i, v);
    }
    lane.store(parameter + i, p + m * step_size / (sqrt(v) / correction + eps));
  });
}

template <class T> void sgd(const RlSgd& o, const RlParameter& given, int64_t first, int64_t last) {
  T *parameter = (T*)given.parameter, *velocity = (T*)given.momentum;
  const T* gradient = (const T*)given.gradient;
  const T lr = (T)-o.lr, momentum = (T)o.momentum, decay = (T)o.weight_decay, direction = o.maximize ? (T)-1 : (T)1;
  const T share = given.step <= 1 ? (T)1 : (T)(1 - o.dampening);
  const T kept = given.step <= 1 ? (T)0 : momentum;
  each_index<T>(first, last, [&](auto lane, int64_t i) {
    auto p = lane.load(parameter + i);
    auto g = lane.load(gradient + i) * direction;
    if (decay != (T)0) g = g + p * decay;
    if (velocity) {
      auto v = g * share;
      if (kept != (T)0) v = v + lane.load(velocity + i) * kept;
      lane.store(velocity + i, v);
      g = o.nesterov ? g + v * momentum : v;
    }
    lane.store(parameter + i, p + g * lr);
  });
}

void adam_range(const RlAdam* options, int dtype, const RlParameter* parameter, int64_t first, int64_t last) {
  (dtype == RL_FLOAT64 ? adam<double> : adam<float>)(*options, *parameter, first, last);
}
void sgd_range(const RlSgd* options, int dtype, const RlParameter* parameter, int64_t first, int64_t last) {
  (dtype == RL_FLOAT64 ? sgd<double> : sgd<float>)(*options, *parameter, first, last);
}

}  // namespace rl
