/* CRC-32, the checksum of zip archives. It runs at memory speed on processors with carry-less multiplication.

   The polynomial is folded 64 bytes at a time, then 16; the remainder is reduced by Barrett's method: V. Gopal and others,
   "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009. Bits are reflected, as in zip. */
#include "module.h"

#include <stdint.h>

enum { FOLDED_BYTES = 64, MIN_BYTES_WITHOUT_GIL = 1 << 16 };

#if defined(__x86_64__)
#include <immintrin.h>

#define CAN_FOLD __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1")

__attribute__((target("pclmul,sse4.1"))) static inline __m128i fold(__m128i sum, __m128i factors, __m128i next)
{
    __m128i low = _mm_clmulepi64_si128(sum, factors, 0x00), high = _mm_clmulepi64_si128(sum, factors, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

/* Return the state of the checksum after `size` more bytes, a multiple of 16 and at least 64. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t fold_all(uint32_t state, const uint8_t *bytes, size_t size)
{
    const __m128i by_64 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4); /* x^(4*128-32), x^(4*128+32) modulo the polynomial */
    const __m128i by_16 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0); /* x^(128-32), x^(128+32) */
    const __m128i to_32 = _mm_set_epi64x(0, 0x0163cd6124);            /* x^64 */
    const __m128i barrett = _mm_set_epi64x(0x01f7011641, 0x01db710641); /* x^64 divided by the polynomial; the polynomial */
    const __m128i low_32 = _mm_setr_epi32(-1, 0, 0, 0);
    const __m128i *next = (const __m128i *)bytes, *end = (const __m128i *)(bytes + size);
    __m128i sums[4];
    for (int i = 0; i < 4; i++)
        sums[i] = _mm_loadu_si128(next++);
    sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128((int)state));
    for (; end - next >= 4; next += 4)
        for (int i = 0; i < 4; i++)
            sums[i] = fold(sums[i], by_64, _mm_loadu_si128(next + i));
    __m128i sum = sums[0];
    for (int i = 1; i < 4; i++)
        sum = fold(sum, by_16, sums[i]);
    while (next < end)
        sum = fold(sum, by_16, _mm_loadu_si128(next++));
    sum = _mm_xor_si128(_mm_srli_si128(sum, 8), _mm_clmulepi64_si128(sum, by_16, 0x10));
    sum = _mm_xor_si128(_mm_srli_si128(sum, 4), _mm_clmulepi64_si128(_mm_and_si128(sum, low_32), to_32, 0x00));
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(sum, low_32), barrett, 0x10);
    __m128i multiple = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32), barrett, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(sum, multiple), 1);
}
#else
#define CAN_FOLD 0
static uint32_t fold_all(uint32_t state, const uint8_t *bytes, size_t size) { return state; }
#endif

/* Add bytes bit by bit: the last bytes, or all bytes on processors without carry-less multiplication. */
static uint32_t add_bytes(uint32_t state, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        state ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            state = state >> 1 ^ (0xedb88320u & -(state & 1));
    }
    return state;
}

static uint32_t checksum(const uint8_t *bytes, size_t size)
{
    uint32_t state = 0xffffffffu;
    size_t folded = size >= FOLDED_BYTES && CAN_FOLD ? size / 16 * 16 : 0;
    if (folded)
        state = fold_all(state, bytes, folded);
    return ~add_bytes(state, bytes + folded, size - folded);
}

static PyObject *crc32(PyObject *Py_UNUSED(module), PyObject *data)
{
    Py_buffer view;
    uint32_t sum;
    if (PyObject_GetBuffer(data, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    if (view.len >= MIN_BYTES_WITHOUT_GIL) {
        Py_BEGIN_ALLOW_THREADS
        sum = checksum(view.buf, (size_t)view.len);
        Py_END_ALLOW_THREADS
    } else {
        sum = checksum(view.buf, (size_t)view.len);
    }
    PyBuffer_Release(&view);
    return PyLong_FromUnsignedLong(sum);
}

static PyObject *has_fast_crc32(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(CAN_FOLD);
}

PyMethodDef checksum_methods[] = {
    {"crc32", crc32, METH_O, "crc32(data, /) -> int\n\nThe checksum of bytes that zip archives have, as zlib.crc32 gives it."},
    {"has_fast_crc32", has_fast_crc32, METH_NOARGS,
     "has_fast_crc32() -> bool\n\nWhether crc32 runs at the speed of memory here; it is slower than zlib's otherwise."},
    {NULL, NULL, 0, NULL},
};
