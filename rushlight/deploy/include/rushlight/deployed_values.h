// Functions of tensors whose values decide how large results are: places that are not zero, distinct values, boxes apart.
//
// Each takes memory from the handle for the most that there may be, and its result has the sizes that were found.
#pragma once

#include <rushlight/deployed.h>
#include <rushlight/sort.h>

namespace rl {
namespace deployed {

// The elements of a tensor one after the other; null where there is no memory.
inline const void* in_one_piece(handle& self, const tensor& given) {
  tensor plain = given;
  set_contiguous(plain);
  return self.laid(given, plain.strides);
}

inline value of_numbers(int64_t* data, int64_t rows) { return of_tensor(tensor_of(data, RL_CONSTANT(INT64), 1, &rows, nullptr)); }

// Calls act with a zero of the type of a dtype's elements.
template <class Act> inline int by_type(int dtype, Act act) {
  switch (dtype) {
    case RL_CONSTANT(FLOAT32): return act(float{});
    case RL_CONSTANT(FLOAT64): return act(double{});
    case RL_CONSTANT(FLOAT16): return act(half{});
    case RL_CONSTANT(BFLOAT16): return act(bfloat16{});
    case RL_CONSTANT(INT64): return act(int64_t{});
    case RL_CONSTANT(INT32): return act(int32_t{});
    case RL_CONSTANT(INT16): return act(int16_t{});
    case RL_CONSTANT(INT8): return act(int8_t{});
    case RL_CONSTANT(UINT8): return act(uint8_t{});
    case RL_CONSTANT(BOOLEAN): return act(bool{});
  }
  return bad_argument;
}

// A key that is the same for 0 and -0, and for no two other values; each NaN is a value of its own.
template <class T> inline bool is_same_value(T one, T other) {
  const auto key = key_of(one);
  return key == key_of(other) && (infinity_bits<T> == 0 || key != (key_for<T>)~(key_for<T>)0);
}

// The coordinates of elements other than zero, in order, a row for each.
inline int find_nonzero(handle& self, const value& given, value* made) {
  const tensor& in = given.as.tensor;
  const int64_t count = count_of(in);
  return by_type(in.dtype, [&](auto zero_of_type) -> int {
    using T = decltype(zero_of_type);
    const T* data = (const T*)in_one_piece(self, in);
    if (!data) return self.no_more();
    int64_t found = 0;
    const auto zero = key_of(zero_of_type);
    for (int64_t i = 0; i < count; ++i) found += key_of(data[i]) != zero;
    int64_t* const places = (int64_t*)self.take(found * (in.rank ? in.rank : 1) * (int64_t)sizeof(int64_t));
    if (!places) return self.no_more();
    int64_t index[max_dims] = {0}, row = 0;
    for (int64_t i = 0; i < count; ++i) {
      if (key_of(data[i]) != zero) {
        for (int dim = 0; dim < in.rank; ++dim) places[row * in.rank + dim] = index[dim];
        ++row;
      }
      for (int dim = in.rank; dim-- > 0;) {
        if (++index[dim] < in.sizes[dim]) break;
        index[dim] = 0;
      }
    }
    const int64_t sizes[] = {found, (int64_t)in.rank};
    *made = of_tensor(tensor_of(places, RL_CONSTANT(INT64), 2, sizes, nullptr));
    return ok;
  });
}

// The one element of a tensor of integers.
inline int read_integer(handle& self, const value& given, value* made) {
  const tensor& in = given.as.tensor;
  if (count_of(in) != 1) return self.say(failed, "a tensor of %lld elements has no number", (long long)count_of(in));
  return by_type(in.dtype, [&](auto zero_of_type) -> int {
    using T = decltype(zero_of_type);
    if constexpr (infinity_bits<T> != 0) return self.say(failed, "a number that decides sizes is no integer");
    else *made = of_integer((int64_t)*(const T*)in.data);
    return ok;
  });
}

// Which values begin a run of equal ones, of `count` values that `at` gives in order; the results of unique.
template <class T, class At> inline int give_runs(handle& self, const tensor& in, const T* data, int64_t count, At at, bool inverse,
                                                  bool counts, value* made) {
  const int64_t bytes = count * (int64_t)sizeof(int64_t);
  T* const values = (T*)self.take(count * (int64_t)sizeof(T));
  int64_t *const lengths = (int64_t*)self.take(bytes), *const numbers = (int64_t*)self.take(bytes);
  if (!values || !lengths || !numbers) return self.no_more();
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T here = data[at(i)];
    if (i == 0 || !is_same_value(here, data[at(i - 1)])) {
      values[found] = here;
      lengths[found++] = 0;
    }
    ++lengths[found - 1];
    numbers[at(i)] = found - 1;
  }
  made[0] = of_tensor(tensor_of(values, in.dtype, 1, &found, nullptr));
  const int64_t none = 0;
  made[1] = of_tensor(tensor_of(numbers, RL_CONSTANT(INT64), inverse ? in.rank : 1, inverse ? in.sizes : &none, nullptr));
  made[2] = of_numbers(lengths, counts ? found : 0);
  return ok;
}

// The values without repetition in ascending order, where each element is among them, and how often each occurs.
inline int find_unique(handle& self, const value& given, bool, bool inverse, bool counts, value* made) {
  const tensor& in = given.as.tensor;
  const int64_t count = count_of(in);
  if (count > (int64_t)UINT32_MAX) return self.say(failed, "unique takes at most %u values", UINT32_MAX);
  return by_type(in.dtype, [&](auto zero_of_type) -> int {
    using T = decltype(zero_of_type);
    using item = keyed<key_for<T>>;
    const T* data = (const T*)in_one_piece(self, in);
    item* const items = (item*)self.take(2 * count * (int64_t)sizeof(item));
    if (!data || !items) return self.no_more();
    for (int64_t i = 0; i < count; ++i) items[i] = keyed_at<false>(data, (long)i);
    const item* const sorted = count ? sort_items(items, items + count, (long)count) : items;
    return give_runs(self, in, data, count, [&](int64_t i) { return (int64_t)sorted[i].place; }, inverse, counts, made);
  });
}

// The same of runs of equal values, as they come.
inline int find_runs(handle& self, const value& given, bool inverse, bool counts, int, value* made) {
  const tensor& in = given.as.tensor;
  return by_type(in.dtype, [&](auto zero_of_type) -> int {
    using T = decltype(zero_of_type);
    const T* data = (const T*)in_one_piece(self, in);
    if (!data) return self.no_more();
    return give_runs(self, in, data, count_of(in), [](int64_t i) { return i; }, inverse, counts, made);
  });
}

// The numbers of boxes [x1 y1 x2 y2], by falling score, that overlap no better one by more than a part of both together.
inline int find_apart(handle& self, const value& boxes, const value& scores, double most, value* made) {
  const int64_t count = boxes.as.tensor.sizes[0];
  if (scores.as.tensor.sizes[0] != count || count > (int64_t)UINT32_MAX)
    return self.say(failed, "%lld scores do not fit %lld boxes", (long long)scores.as.tensor.sizes[0], (long long)count);
  return by_type(boxes.as.tensor.dtype, [&](auto zero_of_type) -> int {
    using T = decltype(zero_of_type);
    if constexpr (same<T, float> || same<T, double>) {
      using item = keyed<key_for<T>>;
      const T *box = (const T*)in_one_piece(self, boxes.as.tensor), *score = (const T*)in_one_piece(self, scores.as.tensor);
      item* const items = (item*)self.take(2 * count * (int64_t)sizeof(item));
      int64_t* const kept = (int64_t*)self.take(count * (int64_t)sizeof(int64_t));
      if (!box || !score || !items || !kept) return self.no_more();
      for (int64_t i = 0; i < count; ++i) items[i] = keyed_at<true>(score, (long)i);
      const item* const sorted = count ? sort_items(items, items + count, (long)count) : items;
      const auto covers = [&](const T* a, const T* b) {
        const T width = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]);
        const T height = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
        const T common = (width > 0 ? width : 0) * (height > 0 ? height : 0);
        const T one = (a[2] - a[0]) * (a[3] - a[1]), other = (b[2] - b[0]) * (b[3] - b[1]);
        return (double)(common / (one + other - common)) > most;
      };
      int64_t found = 0;
      for (int64_t i = 0; i < count; ++i) {
        bool apart = true;
        for (int64_t j = 0; apart && j < found; ++j) apart = !covers(box + 4 * kept[j], box + 4 * (int64_t)sorted[i].place);
        if (apart) kept[found++] = (int64_t)sorted[i].place;
      }
      *made = of_numbers(kept, found);
      return ok;
    } else {
      return self.say(failed, "boxes are of float32 or float64");
    }
  });
}

}  // namespace deployed
}  // namespace rl
