/* What structured programs need beside kernels: numbers that behave as TorchScript's, and lists. */
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

/* The divisor of ints is not 0: that is looked at before. Results round towards minus infinity. */
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

template <class T> inline T least(T a, T b) { return b < a ? b : a; }
template <class T> inline T most(T a, T b) { return b > a ? b : a; }

/* How often `range(low, high, step)` goes round; the step is not 0. */
inline int64_t range_length(int64_t low, int64_t high, int64_t step)
{
    if (step > 0)
        return low < high ? (int64_t)(((uint64_t)high - 1 - (uint64_t)low) / (uint64_t)step) + 1 : 0;
    return low > high ? (int64_t)(((uint64_t)low - 1 - (uint64_t)high) / (0 - (uint64_t)step)) + 1 : 0;
}

/* A list of numbers, or of tensors of one size: `width` bytes for each element. */
struct list {
    int64_t length, capacity, width;
    char *data;
    list *next; /* among those of the heap */
};

/* The lists of one run. They go when the run ends, however it ends. */
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
        char *data = capacity < (INT64_MAX >> 8) / width ? (char *)malloc((size_t)(width * (capacity ? capacity : 1))) : nullptr;
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

/* Room for one more element at the end; null where there is no memory. */
inline char *append(list *self)
{
    if (self->length >= self->capacity) {
        const int64_t capacity = self->capacity * 2 + 4;
        char *data = (char *)realloc(self->data, (size_t)(capacity * self->width));
        if (!data)
            return nullptr;
        self->data = data;
        self->capacity = capacity;
    }
    return self->data + self->width * self->length++;
}

/* The index from the front, or -1 where there is no such element. */
inline int64_t position(int64_t index, int64_t length)
{
    const int64_t found = index < 0 ? index + length : index;
    return found < 0 || found >= length ? -1 : found;
}

/* `values * count`. */
inline list *repeat(heap &memory, const list *self, int64_t count)
{
    const int64_t times = count > 0 ? count : 0;
    if (self->length && times > (INT64_MAX >> 8) / self->width / self->length) {
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

/* `first + second`. */
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

/* A list that came with the call: its length, then its elements. */
inline list *received(heap &memory, int64_t width, const int64_t *cells)
{
    list *made = memory.make(width, cells[0]);
    if (!made)
        return nullptr;
    made->length = cells[0];
    memcpy(made->data, cells + 1, (size_t)(width * cells[0]));
    return made;
}

/* A list for the caller, in memory of its own: its length, then its elements; null where there is no memory. */
inline int64_t *returned(const list *self)
{
    int64_t *cells = (int64_t *)malloc((size_t)(8 + self->width * self->length + 1));
    if (!cells)
        return nullptr;
    cells[0] = self->length;
    memcpy(cells + 1, self->data, (size_t)(self->width * self->length));
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
