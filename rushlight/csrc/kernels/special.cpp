// Special functions in float64, element by element.
//
// Sources of the formulas: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions" (1964), here A&S; W. Lentz's method
// for continued fractions; N. Temme's form of the factor of the incomplete gamma functions for large parameters.
#include <math.h>
#include <string.h>

#include "arrays.h"

namespace {

constexpr double PI = 3.141592653589793238463, ROOT_2 = 1.414213562373095048802, ROOT_PI = 1.772453850905516027298;
constexpr double EPSILON = 1.1e-16;

double erfc_of(double x) { return erfc(x); }

// A&S 6.1. The sign of gamma is dropped.
double lgamma_of(double x) {
  int sign;
  return isinf(x) ? INFINITY : lgamma_r(x, &sign);
}

// A&S 6.3.18 for large x, 6.3.5 for small, 6.3.7 for negative. Near the zero at 1.46 it is a product, so that the relative
// error stays small.
double digamma_of(double x) {
  if (x == 0) return copysign(INFINITY, -x);
  if (isinf(x)) return x > 0 ? x : NAN;
  if (x < 0) {
    if (floor(x) == x) return NAN;
    double whole;
    return digamma_of(1 - x) - PI / tan(PI * modf(x, &whole));
  }
  constexpr double ZERO = 1.4616321449683622, ZERO_REST = 9.5499954299656977e-17;
  if (fabs(x - ZERO) < 0.05) {  // digamma(ZERO) = 0, so digamma(x) is the sum of 1 / (n + ZERO) - 1 / (n + x)
    const double gap = (x - ZERO) - ZERO_REST;
    double sum = 0;
    for (int n = 0; n < 30; ++n) sum += 1 / ((n + ZERO) * (n + x));
    const double a = ZERO + 30, b = x + 30;  // the remaining terms, from the asymptotic series of both
    const double a2 = a * a, b2 = b * b, s = a + b;
    double rest = log1p((x - ZERO) / a) / (x - ZERO == 0 ? 1 : x - ZERO);
    if (x == ZERO) rest = 1 / a;
    rest += 0.5 / (a * b) + s / (12 * a2 * b2) - s * (a2 + b2) / (120 * a2 * a2 * b2 * b2);
    rest += s * (a2 * a2 + a2 * b2 + b2 * b2) / (252 * a2 * a2 * a2 * b2 * b2 * b2);
    return gap * (sum + rest);
  }
  double sum = 0;
  for (; x < 12; ++x) sum -= 1 / x;
  const double y = 1 / (x * x);
  const double tail = y * (1. / 12 - y * (1. / 120 - y * (1. / 252 - y * (1. / 240 - y * (1. / 132 - y * 691. / 32760)))));
  return sum + log(x) - 0.5 / x - tail;
}

double erfcx_of(double x);

// The x > 0 with erfc(x) = y for 0 < y <= 1: A&S 26.2.23, and three steps of Halley's method, or of Newton's on logarithms.
double erfc_inverse(double y) {
  const double t = sqrt(-2 * (log(y) - log(2)));
  double x = (t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))) / ROOT_2;
  for (int step = 0; step < 3; ++step) {
    if (y < 1e-200) {
      const double scaled = erfcx_of(x);
      x += (log(scaled) - x * x - log(y)) * scaled * (ROOT_PI / 2);
      continue;
    }
    const double wrong = (erfc(x) - y) * (ROOT_PI / 2) * exp(x * x);
    x += wrong / (1 + x * wrong);
  }
  return x;
}

double erfinv_of(double x) {
  const double size = fabs(x);
  if (!(size < 1)) return size == 1 ? copysign(INFINITY, x) : NAN;
  if (size > 0.5) return copysign(erfc_inverse(1 - size), x);
  double y = x * ROOT_PI / 2 * (1 + PI * x * x / 12);
  for (int step = 0; step < 4; ++step) {
    const double wrong = (erf(y) - x) * (ROOT_PI / 2) * exp(y * y);
    y -= wrong / (1 + y * wrong);
  }
  return y;
}

double ndtri_of(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  if (p < 0.25) return -ROOT_2 * erfc_inverse(2 * p);
  return ROOT_2 * erfinv_of(2 * p - 1);
}

// exp(x^2) erfc(x): A&S 7.1.14, a continued fraction, for large x.
double erfcx_of(double x) {
  if (x < 0) return x < -26.7 ? INFINITY : 2 * exp(x * x) - erfcx_of(-x);
  if (x < 6) {  // compensates the rounding of x^2
    const double square = x * x;
    return exp(square) * (1 + fma(x, x, -square)) * erfc(x);
  }
  if (x > 1e8) return 1 / (x * ROOT_PI);
  double fraction = x;
  for (int n = 60; n > 0; --n) fraction = x + n * 0.5 / fraction;
  return 1 / (ROOT_PI * fraction);
}

