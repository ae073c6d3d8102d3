// Small matrices in batches: QR factors by Householder reflections, eigenvalues and singular values by Jacobi rotations.
//
// The reflections and the signs of the factors are LAPACK's. Rotations are repeated until all pairs of vectors are orthogonal
// to the precision of doubles (Golub and Van Loan, Matrix Computations, 5.2, 8.5 and 8.6).
#pragma once

#include <rushlight/matrix.h>

namespace rl {

constexpr int max_sweeps = 60;  // Jacobi sweeps until the iteration counts as not converging

// ---- QR ------------------------------------------------------------------------------------------------------------

template <class T> constexpr long qr_scratch_bytes(long m, long n, long inner) {
  return ((m * n + smallest(m, n) + m * inner) * (long)sizeof(double) + 63) / 64 * 64;
}

// Apply a reflection to columns [first, width) of x: subtract scale * v v' x. v is column k of `a` from row k on, with 1 as its
// first element.
RL_INLINE void reflect(const double* a, long n, long k, double scale, double* x, long width, long first, long m) {
  for (long c = first; c < width; ++c) {
    double sum = x[k * width + c];
    for (long i = k + 1; i < m; ++i) sum += a[i * n + k] * x[i * width + c];
    sum *= scale;
    x[k * width + c] -= sum;
    for (long i = k + 1; i < m; ++i) x[i * width + c] -= a[i * n + k] * sum;
  }
}

// Replace column k, from row k on, by the vector of a reflection that zeroes the column below row k. Return the reflection's
// scale.
RL_INLINE double make_reflection(double* a, long m, long n, long k) {
  double rest = 0;
  for (long i = k + 1; i < m; ++i) rest += a[i * n + k] * a[i * n + k];
  if (rest == 0) return 0;
  const double first = a[k * n + k], length = __builtin_sqrt(first * first + rest), made = first < 0 ? length : -length;
  for (long i = k + 1; i < m; ++i) a[i * n + k] /= first - made;
  a[k * n + k] = made;
  return (made - first) / made;
}

// Compute Q, m x inner, which may be null, and R, inner x n.
template <class T> inline void qr(const T* given, T* q, T* r, long batch, long m, long n, long inner, char* scratch) {
  double* const a = (double*)(scratch + thread_index() * qr_scratch_bytes<T>(m, n, inner));
  double *const scales = a + m * n, *const basis = scales + smallest(m, n);
  for (const long i : shared(batch)) {
    for (long at = 0; at < m * n; ++at) a[at] = (double)given[i * m * n + at];
    for (long k = 0; k < smallest(m, n); ++k) {
      scales[k] = make_reflection(a, m, n, k);
      reflect(a, n, k, scales[k], a, n, k + 1, m);
    }
    for (long row = 0; r && row < inner; ++row)
      for (long c = 0; c < n; ++c) r[(i * inner + row) * n + c] = c < row ? (T)0 : (T)a[row * n + c];
    if (!q) continue;
    for (long row = 0; row < m; ++row)
      for (long c = 0; c < inner; ++c) basis[row * inner + c] = row == c;
    for (long k = smallest(m, n); k-- > 0;) reflect(a, n, k, scales[k], basis, inner, 0, m);
    for (long at = 0; at < m * inner; ++at) q[i * m * inner + at] = (T)basis[at];
  }
}

// ---- rotations -----------------------------------------------------------------------------------------------------

RL_INLINE void rotate(double* one, double* other, long count, long step, double cosine, double sine) {
  for (long i = 0; i < count; ++i) {
    const double x = one[i * step], y = other[i * step];
    one[i * step] = cosine * x - sine * y;
    other[i * step] = sine * x + cosine * y;
  }
}

// Return the rotation that makes `mixed` of [first mixed; mixed second] zero.
RL_INLINE void rotation_of(double first, double mixed, double second, double& cosine, double& sine) {
  const double ratio = (second - first) / (2 * mixed);
  const double tangent = (ratio < 0 ? -1 : 1) / ((ratio < 0 ? -ratio : ratio) + __builtin_sqrt(1 + ratio * ratio));
  cosine = 1 / __builtin_sqrt(1 + tangent * tangent);
  sine = cosine * tangent;
}

RL_INLINE double dot(const double* one, const double* other, long count) {
  double sum = 0;
  for (long i = 0; i < count; ++i) sum += one[i] * other[i];
  return sum;
}

RL_INLINE bool all_finite(const double* values, long count) {
  for (long i = 0; i < count; ++i)
    if (!(values[i] - values[i] == 0)) return false;
  return true;
}

// Sort indices by `values`, descending or ascending.
inline void order_of(const double* values, long count, bool descending, long* order) {
  for (long i = 0; i < count; ++i) {
    long at = i;
    for (; at > 0 && (descending ? values[order[at - 1]] < values[i] : values[order[at - 1]] > values[i]); --at) order[at] = order[at - 1];
    order[at] = i;
  }
}

constexpr long eigh_scratch_bytes(long n) { return ((2 * n * n + 2 * n) * (long)sizeof(double) + 63) / 64 * 64; }

// Make a symmetric matrix diagonal by rotations; the rows of `vectors` become its eigenvectors. Return whether it converged.
inline bool diagonalize(double* a, double* vectors, long n) {
  set_identity(vectors, n);
  if (!all_finite(a, n * n)) return false;
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    bool changed = false;
    for (long p = 0; p < n; ++p)
      for (long q = p + 1; q < n; ++q) {
        const double mixed = a[p * n + q], limit = magnitude(a[p * (n + 1)]) + magnitude(a[q * (n + 1)]);
        if (limit + magnitude(mixed) * 1e-2 == limit) continue;
        double cosine, sine;
        rotation_of(a[p * (n + 1)], mixed, a[q * (n + 1)], cosine, sine);
        rotate(a + p, a + q, n, n, cosine, sine);
        rotate(a + p * n, a + q * n, n, 1, cosine, sine);
        rotate(vectors + p * n, vectors + q * n, n, 1, cosine, sine);
        a[p * n + q] = a[q * n + p] = 0;
        changed = true;
      }
    if (!changed) return true;
  }
  return false;
}

