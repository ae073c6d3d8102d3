/* CreationKernel: the CPU kernels that make, fill and copy tensors, for the common arguments: row-major tensors, numbers that
   the dtype represents, and no option besides dtype and device. It passes all other calls to the general kernel in Python,
   which also raises the errors. */
#include "tensor_impl.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum {
    MAX_DIMENSIONS = 64,
    MIN_SIZE_WITHOUT_GIL = 1 << 17, /* larger fills (in elements) and copies (in bytes) release the GIL */
    RUN = 512                       /* elements that a fill writes one by one, before it copies them */
};

/* Return NULL without an exception to fall back to the general kernel. `dtype` comes from the keyword arguments. */
typedef PyObject *(*Creation)(PyObject *const *arguments, Py_ssize_t count, PyObject *dtype);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *general; /* owned */
    Creation creation;
} CreationKernel;

typedef union {
    char bytes[8];
    float single;
    double wide;
    int32_t integer;
    int64_t long_integer;
} Element;

/* Return an uninitialised row-major tensor; NULL without an exception for sizes that the general kernel has to handle. */
static TensorImpl *make_row_major(PyObject *sizes, PyObject *strides, PyObject *dtype)
{
    if ((!PyTuple_Check(sizes) && !PyList_Check(sizes)) || dtype_code(dtype) == OTHER_DTYPE ||
        PySequence_Fast_GET_SIZE(sizes) > MAX_DIMENSIONS)
        return NULL;
    Py_ssize_t count = 1, rank = PySequence_Fast_GET_SIZE(sizes);
    for (Py_ssize_t dim = 0; dim < rank; dim++) {
        PyObject *item = PySequence_Fast_GET_ITEM(sizes, dim);
        Py_ssize_t size = PyLong_CheckExact(item) ? PyLong_AsSsize_t(item) : -1;
        PyErr_Clear();
        if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > PY_SSIZE_T_MAX / 16)
            return NULL;
    }
    PyObject *plain = PyTuple_CheckExact(sizes) ? Py_NewRef(sizes) : PyTuple_New(rank);
    for (Py_ssize_t dim = 0; plain && plain != sizes && dim < rank; dim++)
        PyTuple_SET_ITEM(plain, dim, Py_NewRef(PySequence_Fast_GET_ITEM(sizes, dim)));
    PyObject *wanted = plain ? contiguous_strides(plain) : NULL;
    int usable = wanted && (!strides || PyObject_RichCompareBool(strides, wanted, Py_EQ) == 1);
    TensorImpl *made = usable ? impl_empty(plain, wanted, dtype, count) : NULL;
    Py_XDECREF(plain);
    Py_XDECREF(wanted);
    return made;
}

/* Convert a Python number to an element of the dtype. Return 0 if it is not a number or may not fit. */
static int read_element(PyObject *value, DtypeCode dtype, Element *element)
{
    int overflow = 0, is_float = PyFloat_CheckExact(value);
    if (!is_float && !PyLong_CheckExact(value) && !PyBool_Check(value))
        return 0;
    long long whole = is_float ? 0 : PyLong_AsLongLongAndOverflow(value, &overflow);
    double number = is_float ? PyFloat_AS_DOUBLE(value) : (double)whole;
    if (overflow || (is_float && dtype != FLOAT32 && dtype != FLOAT64))
        return 0;
    memset(element, 0, sizeof *element);
    switch (dtype) {
    case FLOAT32: element->single = (float)number; return !isinf(element->single) || isinf(number);
    case FLOAT64: element->wide = number; return 1;
    case INT64: element->long_integer = whole; return 1;
    case INT32: element->integer = (int32_t)whole; return whole == (int32_t)whole;
    case BOOL: element->bytes[0] = whole != 0; return 1;
    default: return whole == 0; /* 0 has all bytes 0 in every dtype */
    }
}

/* Fill a short run element by element, then repeat it by copying, which reaches memory speed on every processor. */
static void repeat_element(char *data, Py_ssize_t count, Py_ssize_t itemsize, const Element *element)
{
    Py_ssize_t first = count < RUN ? count : RUN;
    for (Py_ssize_t i = 0; i < first; i++)
        memcpy(data + i * itemsize, element->bytes, (size_t)itemsize);
    for (Py_ssize_t done = first; done < count; done += RUN)
        memcpy(data + done * itemsize, data, (size_t)((count - done < RUN ? count - done : RUN) * itemsize));
}

