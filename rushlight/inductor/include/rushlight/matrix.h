// Small matrices in batches, which threads share: LU and Cholesky factors, and solving with them.
//
// All matrices are row-major and contiguous. As in LAPACK, `info` is 0 if a factorization succeeds, else the number, from 1, of
// the pivot or minor at which it fails (Golub and Van Loan, Matrix Computations, 3.4 and 4.2).
#pragma once

#include <rushlight/checks.h>
#include <rushlight/elementwise.h>
#include <rushlight/parallel.h>

namespace rl {

template <class T> RL_INLINE void subtract_multiple(T* to, const T* from, T factor, long count) {
  for (long i = 0; i < count; ++i) to[i] -= factor * from[i];
}

template <class T> RL_INLINE void swap_rows(T* one, T* other, long count) {
  for (long i = 0; i < count; ++i) {
    const T kept = one[i];
    one[i] = other[i];
    other[i] = kept;
  }
}

template <class T> RL_INLINE T magnitude(T value) { return value < 0 ? -value : value; }

// ---- LU factors ----------------------------------------------------------------------------------------------------

// Replace an m x n matrix by its packed LU factors; pivots[k] is the row, counted from 1, that was exchanged with row k. Return
// info.
template <class T> inline int factor_lu(T* a, long m, long n, int32_t* pivots) {
  int info = 0;
  for (long k = 0; k < smallest(m, n); ++k) {
    long best = k;
    for (long i = k + 1; i < m; ++i)
      if (magnitude(a[i * n + k]) > magnitude(a[best * n + k])) best = i;
    pivots[k] = (int32_t)(best + 1);
    if (a[best * n + k] == 0) {
      if (info == 0) info = (int)(k + 1);
      continue;
    }
    if (best != k) swap_rows(a + best * n, a + k * n, n);
    for (long i = k + 1; i < m; ++i) {
      const T factor = a[i * n + k] /= a[k * n + k];
      subtract_multiple(a + i * n + k + 1, a + k * n + k + 1, factor, n - k - 1);
    }
  }
  return info;
}

template <class T> inline void lu_factor(const T* a, T* factors, int32_t* pivots, int32_t* info, long batch, long m, long n,
                                         bool checks, int* status) {
  const long inner = smallest(m, n);
  for (const long i : shared(batch)) {
    __builtin_memcpy(factors + i * m * n, a + i * m * n, m * n * sizeof(T));
    const int found = factor_lu(factors + i * m * n, m, n, pivots + i * inner);
    if (info) info[i] = found;
    if (checks && found) report(status, no_solution);
  }
}

constexpr long permutation_scratch_bytes(long m) { return (m * (long)sizeof(long) + 63) / 64 * 64; }

// Unpack P, L and U from packed factors; each of the three may be null.
template <class T> inline void lu_unpack(const T* factors, const int32_t* pivots, T* p, T* l, T* u, long batch, long m, long n,
                                         char* scratch, int* status) {
  const long inner = smallest(m, n);
  long* const order = (long*)(scratch + thread_index() * permutation_scratch_bytes(m));
  for (const long i : shared(batch)) {
    if (p) {
      for (long row = 0; row < m; ++row) order[row] = row;
      for (long k = 0; k < inner; ++k) {
        const long other = checked_index<false>((int64_t)pivots[i * inner + k] - 1, m, status);
        swap_rows(order + k, order + other, other == k ? 0 : 1);
      }
      __builtin_memset(p + i * m * m, 0, m * m * sizeof(T));
      for (long row = 0; row < m; ++row) p[i * m * m + order[row] * m + row] = 1;
    }
    const T* packed = factors + i * m * n;
    for (long row = 0; l && row < m; ++row)
      for (long k = 0; k < inner; ++k) l[(i * m + row) * inner + k] = k < row ? packed[row * n + k] : (T)(k == row);
    for (long row = 0; u && row < inner; ++row)
      for (long k = 0; k < n; ++k) u[(i * inner + row) * n + k] = k < row ? (T)0 : packed[row * n + k];
  }
}

// Solve with a triangular matrix or its transpose, in place in x (n x k); `upper` says which triangle of `a` is read.
template <bool Transposed, class T> inline void divide(const T* a, T* x, long n, long k, bool upper, bool unit) {
  const bool backward = upper != Transposed;
  const auto element = [&](long row, long column) { return Transposed ? a[column * n + row] : a[row * n + column]; };
  for (long step = 0; step < n; ++step) {
    const long i = backward ? n - 1 - step : step;
    for (long j = backward ? i + 1 : 0; j < (backward ? n : i); ++j) subtract_multiple(x + i * k, x + j * k, element(i, j), k);
    if (!unit)
      for (long c = 0; c < k; ++c) x[i * k + c] /= element(i, i);
  }
}

// The bytes of scratch memory for a matrix's factors and pivots.
template <class T> constexpr long lu_scratch_bytes(long n) { return (n * n * (long)sizeof(T) + n * 4 + 63) / 64 * 64; }

template <class T> RL_INLINE int factor_copy(const T* a, T* factors, long n) {
  __builtin_memcpy(factors, a, n * n * sizeof(T));
  return factor_lu(factors, n, n, (int32_t*)(factors + n * n));
}

template <class T> RL_INLINE void set_identity(T* a, long n) {
  __builtin_memset(a, 0, n * n * sizeof(T));
  for (long i = 0; i < n; ++i) a[i * n + i] = 1;
}

template <class T> inline void solve_with_factors(const T* factors, T* x, long n, long k) {
  const int32_t* pivots = (const int32_t*)(factors + n * n);
  for (long i = 0; i < n; ++i)
    if (pivots[i] - 1 != i) swap_rows(x + i * k, x + (pivots[i] - 1) * k, k);
  divide<false>(factors, x, n, k, false, true);
  divide<false>(factors, x, n, k, true, false);
}

// Solve a x = b for x, or invert a if b is null. The result of a singular matrix is NaN.
template <class T> inline void solve(const T* a, const T* b, T* x, int32_t* info, long batch, long n, long k, bool checks,
                                     char* scratch, int* status) {
  T* const factors = (T*)(scratch + thread_index() * lu_scratch_bytes<T>(n));
  for (const long i : shared(batch)) {
    T* const found = x + i * n * k;
    const int wrong = factor_copy(a + i * n * n, factors, n);
    if (wrong) {
      for (long at = 0; at < n * k; ++at) found[at] = (T)__builtin_nan("");
      if (checks) report(status, no_solution);
    } else {
      if (b) __builtin_memcpy(found, b + i * n * k, n * k * sizeof(T));
      else set_identity(found, n);
      solve_with_factors(factors, found, n, k);
    }
    if (info) info[i] = wrong;
  }
}

template <class T> inline void invert(const T* a, T* x, int32_t* info, long batch, long n, bool checks, char* scratch, int* status) {
  solve<T>(a, nullptr, x, info, batch, n, n, checks, scratch, status);
}

template <class T> inline void determinant(const T* a, T* found, long batch, long n, char* scratch) {
  T* const factors = (T*)(scratch + thread_index() * lu_scratch_bytes<T>(n));
  for (const long i : shared(batch)) {
    factor_copy(a + i * n * n, factors, n);
    T product = 1;
    for (long k = 0; k < n; ++k) product *= ((const int32_t*)(factors + n * n))[k] - 1 == k ? factors[k * n + k] : -factors[k * n + k];
    found[i] = product;
  }
}

// Compute the sign of each determinant, which is 0 for a singular matrix, and the logarithm of its magnitude.
template <class T> inline void log_determinant(const T* a, T* sign, T* size, long batch, long n, char* scratch) {
  T* const factors = (T*)(scratch + thread_index() * lu_scratch_bytes<T>(n));
  for (const long i : shared(batch)) {
    factor_copy(a + i * n * n, factors, n);
    T signs = 1, sum = 0;
    for (long k = 0; k < n; ++k) {
      const T here = factors[k * n + k];
      signs *= (T)(here > 0 ? 1 : here < 0 ? -1 : here);
      if (((const int32_t*)(factors + n * n))[k] - 1 != k) signs = -signs;
      sum += (T)__builtin_log((double)magnitude(here));
    }
    sign[i] = signs;
    if (size) size[i] = sum;
  }
}

// ---- triangles -----------------------------------------------------------------------------------------------------

template <class T> inline void solve_triangular(const T* a, const T* b, T* x, long batch, long n, long k, bool upper, bool unit) {
  for (const long i : shared(batch)) {
    __builtin_memcpy(x + i * n * k, b + i * n * k, n * k * sizeof(T));
    divide<false>(a + i * n * n, x + i * n * k, n, k, upper, unit);
  }
}

// Compute the Cholesky factor: the lower one from the lower triangle, or the upper one from the upper triangle.
template <class T> inline void cholesky(const T* a, T* factors, int32_t* info, long batch, long n, bool upper, bool checks, int* status) {
  const long row_step = upper ? 1 : n, column_step = upper ? n : 1;
  for (const long i : shared(batch)) {
    const T* const given = a + i * n * n;
    T* const l = factors + i * n * n;
    int found = 0;
    __builtin_memset(l, 0, n * n * sizeof(T));
    for (long row = 0; row < n && !found; ++row)
      for (long column = 0; column <= row; ++column) {
        T rest = given[row * row_step + column * column_step];
        for (long k = 0; k < column; ++k) rest -= l[row * row_step + k * column_step] * l[column * row_step + k * column_step];
        if (column == row && !(rest > 0)) found = (int)(row + 1);
        l[row * row_step + column * column_step] = column == row ? (T)__builtin_sqrt((double)rest) : rest / l[column * (n + 1)];
      }
    if (info) info[i] = found;
    if (checks && found) report(status, no_solution);
  }
}

// Solve a x = b for x, given the Cholesky factor of a.
template <class T> inline void cholesky_solve(const T* b, const T* factors, T* x, long batch, long n, long k, bool upper) {
  for (const long i : shared(batch)) {
    const T* const factor = factors + i * n * n;
    __builtin_memcpy(x + i * n * k, b + i * n * k, n * k * sizeof(T));
    if (upper) divide<true>(factor, x + i * n * k, n, k, true, false);
    else divide<false>(factor, x + i * n * k, n, k, false, false);
    if (upper) divide<false>(factor, x + i * n * k, n, k, true, false);
    else divide<true>(factor, x + i * n * k, n, k, false, false);
  }
}

// ---- products of other element types ---------------------------------------------------------------------------------

// Multiply batches of m x depth by depth x n, summing in the elements' own type; integers wrap around.
template <class T> inline void plain_product(const T* a, const T* b, T* c, long batch, long m, long depth, long n) {
  for (const long row : shared(batch * m)) {
    const T* const right = b + row / m * depth * n;
    T* const out = c + row * n;
    for (long j = 0; j < n; ++j) out[j] = 0;
    for (long k = 0; k < depth; ++k) {
      const T factor = a[row * depth + k];
      for (long j = 0; j < n; ++j) {
        if constexpr ((T)1 / (T)2 != (T)0) out[j] += factor * right[k * n + j];
        else out[j] = (T)((uint64_t)out[j] + (uint64_t)factor * (uint64_t)right[k * n + j]);
      }
    }
  }
}

}  // namespace rl
