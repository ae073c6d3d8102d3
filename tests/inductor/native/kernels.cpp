// Entry points for test_headers.py: each exposes one piece of rushlight/*.h to ctypes.
#include <rushlight/attention.h>
#include <rushlight/conv.h>
#include <rushlight/convolution_weight.h>
#include <rushlight/depthwise.h>
#include <rushlight/gemm.h>
#include <rushlight/grouped.h>
#include <rushlight/image.h>
#include <rushlight/math.h>
#include <rushlight/philox.h>
#include <rushlight/recurrent_backward.h>
#include <rushlight/reduce.h>
#include <rushlight/volume.h>

using namespace rl;

template <class F> static void in_parallel(const F& body) { in_team(omp_get_max_threads(), body); }

// ---- pointwise -----------------------------------------------------------------------------------------------------

// As vectors with a scalar rest, and as scalars throughout: both must agree.
#define UNARY(name, T)                                                                                   \
  extern "C" void name##_##T(const T* in, T* out, long n) {                                              \
    for_each(n, [&](auto lane, long i) { lane.store(out + i, rl::name(lane.load(in + i))); });           \
  }                                                                                                      \
  extern "C" void name##_##T##_scalar(const T* in, T* out, long n) {                                     \
    for (long i = 0; i < n; ++i) scalar_lane{}.store(out + i, rl::name(scalar_lane{}.load(in + i)));     \
  }
#define BINARY(name, T)                                                                                     \
  extern "C" void name##_##T(const T* a, const T* b, T* out, long n) {                                      \
    for_each(n, [&](auto lane, long i) { lane.store(out + i, rl::name(lane.load(a + i), lane.load(b + i))); }); \
  }
#define COMPARE(name, T)                                                                                    \
  extern "C" void name##_##T(const T* a, const T* b, bool* out, long n) {                                   \
    for_each(n, [&](auto lane, long i) { lane.store(out + i, rl::name(lane.load(a + i), lane.load(b + i))); }); \
  }

#define ROUNDINGS(T) UNARY(floor, T) UNARY(ceil, T) UNARY(round, T) UNARY(trunc, T) UNARY(abs, T) UNARY(neg, T)
#define REALS(T) \
  ROUNDINGS(T) UNARY(sqrt, T) UNARY(rsqrt, T) UNARY(reciprocal, T) UNARY(relu, T) UNARY(sign, T) UNARY(sigmoid, T) \
  UNARY(silu, T) UNARY(gelu_erf, T) UNARY(gelu_tanh, T) UNARY(gelu_erf_slope, T) UNARY(gelu_tanh_slope, T) \
  UNARY(exp, T) UNARY(exp2, T) UNARY(expm1, T) UNARY(log, T) \
  UNARY(log2, T) UNARY(log10, T) UNARY(log1p, T) UNARY(sin, T) UNARY(cos, T) UNARY(tan, T) UNARY(tanh, T)          \
  UNARY(erf, T) UNARY(erfc, T) UNARY(asin, T) UNARY(acos, T) UNARY(atan, T) UNARY(sinh, T) UNARY(cosh, T)          \
  UNARY(asinh, T) UNARY(acosh, T) UNARY(atanh, T) BINARY(copysign, T) BINARY(atan2, T) BINARY(hypot, T)
REALS(float)
REALS(double)
UNARY(exp_nonpositive, float)

#define ARITHMETIC(T) \
  BINARY(maximum, T) BINARY(minimum, T) BINARY(remainder, T) BINARY(fmod, T) BINARY(floor_div, T) BINARY(div, T) \
  BINARY(pow, T) BINARY(add, T) BINARY(sub, T) BINARY(mul, T)                                                     \
  COMPARE(eq, T) COMPARE(ne, T) COMPARE(lt, T) COMPARE(le, T) COMPARE(gt, T) COMPARE(ge, T)
#define BITS(T) \
  BINARY(bitwise_and, T) BINARY(bitwise_or, T) BINARY(bitwise_xor, T) BINARY(shift_left, T) BINARY(shift_right, T)
#define INTEGERS(T) ARITHMETIC(T) BITS(T) UNARY(abs, T) UNARY(sign, T) UNARY(bitwise_not, T)
ARITHMETIC(float)
ARITHMETIC(double)
INTEGERS(int8_t)
INTEGERS(int16_t)
INTEGERS(int32_t)
INTEGERS(int64_t)
INTEGERS(uint8_t)