// Compute eigenvalues in ascending order, and eigenvectors as columns (may be null). Only the lower or the upper triangle is
// read.
template <class T> inline void eigh(const T* given, T* values, T* vectors, long batch, long n, bool lower, char* scratch, int* status) {
  double* const a = (double*)(scratch + thread_index() * eigh_scratch_bytes(n));
  double *const rows = a + n * n, *const found = rows + n * n;
  long* const order = (long*)(found + n);
  for (const long i : shared(batch)) {
    for (long row = 0; row < n; ++row)
      for (long column = 0; column < n; ++column) {
        const bool stays = lower ? column <= row : column >= row;
        a[row * n + column] = (double)given[i * n * n + (stays ? row * n + column : column * n + row)];
      }
    if (!diagonalize(a, rows, n)) report(status, no_solution);
    for (long k = 0; k < n; ++k) found[k] = a[k * (n + 1)];
    order_of(found, n, false, order);
    for (long k = 0; k < n; ++k) {
      values[i * n + k] = (T)found[order[k]];
      for (long row = 0; vectors && row < n; ++row) vectors[(i * n + row) * n + k] = (T)rows[order[k] * n + row];
    }
  }
}

// Rotate `count` vectors of `length` elements until they are orthogonal. `turned` becomes the product of the rotations. Return
// whether it converged.
inline bool make_orthogonal(double* vectors, double* turned, long count, long length) {
  set_identity(turned, count);
  if (!all_finite(vectors, count * length)) return false;
  for (int sweep = 0; sweep < max_sweeps; ++sweep) {
    bool changed = false;
    for (long p = 0; p < count; ++p)
      for (long q = p + 1; q < count; ++q) {
        double *const one = vectors + p * length, *const other = vectors + q * length;
        const double first = dot(one, one, length), second = dot(other, other, length), mixed = dot(one, other, length);
        if (magnitude(mixed) <= 1e-15 * __builtin_sqrt(first) * __builtin_sqrt(second)) continue;
        double cosine, sine;
        rotation_of(first, mixed, second, cosine, sine);
        rotate(one, other, length, 1, cosine, sine);
        rotate(turned + p * count, turned + q * count, count, 1, cosine, sine);
        changed = true;
      }
    if (!changed) return true;
  }
  return false;
}

// Write vector number `at` of an orthonormal basis, given the vectors before it: orthogonalize unit vectors until one is long
// enough.
inline void extend_basis(double* basis, long at, long length) {
  double* const made = basis + at * length;
  for (long axis = 0; axis < length; ++axis) {
    for (long i = 0; i < length; ++i) made[i] = i == axis;
    for (int again = 0; again < 2; ++again)
      for (long k = 0; k < at; ++k) subtract_multiple(made, basis + k * length, dot(made, basis + k * length, length), length);
    const double size = __builtin_sqrt(dot(made, made, length));
    if (size * size * (double)(2 * length) < 1) continue;  // some unit vector leaves at least that much
    for (long i = 0; i < length; ++i) made[i] /= size;
    return;
  }
}

constexpr long svd_scratch_bytes(long m, long n) {
  const long count = smallest(m, n), length = largest(m, n);
  return ((count * length + count * count + length * length + 2 * count) * (long)sizeof(double) + 63) / 64 * 64;
}

// Compute singular values, `left` columns of U (m rows) and `right` rows of Vh (n columns). U and Vh may be null.
template <class T> inline void svd(const T* given, T* values, T* u, T* vh, long batch, long m, long n, long left, long right,
                                   char* scratch, int* status) {
  const bool tall = m >= n;
  const long count = smallest(m, n), length = largest(m, n);
  double* const vectors = (double*)(scratch + thread_index() * svd_scratch_bytes(m, n));
  double *const turned = vectors + count * length, *const basis = turned + count * count, *const sizes = basis + length * length;
  long* const order = (long*)(sizes + count);
  for (const long i : shared(batch)) {
    for (long row = 0; row < m; ++row)
      for (long column = 0; column < n; ++column)
        vectors[tall ? column * length + row : row * length + column] = (double)given[(i * m + row) * n + column];
    if (!make_orthogonal(vectors, turned, count, length)) report(status, no_solution);
    for (long k = 0; k < count; ++k) sizes[k] = __builtin_sqrt(dot(vectors + k * length, vectors + k * length, length));
    order_of(sizes, count, true, order);
    for (long k = 0; k < (u || vh ? (tall ? left : right) : 0); ++k) {
      const double size = k < count ? sizes[order[k]] : 0;
      if (size <= 1e-15 * sizes[order[0]]) extend_basis(basis, k, length);
      else
        for (long at = 0; at < length; ++at) basis[k * length + at] = vectors[order[k] * length + at] / size;
    }
    for (long k = 0; k < count; ++k) values[i * count + k] = (T)sizes[order[k]];
    for (long row = 0; u && row < m; ++row)
      for (long k = 0; k < left; ++k) u[(i * m + row) * left + k] = (T)(tall ? basis[k * length + row] : turned[order[k] * count + row]);
    for (long k = 0; vh && k < right; ++k)
      for (long at = 0; at < n; ++at) vh[(i * right + k) * n + at] = (T)(tall ? turned[order[k] * count + at] : basis[k * length + at]);
  }
}

}  // namespace rl
