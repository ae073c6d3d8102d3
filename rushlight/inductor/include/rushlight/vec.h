// Vectors, lanes, storage types and conversions: the base of all generated kernels.
//
// rl::vec<T> is a GNU vector of rl::lanes elements, the same number for every T, so that one loop step covers the same elements
// whatever their types (vec<double> takes two registers where vec<float> takes one). A bool is a mask in vectors (int32 lanes,
// 0 or -1) and `bool` in scalars. bfloat16 and half are storage types only: they load as float.
//
// A kernel body is written once, as a generic lambda over a *lane tag*, and runs on whole vectors and on the scalar remainder:
//
//     rl::for_each(n, [&](auto lane, long i) { lane.store(out + i, rl::exp(lane.load(in + i))); });
//
// Both tags, rl::vector_lane and rl::scalar_lane, have
//     load(p)  load_strided(p, stride)  load_reversed(p)  gather(p, index)  broadcast(x)  index(start)  index(start, step)
//     load_at(i, place)  loads from the pointers place(i), place(i + 1), ...
//     store(p, v)  store_strided(p, stride, v)
//     stream(p, v)  stores floats past the caches
// where v is vec<T> or T, indices are int64 lanes, and a loaded bool is a mask. rl::cast<To, From>(v) converts.
//
// <cmath> costs 0.15 s to parse, so these headers call __builtin_ functions instead and include nothing heavy.
#pragma once

#include <stdint.h>

#ifdef __GNUC__
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors cross only inlined calls, so their calling convention is moot
#ifndef __clang__
#pragma GCC diagnostic ignored "-Waggressive-loop-optimizations"  // GCC warns of loop counts that no array could have
#endif
#endif

#define RL_INLINE inline __attribute__((always_inline))
#ifdef __clang__
#define RL_UNROLL _Pragma("clang loop unroll(full)")
#define RL_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define RL_UNROLL _Pragma("GCC unroll 64")
// for an outer loop: once an inner RL_UNROLL loop is gone, GCC would apply its count here
#define RL_ROLLED _Pragma("GCC unroll 1")
#endif

// Kernels that do not depend on the graph are compiled when Rushlight is built (csrc/prebuilt). Code that is linked with them
// defines RL_PREBUILT and sees only their declarations: RL_EXTERN declares a template instance as extern, and `#ifndef
// RL_PREBUILT` surrounds other definitions.
#ifdef RL_PREBUILT
#define RL_EXTERN(...) extern template __VA_ARGS__;
#else
#define RL_EXTERN(...)
#endif
#define RL_KERNEL __attribute__((noinline)) inline
// Marks a function that is only a long list of calls: optimizing it would cost compile time for nothing.
#ifdef __clang__
#define RL_UNOPTIMIZED
#else
#define RL_UNOPTIMIZED __attribute__((optimize("O0")))
#endif

#ifndef RL_LANES
#if defined(__AVX512F__)
#define RL_LANES 16
#elif defined(__AVX__)
#define RL_LANES 8
#else
#define RL_LANES 4
#endif
#endif

#if RL_LANES == 16 && defined(__AVX512F__) && !defined(__clang__)
#define RL_GCC_AVX512  // GCC's builtins for vec<float> are there
#elif RL_LANES == 8 && defined(__AVX__) && !defined(__clang__)
#define RL_GCC_AVX
#endif

#if defined(__x86_64__) && (RL_LANES == 4 || (RL_LANES == 8 && defined(__AVX__)) || (RL_LANES == 16 && defined(__AVX512F__)))
#define RL_WHOLE_REGISTERS  // vec<float> is one register
#endif