#define WHERE(T)                                                                                      \
  extern "C" void where_##T(const bool* m, const T* a, const T* b, T* out, long n) {                  \
    for_each(n, [&](auto lane, long i) {                                                              \
      lane.store(out + i, where(lane.load(m + i), lane.load(a + i), lane.load(b + i)));               \
    });                                                                                               \
  }
WHERE(double) WHERE(int8_t)

extern "C" void logic(const bool* a, const bool* b, bool* out, long n) {  // (a and not b) xor (a or b)
  for_each(n, [&](auto lane, long i) {
    const auto x = lane.load(a + i), y = lane.load(b + i);
    lane.store(out + i, logical_xor(logical_and(x, logical_not(y)), logical_or(x, y)));
  });
}

#define CAST(From, To)                                                                                     \
  extern "C" void cast_##From##_##To(const From* in, To* out, long n) {                                    \
    for_each(n, [&](auto lane, long i) { lane.store(out + i, cast<To, From>(lane.load(in + i))); });       \
  }
#define CASTS_FROM(From) \
  CAST(From, float) CAST(From, double) CAST(From, int8_t) CAST(From, uint8_t) CAST(From, int16_t) \
  CAST(From, int32_t) CAST(From, int64_t) CAST(From, bool) CAST(From, half) CAST(From, bfloat16)
CASTS_FROM(float) CASTS_FROM(double) CASTS_FROM(int8_t) CASTS_FROM(uint8_t) CASTS_FROM(int16_t) CASTS_FROM(int32_t)
CASTS_FROM(int64_t) CASTS_FROM(bool) CASTS_FROM(half) CASTS_FROM(bfloat16)

// Every kind of access in one: out[2 i] = in[3 i] + table[index[i]] + (5 + 7 i).
extern "C" void accesses(const float* in, const float* table, const int64_t* index, float* out, long n) {
  for_each(n, [&](auto lane, long i) {
    const auto sum = lane.load_strided(in + 3 * i, 3) + lane.gather(table, lane.load(index + i));
    lane.store_strided(out + 2 * i, 2, sum + cast<float, int64_t>(lane.index(5 + 7 * i, 7)) + lane.broadcast(-0.0f));
  });
}

// ---- reductions ----------------------------------------------------------------------------------------------------

#define REDUCE(Op, T)                                                                        \
  extern "C" T Op##_##T(const T* in, long n) {                                               \
    accumulator<Op, T> all_of;                                                               \
    for_each(n, [&](auto lane, long i) { all_of.add(lane, lane.load(in + i)); });            \
    return all_of.finish();                                                                  \
  }                                                                                          \
  extern "C" void Op##_columns_##T(const T* in, T* out, long rows, long columns) {           \
    for_each(columns, [&](auto lane, long i) {                                               \
      column_accumulator<Op, decltype(lane.load(in))> all_of;                                \
      for (long r = 0; r < rows; ++r) all_of.add(lane.load(in + r * columns + i));           \
      lane.store(out + i, all_of.finish());                                                  \
    });                                                                                      \
  }
#define REDUCES(T) REDUCE(sum, T) REDUCE(prod, T) REDUCE(max, T) REDUCE(min, T)
REDUCES(float) REDUCES(double) REDUCES(int32_t) REDUCES(int64_t)
REDUCE(max, uint8_t) REDUCE(min, int8_t) REDUCE(any, bool) REDUCE(all, bool)

#define PLACE(Op, T)                                                                                    \
  extern "C" int64_t Op##_##T(const T* in, long n) {                                                    \
    accumulator<Op, T> all_of;                                                                          \
    for_each(n, [&](auto lane, long i) { all_of.add(lane, lane.load(in + i), i); });                    \
    return all_of.finish();                                                                             \
  }
PLACE(argmax, float) PLACE(argmin, float) PLACE(argmax, double) PLACE(argmin, int32_t) PLACE(argmax, uint8_t)

// Places that do not fit 32 bits: those from `half` on lie `gap` further.
extern "C" int64_t argmax_far(const float* in, long n, long half, long gap) {
  accumulator<argmax, float> all_of;
  for_each(half, [&](auto lane, long i) { all_of.add(lane, lane.load(in + i), i); });
  for_each(n - half, [&](auto lane, long i) { all_of.add(lane, lane.load(in + half + i), half + i + gap); });
  return all_of.finish();
}

