/* MersenneTwister: the random numbers behind rushlight.core.generator, and filling tensors with them.

   It fills row-major CPU tensors in memory order, starting from a seed. Callers hold the generator's lock. Definition of the
   generator: M. Matsumoto and T. Nishimura, "Mersenne Twister" (ACM TOMACS 8, 1998). */
#include "tensor_impl.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

#include "kernels/kernels.h"

enum {
    WORDS = 624,
    MIDDLE = 397,
    BLOCK = 16, /* tensors with at least this many elements get normal numbers in blocks: eight radii, then eight angles */
    BLOCKS_AT_ONCE = 64,
    MIN_WORK_WITHOUT_GIL = 1 << 15, /* fills of at least this many elements release the GIL */
};
/* Defined in elementwise.c. Apply an operator in place; return 0 if there is no native kernel. */
int native_unary(int code, DtypeCode dtype, void *values, Py_ssize_t count);

static const double TWO_PI = 6.283185307179586;

typedef struct {
    PyObject_HEAD
    uint32_t key[WORDS];
    int position; /* index of the next word; WORDS if all words are used */
    char has_kept;
    double kept;   /* the second normal number of the last pair */
} Twister;

static void seed(Twister *self, uint32_t value)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        self->key[i] = value;
        value = 1812433253U * (value ^ (value >> 30)) + i + 1;
    }
    self->position = WORDS;
    self->has_kept = 0;
}

/* Combine three words of the state by the recurrence of the generator. */
static uint32_t twist_words(uint32_t high, uint32_t low, uint32_t far)
{
    uint32_t mixed = (high & 0x80000000U) | (low & 0x7fffffffU);
    return far ^ (mixed >> 1) ^ ((0U - (low & 1U)) & 0x9908b0dfU);
}

/* Generate the next WORDS words of the state. */
static void twist(Twister *self)
{
    uint32_t *key = self->key;
    for (int i = 0; i < WORDS - MIDDLE; i++)
        key[i] = twist_words(key[i], key[i + 1], key[i + MIDDLE]);
    for (int i = WORDS - MIDDLE; i < WORDS - 1; i++)
        key[i] = twist_words(key[i], key[i + 1], key[i + MIDDLE - WORDS]);
    key[WORDS - 1] = twist_words(key[WORDS - 1], key[0], key[MIDDLE - 1]);
    self->position = 0;
}

static inline uint32_t draw32(Twister *self)
{
    if (self->position == WORDS)
        twist(self);
    uint32_t word = self->key[self->position++];
    word ^= word >> 11;
    word ^= (word << 7 & 0x9d2c5680U);
    word ^= (word << 15 & 0xefc60000U);
    return word ^ (word >> 18);
}

static inline uint64_t draw64(Twister *self)
{
    uint64_t high = draw32(self);
    return high << 32 | draw32(self);
}

static inline float uniform32(Twister *self) { return (float)(draw32(self) & 0xffffffU) * 0x1p-24F; }

static inline double uniform64(Twister *self) { return (double)(draw64(self) & 0x1fffffffffffffULL) * 0x1p-53; }

/* Return one standard normal number: the first of a new pair, or the second of the last pair. */
static double normal(Twister *self)
{
    if (self->has_kept) {
        self->has_kept = 0;
        return self->kept;
    }
    double angle = TWO_PI * uniform64(self), radius = sqrt(-2.0 * log1p(-uniform64(self)));
    self->kept = radius * sin(angle);
    self->has_kept = 1;
    return radius * cos(angle);
}

/* The Box-Muller transform in the result's precision. */
static void normal_pairs32(float *values, int blocks, float mean, float std)
{
    float radius[BLOCKS_AT_ONCE * BLOCK / 2], cosine[BLOCKS_AT_ONCE * BLOCK / 2], sine[BLOCKS_AT_ONCE * BLOCK / 2];
    int half = BLOCK / 2, count = blocks * half;
    for (int i = 0; i < count; i++) {
        const float *block = values + i / half * BLOCK + i % half;
        radius[i] = 1.0F - block[0];
        cosine[i] = sine[i] = (float)TWO_PI * block[half];
    }
    if (!native_unary(RL_POINTWISE_log, FLOAT32, radius, count) || !native_unary(RL_POINTWISE_cos, FLOAT32, cosine, count) ||
        !native_unary(RL_POINTWISE_sin, FLOAT32, sine, count))
        for (int i = 0; i < count; i++) {
            const float *block = values + i / half * BLOCK + i % half;
            radius[i] = logf(1.0F - block[0]);
            cosine[i] = cosf((float)TWO_PI * block[half]);
            sine[i] = sinf((float)TWO_PI * block[half]);
        }
    for (int i = 0; i < count; i++) {
        float *block = values + i / half * BLOCK + i % half, length = sqrtf(-2.0F * radius[i]);
        block[0] = length * cosine[i] * std + mean;
        block[half] = length * sine[i] * std + mean;
    }
}

