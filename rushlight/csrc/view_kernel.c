/* ViewKernel: the kernels of the common view operators, for every backend. A view has new sizes and strides over the same
   storage.

   Unusual or wrong arguments go to the general kernel in Python, which also raises the errors. */
#include "tensor_impl.h"

#include <stddef.h>
#include <string.h>
#include <structmember.h>

enum { MAX_DIMENSIONS = 64 };

typedef struct {
    Py_ssize_t rank, offset, sizes[MAX_DIMENSIONS], strides[MAX_DIMENSIONS];
} Geometry;

/* Change the geometry of `impl` to that of the view. Return 0 to fall back to the general kernel. */
typedef int (*View)(TensorImpl *impl, Geometry *geometry, PyObject *const *arguments, Py_ssize_t count);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *general; /* owned */
    View view;
} ViewKernel;

static int read_int(PyObject *object, Py_ssize_t *value)
{
    if (!PyLong_CheckExact(object))
        return 0;
    *value = PyLong_AsSsize_t(object);
    if (*value == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return 1;
}

static int read_ints(PyObject *object, Py_ssize_t *values, Py_ssize_t *count)
{
    if (!PyTuple_Check(object) && !PyList_Check(object))
        return 0;
    *count = PySequence_Fast_GET_SIZE(object);
    if (*count > MAX_DIMENSIONS)
        return 0;
    for (Py_ssize_t i = 0; i < *count; i++)
        if (!read_int(PySequence_Fast_GET_ITEM(object, i), &values[i]))
            return 0;
    return 1;
}

static int read_dim(PyObject *object, Py_ssize_t rank, Py_ssize_t *dim)
{
    if (!read_int(object, dim) || *dim < -rank || *dim >= rank)
        return 0;
    *dim += *dim < 0 ? rank : 0;
    return 1;
}

static int alias(TensorImpl *Py_UNUSED(impl), Geometry *Py_UNUSED(geometry), PyObject *const *Py_UNUSED(arguments),
                 Py_ssize_t count)
{
    return count == 0;
}

static int permute(TensorImpl *Py_UNUSED(impl), Geometry *geometry, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t order[MAX_DIMENSIONS], given;
    Geometry old = *geometry;
    unsigned long long met = 0;
    if (count != 1 || !read_ints(arguments[0], order, &given) || given != old.rank)
        return 0;
    for (Py_ssize_t i = 0; i < given; i++) {
        Py_ssize_t dim = order[i] < 0 ? order[i] + given : order[i];
        if (dim < 0 || dim >= given || met >> dim & 1)
            return 0;
        met |= 1ULL << dim;
        geometry->sizes[i] = old.sizes[dim];
        geometry->strides[i] = old.strides[dim];
    }
    return 1;
}

/* Infer a -1 among the sizes from the other sizes. */
static int infer_size(Py_ssize_t *sizes, Py_ssize_t count, Py_ssize_t numel)
{
    Py_ssize_t known = 1, unknown = -1;
    for (Py_ssize_t i = 0; i < count; i++)
        if (sizes[i] >= 0) {
            if (__builtin_mul_overflow(known, sizes[i], &known))
                return 0;
        } else if (sizes[i] == -1 && unknown < 0)
            unknown = i;
        else
            return 0;
    if (unknown >= 0) {
        if (known == 0 || numel % known)
            return 0;
        sizes[unknown] = numel / known;
        return 1;
    }
    return known == numel;
}

static int view(TensorImpl *impl, Geometry *geometry, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 1 || impl_is_contiguous(impl) != 2 || !read_ints(arguments[0], geometry->sizes, &geometry->rank) ||
        impl_numel(impl) == 0 || !infer_size(geometry->sizes, geometry->rank, impl_numel(impl)))
        return 0;
    Py_ssize_t step = 1;
    for (Py_ssize_t dim = geometry->rank - 1; dim >= 0; dim--) {
        geometry->strides[dim] = step;
        step *= geometry->sizes[dim];
    }
    return 1;
}

/* Compute the view of expand(). New leading dimensions have stride 0; those of size 1 get the stride that steps over all later
   dimensions, as in torch. */
