/* ConcatenateKernel: the CPU kernel of cat for row-major tensors of one dtype. It passes all other calls to the general kernel
   in Python, which also raises the errors. */
#include "tensor_impl.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum {
    MIN_BYTES_WITHOUT_GIL = 1 << 16, /* copies of at least this many bytes release the GIL */
    MAX_DIMENSIONS = 64
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *general; /* owned */
} ConcatenateKernel;

static Py_ssize_t size_at(const TensorImpl *impl, Py_ssize_t dim) { return PyLong_AsSsize_t(PyTuple_GET_ITEM(impl->sizes, dim)); }

/* Whether `impl` is contiguous, so that its memory can be copied directly, and has the sizes of `first` except along `dim`. */
static int fits(TensorImpl *impl, const TensorImpl *first, Py_ssize_t dim)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(first->sizes);
    if (impl->dtype != first->dtype || impl->fake || impl->key_set != first->key_set || impl_numel(impl) == 0 ||
        PyTuple_GET_SIZE(impl->sizes) != rank || impl_is_contiguous(impl) != 2 || dtype_code(impl->dtype) == OTHER_DTYPE)
        return 0;
    for (Py_ssize_t i = 0; i < rank; i++) {
        if (i != dim && size_at(impl, i) != size_at(first, i))
            return 0;
        if (rank >= 4 && size_at(impl, i) == 1) /* it may be channels-last as well, which affects the result's format */
            return 0;
    }
    return 1;
}

/* Return the size of the result along `dim`, or 0 to fall back to the general kernel. Wrap a negative `dim`. */
static Py_ssize_t total_size(PyObject *list, Py_ssize_t *dim)
{
    TensorImpl *first = PySequence_Fast_GET_SIZE(list) ? impl_of(PySequence_Fast_GET_ITEM(list, 0)) : NULL;
    Py_ssize_t rank = first ? PyTuple_GET_SIZE(first->sizes) : 0, total = 0;
    if (!first || !(first->key_set & CPU_BIT) || rank > MAX_DIMENSIONS || *dim < -rank || *dim >= rank)
        return 0;
    *dim += *dim < 0 ? rank : 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list); i++) {
        TensorImpl *impl = impl_of(PySequence_Fast_GET_ITEM(list, i));
        if (!impl || !fits(impl, first, *dim) || __builtin_add_overflow(total, size_at(impl, *dim), &total))
            return 0;
    }
    return total;
}

static TensorImpl *make_result(const TensorImpl *first, Py_ssize_t dim, Py_ssize_t total)
{
    Py_ssize_t rank = PyTuple_GET_SIZE(first->sizes);
    PyObject *sizes = PyTuple_New(rank), *strides = NULL;
    for (Py_ssize_t i = 0; sizes && i < rank; i++) {
        PyObject *size = i == dim ? PyLong_FromSsize_t(total) : Py_NewRef(PyTuple_GET_ITEM(first->sizes, i));
        if (!size) {
            Py_CLEAR(sizes);
            break;
        }
        PyTuple_SET_ITEM(sizes, i, size);
    }
    TensorImpl *made = sizes && (strides = contiguous_strides(sizes)) ? impl_empty(sizes, strides, first->dtype, -1) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return made;
}

/* Copy one input into its columns of the result, which has `outer` rows of `row` bytes. */
static void copy_one(const char *input, Py_ssize_t chunk, char *out, Py_ssize_t row, Py_ssize_t outer)
{
    PyThreadState *thread = chunk * outer >= MIN_BYTES_WITHOUT_GIL ? PyEval_SaveThread() : NULL;
    for (Py_ssize_t i = 0; i < outer; i++)
        memcpy(out + i * row, input + i * chunk, (size_t)chunk);
    if (thread)
        PyEval_RestoreThread(thread);
}

/* Copy all inputs. `inputs` is a tuple, so no other thread can change it while the GIL is released. */
static int copy_all(PyObject *inputs, TensorImpl *made, Py_ssize_t dim)
{
    Py_ssize_t outer = 1, itemsize = itemsize_of(made->dtype), place = 0;
    for (Py_ssize_t i = 0; i < dim; i++)
        outer *= size_at(made, i);
    Py_ssize_t row = impl_numel(made) / outer * itemsize;
    char *out = ((StorageImpl *)made->storage)->data;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
        TensorImpl *impl = impl_of(PyTuple_GET_ITEM(inputs, i));
        const char *data = impl_data(impl);
        Py_ssize_t chunk = impl_numel(impl) / outer * itemsize;
        if (!data || place + chunk > row)
            return 0;
        copy_one(data, chunk, out + place, row, outer);
        place += chunk;
    }
    return place == row;
}

/* Return the result, or NULL without an exception to fall back to the general kernel. */
static PyObject *concatenate(PyObject *list, Py_ssize_t dim)
{
    PyObject *inputs = PySequence_Tuple(list);
    Py_ssize_t total = inputs ? total_size(inputs, &dim) : 0;
    TensorImpl *made = total ? make_result(impl_of(PyTuple_GET_ITEM(inputs, 0)), dim, total) : NULL;
    if (made && !copy_all(inputs, made, dim)) {
        PyErr_Clear();
        Py_CLEAR(made);
    }
    Py_XDECREF(inputs);
    return tensor_wrap_new(made);
}

static PyObject *kernel_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    Py_ssize_t count = PyVectorcall_NARGS(flags), dim = 0;
    int plain = !(names && PyTuple_GET_SIZE(names)) && (count == 1 || (count == 2 && PyLong_CheckExact(arguments[1]))) &&
                (PyList_CheckExact(arguments[0]) || PyTuple_CheckExact(arguments[0]));
    if (plain && count == 2 && (dim = PyLong_AsSsize_t(arguments[1])) == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        plain = 0;
    }
    PyObject *made = plain ? concatenate(arguments[0], dim) : NULL;
    if (made || PyErr_Occurred())
        return made;
    return PyObject_Vectorcall(((ConcatenateKernel *)self)->general, arguments, flags, names);
}

/* There is no tp_clear, because a kernel always needs its callable; OperatorBase breaks reference cycles. */
static int kernel_traverse(ConcatenateKernel *self, visitproc visit, void *arg)
{
    Py_VISIT(self->general);
    return 0;
}

static void kernel_dealloc(ConcatenateKernel *self)
{
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->general);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *kernel_new(PyTypeObject *type, PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"general", NULL};
    PyObject *general;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O:ConcatenateKernel", names, &general))
        return NULL;
    ConcatenateKernel *self = (ConcatenateKernel *)type->tp_alloc(type, 0);
    if (self) {
        self->vectorcall = kernel_call;
        self->general = Py_NewRef(general);
    }
    return (PyObject *)self;
}

static PyMemberDef members[] = {
    {"general", T_OBJECT_EX, offsetof(ConcatenateKernel, general), READONLY, "The kernel for all other arguments."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject ConcatenateKernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.ConcatenateKernel",
    .tp_basicsize = sizeof(ConcatenateKernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "ConcatenateKernel(general)\n--\n\nConcatenates row-major tensors of one dtype, and calls `general` for others.",
    .tp_new = kernel_new,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ConcatenateKernel, vectorcall),
    .tp_members = members,
};