static void normal_pairs64(double *values, double mean, double std)
{
    for (int i = 0; i < BLOCK / 2; i++) {
        double radius = sqrt(-2.0 * log(1.0 - values[i])), angle = TWO_PI * values[i + BLOCK / 2];
        values[i] = radius * cos(angle) * std + mean;
        values[i + BLOCK / 2] = radius * sin(angle) * std + mean;
    }
}

/* Fill with normal numbers: draw all uniform numbers first. If the last block is incomplete, redraw the last BLOCK elements. */
static void fill_normal32(Twister *self, float *out, Py_ssize_t count, double mean, double std)
{
    for (Py_ssize_t i = 0; i < count; i++)
        out[i] = uniform32(self);
    Py_ssize_t whole = count / BLOCK;
    for (Py_ssize_t block = 0; block < whole; block += BLOCKS_AT_ONCE) {
        int blocks = whole - block < BLOCKS_AT_ONCE ? (int)(whole - block) : BLOCKS_AT_ONCE;
        normal_pairs32(out + block * BLOCK, blocks, (float)mean, (float)std);
    }
    if (count % BLOCK == 0)
        return;
    out += count - BLOCK;
    for (int i = 0; i < BLOCK; i++)
        out[i] = uniform32(self);
    normal_pairs32(out, 1, (float)mean, (float)std);
}

static void fill_normal64(Twister *self, double *out, Py_ssize_t count, double mean, double std)
{
    for (Py_ssize_t i = 0; i < count; i++)
        out[i] = uniform64(self);
    for (Py_ssize_t block = 0; block < count / BLOCK; block++)
        normal_pairs64(out + block * BLOCK, mean, std);
    if (count % BLOCK == 0)
        return;
    out += count - BLOCK;
    for (int i = 0; i < BLOCK; i++)
        out[i] = uniform64(self);
    normal_pairs64(out, mean, std);
}

/* One fill: the target tensor and the distribution's parameters. */
typedef struct {
    Twister *twister;
    char *data;
    Py_ssize_t count;
    DtypeCode dtype;
    double first, second;
    long long low;
    unsigned long long span;
} Fill;

static void write_uniform(const Fill *fill)
{
    double low = fill->first, high = fill->second;
    if (fill->dtype == FLOAT32) {
        low = (float)low, high = (float)high;
        for (Py_ssize_t i = 0; i < fill->count; i++) {
            float value = (float)((double)uniform32(fill->twister) * (high - low) + low);
            ((float *)fill->data)[i] = value == (float)high ? (float)low : value; /* rounding may give the excluded bound */
        }
        return;
    }
    for (Py_ssize_t i = 0; i < fill->count; i++) {
        double value = uniform64(fill->twister) * (high - low) + low;
        ((double *)fill->data)[i] = value == high ? low : value;
    }
}

static void write_normal(const Fill *fill)
{
    double mean = fill->first, std = fill->second;
    if (fill->count >= BLOCK && fill->dtype == FLOAT32)
        fill_normal32(fill->twister, (float *)fill->data, fill->count, mean, std);
    else if (fill->count >= BLOCK)
        fill_normal64(fill->twister, (double *)fill->data, fill->count, mean, std);
    else
        for (Py_ssize_t i = 0; i < fill->count; i++) {
            double value = normal(fill->twister) * std + mean;
            if (fill->dtype == FLOAT32)
                ((float *)fill->data)[i] = (float)value;
            else
                ((double *)fill->data)[i] = value;
        }
}

/* Store an integer as an element of the target's dtype. */
static void store_integer(const Fill *fill, Py_ssize_t place, long long value)
{
    switch (fill->dtype) {
    case FLOAT32: ((float *)fill->data)[place] = (float)value; break;
    case FLOAT64: ((double *)fill->data)[place] = (double)value; break;
    case INT32: ((int32_t *)fill->data)[place] = (int32_t)value; break;
    case INT64: ((int64_t *)fill->data)[place] = value; break;
    default: fill->data[place] = value != 0; break;
    }
}

