// Sorting and top-k: rl::sort_row writes the first values of a sorted row, and their indices in the unsorted row ("places").
//
// Elements become unsigned keys that compare as the values do, with NaN greater than every number and -0 equal to 0. Keys are
// radix-sorted byte by byte from the lowest, which is stable; to select a few of many items, a heap or a short sorted list is
// used instead (Knuth, The Art of Computer Programming 3, 5.2.3 and 5.2.5).
#pragma once

#include <rushlight/elementwise.h>

namespace rl {

// ---- keys ----------------------------------------------------------------------------------------------------------

template <int Bytes> struct key_type;
template <> struct key_type<1> { using type = uint8_t; };
template <> struct key_type<2> { using type = uint16_t; };
template <> struct key_type<4> { using type = uint32_t; };
template <> struct key_type<8> { using type = uint64_t; };
template <class T> using key_for = typename key_type<sizeof(T)>::type;

// The bits of infinity in a floating type; 0 for integer types.
template <class T> constexpr key_for<T> infinity_bits = 0;
template <> inline constexpr uint32_t infinity_bits<float> = 0x7f800000;
template <> inline constexpr uint64_t infinity_bits<double> = 0x7ff0000000000000;
template <> inline constexpr uint16_t infinity_bits<bfloat16> = 0x7f80;
template <> inline constexpr uint16_t infinity_bits<half> = 0x7c00;

// Return an unsigned key that orders as `value` does.
template <class T> RL_INLINE key_for<T> key_of(T value) {
  using K = key_for<T>;
  constexpr K sign = (K)1 << (sizeof(K) * 8 - 1);
  K bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  if constexpr (infinity_bits<T> != 0) {
    const K magnitude = bits & (K)~sign;
    if (magnitude > infinity_bits<T>) return (K)~(K)0;
    if (magnitude == 0) return sign;
    return bits & sign ? (K)~bits : (K)(bits | sign);
  } else {
    return (T)-1 < (T)0 ? (K)(bits ^ sign) : bits;
  }
}

// A key with the index of its element in the row.
template <class K> struct keyed {
  K key;
  uint32_t place;
};

// Return the key of row[place]. If Descending, the key is inverted, so that sorting is always ascending.
template <bool Descending, class T> RL_INLINE keyed<key_for<T>> keyed_at(const T* row, long place) {
  using K = key_for<T>;
  return {(K)(key_of(row[place]) ^ (Descending ? (K)~(K)0 : (K)0)), (uint32_t)place};
}

template <class K> RL_INLINE bool comes_before(const keyed<K>& a, const keyed<K>& b) {
  return a.key < b.key || (a.key == b.key && a.place < b.place);
}

// ---- sorting a whole row --------------------------------------------------------------------------------------------

constexpr long max_insertion_items = 48;  // at most this many items are sorted by insertion

template <class K> RL_INLINE void sort_by_insertion(keyed<K>* items, long count) {
  for (long i = 1; i < count; ++i) {
    const keyed<K> moved = items[i];
    long j = i;
    for (; j > 0 && comes_before(moved, items[j - 1]); --j) items[j] = items[j - 1];
    items[j] = moved;
  }
}

// Radix-sort `items`, using `spare` (of the same size) as a second buffer. Return whichever buffer holds the result.
template <class K> inline keyed<K>* sort_by_bytes(keyed<K>* items, keyed<K>* spare, long count) {
  uint32_t counts[sizeof(K)][256] = {};
  for (long i = 0; i < count; ++i)
    RL_UNROLL for (int digit = 0; digit < (int)sizeof(K); ++digit) ++counts[digit][items[i].key >> (8 * digit) & 255];
  for (int digit = 0; digit < (int)sizeof(K); ++digit) {
    uint32_t* place = counts[digit];
    if (place[items[0].key >> (8 * digit) & 255] == count) continue;  // all items have the same digit
    uint32_t start = 0;
    for (int value = 0; value < 256; ++value) {
      const uint32_t here = place[value];
      place[value] = start;
      start += here;
    }
    for (long i = 0; i < count; ++i) spare[place[items[i].key >> (8 * digit) & 255]++] = items[i];
    keyed<K>* swap = items;
    items = spare;
    spare = swap;
  }
  return items;
}

template <class K> RL_INLINE keyed<K>* sort_items(keyed<K>* items, keyed<K>* spare, long count) {
  if (count > max_insertion_items) return sort_by_bytes(items, spare, count);
  sort_by_insertion(items, count);
  return items;
}

// ---- selecting the first few ----------------------------------------------------------------------------------------

constexpr long max_list_items = 16;  // at most this many items are kept in a sorted list, more in a heap

// Restore the heap after its root was replaced. The root is the item that sorts last among the kept ones.
template <class K> RL_INLINE void sift_down(keyed<K>* heap, long count) {
  const keyed<K> moved = heap[0];
  long at = 0;
  for (long child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && comes_before(heap[child], heap[child + 1])) ++child;
    if (!comes_before(moved, heap[child])) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

// Replace the last of the kept items by `item` if it sorts before it. `item` comes later in the row, so on equal keys it loses.
template <class K> RL_INLINE void replace_last(keyed<K>* items, long kept, keyed<K> item, keyed<K>*& last) {
  if (item.key >= last->key) return;
  if (kept > max_list_items) {
    *last = item;
    return sift_down(items, kept);
  }
  long at = kept - 1;
  for (; at > 0 && item.key < items[at - 1].key; --at) items[at] = items[at - 1];
  items[at] = item;
}

// Mark which of the next lanes might sort before `worst`. The test may only err on the safe side: NaN elements are always
// marked, and all elements are if `worst` is NaN.
template <bool Descending, class T, class V> RL_INLINE mask may_come_before(const T* row, V worst) {
  const vec<T> v = vector_lane{}.load(row), limit = vector_lane{}.broadcast(worst);
  return logical_not(Descending ? le(v, limit) : ge(v, limit));
}

// Select the `kept` first items of the row into `items`, which hold the row's first `kept` elements on entry: sorted if they
// are a list, else as a heap.
template <bool Descending, class T>
RL_INLINE void scan_row(const T* row, long count, long kept, keyed<key_for<T>>* items) {
  keyed<key_for<T>>* last = kept > max_list_items ? items : items + kept - 1;
  long i = kept;
  if constexpr (!same<T, bool>) {
    for (; i + lanes <= count; i += lanes) {
      const mask found = may_come_before<Descending>(row + i, scalar_lane{}.load(row + last->place));
      if (!any_bit(found)) continue;
      for (int lane = 0; lane < lanes; ++lane)
        if (found[lane]) replace_last(items, kept, keyed_at<Descending>(row, i + lane), last);
    }
  }
  for (; i < count; ++i) replace_last(items, kept, keyed_at<Descending>(row, i), last);
}

// Return the `kept` first items in order, in one of the buffers `own` and `spare` of `kept` items each.
template <bool Descending, class T>
inline keyed<key_for<T>>* select_first(const T* row, long count, long kept, keyed<key_for<T>>* own, keyed<key_for<T>>* spare) {
  for (long i = 0; i < kept; ++i) own[i] = keyed_at<Descending>(row, i);
  keyed<key_for<T>>* sorted = sort_items(own, spare, kept);
  if (kept <= max_list_items) {
    scan_row<Descending>(row, count, kept, sorted);
    return sorted;
  }
  keyed<key_for<T>>* heap = sorted == own ? spare : own;
  for (long i = 0; i < kept; ++i) heap[i] = sorted[kept - 1 - i];  // a reversed sorted list is a heap
  scan_row<Descending>(row, count, kept, heap);
  sort_by_insertion(heap, kept);
  return heap;
}

// ---- rows ----------------------------------------------------------------------------------------------------------

constexpr long max_heap_items = 128;

// Decide whether to sort the whole row instead of selecting its first items.
constexpr bool sorts_whole(long count, long kept) { return kept > max_list_items && (kept > max_heap_items || kept * 8 > count); }

// The bytes of scratch memory that sort_row needs.
template <class T> constexpr long sort_scratch_bytes(long count, long kept) {
  return (2 * (sorts_whole(count, kept) ? count : kept) * (long)sizeof(keyed<key_for<T>>) + 63) / 64 * 64;
}

// Write the first `kept` elements in order to `values`, and their indices in the row to `places`; either may be null. If the
// row is too long for 32-bit indices, *status becomes 1 and the caller falls back to the eager kernel.
template <bool Descending, class T>
inline void sort_row(const T* row, long count, long kept, T* values, int64_t* places, void* scratch, int* status) {
  if (count > (long)UINT32_MAX) {
    __atomic_store_n(status, 1, __ATOMIC_RELAXED);
    return;
  }
  const bool whole = sorts_whole(count, kept);
  keyed<key_for<T>>*own = (keyed<key_for<T>>*)scratch, *spare = own + (whole ? count : kept), *items;
  if (whole) {
    for (long i = 0; i < count; ++i) own[i] = keyed_at<Descending>(row, i);
    items = sort_items(own, spare, count);
  } else {
    items = select_first<Descending>(row, count, kept, own, spare);
  }
  if (values)
    for (long i = 0; i < kept; ++i) values[i] = row[items[i].place];
  if (places)
    for (long i = 0; i < kept; ++i) places[i] = items[i].place;
}

}  // namespace rl
