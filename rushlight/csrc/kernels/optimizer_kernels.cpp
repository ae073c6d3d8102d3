// One step of an optimizer over a range of a parameter's elements. The formulas are those of rushlight.optim.
#include <rushlight/elementwise.h>

#include "spans.h"
#include "variant.h"

namespace rl {

// Call body(lane, index) over [first, last); the body reads and writes arrays by index.
template <class F> RL_INLINE void each_index(int64_t first, int64_t last, const F& body) {
  int64_t i = first;
  for (; i + lanes <= last; i += lanes) body(vector_lane{}, i);
  for (; i < last; ++i) body(scalar_lane{}, i);
}

static double power(double base, double exponent) { return __builtin_pow(base, exponent); }

// A parameter's arrays. slope() is the effective gradient: negated for `maximize`, plus weight decay.
template <class T> struct Arrays {
  T *parameter, *states[RL_MAX_STATES];
  const T* gradient;
  T direction, decay;

  Arrays(const RlParameter& given, double maximize, double weight_decay)
      : parameter((T*)given.parameter), states{(T*)given.states[0], (T*)given.states[1], (T*)given.states[2]},
        gradient((const T*)given.gradient), direction(maximize != 0 ? (T)-1 : (T)1), decay((T)weight_decay) {}

  template <class L, class V> RL_INLINE V slope(L lane, int64_t i, V p) const {
    V g = lane.load(gradient + i) * direction;
    return decay != (T)0 ? g + p * decay : g;
  }
};

template <class T> void step(const RlSgd& o, const RlParameter& given, int64_t first, int64_t last) {
  const Arrays<T> a(given, o.maximize, o.weight_decay);
  T* velocity = a.states[0];
  const bool fresh = given.scalars[0] == 0, nesterov = o.nesterov != 0;
  const T lr = (T)-o.lr, momentum = (T)o.momentum, share = fresh ? (T)1 : (T)(1 - o.dampening);
  const T kept = fresh ? (T)0 : momentum;
  each_index(first, last, [&](auto lane, int64_t i) {
    auto p = lane.load(a.parameter + i), g = a.slope(lane, i, p);
    if (velocity) {
      auto v = g * share;
      if (kept != (T)0) v = v + lane.load(velocity + i) * kept;
      lane.store(velocity + i, v);
      g = nesterov ? g + v * momentum : v;
    }
    lane.store(a.parameter + i, p + g * lr);
  });
}

// The common part of Adam and its variants. Weight decay either shrinks the parameter or is added to the gradient; then both
// moments are updated.
template <class T> struct Moments {
  Arrays<T> a;
  T shrink, weight, beta2, rest2;

  template <class O> Moments(const O& o, const RlParameter& given)
      : a(given, o.maximize, o.decoupled_weight_decay != 0 ? 0 : o.weight_decay),
        shrink(o.decoupled_weight_decay != 0 ? (T)(1 - o.lr * o.weight_decay) : (T)1), weight((T)(1 - o.beta1)),
        beta2((T)o.beta2), rest2((T)(1 - o.beta2)) {}

  // Update the moments, and set the parameter to result(parameter, gradient, mean, square).
  template <class L, class F> RL_INLINE void move(L lane, int64_t i, const F& result) const {
    auto p = lane.load(a.parameter + i) * shrink, g = a.slope(lane, i, p);
    auto m = lane.load(a.states[0] + i), v = lane.load(a.states[1] + i) * beta2 + g * g * rest2;
    m = m + (g - m) * weight;
    lane.store(a.states[0] + i, m);
    lane.store(a.states[1] + i, v);
    lane.store(a.parameter + i, result(p, g, m, v));
  }
};

// Roots and divisions are slower than memory, so the formula is arranged to use one of each.
template <class T> void step(const RlAdam& o, const RlParameter& given, int64_t first, int64_t last) {
  const Moments<T> moments(o, given);
  T* largest = (T*)given.states[2];
  const double number = given.scalars[0] + 1;
  const T size = (T)(-o.lr / (1 - power(o.beta1, number))), eps = (T)o.eps;
  const T correction = (T)(1 / __builtin_sqrt(1 - power(o.beta2, number)));
  each_index(first, last, [&](auto lane, int64_t i) {
    moments.move(lane, i, [&](auto p, auto, auto m, auto v) {
      if (largest) {
        v = maximum(lane.load(largest + i), v);
        lane.store(largest + i, v);
      }
      return p + m * size / (sqrt(v) * correction + eps);
    });
  });
}

template <class T> void step(const RlRmsprop& o, const RlParameter& given, int64_t first, int64_t last) {
  const Arrays<T> a(given, o.maximize, o.weight_decay);
  T *square = a.states[0], *velocity = a.states[1], *mean = a.states[2];
  const T lr = (T)-o.lr, alpha = (T)o.alpha, rest = (T)(1 - o.alpha), eps = (T)o.eps, momentum = (T)o.momentum;
  each_index(first, last, [&](auto lane, int64_t i) {
    auto p = lane.load(a.parameter + i), g = a.slope(lane, i, p);
    auto v = lane.load(square + i) * alpha + g * g * rest;
    lane.store(square + i, v);
    if (mean) {
      auto m = lane.load(mean + i);
      m = m + (g - m) * rest;
      lane.store(mean + i, m);
      v = v - m * m;
    }
    g = g / (sqrt(v) + eps);
    if (velocity) {
      g = lane.load(velocity + i) * momentum + g;
      lane.store(velocity + i, g);
    }
    lane.store(a.parameter + i, p + g * lr);
  });
}

template <class T> void step(const RlAdagrad& o, const RlParameter& given, int64_t first, int64_t last) {
  const Arrays<T> a(given, o.maximize, o.weight_decay);
  T* sum = a.states[0];
  const T rate = (T)(-o.lr / (1 + given.scalars[0] * o.lr_decay)), eps = (T)o.eps;
  each_index(first, last, [&](auto lane, int64_t i) {
    auto p = lane.load(a.parameter + i), g = a.slope(lane, i, p);
    auto s = lane.load(sum + i) + g * g;
    lane.store(sum + i, s);
    lane.store(a.parameter + i, p + g / (sqrt(s) + eps) * rate);
  });
}

template <class T> void step(const RlAdadelta& o, const RlParameter& given, int64_t first, int64_t last) {
  const Arrays<T> a(given, o.maximize, o.weight_decay);
  T *square = a.states[0], *moved = a.states[1];
  const T lr = (T)-o.lr, rho = (T)o.rho, rest = (T)(1 - o.rho), eps = (T)o.eps;
  each_index(first, last, [&](auto lane, int64_t i) {
    auto p = lane.load(a.parameter + i), g = a.slope(lane, i, p);
    auto v = lane.load(square + i) * rho + g * g * rest, u = lane.load(moved + i);
    auto delta = sqrt(u + eps) / sqrt(v + eps) * g;
    lane.store(square + i, v);
    lane.store(moved + i, u * rho + delta * delta * rest);
    lane.store(a.parameter + i, p + delta * lr);
  });
}

template <class T> void step(const RlAdamax& o, const RlParameter& given, int64_t first, int64_t last) {
  const Arrays<T> a(given, o.maximize, o.weight_decay);
  T *mean = a.states[0], *largest = a.states[1];
  const T size = (T)(-o.lr / (1 - power(o.beta1, given.scalars[0] + 1))), weight = (T)(1 - o.beta1);
  const T beta2 = (T)o.beta2, eps = (T)o.eps;
  each_index(first, last, [&](auto lane, int64_t i) {
    auto p = lane.load(a.parameter + i), g = a.slope(lane, i, p);
    auto m = lane.load(mean + i);
    m = m + (g - m) * weight;
    auto u = maximum(lane.load(largest + i) * beta2, abs(g) + eps);
    lane.store(mean + i, m);
    lane.store(largest + i, u);
    lane.store(a.parameter + i, p + m / u * size);
  });
}

template <class T> void step(const RlNadam& o, const RlParameter& given, int64_t first, int64_t last) {
  const Moments<T> moments(o, given);
  const double number = given.scalars[0] + 1, now = o.beta1 * (1 - 0.5 * power(0.96, number * o.momentum_decay));
  const double next = o.beta1 * (1 - 0.5 * power(0.96, (number + 1) * o.momentum_decay));
  const double product = (float)given.scalars[1] * (float)now;
  const T from_gradient = (T)(-o.lr * (1 - now) / (1 - product)), from_mean = (T)(-o.lr * next / (1 - product * next));
  const T correction = (T)(1 / (1 - power(o.beta2, number))), eps = (T)o.eps;
  each_index(first, last, [&](auto lane, int64_t i) {
    moments.move(lane, i, [&](auto p, auto g, auto m, auto v) {
      return p + (g * from_gradient + m * from_mean) / (sqrt(v * correction) + eps);
    });
  });
}

// RAdam's rectification term for the variance of early steps; 0 while it is intractable (an average of length 5 or less).
static double rectification(double beta2, double number) {
  const double limit = 2 / (1 - beta2) - 1, decayed = power(beta2, number);
  const double length = limit - 2 * number * decayed / (1 - decayed);
  if (!(length > 5)) return 0;
  return __builtin_sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length));
}