static int is_supported_dtype(DtypeCode dtype)
{
    return dtype == FLOAT32 || dtype == FLOAT64 || dtype == INT32 || dtype == INT64 || dtype == BOOL;
}

static void write_integers(const Fill *fill)
{
    for (Py_ssize_t i = 0; i < fill->count; i++) {
        uint64_t drawn = fill->span >= 1ULL << 28 ? draw64(fill->twister) : draw32(fill->twister);
        store_integer(fill, i, (long long)((unsigned long long)fill->low + drawn % fill->span));
    }
}

static void write_words(const Fill *fill)
{
    for (Py_ssize_t i = 0; i < fill->count; i++)
        ((uint64_t *)fill->data)[i] = draw64(fill->twister);
}

static void write_bernoulli(const Fill *fill)
{
    for (Py_ssize_t i = 0; i < fill->count; i++)
        store_integer(fill, i, uniform64(fill->twister) < fill->first);
}

static int is_float(DtypeCode dtype) { return dtype == FLOAT32 || dtype == FLOAT64; }

/* Find the memory of a row-major CPU tensor. Return 0, without an exception, for other tensors. */
static int read_target(PyObject *tensor, Fill *fill)
{
    TensorImpl *impl = impl_of(tensor);
    if (!impl || impl->fake || !impl_is_contiguous(impl) || !Py_IS_TYPE(impl->storage, &StorageImpl_Type) ||
        ((StorageImpl *)impl->storage)->read_only || (fill->dtype = dtype_code(impl->dtype)) >= OTHER_DTYPE)
        return 0;
    fill->count = impl_numel(impl);
    fill->data = impl_data(impl);
    if (!fill->data)
        PyErr_Clear();
    return fill->data != NULL;
}

static PyObject *fill_with(void (*write)(const Fill *), const Fill *fill)
{
    PyThreadState *thread = fill->count >= MIN_WORK_WITHOUT_GIL ? PyEval_SaveThread() : NULL;
    write(fill);
    if (thread)
        PyEval_RestoreThread(thread);
    Py_RETURN_TRUE;
}

static PyObject *fill_floats(Twister *self, PyObject *const *arguments, Py_ssize_t count, void (*write)(const Fill *))
{
    Fill fill = {.twister = self};
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "expected a tensor and two numbers, got %zd arguments", count);
    if (!read_target(arguments[0], &fill) || !is_float(fill.dtype))
        Py_RETURN_FALSE;
    fill.first = PyFloat_AsDouble(arguments[1]);
    fill.second = PyErr_Occurred() ? 0 : PyFloat_AsDouble(arguments[2]);
    return PyErr_Occurred() ? NULL : fill_with(write, &fill);
}

static PyObject *twister_uniform(Twister *self, PyObject *const *arguments, Py_ssize_t count)
{
    return fill_floats(self, arguments, count, write_uniform);
}

static PyObject *twister_normal(Twister *self, PyObject *const *arguments, Py_ssize_t count)
{
    return fill_floats(self, arguments, count, write_normal);
}

static PyObject *twister_bernoulli(Twister *self, PyObject *arguments)
{
    Fill fill = {.twister = self};
    PyObject *tensor;
    if (!PyArg_ParseTuple(arguments, "Od:bernoulli", &tensor, &fill.first))
        return NULL;
    return read_target(tensor, &fill) && is_supported_dtype(fill.dtype) ? fill_with(write_bernoulli, &fill) : Py_NewRef(Py_False);
}

static PyObject *twister_integers(Twister *self, PyObject *arguments)
{
    Fill fill = {.twister = self};
    PyObject *tensor, *low, *span;
    if (!PyArg_ParseTuple(arguments, "OO!O!:integers", &tensor, &PyLong_Type, &low, &PyLong_Type, &span))
        return NULL;
    fill.low = PyLong_AsLongLong(low);
    fill.span = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(span);
    if (PyErr_Occurred() || !fill.span) {
        PyErr_Clear(); /* too large: the caller handles it */
        Py_RETURN_FALSE;
    }
    return read_target(tensor, &fill) && is_supported_dtype(fill.dtype) && fill.dtype != BOOL ? fill_with(write_integers, &fill) : Py_NewRef(Py_False);
}

static PyObject *twister_words(Twister *self, PyObject *tensor)
{
    Fill fill = {.twister = self};
    return read_target(tensor, &fill) && fill.dtype == INT64 ? fill_with(write_words, &fill) : Py_NewRef(Py_False);
}