static void write_elements(char *data, Py_ssize_t count, Py_ssize_t itemsize, const Element *element)
{
    static const Element zero;
    PyThreadState *thread = count >= MIN_SIZE_WITHOUT_GIL ? PyEval_SaveThread() : NULL;
    if (memcmp(element, &zero, sizeof zero) == 0)
        memset(data, 0, (size_t)(count * itemsize));
    else if (itemsize == 1)
        memset(data, element->bytes[0], (size_t)count);
    else if (itemsize == 4)
        repeat_element(data, count, 4, element);
    else
        repeat_element(data, count, 8, element);
    if (thread)
        PyEval_RestoreThread(thread);
}

static PyObject *make_empty(PyObject *const *arguments, Py_ssize_t count, PyObject *dtype)
{
    return count == 1 && dtype && configuration.fills_new != Py_True ? tensor_wrap_new(make_row_major(arguments[0], NULL, dtype)) : NULL;
}

static PyObject *make_strided(PyObject *const *arguments, Py_ssize_t count, PyObject *dtype)
{
    int plain = count == 2 && dtype && configuration.fills_new != Py_True && PyTuple_Check(arguments[1]);
    return plain ? tensor_wrap_new(make_row_major(arguments[0], arguments[1], dtype)) : NULL;
}

static PyObject *make_full(PyObject *const *arguments, Py_ssize_t count, PyObject *dtype)
{
    Element element;
    if (count != 2 || !dtype || !read_element(arguments[1], dtype_code(dtype), &element))
        return NULL;
    TensorImpl *made = make_row_major(arguments[0], NULL, dtype);
    if (made)
        write_elements(((StorageImpl *)made->storage)->data, impl_numel(made), itemsize_of(dtype), &element);
    return tensor_wrap_new(made);
}

/* Return the memory of a row-major CPU tensor, or NULL; set no exception. */
static char *data_of(TensorImpl *impl, int for_writing)
{
    if (!impl || impl->fake || !impl_is_contiguous(impl) || !Py_IS_TYPE(impl->storage, &StorageImpl_Type) ||
        dtype_code(impl->dtype) == OTHER_DTYPE || (for_writing && ((StorageImpl *)impl->storage)->read_only))
        return NULL;
    char *data = impl_data(impl);
    if (!data)
        PyErr_Clear();
    return data;
}

static PyObject *fill(PyObject *const *arguments, Py_ssize_t count, PyObject *dtype)
{
    TensorImpl *impl = count == 2 && !dtype ? impl_of(arguments[0]) : NULL;
    Element element;
    char *data = data_of(impl, 1);
    if (!data || !read_element(arguments[1], dtype_code(impl->dtype), &element))
        return NULL;
    write_elements(data, impl_numel(impl), itemsize_of(impl->dtype), &element);
    return Py_NewRef(arguments[0]);
}

static PyObject *copy(PyObject *const *arguments, Py_ssize_t count, PyObject *dtype)
{
    TensorImpl *target = count >= 2 && !dtype ? impl_of(arguments[0]) : NULL, *source = target ? impl_of(arguments[1]) : NULL;
    if (!source || source->dtype != target->dtype || source->storage == target->storage)
        return NULL;
    int same = source->sizes == target->sizes || PyObject_RichCompareBool(source->sizes, target->sizes, Py_EQ) == 1;
    char *to = same ? data_of(target, 1) : NULL, *from = to ? data_of(source, 0) : NULL;
    if (!from)
        return NULL;
    size_t nbytes = (size_t)(impl_numel(target) * itemsize_of(target->dtype));
    PyThreadState *thread = nbytes >= MIN_SIZE_WITHOUT_GIL ? PyEval_SaveThread() : NULL;
    memmove(to, from, nbytes);
    if (thread)
        PyEval_RestoreThread(thread);
    return Py_NewRef(arguments[0]);
}