extern "C" void moments_float(const float* in, long n, float* out) {
  welford<float> all_of;
  for_each(n, [&](auto lane, long i) { all_of.add(lane, lane.load(in + i)); });
  const auto result = all_of.finish();
  out[0] = result.mean, out[1] = result.m2, out[2] = result.count;
}

// ---- shared loops ---------------------------------------------------------------------------------------------------

// Loops of counts[0..loops) iterations, one after the other: `times` counts how often each iteration ran, of all loops in
// a row. Gives how many iterations a thread found undone when their loop was over.
extern "C" long run_loops(int threads, long loops, const long* counts, int* times) {
  long undone = 0;
  in_team(threads, [&] {
    int* of_loop = times;
    for (long loop = 0; loop < loops; of_loop += counts[loop++]) {
      for (const long i : shared(counts[loop])) __atomic_fetch_add(of_loop + i, 1, __ATOMIC_RELAXED);
      for (long i = 0; i < counts[loop]; ++i)
        if (__atomic_load_n(of_loop + i, __ATOMIC_RELAXED) != 1) __atomic_fetch_add(&undone, 1, __ATOMIC_RELAXED);
    }
  });
  return undone;
}

// A loop whose first iteration waits, for `seconds` at most, until all others but those of its piece are done. Gives
// how many were when it went on.
extern "C" long wait_for_others(int threads, long count, long of_piece, double seconds) {
  long done = 0, found = 0;
  in_team(threads, [&] {
    for (const long i : shared(count)) {
      if (i == 0) {
        const double start = omp_get_wtime();
        while (__atomic_load_n(&done, __ATOMIC_RELAXED) < count - of_piece && omp_get_wtime() - start < seconds);
        found = __atomic_load_n(&done, __ATOMIC_RELAXED);
      }
      __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
    }
  });
  return found;
}

// Loops that the last thread comes to only when, for `seconds` at most, all others have done all of them. Gives how many
// iterations were done when it came.
extern "C" long come_late(int threads, long loops, long count, double seconds) {
  long done = 0, found = 0;
  in_team(threads, [&] {
    if (thread_index() == threads - 1) {
      const double start = omp_get_wtime();
      while (__atomic_load_n(&done, __ATOMIC_RELAXED) < loops * count && omp_get_wtime() - start < seconds);
      found = __atomic_load_n(&done, __ATOMIC_RELAXED);
    }
    for (long loop = 0; loop < loops; ++loop)
      for ([[maybe_unused]] const long i : shared(count)) __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
  });
  return done == loops * count ? found : -1;
}

// ---- products ------------------------------------------------------------------------------------------------------

extern "C" long packed_floats(long depth, long columns) { return packed_size(depth, columns); }

extern "C" long own_panel_floats(long depth) { return own_panel_bytes<float>(depth) / (long)sizeof(float); }

// out = a b + bias; b by its strides. Where `packed` is null, threads pack panels themselves in `own`.
extern "C" void gemm_of(long rows, const float* a, long a_row, const float* b, long b_row, long b_column, const float* bias,
                        float* packed, float* own, float* out, long columns, long depth, long rows_at_once) {
  in_parallel([&] {
    if (packed) pack_b(b, b_row, b_column, depth, columns, packed);
    const b_panels<float> panels(packed, b, b_row, b_column, own);
    const auto emit = [=](auto lane, long row, long column, auto value) {
      lane.store(out + row * columns + column, value + lane.load(bias + column));
    };
    gemm(rows, a, a_row, panels, columns, depth, epilogue_of(emit), rows_at_once);
  });
}

// A as an operand of any strides, which is packed; B's columns one after the other.
extern "C" void gemm_turned_of(long rows, const float* a, long a_row, long a_column, const float* b, long b_column,
                               float* packed, float* out, long columns, long depth) {
  const auto emit = [=](auto lane, long row, long column, auto value) { lane.store(out + row * columns + column, value); };
  in_parallel([&] {
    pack_b(a, a_column, a_row, depth, rows, packed);
    if (columns % 32 == 0) gemm_turned(rows, packed, b, b_column, columns, depth, epilogue_of<32>(emit));
    else gemm_turned(rows, packed, b, b_column, columns, depth, epilogue_of(emit));
  });
}

extern "C" long bgemm_bytes(long depth) { return bgemm_scratch_bytes(depth); }

