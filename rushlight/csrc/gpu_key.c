/* Keys of launch plans. Tensors are described by dtype, device, sizes, strides and whether their address is a multiple of 16;
   numbers, strings and None by value; sequences by type and items; other objects by their identity. */
#include "gpu_key.h"

#include "gpu_thread.h"

#include <string.h>

enum { MAX_DEPTH = 3, ALIGNMENT = 16 };
enum { NONE_TAG = 1, BOOL_TAG, INT_TAG, FLOAT_TAG, NUMBER_TAG, TENSOR_TAG, STRING_TAG, SEQUENCE_TAG, OBJECT_TAG };

void key_begin(CallKey *key, int joins, int apart, PyObject *held)
{
    key->words = key->few_words;
    key->leaves = key->few_leaves;
    key->count = key->leaf_count = 0;
    key->capacity = WORDS_ON_STACK;
    key->leaf_capacity = LEAVES_ON_STACK;
    key->held = held;
    key->joins = joins;
    key->apart = apart;
    key->opens = 0;
}

void key_end(CallKey *key)
{
    if (key->words != key->few_words)
        PyMem_Free(key->words);
    if (key->leaves != key->few_leaves)
        PyMem_Free(key->leaves);
}

/* Return room for more items behind `count` ones: `items`, or new memory with a copy of them; NULL with an exception set. */
static void *grown(void *items, const void *few, Py_ssize_t count, Py_ssize_t *capacity, Py_ssize_t more, size_t size)
{
    if (count + more <= *capacity)
        return items;
    Py_ssize_t wanted = (count + more) * 2;
    void *made = items == few ? PyMem_Malloc((size_t)wanted * size) : PyMem_Realloc(items, (size_t)wanted * size);
    if (!made)
        return PyErr_NoMemory();
    if (items == few)
        memcpy(made, few, (size_t)count * size);
    *capacity = wanted;
    return made;
}

/* Return the place of `more` words; NULL with an exception set. */
static uint64_t *add_words(CallKey *key, Py_ssize_t more)
{
    uint64_t *words = grown(key->words, key->few_words, key->count, &key->capacity, more, sizeof *words);
    if (!words)
        return NULL;
    key->words = words;
    key->count += more;
    return words + key->count - more;
}

static int add_word(CallKey *key, uint64_t word)
{
    uint64_t *place = add_words(key, 1);
    if (place)
        *place = word;
    return place ? 1 : -1;
}

static int add_leaf(CallKey *key, PyObject *leaf)
{
    PyObject **leaves = grown(key->leaves, key->few_leaves, key->leaf_count, &key->leaf_capacity, 1, sizeof *leaves);
    if (!leaves)
        return -1;
    key->leaves = leaves;
    leaves[key->leaf_count++] = leaf;
    return 1;
}

static int hold(CallKey *key, PyObject *object)
{
    return key->held && PyList_Append(key->held, object) < 0 ? -1 : 1;
}

/* Return the position of the leaf with this impl, or the number of leaves. */
static Py_ssize_t place_of(const CallKey *key, const TensorImpl *impl)
{
    Py_ssize_t place = 0;
    while (place < key->leaf_count && impl_of(key->leaves[place]) != impl)
        place++;
    return place;
}

/* Whether a leaf lies in the same storage. */
static int shares_memory(const CallKey *key, const TensorImpl *impl)
{
    for (Py_ssize_t i = 0; i < key->leaf_count; i++) {
        const TensorImpl *other = impl_of(key->leaves[i]);
        if (other && other->storage == impl->storage)
            return 1;
    }
    return 0;
}

static int add_sizes(uint64_t *words, PyObject *sizes)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes); i++) {
        PyObject *size = PyTuple_GET_ITEM(sizes, i);
        if (!PyLong_Check(size))
            return 0;
        words[i] = (uint64_t)PyLong_AsSsize_t(size);
        if (words[i] == (uint64_t)-1 && PyErr_Occurred())
            return -1;
    }
    return 1;
}