static int expand(TensorImpl *Py_UNUSED(impl), Geometry *geometry, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t wanted[MAX_DIMENSIONS], rank;
    Geometry old = *geometry;
    if (count != 1 || !read_ints(arguments[0], wanted, &rank) || rank < old.rank)
        return 0;
    Py_ssize_t extra = rank - old.rank;
    for (Py_ssize_t dim = rank - 1; dim >= 0; dim--) {
        Py_ssize_t size = dim < extra ? 1 : old.sizes[dim - extra], stride = dim < extra ? 0 : old.strides[dim - extra];
        if (wanted[dim] == -1 && dim >= extra)
            wanted[dim] = size;
        if (wanted[dim] < 0 || (size != 1 && wanted[dim] != size))
            return 0;
        if (dim < extra && wanted[dim] == 1 && old.rank)
            stride = geometry->sizes[dim + 1] * geometry->strides[dim + 1];
        geometry->sizes[dim] = wanted[dim];
        geometry->strides[dim] = wanted[dim] == size ? stride : 0;
    }
    geometry->rank = rank;
    return 1;
}

static void remove_dim(Geometry *geometry, Py_ssize_t dim)
{
    size_t after = (size_t)(geometry->rank - dim - 1) * sizeof(Py_ssize_t);
    memmove(geometry->sizes + dim, geometry->sizes + dim + 1, after);
    memmove(geometry->strides + dim, geometry->strides + dim + 1, after);
    geometry->rank--;
}

static int select_index(TensorImpl *Py_UNUSED(impl), Geometry *geometry, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t dim, index;
    if (count != 2 || !read_dim(arguments[0], geometry->rank, &dim) || !read_dim(arguments[1], geometry->sizes[dim], &index))
        return 0;
    geometry->offset += index * geometry->strides[dim];
    remove_dim(geometry, dim);
    return 1;
}

static int read_bound(PyObject *object, Py_ssize_t size, Py_ssize_t otherwise, Py_ssize_t *bound)
{
    if (object == Py_None)
        *bound = otherwise;
    else if (!read_int(object, bound))
        return 0;
    *bound += *bound < 0 ? size : 0;
    *bound = *bound < 0 ? 0 : *bound > size ? size : *bound;
    return 1;
}

static int slice(TensorImpl *Py_UNUSED(impl), Geometry *geometry, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t dim, first, last, step = 1;
    if (count < 3 || count > 4 || !read_dim(arguments[0], geometry->rank, &dim))
        return 0;
    Py_ssize_t size = geometry->sizes[dim];
    if (!read_bound(arguments[1], size, 0, &first) || !read_bound(arguments[2], size, size, &last) ||
        (count == 4 && (!read_int(arguments[3], &step) || step <= 0 || step > PY_SSIZE_T_MAX / 2)))
        return 0;
    Py_ssize_t stride = geometry->strides[dim];
    if (__builtin_mul_overflow(stride, step, &geometry->strides[dim]))
        return 0;
    geometry->sizes[dim] = last > first ? (last - first + step - 1) / step : 0;
    geometry->offset += first * stride;
    return 1;
}

static int unsqueeze(TensorImpl *Py_UNUSED(impl), Geometry *geometry, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t dim, rank = geometry->rank;
    if (count != 1 || rank == MAX_DIMENSIONS || !read_dim(arguments[0], rank + 1, &dim))
        return 0;
    Py_ssize_t stride = dim < rank ? geometry->sizes[dim] * geometry->strides[dim] : 1;
    memmove(geometry->sizes + dim + 1, geometry->sizes + dim, (size_t)(rank - dim) * sizeof(Py_ssize_t));
    memmove(geometry->strides + dim + 1, geometry->strides + dim, (size_t)(rank - dim) * sizeof(Py_ssize_t));
    geometry->sizes[dim] = 1;
    geometry->strides[dim] = stride;
    geometry->rank++;
    return 1;
}