extern "C" void bgemm_any(long m, long batches, const float* a, const long* a_at, const float* b, const long* b_at,
                          float* out, long columns, long depth, void* scratch) {
  in_parallel([&] {
    bgemm(m, batches, matrices{a, a_at[0], a_at[1], a_at[2]}, matrices{b, b_at[0], b_at[1], b_at[2]}, columns, depth, scratch,
          epilogue_of([=](auto lane, long row, long column, auto value) { lane.store(out + row * columns + column, value); }));
  });
}

// ---- attention -----------------------------------------------------------------------------------------------------

static head_strides strides(const long* at) { return {at[0], at[1], at[2], at[3]}; }

template <int D, class Mask>
void attend_all(const float* q, const long* q_at, const float* k, const long* k_at, const float* v, const long* v_at,
                float* out, const long* out_at, float* lse, const long* sizes, float scale, bool causal, Mask mask) {
  in_parallel([&] {
    attention<D>(q, strides(q_at), k, strides(k_at), v, strides(v_at), out, strides(out_at), lse, sizes[0], sizes[1],
                 sizes[2], sizes[3], scale, causal, mask);
  });
}

#define ATTENTION(D)                                                                                                   \
  extern "C" void attention_##D(const float* q, const long* q_at, const float* k, const long* k_at, const float* v,    \
                                const long* v_at, float* out, const long* out_at, float* lse, const long* sizes,       \
                                float scale, bool causal, const float* added, const bool* kept, const long* mask_at) { \
    const auto run = [&](auto mask) {                                                                                  \
      attend_all<D>(q, q_at, k, k_at, v, v_at, out, out_at, lse, sizes, scale, causal, mask);                          \
    };                                                                                                                 \
    if (added) run(attention_mask<float>{added, mask_at[0], mask_at[1], mask_at[2], mask_at[3]});                      \
    else if (kept) run(attention_mask<bool>{kept, mask_at[0], mask_at[1], mask_at[2], mask_at[3]});                    \
    else run(no_mask{});                                                                                               \
  }
ATTENTION(32) ATTENTION(37)

// ---- recurrent layers ----------------------------------------------------------------------------------------------

extern "C" long gate_panels_floats(long gates, long hidden) { return gate_panels_size(gates, hidden); }

#define RECURRENT(name, Kind)                                                                                          \
  extern "C" void name(const recurrent_pass* passes, long count, const float* const* weights, float* const* panels) { \
    const long hidden = passes->hidden;                                                                                \
    in_parallel([&] {                                                                                                  \
      for (long i = 0; i < count; ++i) pack_gates(weights[i], hidden, 1L, Kind::gates, hidden, panels[i]);             \
      recurrent_steps<Kind>(passes, (int)count);                                                                       \
    });                                                                                                                \
  }
#define RECURRENT_BACK(name, Kind)                                                                                      \
  extern "C" void name(const recurrent_back_pass* passes, long count, const float* const* weights,                   \
                       float* const* panels) {                                                                         \
    const long hidden = passes->hidden;                                                                                \
    in_parallel([&] {                                                                                                  \
      for (long i = 0; i < count; ++i) pack_b(weights[i], hidden, 1L, Kind::gates * hidden, hidden, panels[i]);        \
      recurrent_back<Kind>(passes, (int)count);                                                                        \
    });                                                                                                                \
  }
RECURRENT(rnn_relu, rnn_step<true>) RECURRENT(rnn_tanh, rnn_step<false>) RECURRENT(lstm, lstm_step) RECURRENT(gru, gru_step)
RECURRENT_BACK(rnn_relu_back, rnn_back<true>) RECURRENT_BACK(rnn_tanh_back, rnn_back<false>)
RECURRENT_BACK(lstm_back_of, lstm_back) RECURRENT_BACK(gru_back_of, gru_back)

// ---- convolution ---------------------------------------------------------------------------------------------------

extern "C" long conv_bytes(const conv_shape* shape) { return conv2d_scratch_bytes(*shape); }

extern "C" void conv(const float* x, const float* weight, const float* bias, float* out, const conv_shape* shape,
                     void* scratch) {
  const long pixels = shape->out_height() * shape->out_width();
  in_parallel([&] {
    conv2d(x, weight, *shape, scratch, epilogue_of([=](auto lane, long o, long pixel, auto value) {
      lane.store(out + o * pixels + pixel, value + lane.broadcast(bias[o % shape->outputs]));
    }));
  });
}

// Channels-last results: out[pixel][channel].

extern "C" long filter_bytes(const conv_shape* shape, long threads) { return filter_scratch_bytes(*shape, threads); }
extern "C" long winograd_bytes(const conv_shape* shape, long threads) { return winograd_scratch_bytes(*shape, threads); }

