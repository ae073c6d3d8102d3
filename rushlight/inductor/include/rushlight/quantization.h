// Choose the scale and the zero point that map a range of floats to bytes, by the arithmetic of ATen's
// `ChooseQuantizationParams`.
#pragma once

#include <rushlight/elementwise.h>
#include <rushlight/parallel.h>

namespace rl {

struct float_range {
  float low, high;
  RL_INLINE void take(float x) {
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
};

// Return the minimum and maximum of `count` numbers and 0.
inline float_range range_of(const float* x, long count) {
  const vector_lane lane;
  vec<float> low{}, high{};
  long i = 0;
  for (; i + lanes <= count; i += lanes) {
    const vec<float> value = lane.load(x + i);
    low = smaller(value, low);
    high = larger(value, high);
  }
  float_range found = {0, 0};
  for (int j = 0; j < lanes; ++j) found.take(low[j]), found.take(high[j]);
  for (; i < count; ++i) found.take(x[i]);
  return found;
}

// Map a range that contains 0 to integers from 0 to `most`. 0 is represented exactly: the zero point is computed from the end
// of the range that has the smaller error.
inline void choose_scale(float_range range, double most, float* scale_out, int32_t* zero_out) {
  constexpr double least = 6.1e-5, infinity = __builtin_inf();
  double low = range.low, high = range.high, scale = (high - low) / most;
  if (!((float)scale > 0) || !(1 / (float)scale < infinity)) scale = 0.1;
  if (scale < least) {
    const double factor = least / scale;
    if (low == 0) high = least * most;
    else if (high == 0) low = -least * most;
    else low *= factor, high *= factor;
    scale = least;
  }
  const double error_low = -abs(low / scale), error_high = most - abs(high / scale);
  const double zero = round(error_low < error_high ? -low / scale : most - high / scale);
  *scale_out = (float)scale;
  *zero_out = zero > most ? (int32_t)most : zero > 0 ? (int32_t)zero : 0;
}

constexpr long limits_scratch_bytes() { return 64; }

// Choose the scale and the zero point of `count` floats. Called by all threads of a parallel region; scratch:
// limits_scratch_bytes() each.
inline void choose_quantization(const float* x, float* scale, int32_t* zero, long count, long most, char* scratch) {
  constexpr long block = 4096;
  float_range found = {0, 0};
  for (const long at : shared((count + block - 1) / block)) {
    const float_range part = range_of(x + at * block, smallest(block, count - at * block));
    found.take(part.low), found.take(part.high);
  }
  *(float_range*)(scratch + thread_index() * limits_scratch_bytes()) = found;
  barrier();
  if (thread_index() == 0) {
    for (int thread = 1; thread < thread_count(); ++thread) {
      const float_range other = *(const float_range*)(scratch + thread * limits_scratch_bytes());
      found.take(other.low), found.take(other.high);
    }
    choose_scale(found, (double)most, scale, zero);
  }
  barrier();
}

}  // namespace rl