template <class T> void step(const RlRadam& o, const RlParameter& given, int64_t first, int64_t last) {
  const Moments<T> moments(o, given);
  const double number = given.scalars[0] + 1, factor = rectification(o.beta2, number);
  const double size = -o.lr / (1 - power(o.beta1, number));
  const T plain = (T)size, adaptive = (T)(size * factor * __builtin_sqrt(1 - power(o.beta2, number))), eps = (T)o.eps;
  each_index(first, last, [&](auto lane, int64_t i) {
    moments.move(lane, i, [&](auto p, auto, auto m, auto v) {
      return factor != 0 ? p + m / (sqrt(v) + eps) * adaptive : p + m * plain;
    });
  });
}

template <class T> void step(const RlAsgd& o, const RlParameter& given, int64_t first, int64_t last) {
  const Arrays<T> a(given, o.maximize, o.weight_decay);
  T* average = a.states[0];
  const double eta = given.scalars[1];
  const T shrink = (T)(1 - o.lambd * eta), rate = (T)-eta, weight = (T)given.scalars[2];
  each_index(first, last, [&](auto lane, int64_t i) {
    auto p = lane.load(a.parameter + i), g = a.slope(lane, i, p);
    p = p * shrink + g * rate;
    auto mean = lane.load(average + i);
    lane.store(average + i, weight == (T)1 ? p : mean + (p - mean) * weight);
    lane.store(a.parameter + i, p);
  });
}

