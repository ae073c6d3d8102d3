/* Tensors in C: the structs behind rushlight.core.tensor_impl, and the handle that users hold.

   C code reads the fields directly. Object fields are owned; those that may be None in Python may also be NULL here. */
#ifndef RUSHLIGHT_TENSOR_IMPL_H
#define RUSHLIGHT_TENSOR_IMPL_H

#include "configuration.h"
#include "dispatch_keys.h"
#include "module.h"
#include "thread_state.h"

/* A storage: a block of the caching allocator, memory borrowed from `buffer`, or no memory (the meta device). */
typedef struct {
    PyObject_HEAD
    void *data; /* NULL: not looked up yet in `buffer`, or no memory */
    size_t capacity; /* size of the allocator block if this storage is its only owner; else 0 */
    Py_ssize_t nbytes;
    PyObject *buffer; /* the owner of the memory: a Block, or the object it is borrowed from; else NULL */
    PyObject *device;
    int read_only;
    int generation; /* counts replacements of the memory, and writes that some version counters did not count */
    PyObject *weak_references;
} StorageImpl;

typedef struct {
    PyObject_HEAD
    Py_ssize_t value;
    /* whether another counter covers the same memory; writes that only one of them counts also change the storage's generation */
    char separate;
} VersionCounter;

typedef struct {
    PyObject_HEAD
    PyObject *grad, *grad_fn, *accumulator, *hooks, *post_accumulate_hooks;
    Py_ssize_t output_nr;
    char requires_grad, retains_grad;
} AutogradMeta;

typedef struct {
    PyObject_HEAD
    PyObject *base; /* a Tensor */
    PyObject *origin;
    Py_ssize_t version;
} ViewMeta;

typedef struct {
    PyObject_HEAD
    PyObject *storage; /* a StorageImpl */
    PyObject *sizes, *strides; /* tuples of ints; a fake tensor's may hold SymInts */
    Py_ssize_t storage_offset;
    PyObject *symbolic_offset; /* a fake tensor's offset if it is a SymInt, else NULL; storage_offset is then meaningless */
    PyObject *dtype, *device;
    unsigned long key_set;
    PyObject *version; /* a VersionCounter */
    PyObject *autograd; /* an AutogradMeta, None or NULL */
    PyObject *view; /* a ViewMeta, None or NULL */
    PyObject *array; /* a numpy.ndarray over the memory, made on first use */
    int array_generation; /* the storage's generation when `array` was made */
    Py_ssize_t numel; /* -1: not computed */
    signed char contiguous; /* -1: not computed */
    char inference, fake;
    PyObject *weak_references;
} TensorImpl;

/* The handle that users hold. Python's Tensor derives from it. */
typedef struct {
    PyObject_HEAD
    TensorImpl *impl; /* NULL in an incomplete handle */
    PyObject *dict;
    PyObject *weak_references;
} TensorBase;

static inline int is_set(PyObject *field) { return field && field != Py_None; }

static inline int is_tensor(PyObject *object)
{
    return (PyObject *)Py_TYPE(object) == configuration.tensor_type || PyObject_TypeCheck(object, &TensorBase_Type);
}

/* Return the impl of a tensor, borrowed; NULL if the object is not a tensor or is incomplete. Set no exception. */
static inline TensorImpl *impl_of(PyObject *object) { return is_tensor(object) ? ((TensorBase *)object)->impl : NULL; }

static inline AutogradMeta *autograd_of(const TensorImpl *impl)
{
    return is_set(impl->autograd) ? (AutogradMeta *)impl->autograd : NULL;
}

static inline ViewMeta *view_of(const TensorImpl *impl) { return is_set(impl->view) ? (ViewMeta *)impl->view : NULL; }

static inline int requires_grad(const TensorImpl *impl)
{
    for (;;) {
        const AutogradMeta *meta = autograd_of(impl);
        if (meta && (meta->requires_grad || is_set(meta->grad_fn)))
            return 1;
        const ViewMeta *view = view_of(impl);
        impl = view ? impl_of(view->base) : NULL;
        if (!impl)
            return 0;
    }
}

static inline void count_write(TensorImpl *impl)
{
    VersionCounter *version = (VersionCounter *)impl->version;
    version->value++;
    if (version->separate)
        ((StorageImpl *)impl->storage)->generation++;
}

static inline Py_ssize_t version_value(const TensorImpl *impl) { return ((VersionCounter *)impl->version)->value; }

/* Return the product of a tuple of sizes; PY_SSIZE_T_MAX on overflow. */
Py_ssize_t count_elements(PyObject *sizes);
/* Return the number of elements; negative sizes count as 0. */
Py_ssize_t impl_numel(TensorImpl *impl);
/* Whether two tuples of sizes or strides are equal; None in `wanted` matches any. -1 with an exception set. */
int sizes_match(PyObject *found, PyObject *wanted);
/* Whether the elements are row-major without gaps. */
int impl_is_contiguous(TensorImpl *impl); /* 2: the strides of size-1 dimensions are row-major too */
/* The number of elements and contiguity for fake tensors with symbolic sizes. NULL and -1 with an exception set. */
PyObject *count_symbolic(PyObject *sizes);
int lies_row_major_symbolically(PyObject *sizes, PyObject *strides);
int itemsize_of(PyObject *dtype); /* -1 with an exception set */

/* Return the address of the first byte. NULL means that there is no data (no exception set) or an error (exception set). */
void *storage_data(StorageImpl *storage);
/* Return the address of the first element, under the same rules. */
char *impl_data(TensorImpl *impl);
/* Return the object that owns the memory, or None; a new reference. */
PyObject *storage_buffer(StorageImpl *storage);

/* These functions return new references, or NULL with an exception set; arguments are borrowed. */
StorageImpl *storage_allocate(Py_ssize_t nbytes);
PyObject *contiguous_strides(PyObject *sizes);
/* Make an uninitialised CPU impl in the thread's mode (normal or inference). `numel` may be -1. */
TensorImpl *impl_empty(PyObject *sizes, PyObject *strides, PyObject *dtype, Py_ssize_t numel);
TensorImpl *impl_alias(TensorImpl *impl, PyObject *sizes, PyObject *strides, Py_ssize_t storage_offset);
/* Make an impl over a storage of the CPU or a GPU, in the thread's mode. */
TensorImpl *impl_over(PyObject *storage, PyObject *sizes, PyObject *strides, Py_ssize_t storage_offset, PyObject *dtype);
PyObject *tensor_wrap(TensorImpl *impl);
/* Wrap an impl in a new Tensor. Steal the reference to `impl`; NULL stays NULL. */
PyObject *tensor_wrap_new(TensorImpl *impl);
AutogradMeta *autograd_make(void);
ViewMeta *view_make(PyObject *base, Py_ssize_t version, PyObject *origin);

#endif