namespace rl {

constexpr int lanes = RL_LANES;

// ---- storage types -------------------------------------------------------------------------------------------------

struct bfloat16 { uint16_t bits; };
struct half { uint16_t bits; };

// The type in which values of storage type T are computed.
template <class T> struct compute_type { using type = T; };
template <> struct compute_type<bfloat16> { using type = float; };
template <> struct compute_type<half> { using type = float; };
template <class T> using compute = typename compute_type<T>::type;

template <class T> struct vector_of { typedef T type __attribute__((vector_size(lanes * sizeof(T)))); };
template <> struct vector_of<bool> : vector_of<int32_t> {};
template <> struct vector_of<bfloat16> : vector_of<float> {};
template <> struct vector_of<half> : vector_of<float> {};
template <class T> using vec = typename vector_of<T>::type;
using mask = vec<bool>;

// Properties of a value type V, scalar or vector: its element type, and the type of the same shape with other elements.
template <class V> struct shape_of {
  static constexpr bool vector = false;
  using element = V;
  template <class T> using with = T;
};
#define RL_SHAPE(T)                                \
  template <> struct shape_of<vec<T>> {            \
    static constexpr bool vector = true;           \
    using element = T;                             \
    template <class U> using with = vec<U>;        \
  };
RL_SHAPE(float) RL_SHAPE(double) RL_SHAPE(int8_t) RL_SHAPE(int16_t) RL_SHAPE(int32_t) RL_SHAPE(int64_t)
RL_SHAPE(uint8_t) RL_SHAPE(uint16_t) RL_SHAPE(uint32_t)
#undef RL_SHAPE
template <class V> using element = typename shape_of<V>::element;
template <class V, class T> using like = typename shape_of<V>::template with<T>;  // the shape of V with elements of type T
template <class V> constexpr bool is_vector = shape_of<V>::vector;

template <int Bytes> struct integer_of;
template <> struct integer_of<1> { using type = int8_t; };
template <> struct integer_of<2> { using type = int16_t; };
template <> struct integer_of<4> { using type = int32_t; };
template <> struct integer_of<8> { using type = int64_t; };
// signed integers in V's shape and width
template <class V> using integers = like<V, typename integer_of<sizeof(element<V>)>::type>;

// Unsigned integers in V's shape and width: overflow in sums, products and shifts is defined.
template <int Bytes> struct unsigned_of;
template <> struct unsigned_of<1> { using type = uint8_t; };
template <> struct unsigned_of<2> { using type = uint16_t; };
template <> struct unsigned_of<4> { using type = uint32_t; };
template <> struct unsigned_of<8> { using type = uint64_t; };
template <class V> using wrapping = like<V, typename unsigned_of<sizeof(element<V>)>::type>;
template <class I> RL_INLINE I shift_up(I bits, int count) { return (I)((wrapping<I>)bits << count); }

template <class T> constexpr bool is_floating = (T)0.5 != (T)0;
template <> inline constexpr bool is_floating<bool> = false;

template <class A, class B> constexpr bool same = false;
template <class A> inline constexpr bool same<A, A> = true;

template <class To, class From> RL_INLINE To bitcast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bitcast needs equal sizes");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

template <class V, class T> RL_INLINE V load_bytes(const T* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Return `x` in every lane of V; for a scalar V, x itself.
template <class V, class T> RL_INLINE V splat(T x) {
  if constexpr (is_vector<V>) return (element<V>)x - V{};  // minus, because -0 + 0 would be 0
  else return (V)x;
}

// ---- conversions ---------------------------------------------------------------------------------------------------

// Vectors of two registers are converted half by half: compilers otherwise convert lane by lane.
template <class V> constexpr bool is_wide = is_vector<V> && sizeof(element<V>) == 8;
template <class T> struct half_of { typedef T type __attribute__((vector_size(lanes / 2 * sizeof(T)))); };
template <class V> struct halves {
  typename half_of<element<V>>::type part[2];
  RL_INLINE explicit halves(V v) { __builtin_memcpy(part, &v, sizeof v); }
  RL_INLINE V whole() const { return load_bytes<V>(part); }
};

// Join two halves of a vector of 32-bit elements; intrinsics keep it in a register where they exist.
using half_mask = half_of<int32_t>::type;
RL_INLINE mask join(half_mask low, half_mask high) {
#if __has_builtin(__builtin_shufflevector) && RL_LANES == 16
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
#elif __has_builtin(__builtin_shufflevector) && RL_LANES == 8
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
#else
  const half_mask parts[2] = {low, high};
  return load_bytes<mask>(parts);
#endif
}

// Convert 32-bit lanes to their lowest bytes with shuffles: compilers turn __builtin_convertvector into one step per lane.
template <class To, class From> RL_INLINE To lowest_bytes(From v) {
#ifdef RL_GCC_AVX512
  using wide = int __attribute__((vector_size(4 * lanes)));
  using bytes = char __attribute__((vector_size(lanes)));
  return bitcast<To>(__builtin_ia32_pmovdb512_mask(bitcast<wide>(v), bytes{}, -1));
#elif defined(RL_GCC_AVX)
  using bytes = int8_t __attribute__((vector_size(4 * lanes)));
  const bytes first = __builtin_shuffle(bitcast<bytes>(v), bytes{0, 4, 8, 12, 16, 20, 24, 28});
  To made;
  __builtin_memcpy(&made, &first, sizeof made);
  return made;
#else
  return __builtin_convertvector(v, To);
#endif
}

// Convert lanes as a C cast would. Bytes widen by way of int32: compilers turn the direct conversions into one step per lane.
template <class To, class From> RL_INLINE To convert_lanes(From v) {
  if constexpr (same<To, From>) {
    return v;
  } else if constexpr (!is_vector<To>) {
    return (To)v;
  } else if constexpr (sizeof(element<From>) == 1 && sizeof(element<To>) >= 4) {
#ifdef RL_GCC_AVX512
    using bytes = char __attribute__((vector_size(lanes)));
    vec<int32_t> wide = {};
    if constexpr (same<From, vec<int8_t>>) wide = __builtin_ia32_pmovsxbd512_mask((bytes)v, wide, -1);
    else wide = __builtin_ia32_pmovzxbd512_mask((bytes)v, wide, -1);
#else
    const auto wide = __builtin_convertvector(__builtin_convertvector(v, vec<int16_t>), vec<int32_t>);
#endif
    return convert_lanes<To>(wide);
  } else if constexpr (sizeof(element<To>) == 1 && sizeof(element<From>) == 4) {
    return lowest_bytes<To>(v);
  } else if constexpr (is_wide<To> && sizeof(element<From>) == 4) {
    using H = typename half_of<element<To>>::type;
    const halves<From> parts(v);
    const H made[2] = {__builtin_convertvector(parts.part[0], H), __builtin_convertvector(parts.part[1], H)};
    return load_bytes<To>(made);
  } else if constexpr (is_wide<From> && sizeof(element<To>) == 4) {
    using H = typename half_of<element<To>>::type;
    const halves<From> parts(v);
    return bitcast<To>(join(bitcast<half_mask>(__builtin_convertvector(parts.part[0], H)),
                            bitcast<half_mask>(__builtin_convertvector(parts.part[1], H))));
  } else {
    return __builtin_convertvector(v, To);
  }
}

// Return lane pick[i] of v as lane i; the elements of `pick` are integers as wide as V's.
template <class V, class I> RL_INLINE V permute(V v, I pick) {
#ifdef __clang__
  V out;
  RL_UNROLL for (int i = 0; i < lanes; ++i) out[i] = v[(int)pick[i]];
  return out;
#else
  return __builtin_shuffle(v, pick);
#endif
}

// Convert any comparison result to a mask: bool stays bool, lanes of any width become int32 lanes.
RL_INLINE bool to_mask(bool m) { return m; }
template <class M> RL_INLINE mask to_mask(M m) { return convert_lanes<mask>(m); }

// Vectors of two registers are also compared and selected by halves.
template <class V, class F> RL_INLINE auto compare(V a, V b, const F& f) {
  if constexpr (is_wide<V>) {
    const halves<V> x(a), y(b);
    return join(__builtin_convertvector(f(x.part[0], y.part[0]), half_mask),
                __builtin_convertvector(f(x.part[1], y.part[1]), half_mask));
  } else {
    return to_mask(f(a, b));
  }
}

// Return a where m holds, b elsewhere.
template <class V> RL_INLINE V choose(mask m, V a, V b) {
  if constexpr (is_wide<V>) {
    using I = typename half_of<int64_t>::type;
    const halves<mask> chosen(m);
    halves<V> x(a);
    const halves<V> y(b);
    for (int i = 0; i < 2; ++i) x.part[i] = __builtin_convertvector(chosen.part[i], I) ? x.part[i] : y.part[i];
    return x.whole();
  } else {
    return convert_lanes<integers<V>>(m) ? a : b;  // lanes of the mask as wide as V's
  }
}

// Test whether any bit of a vector is set.
template <class M> RL_INLINE bool any_bit(M m) {
  typedef int64_t pair __attribute__((vector_size(16)));
  pair parts[(sizeof(M) + 15) / 16] = {};
  __builtin_memcpy(parts, &m, sizeof m);
  pair found = parts[0];
  RL_UNROLL for (unsigned long i = 1; i < sizeof parts / sizeof found; ++i) found |= parts[i];
  return (found[0] | found[1]) != 0;
}

// bfloat16 and half are held as 32-bit integers (a scalar or a vector) and converted to and from float. Rounding is to nearest
// even.
template <class I> RL_INLINE auto bfloat16_to_float(I bits) { return bitcast<like<I, float>>(bits << 16); }

template <class V> RL_INLINE auto float_to_bfloat16(V v) {
  using I = like<V, int32_t>;
  I bits = bitcast<I>(v);
  I rounded = (I)((wrapping<I>)bits + 0x7fff + ((wrapping<I>)bits >> 16 & 1)) >> 16;
  return v != v ? splat<I>(0x7fc0) : rounded;
}

template <class I> RL_INLINE auto half_to_float(I bits) {
  using V = like<I, float>;
  I magnitude = bits & 0x7fff;
  // Read as a float, the shifted bits are too small by a factor of 2^112. The product also normalizes subnormal halves.
  I finite = bitcast<I>(bitcast<V>(magnitude << 13) * 0x1p112f);
  I special = (magnitude << 13) | 0x7f800000;
  return bitcast<V>((magnitude >= 0x7c00 ? special : finite) | ((bits & 0x8000) << 16));
}

template <class V> RL_INLINE auto float_to_half(V v) {
  using I = like<V, int32_t>;
  I bits = bitcast<I>(v);
  I magnitude = bits & 0x7fffffff;
  I sign = (bits >> 16) & 0x8000;
  I special = magnitude > 0x7f800000 ? splat<I>(0x7e00) : splat<I>(0x7c00);
  I normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Adding 0.5 aligns the last bit of a subnormal half with the last bit of the float, so the addition rounds.
  I subnormal = bitcast<I>(bitcast<V>(magnitude) + 0.5f) - 0x3f000000;
  I finite = magnitude < 0x38800000 ? subnormal : normal;
  return (magnitude >= 0x47800000 ? special : finite) | sign;
}

// Hide v from the optimizer, which would fold conversions of NaN and of out-of-range values to other numbers than the processor
// returns.
template <class V> RL_INLINE V opaque(V v) {
#ifdef __x86_64__
  if constexpr (!is_vector<V>) {
    asm("" : "+x"(v));
    return v;
  }
#endif
#ifdef RL_WHOLE_REGISTERS
  if constexpr (is_wide<V>) {
    halves<V> parts(v);
    asm("" : "+v"(parts.part[0]), "+v"(parts.part[1]));
    return parts.whole();
  } else {
    asm("" : "+v"(v));
  }
#else
  asm("" : "+m"(v));
#endif
  return v;
}

// Convert floats to integers. The asm hides the result: compilers would simplify a conversion and its inverse to a rounding,
// and then NaN and out-of-range values would stay as they are.
template <class R, class V> RL_INLINE R to_integers(V v) {
  R whole = convert_lanes<R>(opaque(v));
  if constexpr (!is_vector<V>) asm("" : "+r"(whole));
  else if constexpr (sizeof(element<R>) == 8) asm("" : "+m"(whole));  // 64-bit lanes are converted one by one, in memory
  return whole;
}

// Convert a loaded value of type From to type To, as a C cast would; float to small integers goes through int32.
// To = bfloat16 or half rounds through that type and gives the float back. From = bool takes a mask.
template <class To, class From, class V> RL_INLINE auto cast(V v) {
  using R = like<V, compute<To>>;
  if constexpr (is_vector<V> && same<From, bool>) {
    if constexpr (same<To, bool>) return v;
    else return cast<To, int32_t>(-v);
  } else if constexpr (same<To, bool>) {
    return compare(v, splat<V>(0), [](auto x, auto y) { return x != y; });
  } else if constexpr (same<To, bfloat16>) {
    return bfloat16_to_float(float_to_bfloat16(cast<float, From>(v)));
  } else if constexpr (same<To, half>) {
    return half_to_float(float_to_half(cast<float, From>(v)));
  } else if constexpr (is_floating<element<V>> && sizeof(To) < 4) {
    return convert_lanes<R>(to_integers<like<V, int32_t>>(v));
  } else if constexpr (is_floating<element<V>> && !is_floating<compute<To>>) {
    return to_integers<R>(v);
  } else {
    return convert_lanes<R>(v);
  }
}

// ---- lane tags -----------------------------------------------------------------------------------------------------

struct scalar_lane {
  static constexpr int size = 1;
  template <class T> RL_INLINE compute<T> load(const T* p) const {
    if constexpr (same<T, bfloat16>) return bfloat16_to_float((int32_t)p->bits);
    else if constexpr (same<T, half>) return half_to_float((int32_t)p->bits);
    else return *p;
  }
  template <class T> RL_INLINE compute<T> load_strided(const T* p, long) const { return load(p); }
  template <class T> RL_INLINE compute<T> load_reversed(const T* p) const { return load(p); }
  template <class T> RL_INLINE compute<T> gather(const T* p, int64_t index) const { return load(p + index); }
  template <class F> RL_INLINE auto load_at(long start, const F& place) const { return load(place(start)); }
  template <class T> RL_INLINE T broadcast(T x) const { return x; }
  template <class T, class V> RL_INLINE void store(T* p, V v) const {
    if constexpr (same<T, bfloat16>) p->bits = (uint16_t)float_to_bfloat16((float)v);
    else if constexpr (same<T, half>) p->bits = (uint16_t)float_to_half((float)v);
    else *p = (T)v;
  }
  template <class T, class V> RL_INLINE void store_strided(T* p, long, V v) const { store(p, v); }
  RL_INLINE void stream(float* p, float v) const { *p = v; }
  RL_INLINE int64_t index(long start, long = 1) const { return start; }
};

struct vector_lane {
  static constexpr int size = lanes;
  template <class T> RL_INLINE vec<T> load(const T* p) const {
    if constexpr (same<T, bool>) return convert_lanes<mask>(load_bytes<vec<int8_t>>(p) != 0);
    else if constexpr (same<T, bfloat16>) return bfloat16_to_float(load_bits(p));
    else if constexpr (same<T, half>) return load_halves(p);
    else return load_bytes<vec<T>>(p);
  }
  template <class T> RL_INLINE vec<T> load_strided(const T* p, long stride) const {
    T block[lanes];
    RL_UNROLL for (int i = 0; i < lanes; ++i) block[i] = p[i * stride];
    return load(block);
  }
  template <class T> RL_INLINE vec<T> load_reversed(const T* p) const {
    const vec<T> v = load(p - (lanes - 1));
    integers<vec<T>> pick;
    RL_UNROLL for (int i = 0; i < lanes; ++i) pick[i] = lanes - 1 - i;
    return permute(v, pick);
  }
  template <class T> RL_INLINE vec<T> gather(const T* p, vec<int64_t> index) const {
#ifdef RL_GCC_AVX512
    if constexpr (same<T, float>) {
      const halves<vec<int64_t>> at(index);
      const auto read = [p](auto part) {
        const auto places = bitcast<typename half_of<long long>::type>(part);
        return bitcast<half_mask>(__builtin_ia32_gatherdiv16sf(half_of<float>::type{}, p, places, -1, sizeof(T)));
      };
      return bitcast<vec<float>>(join(read(at.part[0]), read(at.part[1])));
    }
#endif
    T block[lanes];
    int64_t at[lanes];
    __builtin_memcpy(at, &index, sizeof at);
    RL_UNROLL for (int i = 0; i < lanes; ++i) block[i] = p[at[i]];
    return load(block);
  }
  template <class F> RL_INLINE auto load_at(long start, const F& place) const {
    return load_places(place(start), start, place);
  }
  template <class T, class F> RL_INLINE vec<T> load_places(const T* first, long start, const F& place) const {
    T block[lanes] = {*first};
    RL_UNROLL for (int i = 1; i < lanes; ++i) block[i] = *place(start + i);
    return load(block);
  }
  template <class T> RL_INLINE vec<T> broadcast(T x) const {
    if constexpr (same<T, bool>) return splat<mask>(-(int)x);
    else return splat<vec<T>>(x);
  }
  template <class T, class V> RL_INLINE void store(T* p, V v) const {
    if constexpr (same<T, bool>) put(p, convert_lanes<vec<int8_t>>(v & 1));
    else if constexpr (same<T, bfloat16>) put(p, convert_lanes<vec<uint16_t>>(float_to_bfloat16(v)));
    else if constexpr (same<T, half>) put(p, convert_lanes<vec<uint16_t>>(float_to_half(v)));
    else put<T, vec<T>>(p, v);
  }
  template <class T, class V> RL_INLINE void store_strided(T* p, long stride, V v) const {
    T block[lanes];
    store(block, v);
    RL_UNROLL for (int i = 0; i < lanes; ++i) p[i * stride] = block[i];
  }
  // Store past the caches, for results too large to stay there. A loop should write whole cache lines and end with
  // finish_streams(). If p is not aligned to a vector, this is a normal store.
  RL_INLINE void stream(float* p, vec<float> v) const {
    if ((uintptr_t)p % sizeof v != 0) return store(p, v);
#if defined(__clang__)
    __builtin_nontemporal_store(v, (vec<float>*)p);
#elif defined(__AVX512F__) && RL_LANES == 16
    __builtin_ia32_movntps512(p, v);
#elif defined(__AVX__) && RL_LANES >= 8
    using part = float __attribute__((vector_size(32)));
    part parts[sizeof v / sizeof(part)];
    __builtin_memcpy(parts, &v, sizeof v);
    for (const part& each : parts) __builtin_ia32_movntps256(p + (&each - parts) * 8, each);
#else
    store(p, v);
#endif
  }
  RL_INLINE vec<int64_t> index(long start) const { return iota() + (int64_t)start; }
  RL_INLINE vec<int64_t> index(long start, long step) const { return iota() * (int64_t)step + (int64_t)start; }

  static RL_INLINE vec<int64_t> iota() {
    vec<int64_t> v;
    RL_UNROLL for (int i = 0; i < lanes; ++i) v[i] = i;
    return v;
  }

 private:
  template <class T> static RL_INLINE vec<int32_t> load_bits(const T* p) {
    return convert_lanes<vec<int32_t>>(load_bytes<vec<uint16_t>>(p));
  }
  static RL_INLINE vec<float> load_halves(const half* p) {
#ifdef RL_GCC_AVX512
    using bits = short __attribute__((vector_size(2 * lanes)));
    constexpr int current_rounding = 4;
    return __builtin_ia32_vcvtph2ps512_mask(load_bytes<bits>(p), vec<float>{}, -1, current_rounding);
#else
    return half_to_float(load_bits(p));
#endif
  }
  template <class T, class V> static RL_INLINE void put(T* p, V v) { __builtin_memcpy(p, &v, sizeof v); }
};

// Make this thread's streamed stores visible to other threads. Call it before the thread reports that it is done.
RL_INLINE void finish_streams() {
#ifdef __SSE__
  __builtin_ia32_sfence();
#endif
}

// Call f(vector_lane, i) for whole vectors and f(scalar_lane, i) for the remainder of [0, n). If n is a constant, this costs no
// branch, and no scalar code when n is a multiple of the lane count.
template <class F> RL_INLINE void for_each(long n, const F& f) {
  const long whole = n - n % lanes;
  for (long i = 0; i < whole; i += lanes) f(vector_lane{}, i);
  for (long i = whole; i < n; ++i) f(scalar_lane{}, i);
}

}  // namespace rl