template <class T> void step(const RlRprop& o, const RlParameter& given, int64_t first, int64_t last) {
  const Arrays<T> a(given, o.maximize, 0);
  T *previous = a.states[0], *sizes = a.states[1];
  each_index(first, last, [&](auto lane, int64_t i) {
    auto p = lane.load(a.parameter + i), g = a.slope(lane, i, p);
    using V = decltype(p);
    const V zero = splat<V>(0), agreement = g * lane.load(previous + i);
    const V shrink = splat<V>(o.shrink), grow = splat<V>(o.grow), same = splat<V>(1);
    V size = lane.load(sizes + i) * where(gt(agreement, zero), grow, where(lt(agreement, zero), shrink, same));
    size = minimum(maximum(size, splat<V>(o.smallest)), splat<V>(o.largest));
    g = where(lt(agreement, zero), zero, g);
    lane.store(sizes + i, size);
    lane.store(previous + i, g);
    lane.store(a.parameter + i, p - sign(g) * size);
  });
}

// flatten inlines the formulas. Otherwise each vector would cost a call, which reloads the captured values from memory.
template <class O>
__attribute__((flatten)) void step_of(const void* options, const RlParameter& parameter, int64_t first, int64_t last) {
  if (parameter.dtype == RL_FLOAT64) step<double>(*(const O*)options, parameter, first, last);
  else step<float>(*(const O*)options, parameter, first, last);
}

using Step = void (*)(const void*, const RlParameter&, int64_t, int64_t);
#define RL_SPANS(options) step_of<options>
#define RL_MATRICES(options) nullptr
#define RL_STEP(name, options, states, scalars, class) RL_##class(options),
static const Step steps[RL_OPTIMIZER_COUNT] = {RL_OPTIMIZERS(RL_STEP)};
#undef RL_STEP

void optimizer(int code, const double* options, const RlParameter* parameter, int64_t first, int64_t last) {
  steps[code](options, *parameter, first, last);
}

}  // namespace rl