/* Read a small integer, which every dtype and every sum here represents exactly; return 0 for anything else. */
static int read_small(PyObject *value, Py_ssize_t *number)
{
    int overflow = 1;
    *number = PyLong_CheckExact(value) ? PyLong_AsLongAndOverflow(value, &overflow) : 0;
    return !overflow && *number > -(1L << 24) && *number < 1L << 24;
}

static PyObject *make_range(PyObject *const *arguments, Py_ssize_t count, PyObject *dtype)
{
    Py_ssize_t start, end, step = 1;
    DtypeCode code = dtype ? dtype_code(dtype) : INT64;
    if (count < 2 || count > 3 || (code != INT64 && code != FLOAT32) || !read_small(arguments[0], &start) ||
        !read_small(arguments[1], &end) || (count == 3 && !read_small(arguments[2], &step)) || step == 0 ||
        (step > 0 ? end < start : end > start))
        return NULL;
    Py_ssize_t length = (end - start + step - (step > 0 ? 1 : -1)) / step;
    PyObject *sizes = Py_BuildValue("(n)", length);
    TensorImpl *made = sizes ? make_row_major(sizes, NULL, configuration.dtypes[code]) : NULL;
    char *data = made ? ((StorageImpl *)made->storage)->data : NULL;
    for (Py_ssize_t i = 0; data && code == INT64 && i < length; i++)
        ((int64_t *)data)[i] = start + i * step;
    for (Py_ssize_t i = 0; data && code == FLOAT32 && i < length; i++)
        ((float *)data)[i] = (float)(start + i * step);
    Py_XDECREF(sizes);
    return tensor_wrap_new(made);
}

static const struct {
    const char *name;
    Creation creation;
} creations[] = {
    {"arange", make_range},
    {"empty", make_empty}, {"empty_strided", make_strided}, {"full", make_full}, {"fill_", fill}, {"copy_", copy},
};

/* Find the dtype among the keyword arguments. Return 0 if there is any option other than a dtype and the CPU device. */
static int read_options(PyObject *const *values, PyObject *names, PyObject **dtype)
{
    *dtype = NULL;
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        if (values[i] == Py_None)
            continue;
        if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0)
            *dtype = values[i];
        else if (values[i] != configuration.cpu || PyUnicode_CompareWithASCIIString(name, "device") != 0)
            return 0;
    }
    return 1;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    const CreationKernel *kernel = (CreationKernel *)self;
    Py_ssize_t count = PyVectorcall_NARGS(flags);
    PyObject *dtype;
    if (read_options(arguments + count, names, &dtype)) {
        PyObject *made = kernel->creation(arguments, count, dtype);
        if (made || PyErr_Occurred())
            return made;
    }
    return PyObject_Vectorcall(kernel->general, arguments, flags, names);
}

/* There is no tp_clear, because a kernel always needs its callable; OperatorBase breaks reference cycles. */
static int kernel_traverse(CreationKernel *self, visitproc visit, void *arg)
{
    Py_VISIT(self->general);
    return 0;
}

static void kernel_dealloc(CreationKernel *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->general);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"name", "general", NULL};
    const char *name;
    PyObject *general;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sO:CreationKernel", names, &name, &general))
        return NULL;
    for (size_t i = 0; i < sizeof creations / sizeof *creations; i++)
        if (strcmp(creations[i].name, name) == 0) {
            CreationKernel *self = (CreationKernel *)type->tp_alloc(type, 0);
            if (self) {
                self->vectorcall = kernel_call;
                self->general = Py_NewRef(general);
                self->creation = creations[i].creation;
            }
            return (PyObject *)self;
        }
    return PyErr_Format(PyExc_ValueError, "CreationKernel: there is no native kernel %s", name);
}

static PyMemberDef members[] = {
    {"general", T_OBJECT_EX, offsetof(CreationKernel, general), READONLY, "The kernel for all other arguments."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject CreationKernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.CreationKernel",
    .tp_basicsize = sizeof(CreationKernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "CreationKernel(name, general)\n--\n\nMakes, fills or copies plain row-major tensors, and calls `general` on others.",
    .tp_new = kernel_new,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(CreationKernel, vectorcall),
    .tp_members = members,
};
