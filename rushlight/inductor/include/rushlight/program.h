/* Helpers of structured programs besides kernels: numbers that behave as TorchScript's, and lists. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

namespace rl {
namespace program {

/* Integers wrap around at 64 bits. */
inline int64_t add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
inline int64_t sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
inline int64_t mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
inline double add(double a, double b) { return a + b; }
inline double sub(double a, double b) { return a - b; }
inline double mul(double a, double b) { return a * b; }
inline int64_t neg(int64_t a) { return (int64_t)(0 - (uint64_t)a); }
inline double neg(double a) { return -a; }
inline int64_t absolute(int64_t a) { return a < 0 ? neg(a) : a; }
inline double absolute(double a) { return fabs(a); }

/* Floor division and remainder, rounded towards minus infinity. For ints, the caller has checked that the divisor is not 0. */
inline int64_t floordiv(int64_t a, int64_t b)
{
    if (b == -1)
        return neg(a);
    const int64_t quotient = a / b;
    return quotient - ((a % b != 0) && ((a < 0) != (b < 0)));
}
inline int64_t remainder(int64_t a, int64_t b)
{
    if (b == -1)
        return 0;
    const int64_t rest = a % b;
    return rest && ((rest < 0) != (b < 0)) ? rest + b : rest;
}
inline double remainder(double a, double b)
{
    const double rest = fmod(a, b);
    if (rest == 0)
        return copysign(0.0, b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
}
inline double floordiv(double a, double b)
{
    if (b == 0)
        return a / b;
    const double rest = remainder(a, b), quotient = (a - rest) / b;
    if (quotient == 0)
        return copysign(0.0, a / b);
    const double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

/* Shifts by 64 bits and more shift everything out; the caller has checked that the count is not below 0. */
inline int64_t shift_left(int64_t a, int64_t count) { return count < 64 ? (int64_t)((uint64_t)a << count) : 0; }
inline int64_t shift_right(int64_t a, int64_t count) { return a >> (count < 64 ? count : 63); }

template <class T> inline T least(T a, T b) { return b < a ? b : a; }
template <class T> inline T most(T a, T b) { return b > a ? b : a; }

inline int64_t gcd(int64_t a, int64_t b)
{
    uint64_t one = (uint64_t)absolute(a), other = (uint64_t)absolute(b);
    while (other) {
        const uint64_t rest = one % other;
        one = other;
        other = rest;
    }
    return (int64_t)one;
}

/* Return the number of iterations of `range(low, high, step)`; the step is not 0. */
inline int64_t range_length(int64_t low, int64_t high, int64_t step)
{
    if (step > 0)
        return low < high ? (int64_t)(((uint64_t)high - 1 - (uint64_t)low) / (uint64_t)step) + 1 : 0;
    return low > high ? (int64_t)(((uint64_t)low - 1 - (uint64_t)high) / (0 - (uint64_t)step)) + 1 : 0;
}

/* A list of numbers, or of tensors of one size: `width` bytes for each element, 0 for tensors without elements. */
struct list {
    int64_t length, capacity, width;
    char *data;
    list *next; /* the next list of the heap */
};

/* The number of elements that memory can be asked for. */
inline int64_t max_length(int64_t width)
{
    return (INT64_MAX >> 8) / (width ? width : 1);
}

/* Owns the lists of one run, and frees them when the run ends. */
struct heap {
    list *first = nullptr;
    bool failed = false;

    ~heap()
    {
        while (first) {
            list *next = first->next;
            free(first->data);
            free(first);
            first = next;
        }
    }

    list *make(int64_t width, int64_t capacity)
    {
        list *made = (list *)malloc(sizeof(list));
        char *data = capacity < max_length(width) ? (char *)malloc((size_t)(width * capacity + 1)) : nullptr;
        if (!made || !data) {
            free(made);
            free(data);
            failed = true;
            return nullptr;
        }
        *made = list{0, capacity, width, data, first};
        first = made;
        return made;
    }
};

/* Append an element; return its address, or null if there is no memory. */
inline char *append(list *self)
{
    if (self->length >= self->capacity) {
        const int64_t capacity = self->capacity * 2 + 4;
        char *data = (char *)realloc(self->data, (size_t)(capacity * self->width + 1));
        if (!data)
            return nullptr;
        self->data = data;
        self->capacity = capacity;
    }
    return self->data + self->width * self->length++;
}

/* Return the index counted from the front, or -1 if it is out of range. */
inline int64_t position(int64_t index, int64_t length)
{
    const int64_t found = index < 0 ? index + length : index;
    return found < 0 || found >= length ? -1 : found;
}

/* Return `self * count`, as in Python. */
inline list *repeat(heap &memory, const list *self, int64_t count)
{
    const int64_t times = count > 0 ? count : 0;
    if (self->length && times > max_length(self->width) / self->length) {
        memory.failed = true;
        return nullptr;
    }
    list *made = memory.make(self->width, self->length * times);
    if (!made)
        return nullptr;
    made->length = self->length * times;
    if (self->length == 1 && self->width == 1)
        memset(made->data, self->data[0], (size_t)made->length);
    else
        for (int64_t i = 0; i < times; i++)
            memcpy(made->data + i * self->length * self->width, self->data, (size_t)(self->length * self->width));
    return made;
}

/* Return `first + second`. */
inline list *joined(heap &memory, const list *first, const list *second)
{
    list *made = memory.make(first->width, first->length + second->length);
    if (!made)
        return nullptr;
    made->length = first->length + second->length;
    memcpy(made->data, first->data, (size_t)(first->length * first->width));
    memcpy(made->data + first->length * first->width, second->data, (size_t)(second->length * first->width));
    return made;
}

/* Insert an element before `index`, as Python's list.insert does; return its address, or null if there is no memory. */
inline char *insert(list *self, int64_t index)
{
    const int64_t length = self->length, wanted = index < 0 ? index + length : index;
    const int64_t at = wanted < 0 ? 0 : wanted > length ? length : wanted;
    if (!append(self))
        return nullptr;
    char *place = self->data + at * self->width;
    memmove(place + self->width, place, (size_t)((length - at) * self->width));
    return place;
}

/* Remove the element at `place`. */
inline void close(list *self, char *place)
{
    const char *end = self->data + self->length * self->width;
    memmove(place, place + self->width, (size_t)(end - place - self->width));
    --self->length;
}

inline list *duplicate(heap &memory, const list *self)
{
    list *made = memory.make(self->width, self->length);
    if (!made)
        return nullptr;
    made->length = self->length;
    memcpy(made->data, self->data, (size_t)(self->length * self->width));
    return made;
}

/* Return `self[start:end:step]` for a step above 0. */
inline list *slice(heap &memory, const list *self, int64_t start, int64_t end, int64_t step)
{
    const int64_t length = self->length;
    const int64_t low = start < 0 ? most<int64_t>(start + length, 0) : least(start, length);
    const int64_t high = end < 0 ? most<int64_t>(end + length, 0) : least(end, length);
    const int64_t count = range_length(low, high, step);
    list *made = memory.make(self->width, count);
    if (!made)
        return nullptr;
    made->length = count;
    for (int64_t i = 0; i < count; i++)
        memcpy(made->data + i * self->width, self->data + (low + i * step) * self->width, (size_t)self->width);
    return made;
}

/* Return the list of the ints [0, end). */
inline list *range(heap &memory, int64_t end)
{
    list *made = memory.make(8, most<int64_t>(end, 0));
    if (!made)
        return nullptr;
    made->length = most<int64_t>(end, 0);
    for (int64_t i = 0; i < end; i++)
        ((int64_t *)made->data)[i] = i;
    return made;
}

inline bool extend(list *self, const list *other)
{
    const int64_t count = other->length; /* self and other may be the same list */
    for (int64_t i = 0; i < count; i++) {
        char *place = append(self);
        if (!place)
            return false;
        memcpy(place, other->data + i * self->width, (size_t)self->width);
    }
    return true;
}

inline bool reverse(list *self)
{
    char *copy = (char *)malloc((size_t)(self->length * self->width + 1));
    if (!copy)
        return false;
    memcpy(copy, self->data, (size_t)(self->length * self->width));
    for (int64_t i = 0; i < self->length; i++)
        memcpy(self->data + i * self->width, copy + (self->length - 1 - i) * self->width, (size_t)self->width);
    free(copy);
    return true;
}

/* Whether the list can be sorted: it is not empty and has no NaN. */
template <class T> inline bool is_ordered(const list *self)
{
    const T *data = (const T *)self->data;
    for (int64_t i = 0; i < self->length; i++)
        if (data[i] != data[i])
            return false;
    return self->length > 0;
}

/* Merge sort; equal numbers keep their order. Return false if there is a NaN, or no memory. */
template <class T> inline bool sort(list *self, bool reverse)
{
    const int64_t length = self->length;
    if (length < 2)
        return true;
    T *from = (T *)self->data, *to = (T *)malloc(sizeof(T) * (size_t)length), *own = to;
    if (!to || !is_ordered<T>(self)) {
        free(to);
        return false;
    }
    for (int64_t width = 1; width < length; width *= 2) {
        for (int64_t low = 0; low < length; low += 2 * width) {
            const int64_t middle = least(low + width, length), high = least(low + 2 * width, length);
            int64_t left = low, right = middle;
            for (int64_t i = low; i < high; i++) {
                const bool takes_right =
                    left >= middle || (right < high && (reverse ? from[left] < from[right] : from[right] < from[left]));
                to[i] = takes_right ? from[right++] : from[left++];
            }
        }
        T *last = from;
        from = to;
        to = last;
    }
    if (from == own)
        memcpy(self->data, own, sizeof(T) * (size_t)length);
    free(own);
    return true;
}

/* Return the index of an item, or -1. */
template <class T> inline int64_t index(const list *self, T item)
{
    for (int64_t i = 0; i < self->length; i++)
        if (((const T *)self->data)[i] == item)
            return i;
    return -1;
}

template <class T> inline bool contains(const list *self, T item) { return index<T>(self, item) >= 0; }

template <class T> inline int64_t count(const list *self, T item)
{
    int64_t found = 0;
    for (int64_t i = 0; i < self->length; i++)
        found += ((const T *)self->data)[i] == item;
    return found;
}

template <class T> inline bool remove(list *self, T item)
{
    const int64_t at = index<T>(self, item);
    if (at < 0)
        return false;
    close(self, self->data + at * self->width);
    return true;
}

template <class T> inline T sum_of(const list *self)
{
    T total = 0;
    for (int64_t i = 0; i < self->length; i++)
        total = add(total, ((const T *)self->data)[i]);
    return total;
}

template <class T> inline T least_of(const list *self)
{
    T found = *(const T *)self->data;
    for (int64_t i = 1; i < self->length; i++)
        found = least(found, ((const T *)self->data)[i]);
    return found;
}

template <class T> inline T most_of(const list *self)
{
    T found = *(const T *)self->data;
    for (int64_t i = 1; i < self->length; i++)
        found = most(found, ((const T *)self->data)[i]);
    return found;
}

template <class T> inline bool equal(const list *first, const list *second)
{
    if (first->length != second->length)
        return false;
    for (int64_t i = 0; i < first->length; i++)
        if (((const T *)first->data)[i] != ((const T *)second->data)[i])
            return false;
    return true;
}

/* Build a list from a call's argument: its length, then its elements. Inner lists, and tensors, are given by their addresses. */
inline list *received(heap &memory, int depth, int64_t width, bool by_address, const int64_t *cells)
{
    list *made = memory.make(depth ? 8 : width, cells[0]);
    if (!made)
        return nullptr;
    made->length = cells[0];
    if (!depth && !by_address) {
        memcpy(made->data, cells + 1, (size_t)(width * cells[0]));
        return made;
    }
    for (int64_t i = 0; i < cells[0]; i++) {
        if (!depth) {
            memcpy(made->data + i * width, (const void *)cells[1 + i], (size_t)width);
            continue;
        }
        list *inner = received(memory, depth - 1, width, by_address, (const int64_t *)cells[1 + i]);
        if (!inner)
            return nullptr;
        ((list **)made->data)[i] = inner;
    }
    return made;
}

/* Return a list to the caller in new memory: its length, then its elements. Null if there is no memory. */
inline int64_t *returned(const list *self, int depth, int64_t width)
{
    const int64_t bytes = depth ? 8 : width;
    int64_t *cells = (int64_t *)malloc((size_t)(8 + bytes * self->length + 1));
    if (!cells)
        return nullptr;
    cells[0] = self->length;
    if (!depth) {
        memcpy(cells + 1, self->data, (size_t)(width * self->length));
        return cells;
    }
    for (int64_t i = 0; i < self->length; i++)
        if (!(cells[1 + i] = (int64_t)returned(((list **)self->data)[i], depth - 1, width)))
            return nullptr;
    return cells;
}

inline double from_bits(int64_t bits)
{
    double value;
    memcpy(&value, &bits, 8);
    return value;
}

inline int64_t to_bits(double value)
{
    int64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

} // namespace program
} // namespace rl