double log_ndtr_of(double x) {
  if (x < -1) return log(erfcx_of(-x / ROOT_2) / 2) - x * x / 2;
  return log1p(-erfc(x / ROOT_2) / 2);
}

double entr_of(double x) { return x > 0 ? -x * log(x) : x == 0 ? 0 : x < 0 ? -INFINITY : x; }

double xlogy_of(double x, double y) { return x == 0 && !isnan(y) ? 0 : x * log(y); }
double xlog1py_of(double x, double y) { return x == 0 && !isnan(y) ? 0 : x * log1p(y); }

// exp(-x) I(x) of order 0 or 1, x >= 0: A&S 9.6.10, whose terms are positive, and 9.7.1 for large x.
double bessel_scaled(int order, double x) {
  if (isnan(x)) return x;
  if (x < 30) {
    const double quarter = x * x / 4;
    double term = order ? x / 2 : 1, sum = term;
    for (int k = 1; term > sum * EPSILON; ++k) sum += term *= quarter / ((double)k * (k + order));
    return exp(-x) * sum;
  }
  const double mu = 4. * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    const double next = -term * (mu - (2. * k - 1) * (2. * k - 1)) / (k * 8 * x);
    if (fabs(next) < EPSILON * fabs(sum) || fabs(next) > fabs(term)) break;
    sum += term = next;
  }
  return isinf(x) ? 0 : sum / sqrt(2 * PI * x);
}

double i0e_of(double x) { return bessel_scaled(0, fabs(x)); }
double i1e_of(double x) { return copysign(bessel_scaled(1, fabs(x)), x); }

// Split the exponential in two factors, so that it overflows no earlier than the result.
double i0_of(double x) {
  const double half = exp(fabs(x) / 2);
  return isinf(x) ? INFINITY : i0e_of(x) * half * half;
}
double i1_of(double x) {
  const double half = exp(fabs(x) / 2);
  return isinf(x) ? x : i1e_of(x) * half * half;
}

// Hurwitz's zeta function by the summation formula of Euler and Maclaurin (A&S 23.2.9 is its case q = 1).
double zeta_of(double s, double q) {
  if (isnan(s) || isnan(q)) return NAN;
  if (s == 1) return INFINITY;
  if (s < 1) return NAN;
  if (q <= 0) {
    if (q == floor(q)) return INFINITY;
    if (s != floor(s)) return NAN;
  }
  if (q > 1e8) return (1 / (s - 1) + 0.5 / q) * pow(q, 1 - s);
  double sum = 0, a = q;
  int n = 0;
  for (; n < 10 || a <= 10; ++n, ++a) {
    const double term = pow(a, -s);
    sum += term;
    if (fabs(term) < EPSILON * fabs(sum)) return sum;
  }
  const double power = pow(a, -s);
  sum += power * a / (s - 1) + 0.5 * power;
  static const double numbers[] = {  // Bernoulli numbers over factorials
      1. / 12, -1. / 720, 1. / 30240, -1. / 1209600, 1. / 47900160, -691. / 1307674368000., 1. / 74724249600.,
      -3617. / 10670622842880000., 43867. / 5109094217170944000., -174611. / 802857662698291200000.};
  double factor = s * power / a;
  for (int k = 0; k < 10; ++k) {
    const double term = numbers[k] * factor;
    sum += term;
    if (fabs(term) < EPSILON * fabs(sum)) break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (a * a);
  }
  return sum;
}

// x^a exp(-x) / Gamma(a + 1). For large a it is exp(-a (l - 1 - ln l)) / sqrt(2 pi a) with l = x / a, over Stirling's series.
double gamma_factor(double a, double x) {
  if (a < 20) return exp(a * log(x) - x - lgamma_of(a + 1));
  const double gap = (x - a) / a;
  double distance;  // l - 1 - ln l
  if (fabs(gap) > 0.3) distance = gap - log1p(gap);
  else {
    double power = gap * gap, sum = 0;
    for (int k = 2; k < 60; ++k, power *= -gap) {
      const double term = power / k;
      sum += term;
      if (fabs(term) < EPSILON * fabs(sum)) break;
    }
    distance = sum;
  }
  const double y = 1 / (a * a);
  const double stirling = (1. / 12 - y * (1. / 360 - y * (1. / 1260 - y * (1. / 1680 - y / 1188)))) / a;
  return exp(-a * distance - stirling) / sqrt(2 * PI * a);
}

constexpr int MAX_TERMS = 200000;

// A&S 6.5.29: the lower function, over Gamma(a).
double gamma_series(double a, double x) {
  double term = 1, sum = 1;
  for (int n = 1; n < MAX_TERMS && term > EPSILON * sum; ++n) sum += term *= x / (a + n);
  return gamma_factor(a, x) * sum;
}