extern "C" void direct(const float* x, const image_strides* at, const float* weight, const float* bias, float* packed,
                       float* out, const conv_shape* shape, void* scratch) {
  const bool last = at->channel == 1 || shape->channels == 1;
  const filter_order order = last ? filter_order::taps_outside : filter_order::channels_outside;
  in_parallel([&] {
    pack_filter(weight, shape->outputs, shape->channels, shape->kernel_height * shape->kernel_width, order, packed);
    conv2d_direct(x, *at, packed, *shape, scratch, epilogue_of([=](auto lane, long pixel, long o, auto value) {
      lane.store(out + pixel * shape->outputs + o, value + lane.load(bias + o));
    }));
  });
}

// The weight lies as [O, C, 3, 3], [O, 3, 3, C] or [C, O, 3, 3].
#define WINOGRAD(Name, Output, Channel, Row, Column)                                                                   \
  extern "C" void Name(const float* x, const image_strides* at, const float* weight, const float* bias, float* packed, \
                       float* out, const conv_shape* shape, void* scratch) {                                           \
    const long channels = shape->channels, outputs = shape->outputs;                                                   \
    const image_strides filter = {Output, Channel, Row, Column};                                                       \
    (void)outputs, (void)channels;                                                                                     \
    in_parallel([&] {                                                                                                  \
      pack_winograd(weight, filter, shape->outputs, channels, packed);                                                 \
      conv2d_winograd(x, *at, weight, filter, packed, *shape, scratch,                                                 \
                      epilogue_of([=](auto lane, long pixel, long o, auto value) {                                     \
                        lane.store(out + pixel * shape->outputs + o, value + lane.load(bias + o));                     \
                      }));                                                                                             \
    });                                                                                                                \
  }
WINOGRAD(winograd, 9 * channels, 9, 3, 1)
WINOGRAD(winograd_last, 9 * channels, 1, 3 * channels, channels)
WINOGRAD(winograd_turned, 9, 9 * outputs, 3, 1)

extern "C" long depthwise_bytes(const conv_shape* shape, long threads) { return depthwise_scratch_bytes(*shape, threads); }
extern "C" long depthwise_input_bytes(const conv_shape* shape, long threads) {
  return depthwise_input_scratch_bytes(*shape, threads);
}
extern "C" long depthwise_weight_bytes(const conv_shape* shape, long threads) {
  return depthwise_weight_scratch_bytes(*shape, threads);
}

#define DEPTHWISE(Name, Function)                                                                               \
  extern "C" void Name(const float* x, const image_strides* at, const float* weight, float* packed, float* out, \
                       const conv_shape* shape, void* scratch) {                                                \
    in_parallel([&] {                                                                                           \
      pack_depthwise(weight, shape->channels, shape->kernel_height * shape->kernel_width, packed);              \
      Function(x, *at, packed, *shape, scratch, epilogue_of([=](auto lane, long pixel, long c, auto value) {    \
        lane.store(out + pixel * shape->channels + c, value);                                                   \
      }));                                                                                                      \
    });                                                                                                         \
  }
DEPTHWISE(depthwise, conv2d_channelwise) DEPTHWISE(depthwise_input, channelwise_input_gradient)

extern "C" long volume_bytes(const volume_shape* shape, long threads) { return volume_scratch_bytes(*shape, threads); }
extern "C" long volume_input_bytes(const volume_shape* shape, long threads) {
  return volume_input_scratch_bytes(*shape, threads);
}

extern "C" void volumes(const float* x, const float* weight, float* out, const volume_shape* shape, void* scratch) {
  const long columns = shape->out();
  in_parallel([&] {
    convolve_volumes(x, weight, *shape, scratch, epilogue_of([=](auto lane, long row, long column, auto value) {
      lane.store(out + row * columns + column, value);
    }));
  });
}

extern "C" void volumes_input(const float* grad, const float* weight, float* packed, float* out, const volume_shape* shape,
                              void* scratch) {
  const long columns = shape->size();
  in_parallel([&] {
    pack_volume_gradient(weight, *shape, packed);
    volume_input_gradient(grad, packed, *shape, scratch, epilogue_of([=](auto lane, long row, long column, auto value) {
      lane.store(out + row * columns + column, value);
    }));
  });
}