static PyObject *twister_raw(Twister *self, PyObject *target)
{
    Py_buffer view;
    if (PyObject_GetBuffer(target, &view, PyBUF_CONTIG) < 0)
        return NULL;
    uint64_t *out = view.buf;
    for (Py_ssize_t i = 0; i < view.len / 8; i++)
        out[i] = draw32(self);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyObject *twister_standard_normal(Twister *self, PyObject *target)
{
    Py_buffer view;
    if (PyObject_GetBuffer(target, &view, PyBUF_CONTIG) < 0)
        return NULL;
    double *out = view.buf;
    for (Py_ssize_t i = 0; i < view.len / 8; i++)
        out[i] = normal(self);
    PyBuffer_Release(&view);
    Py_RETURN_NONE;
}

static PyObject *get_state(Twister *self, PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("y#i", (const char *)self->key, (Py_ssize_t)sizeof self->key, self->position);
}

static PyObject *set_state(Twister *self, PyObject *arguments)
{
    const char *key;
    Py_ssize_t length;
    int position;
    if (!PyArg_ParseTuple(arguments, "y#i:set_state", &key, &length, &position))
        return NULL;
    if (length != sizeof self->key || position < 0 || position > WORDS)
        return PyErr_Format(PyExc_ValueError, "set_state: expected %zd bytes and a position of at most %d, got %zd and %d",
                            (Py_ssize_t)sizeof self->key, WORDS, length, position);
    memcpy(self->key, key, sizeof self->key);
    self->position = position;
    Py_RETURN_NONE;
}

static PyObject *get_kept(Twister *self, void *Py_UNUSED(closure))
{
    return self->has_kept ? PyFloat_FromDouble(self->kept) : Py_NewRef(Py_None);
}

static int set_kept(Twister *self, PyObject *value, void *Py_UNUSED(closure))
{
    double number = is_set(value) ? PyFloat_AsDouble(value) : 0;
    if (PyErr_Occurred())
        return -1;
    self->has_kept = (char)is_set(value);
    self->kept = number;
    return 0;
}

static PyObject *twister_new(PyTypeObject *type, PyObject *arguments, PyObject *Py_UNUSED(keywords))
{
    unsigned int value = 0;
    if (!PyArg_ParseTuple(arguments, "|I:MersenneTwister", &value))
        return NULL;
    Twister *self = (Twister *)type->tp_alloc(type, 0);
    if (self)
        seed(self, value);
    return (PyObject *)self;
}

static PyMethodDef methods[] = {
    {"uniform", (PyCFunction)(void (*)(void))twister_uniform, METH_FASTCALL,
     "uniform(tensor, low, high, /) -> bool\n\nFill with numbers in [low, high); False for tensors that this does not take."},
    {"normal", (PyCFunction)(void (*)(void))twister_normal, METH_FASTCALL,
     "normal(tensor, mean, std, /) -> bool\n\nFill with normal numbers; False for tensors that this does not take."},
    {"bernoulli", (PyCFunction)twister_bernoulli, METH_VARARGS,
     "bernoulli(tensor, p, /) -> bool\n\nFill with 1 with probability p; False for tensors that this does not take."},
    {"integers", (PyCFunction)twister_integers, METH_VARARGS,
     "integers(tensor, low, span, /) -> bool\n\nFill with integers in [low, low + span); False for what this does not take."},
    {"words", (PyCFunction)twister_words, METH_O,
     "words(tensor, /) -> bool\n\nFill with 64-bit draws; False for tensors that are not row-major of dtype int64."},
    {"raw", (PyCFunction)twister_raw, METH_O, "raw(target, /) -> None\n\nFill a buffer of uint64 with 32-bit draws."},
    {"standard_normal", (PyCFunction)twister_standard_normal, METH_O,
     "standard_normal(target, /) -> None\n\nFill a buffer of float64 with normal numbers, made in pairs."},
    {"get_state", (PyCFunction)get_state, METH_NOARGS, "get_state() -> tuple[bytes, int]\n\nThe 624 words and the position."},
    {"set_state", (PyCFunction)set_state, METH_VARARGS, "set_state(words: bytes, position: int, /) -> None"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"kept_normal", (getter)get_kept, (setter)set_kept, "A normal number that the last pair left over, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject MersenneTwister_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.MersenneTwister",
    .tp_basicsize = sizeof(Twister),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "MersenneTwister(seed=0)\n--\n\nThe Mersenne Twister, and tensors filled with what it draws.",
    .tp_new = twister_new,
    .tp_methods = methods,
    .tp_getset = getset,
};