// A&S 6.5.31 by Lentz's method: the upper function, over Gamma(a).
double gamma_fraction(double a, double x) {
  constexpr double TINY = 1e-300;
  double b = x + 1 - a, c = 1 / TINY, d = 1 / (b == 0 ? TINY : b), result = d;
  for (int n = 1; n < MAX_TERMS; ++n) {
    const double numerator = -n * (n - a);
    b += 2;
    d = numerator * d + b;
    c = b + numerator / c;
    d = 1 / (fabs(d) < TINY ? TINY : d);
    if (fabs(c) < TINY) c = TINY;
    result *= d * c;
    if (fabs(d * c - 1) < EPSILON * 2) break;
  }
  return gamma_factor(a, x) * a * result;
}

double igamma_of(double a, double x) {
  if (!(a >= 0 && x >= 0)) return NAN;
  if (a == 0) return x > 0 ? 1 : NAN;
  if (x == 0) return 0;
  if (isinf(a)) return isinf(x) ? NAN : 0;
  if (isinf(x)) return 1;
  return x < a + 1 ? gamma_series(a, x) : 1 - gamma_fraction(a, x);
}

double igammac_of(double a, double x) {
  if (!(a >= 0 && x >= 0)) return NAN;
  if (a == 0) return x > 0 ? 0 : NAN;
  if (x == 0) return 1;
  if (isinf(a)) return isinf(x) ? NAN : 1;
  if (isinf(x)) return 0;
  if (x < a + 1 && a < 0.5 && x < 1) {  // 1 - the lower function would lose digits where that is near 1
    // Gamma(a, x) = (Gamma(a + 1) - 1) / a - (x^a - 1) / a - x^a * sum of (-x)^n / ((a + n) n!)
    double term = 1, sum = 0;
    for (int n = 1; n < 60; ++n) {
      term *= -x / n;
      sum += term / (a + n);
    }
    const double power = exp(a * log(x));
    return (expm1(lgamma_of(1 + a)) - expm1(a * log(x))) / exp(lgamma_of(1 + a)) - a * power * sum / exp(lgamma_of(1 + a));
  }
  return x < a + 1 ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
}

struct Function {
  const char* name;
  double (*one)(double);
  double (*two)(double, double);
};

const Function functions[] = {
    {"erfc", erfc_of, nullptr}, {"lgamma", lgamma_of, nullptr}, {"digamma", digamma_of, nullptr},
    {"erfinv", erfinv_of, nullptr}, {"ndtri", ndtri_of, nullptr}, {"erfcx", erfcx_of, nullptr},
    {"log_ndtr", log_ndtr_of, nullptr}, {"entr", entr_of, nullptr}, {"i0", i0_of, nullptr}, {"i0e", i0e_of, nullptr},
    {"i1", i1_of, nullptr}, {"i1e", i1e_of, nullptr}, {"xlogy", nullptr, xlogy_of}, {"xlog1py", nullptr, xlog1py_of},
    {"zeta", nullptr, zeta_of}, {"igamma", nullptr, igamma_of}, {"igammac", nullptr, igammac_of},
};

constexpr int64_t COST = 64;  // the cost of one element, relative to an addition

// special(name, out, x[, y]): applies a function to float64 arrays, all of one size.
PyObject* special(PyObject*, PyObject* const* a, Py_ssize_t given) {
  const char* name = given >= 3 && given <= 4 ? PyUnicode_AsUTF8(a[0]) : nullptr;
  if (!name) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "special: expected name, out, x and perhaps y; got %zd", given);
    return nullptr;
  }
  const Function* found = nullptr;
  for (const Function& each : functions)
    if (!strcmp(each.name, name) && (given == 4 ? each.two != nullptr : each.one != nullptr)) found = &each;
  if (!found) return PyErr_Format(PyExc_ValueError, "special: no function %s of %zd arrays", name, given - 2);
  for (Py_ssize_t i = 1; i < given; ++i)
    if (!is_plain(a[i], i == 1, RL_FLOAT64) || PyArray_SIZE((PyArrayObject*)a[i]) != PyArray_SIZE((PyArrayObject*)a[1]))
      Py_RETURN_FALSE;
  double* out = (double*)PyArray_DATA((PyArrayObject*)a[1]);
  const double* x = (const double*)PyArray_DATA((PyArrayObject*)a[2]);
  const double* y = given == 4 ? (const double*)PyArray_DATA((PyArrayObject*)a[3]) : nullptr;
  const int64_t count = PyArray_SIZE((PyArrayObject*)a[1]);
  without_gil(count * COST, [&] {
    in_parallel(rushlight_threads_for(count * COST), [&](int thread, int total) {
      const Part part = part_of(count, thread, total);
      for (int64_t i = part.first; i < part.last; ++i) out[i] = y ? found->two(x[i], y[i]) : found->one(x[i]);
    });
    return 1;
  });
  Py_RETURN_TRUE;
}

}  // namespace

PyMethodDef special_methods[] = {
    {"special", (PyCFunction)(void (*)(void))special, METH_FASTCALL,
     "special(name, out, x, y=..., /) -> bool\n\nWrites a special function of float64 arrays."},
    {nullptr, nullptr, 0, nullptr},
};
