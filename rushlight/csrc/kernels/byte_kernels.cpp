// Quantized layers and functions over bytes, built on byte_convolution.h.
#include <rushlight/byte_convolution.h>
#include <rushlight/elementwise.h>

#include "bytes.h"
#include "variant.h"

namespace rl {

template <class V> static RL_INLINE auto nearest_within(V x, float low, float high) {
  return nearest(x, splat<V>(low), splat<V>(high));
}

static conv_shape shape_of_layer(const ByteLayer& l) {
  return {l.images, l.channels, l.height, l.width, l.outputs, l.kernel_height, l.kernel_width, l.stride_height,
          l.stride_width, l.pad_height, l.pad_width, l.dilation_height, l.dilation_width, l.groups};
}

int64_t packed_bytes(int64_t depth, int64_t columns) { return packed_bytes_size(depth, columns); }
void pack_layer(const int8_t* weight, int64_t depth, int64_t columns, void* packed) {
  pack_bytes(weight, depth, columns, (int8_t*)packed);
}

int64_t byte_layer_scratch(const ByteLayer* l) { return byte_scratch_bytes(shape_of_layer(*l)); }

static byte_input input_of_layer(const ByteLayer& l) {
  return l.is_signed ? input_of((const int8_t*)l.x, l.zero_point) : input_of((const uint8_t*)l.x, l.zero_point);
}

// ---- epilogues ---------------------------------------------------------------------------------------------------------

// Quantized results: (sum + bias) * multiplier, rounded, clamped to bounds relative to the zero point, plus the zero point.
template <class T> struct requantized_sums {
  T* out;
  long row_size;
  const float *bias, *multiplier;
  float low, high;
  int32_t zero;

  template <class Lane, class V> RL_INLINE void operator()(Lane lane, long row, long column, V sum) const {
    const auto scaled = (cast<float, int32_t>(sum) + lane.load(bias + column)) * lane.load(multiplier + column);
    lane.store(out + row * row_size + column, cast<T, int32_t>(nearest_within(scaled, low, high) + zero));
  }
};

// Results in float32: sum * multiplier + bias, rounded after each operation; results below `low` become `low`.
struct scaled_sums {
  float* out;
  long row_size;
  const float *bias, *multiplier;
  float low;

