// Fourier transforms of rows of any length: by prime factors up to 61 (and 4), or by Bluestein's convolution if a prime is
// larger.
//
// Complex numbers are stored as pairs. (Cooley and Tukey 1965; Bluestein 1970; Van Loan, Computational Frameworks for the FFT,
// 1 and 4.2.)
#pragma once

#include <rushlight/parallel.h>

namespace rl {

// a larger prime factor p uses Bluestein's convolution: the direct sum takes p operations for each point
constexpr long max_factor = 61;

template <class T> struct pair {
  T re, im;
};
template <class T> RL_INLINE pair<T> operator+(pair<T> a, pair<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> RL_INLINE pair<T> operator-(pair<T> a, pair<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T> RL_INLINE pair<T> operator*(pair<T> a, pair<T> b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

// Return the smallest prime factor of a number, but 4 before 2.
constexpr long factor_of(long n) {
  if (n % 4 == 0) return 4;
  for (long p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

constexpr bool has_small_factors(long n) {
  for (long p = 2; p <= max_factor && n > 1; ++p)
    while (n % p == 0) n /= p;
  return n == 1;
}

// The smallest power of two that is at least n.
constexpr long power_of_two_for(long n) {
  long found = 1;
  while (found < n) found *= 2;
  return found;
}

// Compute roots[k] = the point on the unit circle at k / count of a turn, clockwise if `forward`. Each is the product of the
// roots for the bits of k, so that errors grow only with the number of bits.
inline void unit_roots(pair<double>* roots, long count, bool forward) {
  roots[0] = {1, 0};
  for (long bit = 1; bit < count; bit *= 2) {
    const double angle = (forward ? -6.283185307179586477 : 6.283185307179586477) * (double)bit / (double)count;
    const pair<double> turn = {__builtin_cos(angle), __builtin_sin(angle)};
    for (long k = 0; k < bit && bit + k < count; ++k) roots[bit + k] = roots[k] * turn;
  }
}

// Combine p transforms of m points each, stored one after the other in `out`, into the transform of their interleaved points,
// in place. The table has `step` roots for each of the m * p points.
template <class T> RL_INLINE void combine_two(pair<T>* out, long m, const pair<T>* roots, long step) {
  for (long k = 0; k < m; ++k) {
    const pair<T> one = out[k], other = out[m + k] * roots[k * step];
    out[k] = one + other;
    out[m + k] = one - other;
  }
}

template <class T> RL_INLINE void combine_four(pair<T>* out, long m, const pair<T>* roots, long step, bool forward) {
  for (long k = 0; k < m; ++k) {
    const pair<T> a = out[k], b = out[m + k] * roots[k * step], c = out[2 * m + k] * roots[2 * k * step];
    const pair<T> d = out[3 * m + k] * roots[3 * k * step], even = a + c, odd = b + d, rest = a - c, turned = b - d;
    const pair<T> quarter = forward ? pair<T>{turned.im, -turned.re} : pair<T>{-turned.im, turned.re};
    out[k] = even + odd;
    out[m + k] = rest + quarter;
    out[2 * m + k] = even - odd;
    out[3 * m + k] = rest - quarter;
  }
}

template <class T> RL_INLINE void combine(pair<T>* out, long p, long m, const pair<T>* roots, long step) {
  pair<T> parts[max_factor];
  const long turn = m * step;  // the number of table entries between two p-th roots
  for (long k = 0; k < m; ++k) {
    for (long r = 0; r < p; ++r) parts[r] = out[r * m + k] * roots[r * k * step];
    for (long q = 0; q < p; ++q) {
      pair<T> sum = parts[0];
      for (long r = 1, at = q; r < p; ++r, at = at + q < p ? at + q : at + q - p) sum = sum + parts[r] * roots[at * turn];
      out[q * m + k] = sum;
    }
  }
}

// Transform `n` points, `stride` apart; n must have small factors. `roots` is the table of n * step roots.
template <class T> void transform_by_factors(const pair<T>* in, long stride, pair<T>* out, long n, const pair<T>* roots, long step,
                                             bool forward) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  const long p = factor_of(n), m = n / p;
  for (long r = 0; r < p; ++r) transform_by_factors(in + r * stride, stride * p, out + r * m, m, roots, step * p, forward);
  if (p == 2) combine_two(out, m, roots, step);
  else if (p == 4) combine_four(out, m, roots, step, forward);
  else combine(out, p, m, roots, step);
}

// Scratch memory of a thread for rows of n points. Direct: a row before and after, and the roots in both precisions. Bluestein:
// a row before and after, the chirp, and four arrays of the convolution: its roots, filter and two rows.
constexpr long fourier_scratch_bytes(long n) {
  const long wide = power_of_two_for(2 * n);
  return (has_small_factors(n) ? 4 * n : 3 * n + 4 * wide) * (long)sizeof(pair<double>);
}

// The transform of rows of n points; each thread creates one for all its rows.
template <class T> class fourier {
 public:
  fourier(long n, bool forward, char* scratch) : n(n), forward(forward), direct(has_small_factors(n)) {
    pair<double>* const memory = (pair<double>*)scratch;
    before = (pair<T>*)memory;
    after = (pair<T>*)(memory + n);
    if (direct) {
      roots = (pair<T>*)(memory + 2 * n);
      pair<double>* const exact = memory + 3 * n;
      unit_roots(exact, n, forward);
      for (long k = 0; k < n; ++k) roots[k] = {(T)exact[k].re, (T)exact[k].im};
      return;
    }
    wide = power_of_two_for(2 * n);
    chirp = memory + 2 * n;
    wide_roots = chirp + n;
    filter = wide_roots + wide;
    row = filter + wide;
    convolved = row + wide;
    unit_roots(row, 2 * n, forward);  // the row has room for them: wide is at least 2 n
    for (long k = 0; k < n; ++k) chirp[k] = row[(long)((unsigned __int128)k * (unsigned long)k % (unsigned long)(2 * n))];
    unit_roots(wide_roots, wide, true);
    for (long k = 0; k < wide; ++k) row[k] = {0, 0};
    for (long k = 0; k < n; ++k) row[k] = row[(wide - k) % wide] = {chirp[k].re, -chirp[k].im};
    transform_by_factors(row, 1, filter, wide, wide_roots, 1, true);
  }

  // given() is the buffer for a row's input; found() transforms it and returns the buffer with the result.
  pair<T>* given() { return before; }
  const pair<T>* found() {
    if (direct) {
      transform_by_factors(before, 1, after, n, roots, 1, forward);
      return after;
    }
    for (long k = 0; k < wide; ++k) row[k] = k < n ? pair<double>{(double)before[k].re, (double)before[k].im} * chirp[k] : pair<double>{0, 0};
    transform_by_factors(row, 1, convolved, wide, wide_roots, 1, true);
    // The inverse transform with the same roots: the conjugate of the transform of the conjugates.
    for (long k = 0; k < wide; ++k) {
      const pair<double> product = convolved[k] * filter[k];
      row[k] = {product.re, -product.im};
    }
    transform_by_factors(row, 1, convolved, wide, wide_roots, 1, true);
    for (long k = 0; k < n; ++k) {
      const pair<double> made = pair<double>{convolved[k].re, -convolved[k].im} * chirp[k];
      after[k] = {(T)(made.re / (double)wide), (T)(made.im / (double)wide)};
    }
    return after;
  }

 private:
  const long n;
  const bool forward, direct;
  long wide = 0;
  pair<T>*before = nullptr, *after = nullptr, *roots = nullptr;
  pair<double>*chirp = nullptr, *wide_roots = nullptr, *filter = nullptr, *row = nullptr, *convolved = nullptr;
};

// The normalization factor: 1, 1 / sqrt(points) or 1 / points.
RL_INLINE double scale_of(long points, int normalization) {
  return normalization == 0 ? 1 : normalization == 1 ? 1 / __builtin_sqrt((double)points) : 1 / (double)points;
}

// Transform complex rows to complex rows.
template <class T> inline void complex_transform(const T* in, T* out, long rows, long n, bool forward, long points, int normalization,
                                                 char* scratch) {
  fourier<T> transform(n, forward, scratch + thread_index() * fourier_scratch_bytes(n));
  const T scale = (T)scale_of(points, normalization);
  for (const long i : shared(rows)) {
    __builtin_memcpy(transform.given(), in + i * 2 * n, n * sizeof(pair<T>));
    const pair<T>* const made = transform.found();
    for (long k = 0; k < n; ++k) out[(i * n + k) * 2] = made[k].re * scale, out[(i * n + k) * 2 + 1] = made[k].im * scale;
  }
}

// Transform real rows, and keep the first `kept` values of each result.
template <class T> inline void transform_of_reals(const T* in, T* out, long rows, long n, long kept, long points, int normalization,
                                                  char* scratch) {
  fourier<T> transform(n, true, scratch + thread_index() * fourier_scratch_bytes(n));
  const T scale = (T)scale_of(points, normalization);
  for (const long i : shared(rows)) {
    for (long k = 0; k < n; ++k) transform.given()[k] = {in[i * n + k], 0};
    const pair<T>* const made = transform.found();
    for (long k = 0; k < kept; ++k) out[(i * kept + k) * 2] = made[k].re * scale, out[(i * kept + k) * 2 + 1] = made[k].im * scale;
  }
}

// Transform rows of which the first `have` values are given back to n real numbers; the other values are the conjugates of
// these.
template <class T> inline void transform_to_reals(const T* in, T* out, long rows, long n, long have, long points, int normalization,
                                                  char* scratch) {
  fourier<T> transform(n, false, scratch + thread_index() * fourier_scratch_bytes(n));
  const T scale = (T)scale_of(points, normalization);
  for (const long i : shared(rows)) {
    pair<T>* const row = transform.given();
    for (long k = 0; k <= n / 2; ++k) {
      const pair<T> here = k < have ? pair<T>{in[(i * have + k) * 2], in[(i * have + k) * 2 + 1]} : pair<T>{0, 0};
      const bool is_real = k == 0 || 2 * k == n;
      row[k] = {here.re, is_real ? (T)0 : here.im};
      if (!is_real) row[n - k] = {here.re, -here.im};
    }
    const pair<T>* const made = transform.found();
    for (long k = 0; k < n; ++k) out[i * n + k] = made[k].re * scale;
  }
}

}  // namespace rl