/* Compute the view of as_strided(). If it exceeds its memory, the general kernel raises the error. */
static int as_strided(TensorImpl *impl, Geometry *geometry, PyObject *const *arguments, Py_ssize_t count)
{
    Py_ssize_t rank, last, step, itemsize = itemsize_of(impl->dtype), room = ((StorageImpl *)impl->storage)->nbytes;
    if (itemsize < 0) {
        PyErr_Clear();
        return 0;
    }
    if (count < 2 || count > 3 || !read_ints(arguments[0], geometry->sizes, &geometry->rank) ||
        !read_ints(arguments[1], geometry->strides, &rank) || rank != geometry->rank ||
        (count == 3 && arguments[2] != Py_None && !read_int(arguments[2], &geometry->offset)) || geometry->offset < 0)
        return 0;
    last = geometry->offset;
    for (Py_ssize_t dim = 0; dim < rank; dim++)
        if (geometry->sizes[dim] <= 0 || geometry->strides[dim] < 0 ||
            __builtin_mul_overflow(geometry->sizes[dim] - 1, geometry->strides[dim], &step) ||
            __builtin_add_overflow(last, step, &last))
            return 0;
    return last < room / itemsize;
}

static const struct {
    const char *name;
    View view;
} views[] = {
    {"alias", alias},         {"permute", permute}, {"view", view},           {"expand", expand},
    {"select", select_index}, {"slice", slice},     {"unsqueeze", unsqueeze}, {"as_strided", as_strided},
};

static PyObject *tuple_of(const Py_ssize_t *values, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++) {
        PyObject *value = PyLong_FromSsize_t(values[i]);
        if (!value) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SET_ITEM(tuple, i, value);
    }
    return tuple;
}

static PyObject *make_view(TensorImpl *impl, const Geometry *geometry)
{
    PyObject *sizes = tuple_of(geometry->sizes, geometry->rank), *strides = tuple_of(geometry->strides, geometry->rank);
    PyObject *made = sizes && strides ? tensor_wrap_new(impl_alias(impl, sizes, strides, geometry->offset)) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return made;
}

static PyObject *kernel_call(PyObject *self, PyObject *const *arguments, size_t flags, PyObject *names)
{
    const ViewKernel *kernel = (ViewKernel *)self;
    Py_ssize_t count = PyVectorcall_NARGS(flags), strided;
    TensorImpl *impl = count && !(names && PyTuple_GET_SIZE(names)) ? impl_of(arguments[0]) : NULL;
    Geometry geometry;
    if (impl && !impl->symbolic_offset && Py_IS_TYPE(impl->storage, &StorageImpl_Type) &&
        read_ints(impl->sizes, geometry.sizes, &geometry.rank) && read_ints(impl->strides, geometry.strides, &strided) &&
        strided == geometry.rank) {
        geometry.offset = impl->storage_offset;
        if (kernel->view(impl, &geometry, arguments + 1, count - 1))
            return make_view(impl, &geometry);
    }
    return PyObject_Vectorcall(kernel->general, arguments, flags, names);
}

/* There is no tp_clear, because a kernel always needs its callable; OperatorBase breaks reference cycles. */
static int kernel_traverse(ViewKernel *self, visitproc visit, void *arg)
{
    Py_VISIT(self->general);
    return 0;
}

static void kernel_dealloc(ViewKernel *self)
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
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "sO:ViewKernel", names, &name, &general))
        return NULL;
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (strcmp(views[i].name, name) == 0) {
            ViewKernel *self = (ViewKernel *)type->tp_alloc(type, 0);
            if (self) {
                self->vectorcall = kernel_call;
                self->general = Py_NewRef(general);
                self->view = views[i].view;
            }
            return (PyObject *)self;
        }
    return PyErr_Format(PyExc_ValueError, "ViewKernel: there is no native kernel %s", name);
}

static PyMemberDef members[] = {
    {"general", T_OBJECT_EX, offsetof(ViewKernel, general), READONLY, "The kernel for all other arguments."},
    {NULL, 0, 0, 0, NULL},
};

PyTypeObject ViewKernel_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.ViewKernel",
    .tp_basicsize = sizeof(ViewKernel),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_doc = "ViewKernel(name, general)\n--\n\nMakes the view `name` of plain arguments, and calls `general` on others.",
    .tp_new = kernel_new,
    .tp_dealloc = (destructor)kernel_dealloc,
    .tp_traverse = (traverseproc)kernel_traverse,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(ViewKernel, vectorcall),
    .tp_members = members,
};