  template <class Lane, class V> RL_INLINE void operator()(Lane lane, long row, long column, V sum) const {
    const auto scaled = rounded_product(cast<float, int32_t>(sum), lane.load(multiplier + column));
    const auto made = scaled + lane.load(bias + column);
    lane.store(out + row * row_size + column, made < low ? splat<like<V, float>>(low) : made);
  }
};

template <class E> static void run_layer(const ByteLayer& l, const E& results) {
  const sums_epilogue emit = epilogue_of<1, int32_t>(results);
  if (l.depthwise) byte_depthwise(shape_of_layer(l), input_of_layer(l), l.depthwise, emit);
  else byte_convolution(shape_of_layer(l), input_of_layer(l), (const int8_t*)l.packed, l.scratch, emit);
}

template <class T> static void run_requantized(const ByteLayer& l) {
  const int32_t zero = l.out_zero, least = same<T, int8_t> ? -128 : 0, low = l.relu && zero > least ? zero : least;
  run_layer(l, requantized_sums<T>{(T*)l.out, l.outputs, l.bias, l.multiplier, (float)(low - zero),
                                   (float)(least + 255 - zero), zero});
}

void byte_layer(const ByteLayer* l) {
  if (l->out_kind == RL_UINT8) return run_requantized<uint8_t>(*l);
  if (l->out_kind == RL_INT8) return run_requantized<int8_t>(*l);
  run_layer(*l, scaled_sums{(float*)l->out, l->outputs, l->bias, l->multiplier, l->relu ? 0.0f : -__builtin_inff()});
}

// ---- elementwise ------------------------------------------------------------------------------------------------

template <class T> struct byte_limits {
  static constexpr int low = same<T, int8_t> ? -128 : 0, high = low + 255;
};

template <class T, class Lane, class V> static RL_INLINE void store_rounded(Lane lane, T* out, V value, int32_t zero) {
  const float low = (float)(byte_limits<T>::low - zero), high = (float)(byte_limits<T>::high - zero);
  lane.store(out, cast<T, int32_t>(nearest_within(value, low, high) + zero));
}

template <class T, class Lane> static RL_INLINE auto shifted(Lane lane, const T* x, int32_t zero) {
  return cast<int32_t, T>(lane.load(x)) - zero;
}

// The number that an element stands for, by one multiply-add, as ATen's vectorized sums have it.
template <class T, class Lane> static RL_INLINE auto fused_number(Lane lane, const T* x, float scale, int32_t zero) {
  const auto integer = cast<float, int32_t>(cast<int32_t, T>(lane.load(x)));
  return multiply_add(integer, splat<decltype(integer + integer)>(scale), splat<decltype(integer + integer)>(-(scale * (float)zero)));
}

template <class T> static void combine(const ByteFunction& f, int64_t first, int64_t last) {
  const T *a = (const T*)f.inputs[0] + first, *b = (const T*)f.inputs[1] + first;
  T* const out = (T*)f.out + first;
  const float least = f.relu ? 0.0f : -__builtin_inff();
  const bool is_sum = f.code == BYTES_ADD;
  for_each(last - first, [&, f](auto lane, long i) {
    const auto x = shifted(lane, a + i, f.zeros[0]), y = shifted(lane, b + i, f.zeros[1]);
    auto value = cast<float, int32_t>(x * y);
    if (is_sum) value = fused_number(lane, a + i, f.scales[0], f.zeros[0]) + fused_number(lane, b + i, f.scales[1], f.zeros[1]);
    value = value < least ? splat<decltype(value)>(least) : value;
    store_rounded(lane, out + i, value * f.inverse, f.out_zero);
  });
}

template <class T> static void quantize(const ByteFunction& f, int64_t first, int64_t last) {
  const float* const x = (const float*)f.inputs[0] + first;
  T* const out = (T*)f.out + first;
  constexpr float low = (float)byte_limits<T>::low, high = (float)byte_limits<T>::high;
  for_each(last - first, [&, f](auto lane, long i) {
    const auto scaled = multiply_add(lane.load(x + i), lane.broadcast(f.inverse), lane.broadcast((float)f.out_zero));
    lane.store(out + i, cast<T, int32_t>(nearest_within(scaled, low, high)));
  });
}

template <class T> static void dequantize(const ByteFunction& f, int64_t first, int64_t last) {
  const T* const x = (const T*)f.inputs[0] + first;
  float* const out = (float*)f.out + first;
  for_each(last - first, [&, f](auto lane, long i) {
    lane.store(out + i, cast<float, int32_t>(shifted(lane, x + i, f.zeros[0])) * f.scales[0]);
  });
}

// Requantizes to another scale and zero point.
template <class T> static void rescale(const ByteFunction& f, int64_t first, int64_t last) {
  const T* const x = (const T*)f.inputs[0] + first;
  T* const out = (T*)f.out + first;
  const float least = f.relu ? 0.0f : -__builtin_inff();
  constexpr float low = (float)byte_limits<T>::low, high = (float)byte_limits<T>::high;
  for_each(last - first, [&, f](auto lane, long i) {
    const auto real = opaque(cast<float, int32_t>(shifted(lane, x + i, f.zeros[0])) * f.scales[0]);
    const auto value = real < least ? splat<decltype(real + real)>(least) : real;
    const auto scaled = multiply_add(value, splat<decltype(value + value)>(f.inverse), splat<decltype(value + value)>((float)f.out_zero));
    lane.store(out + i, cast<T, int32_t>(nearest_within(scaled, low, high)));
  });
}

template <class T> static void run_function(const ByteFunction& f, int64_t first, int64_t last) {
  if (f.code == BYTES_QUANTIZE) return quantize<T>(f, first, last);
  if (f.code == BYTES_DEQUANTIZE) return dequantize<T>(f, first, last);
  if (f.code == BYTES_RESCALE) return rescale<T>(f, first, last);
  combine<T>(f, first, last);
}

void byte_function(const ByteFunction* given, int64_t first, int64_t last) {
  const ByteFunction f = *given;
  if (f.code == BYTES_LOOKUP) {
    const uint8_t *const x = (const uint8_t*)f.inputs[0], *const table = (const uint8_t*)f.inputs[1];
    for (int64_t i = first; i < last; ++i) ((uint8_t*)f.out)[i] = table[x[i]];
  } else if (f.is_signed) {
    run_function<int8_t>(f, first, last);
  } else {
    run_function<uint8_t>(f, first, last);
  }
}

void float_limits(const float* x, int64_t count, float* limits) {
  const vector_lane lane;
  vec<float> low = splat<vec<float>>(count ? x[0] : 0.0f), high = low;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const vec<float> value = lane.load(x + i);
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  limits[0] = low[0], limits[1] = high[0];
  const auto take = [&](float value) {
    limits[0] = value < limits[0] ? value : limits[0];
    limits[1] = value > limits[1] ? value : limits[1];
  };
  for (int j = 0; j < lanes; ++j) take(low[j]), take(high[j]);
  for (; i < count; ++i) take(x[i]);
}

// ---- pooling -----------------------------------------------------------------------------------------------------------

template <class T> struct window_mean {
  int32_t zero;
  template <class Lane> RL_INLINE auto begin(Lane lane) const { return lane.broadcast((int32_t)0); }
  template <class V> RL_INLINE V take(V sum, V value) const { return sum + (value - zero); }
  template <class Lane, class V> RL_INLINE void store(Lane lane, T* out, V sum, long count) const {
    // The zero point is added before rounding, because halves round to even in the stored value.
    const auto mean = cast<float, int32_t>(sum) / (float)count + (float)zero;
    lane.store(out, cast<T, int32_t>(nearest_within(mean, (float)byte_limits<T>::low, (float)byte_limits<T>::high)));
  }
};

struct pooled_span {
  int64_t low, high, count;  // the range of input positions inside the input, and the divisor of means
};

// Return the input span of an output's window along one axis.
static pooled_span span_of(const BytePool& p, int64_t at, int64_t size, int64_t outputs, int axis) {
  if (p.adaptive) {
    const int64_t low = at * size / outputs, high = ((at + 1) * size + outputs - 1) / outputs;
    return {low, high, high - low};
  }
  const int64_t start = at * p.stride[axis] - p.pad[axis], reach = (p.kernel[axis] - 1) * p.dilation[axis] + 1;
  int64_t low = start, high = start + reach;
  if (low < 0) low += (-low + p.dilation[axis] - 1) / p.dilation[axis] * p.dilation[axis];
  const int64_t end = high < size + p.pad[axis] ? high : size + p.pad[axis];
  if (high > size) high = size;
  return {low, high, p.counts_padding ? end - start : high - low};
}

// Store channels [c, c + sizeof(V)) of one result: the maximum over a window. V is a vector of bytes.
template <class V, class T>
static RL_INLINE void store_largest(const BytePool& p, const T* image, pooled_span rows, pooled_span columns, long c, T* out) {
  V most = V{} + (T)byte_limits<T>::low;
  for (int64_t y = rows.low; y < rows.high; y += p.dilation[0])
    for (int64_t x = columns.low; x < columns.high; x += p.dilation[1]) {
      const V value = load_bytes<V>(image + (y * p.width + x) * p.channels + c);
      most = value > most ? value : most;
    }
  __builtin_memcpy(out + c, &most, sizeof most);
}

template <class T>
static void pool_largest(const BytePool& p, const T* image, pooled_span rows, pooled_span columns, T* out) {
  constexpr long wide = 4 * lanes, narrow = 4;
  typedef T wide_vector __attribute__((vector_size(wide)));
  typedef T narrow_vector __attribute__((vector_size(narrow)));
  typedef T single __attribute__((vector_size(1)));
  long c = 0;
  for (; c + wide <= p.channels; c += wide) store_largest<wide_vector>(p, image, rows, columns, c, out);
  for (; c + narrow <= p.channels; c += narrow) store_largest<narrow_vector>(p, image, rows, columns, c, out);
  for (; c < p.channels; ++c) store_largest<single>(p, image, rows, columns, c, out);
}

template <class T> static void pool_mean(const BytePool& p, const T* image, pooled_span rows, pooled_span columns, T* out) {
  const window_mean<T> rule = {p.zero_point};
  const long count = p.divisor ? p.divisor : rows.count * columns.count;
  for_each(p.channels, [&](auto lane, long c) {
    auto value = rule.begin(lane);
    for (int64_t y = rows.low; y < rows.high; ++y)
      for (int64_t x = columns.low; x < columns.high; ++x)
        value = rule.take(value, cast<int32_t, T>(lane.load(image + (y * p.width + x) * p.channels + c)));
    rule.store(lane, out + c, value, count);
  });
}

template <class T> static void run_pool(const BytePool& p, int64_t first, int64_t last) {
  for (int64_t line = first; line < last; ++line) {
    const T* const image = (const T*)p.x + line / p.out_height * p.height * p.width * p.channels;
    T* const out = (T*)p.out + line * p.out_width * p.channels;
    const pooled_span rows = span_of(p, line % p.out_height, p.height, p.out_height, 0);
    for (int64_t column = 0; column < p.out_width; ++column) {
      const pooled_span columns = span_of(p, column, p.width, p.out_width, 1);
      if (p.is_mean) pool_mean(p, image, rows, columns, out + column * p.channels);
      else pool_largest(p, image, rows, columns, out + column * p.channels);
    }
  }
}

void byte_pool(const BytePool* p, int64_t first, int64_t last) {
  if (p->is_signed) run_pool<int8_t>(*p, first, last);
  else run_pool<uint8_t>(*p, first, last);
}

}  // namespace rl