static int add_tensor(CallKey *key, PyObject *tensor)
{
    TensorImpl *impl = ((TensorBase *)tensor)->impl;
    if (!impl || impl->fake || impl->key_set & SPECIAL_BITS || !(impl->key_set & CUDA_BIT) ||
        !Py_IS_TYPE(impl->storage, &StorageImpl_Type) || (key->apart && shares_memory(key, impl)))
        return 0;
    Py_ssize_t place = key->joins ? place_of(key, impl) : key->leaf_count, rank = PyTuple_GET_SIZE(impl->sizes);
    if (place < key->leaf_count)
        return add_word(key, TENSOR_TAG | (uint64_t)(place + 1) << 8);
    int itemsize = itemsize_of(impl->dtype);
    char *data = itemsize < 0 ? NULL : storage_data((StorageImpl *)impl->storage);
    if (!data)
        return PyErr_Occurred() ? -1 : 0;
    uint64_t misaligned = ((uintptr_t)data + (uintptr_t)(impl->storage_offset * itemsize)) % ALIGNMENT != 0;
    uint64_t *words = PyTuple_GET_SIZE(impl->strides) == rank ? add_words(key, 3 + 2 * rank) : NULL;
    if (!words)
        return PyErr_Occurred() ? -1 : 0;
    words[0] = TENSOR_TAG | misaligned << 40 | (uint64_t)rank << 48;
    words[1] = (uint64_t)(uintptr_t)impl->dtype;
    words[2] = (uint64_t)(uintptr_t)impl->device;
    int known = add_sizes(words + 3, impl->sizes);
    if (known > 0)
        known = add_sizes(words + 3 + rank, impl->strides);
    if (known <= 0 || hold(key, impl->dtype) < 0 || hold(key, impl->device) < 0)
        return known <= 0 ? known : -1;
    return add_leaf(key, tensor);
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static int add_float(CallKey *key, PyObject *value, int depth)
{
    uint64_t bits = bits_of(PyFloat_AS_DOUBLE(value));
    if (!key->opens || depth)
        return add_word(key, FLOAT_TAG) < 0 ? -1 : add_word(key, bits);
    for (Py_ssize_t i = 0; i < key->leaf_count; i++)
        if (PyFloat_CheckExact(key->leaves[i]) && bits_of(PyFloat_AS_DOUBLE(key->leaves[i])) == bits)
            return 0; /* one tensor stands for both */
    return add_word(key, NUMBER_TAG) < 0 ? -1 : add_leaf(key, value);
}

static int add_int(CallKey *key, PyObject *value)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow)
        return 0;
    return add_word(key, INT_TAG) < 0 ? -1 : add_word(key, (uint64_t)number);
}

static int add_string(CallKey *key, PyObject *value)
{
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(value, &length);
    if (!text) { /* a lone surrogate, which no option is named by */
        PyErr_Clear();
        return 0;
    }
    Py_ssize_t count = (length + 7) / 8;
    uint64_t *words = add_words(key, 1 + count);
    if (!words)
        return -1;
    words[0] = STRING_TAG | (uint64_t)length << 8;
    if (count)
        words[count] = 0;
    memcpy(words + 1, text, (size_t)length);
    return 1;
}

static int add_value(CallKey *key, PyObject *value, int depth);

static int add_sequence(CallKey *key, PyObject *sequence, int depth)
{
    Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    uint64_t *words = depth < MAX_DEPTH ? add_words(key, 2) : NULL;
    if (!words)
        return PyErr_Occurred() ? -1 : 0;
    words[0] = SEQUENCE_TAG | (uint64_t)count << 8;
    words[1] = (uint64_t)(uintptr_t)Py_TYPE(sequence);
    int known = hold(key, (PyObject *)Py_TYPE(sequence));
    for (Py_ssize_t i = 0; known > 0 && i < count && i < PySequence_Fast_GET_SIZE(sequence); i++)
        known = add_value(key, PySequence_Fast_GET_ITEM(sequence, i), depth + 1);
    return known;
}

static int add_value(CallKey *key, PyObject *value, int depth)
{
    if (is_tensor(value))
        return add_tensor(key, value);
    if (value == Py_None)
        return add_word(key, NONE_TAG);
    if (PyBool_Check(value))
        return add_word(key, BOOL_TAG | (uint64_t)(value == Py_True) << 8);
    if (PyLong_CheckExact(value))
        return add_int(key, value);
    if (PyFloat_CheckExact(value))
        return add_float(key, value, depth);
    if (PyUnicode_CheckExact(value))
        return add_string(key, value);
    if (PyList_CheckExact(value) || PyTuple_Check(value))
        return add_sequence(key, value, depth);
    if (PyLong_Check(value) || PyFloat_Check(value) || PyComplex_Check(value) || PyDict_Check(value) || PyList_Check(value))
        return 0;
    if (add_word(key, OBJECT_TAG) < 0 || add_word(key, (uint64_t)(uintptr_t)value) < 0)
        return -1;
    return hold(key, value);
}

/* Whether floats become tensors: elsewhere the result's dtype is that of a Python number, and would be another for a tensor. */
static int opens_floats(PyObject *const *arguments, Py_ssize_t positional)
{
    for (Py_ssize_t i = 0; i < positional; i++) {
        const TensorImpl *impl = impl_of(arguments[i]);
        DtypeCode code = impl && PyTuple_GET_SIZE(impl->sizes) ? dtype_code(impl->dtype) : BOOL;
        if (code == OTHER_DTYPE)
            return -1;
        if (code > INT64)
            return 1;
    }
    return 0;
}

int key_add_call(CallKey *key, PyObject *const *arguments, Py_ssize_t positional, PyObject *names, int opens_numbers)
{
    key->opens = opens_numbers ? opens_floats(arguments, positional) : 0;
    if (key->opens < 0)
        return 0;
    int known = add_word(key, (uint64_t)gpu_thread.device); /* a device without a number means this one */
    for (Py_ssize_t i = 0; known > 0 && i < positional; i++)
        known = add_value(key, arguments[i], 0);
    for (Py_ssize_t i = 0; known > 0 && names && i < PyTuple_GET_SIZE(names); i++) {
        known = add_string(key, PyTuple_GET_ITEM(names, i));
        if (known > 0)
            known = add_value(key, arguments[positional + i], 0);
    }
    return known;
}

uint64_t key_hash(const CallKey *key)
{
    uint64_t hash = (uint64_t)key->count;
    for (Py_ssize_t i = 0; i < key->count; i++) {
        hash = (hash ^ key->words[i]) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    return hash;
}