extern "C" void depthwise_weight(const float* x, const image_strides* at, const float* grad, const image_strides* grad_at,
                                 float* out, const conv_shape* shape, void* scratch) {
  const long taps = shape->kernel_height * shape->kernel_width;
  in_parallel([&] {
    channelwise_weight_gradient(x, *at, grad, *grad_at, *shape, scratch, epilogue_of([=](auto lane, long c, long k, auto value) {
      lane.store(out + c * taps + k, value);
    }));
  });
}

extern "C" long weight_gradient_bytes(const conv_shape* shape, long threads) {
  return weight_gradient_scratch_bytes(*shape, threads);
}
extern "C" long weight_winograd_bytes(const conv_shape* shape, long threads) {
  return weight_winograd_scratch_bytes(*shape, threads);
}

#define WEIGHT(Name, Function)                                                                                                \
  extern "C" void Name(const float* x, const image_strides* at, const float* grad, const image_strides* grad_at, bool last,   \
                       float* out, const conv_shape* shape, void* scratch) {                                                  \
    in_parallel([&] {                                                                                                         \
      Function(x, *at, grad, *grad_at, last, *shape, scratch, epilogue_of([=](auto lane, long o, long k, auto value) {        \
        lane.store(out + o * shape->depth() + k, value);                                                                      \
      }));                                                                                                                    \
    });                                                                                                                       \
  }
WEIGHT(weight_gradient, conv2d_weight_gradient) WEIGHT(weight_winograd, conv2d_weight_winograd)

extern "C" long grouped_bytes(const conv_shape* shape, long threads) { return grouped_scratch_bytes(*shape, threads); }
extern "C" long grouped_input_bytes(const conv_shape* shape, long threads) {
  return grouped_input_scratch_bytes(*shape, threads);
}

#define GROUPED(Name, Function, Forward, Columns)                                                                      \
  extern "C" void Name(const float* x, const image_strides* at, const float* weight, float* packed, float* out,        \
                       const conv_shape* shape, void* scratch) {                                                       \
    in_parallel([&] {                                                                                                  \
      const group_channels each(*shape, Forward);                                                                      \
      pack_groups(weight, each.groups, each.inputs, each.outputs, shape->kernel_height * shape->kernel_width, Forward, \
                  packed);                                                                                             \
      Function(x, *at, packed, *shape, scratch, epilogue_of([=](auto lane, long pixel, long c, auto value) {           \
        lane.store(out + pixel * shape->Columns + c, value);                                                           \
      }));                                                                                                             \
    });                                                                                                                \
  }
GROUPED(grouped, conv2d_grouped, true, outputs) GROUPED(grouped_input, grouped_input_gradient, false, channels)

// ---- random words --------------------------------------------------------------------------------------------------

// Blocks of `counters` (four words each) under `keys` (two words each), as scalars and as vectors whose lanes are equal.
extern "C" void philox_blocks(const uint32_t* counters, const uint32_t* keys, uint32_t* out, uint32_t* out_of_vectors, long n) {
  using U = vec<uint32_t>;
  for (long i = 0; i < n; ++i, counters += 4, keys += 2, out += 4, out_of_vectors += 4) {
    const auto one = philox(counters[0], counters[1], counters[2], counters[3], keys[0], keys[1]);
    const auto many = philox(splat<U>(counters[0]), splat<U>(counters[1]), splat<U>(counters[2]), splat<U>(counters[3]), keys[0],
                             keys[1]);
    for (int word = 0; word < 4; ++word) out[word] = one.words[word], out_of_vectors[word] = many.words[word][lanes - 1];
  }
}

// Elements first, first + step, ... of a stream.
extern "C" void philox_stream_bits(long seed, long offset, long first, long step, int64_t* out, long n) {
  philox_stream stream(seed, (uint32_t)offset);
  for_each(n, [&](auto lane, long i) {
    lane.store(out + i, step == 1 ? stream.bits(lane, first + i) : stream.bits(lane, first + i * step, step));
  });
}
extern "C" void philox_stream_uniform(long seed, long offset, float* out, long n) {
  philox_stream stream(seed, (uint32_t)offset);
  for_each(n, [&](auto lane, long i) { lane.store(out + i, stream.uniform(lane, i)); });
}

// ---- stores past the caches ----------------------------------------------------------------------------------------

extern "C" void streamed(const float* in, float* out, long n) {
  for_each(n, [&](auto lane, long i) { lane.stream(out + i, lane.load(in + i)); });
  finish_streams();
}
