/* Block: a Python object that owns memory of the caching allocator, and the functions that allocate and report.

   NumPy arrays over a Block hold it through the buffer protocol: the memory returns to the cache when the last view is gone. */
#include "module.h"

#include <stddef.h>
#include <structmember.h>

#include "allocator.h"
#include "configuration.h"
#include "system_memory.h"

typedef struct {
    PyObject_HEAD
    void *memory;
    size_t capacity;
    Py_ssize_t nbytes;
    PyObject *weak_references;
} Block;

static void block_dealloc(Block *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (self->weak_references)
        PyObject_ClearWeakRefs((PyObject *)self);
    if (self->memory)
        allocator_free(self->memory, self->capacity);
    type->tp_free(self);
    Py_DECREF(type);
}

static int block_getbuffer(Block *self, Py_buffer *view, int flags)
{
    return PyBuffer_FillInfo(view, (PyObject *)self, self->memory, self->nbytes, /*readonly=*/0, flags);
}

static PyObject *block_data_ptr(Block *self, void *Py_UNUSED(closure)) { return PyLong_FromVoidPtr(self->memory); }

static PyObject *block_repr(Block *self)
{
    return PyUnicode_FromFormat("Block(data_ptr=%p, nbytes=%zd)", self->memory, self->nbytes);
}

static PyObject *block_vacate(Block *self, PyObject *Py_UNUSED(ignored))
{
    system_vacate(self->memory, self->capacity);
    Py_RETURN_NONE;
}

static PyMethodDef block_object_methods[] = {
    {"vacate", (PyCFunction)block_vacate, METH_NOARGS,
     "vacate() -> None\n\nGive the memory back to the system, as far as it is whole pages, and keep the addresses: they read\n"
     "as zeros, and take memory again where they are written to."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef block_getset[] = {
    {"data_ptr", (getter)block_data_ptr, NULL, "Address of the first byte, a multiple of 64.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef block_members[] = {
    {"nbytes", T_PYSSIZET, offsetof(Block, nbytes), READONLY, "Number of bytes that were asked for."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Block, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot block_slots[] = {
    {Py_tp_doc, "Memory aligned to 64 bytes, made by allocate(). A writable buffer of unsigned bytes."},
    {Py_tp_dealloc, block_dealloc},
    {Py_tp_repr, block_repr},
    {Py_tp_getset, block_getset},
    {Py_tp_methods, block_object_methods},
    {Py_tp_members, block_members},
    {Py_bf_getbuffer, block_getbuffer},
    {0, NULL},
};

PyType_Spec block_spec = {
    .name = "rushlight._C.Block",
    .basicsize = sizeof(Block),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = block_slots,
};

static PyTypeObject *block_type; /* borrowed from the module, for block_make */

PyObject *block_make(void *memory, size_t capacity, Py_ssize_t nbytes)
{
    Block *block = block_type ? (Block *)block_type->tp_alloc(block_type, 0) : NULL;
    if (block) {
        block->memory = memory;
        block->capacity = capacity;
        block->nbytes = nbytes;
    } else if (!PyErr_Occurred())
        PyErr_SetString(PyExc_RuntimeError, "rushlight._C is not initialised");
    return (PyObject *)block;
}

int block_is(PyObject *object) { return Py_TYPE(object) == block_type; }

void block_use_type(PyTypeObject *type) { block_type = type; }

static PyObject *refuse(PyObject *size)
{
    return PyErr_Format(out_of_memory_error(),
                        "allocate: cannot allocate %S bytes; free tensors that are no longer needed, "
                        "or use smaller ones", size);
}

/* Read a size that must not be negative. Return -1 with an exception set, or with *too_large set for the caller to raise a
   MemoryError. */
static Py_ssize_t read_size(const char *function, PyObject *size, int *too_large)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(size, &overflow);
    if (value == -1 && PyErr_Occurred())
        return -1;
    if (overflow < 0 || (!overflow && value < 0)) {
        PyErr_Format(PyExc_ValueError, "%s: expected a number of bytes >= 0, got %S", function, size);
        return -1;
    }
    *too_large = overflow > 0 || value > PY_SSIZE_T_MAX;
    return *too_large ? -1 : (Py_ssize_t)value;
}

static PyObject *allocate(PyObject *module, PyObject *size)
{
    int too_large = 0;
    Py_ssize_t nbytes = read_size("allocate", size, &too_large);
    if (nbytes < 0)
        return too_large ? refuse(size) : NULL;
    PyTypeObject *type = module_state(module)->block_type;
    Block *block = (Block *)type->tp_alloc(type, 0); /* zeroed, since dealloc may see it without memory */
    if (!block)
        return NULL;
    block->memory = allocator_allocate((size_t)nbytes, &block->capacity);
    block->nbytes = nbytes;
    if (!block->memory) {
        Py_DECREF(block);
        return refuse(size);
    }
    return (PyObject *)block;
}

static PyObject *allocator_statistics(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    AllocatorStatistics s = allocator_read_statistics();
    return Py_BuildValue("{s:n,s:n,s:n,s:n,s:n,s:K,s:K,s:K,s:K}", "allocated_bytes", (Py_ssize_t)s.allocated_bytes,
                         "peak_allocated_bytes", (Py_ssize_t)s.peak_allocated_bytes, "reserved_bytes",
                         (Py_ssize_t)(s.allocated_bytes + s.cached_bytes), "cached_bytes", (Py_ssize_t)s.cached_bytes,
                         "cache_limit_bytes", (Py_ssize_t)s.cache_limit_bytes, "allocations",
                         (unsigned long long)s.allocations, "reuses", (unsigned long long)s.reuses, "frees",
                         (unsigned long long)s.frees, "system_allocations", (unsigned long long)s.system_allocations);
}

static PyObject *empty_cache(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    allocator_empty_cache();
    Py_RETURN_NONE;
}

static PyObject *reset_peak_statistics(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    allocator_reset_peak();
    Py_RETURN_NONE;
}

static PyObject *set_cache_limit(PyObject *Py_UNUSED(module), PyObject *size)
{
    int too_large = 0;
    Py_ssize_t limit = read_size("set_cache_limit", size, &too_large);
    if (limit < 0 && !too_large)
        return NULL;
    allocator_set_cache_limit(too_large ? PY_SSIZE_T_MAX : (size_t)limit);
    Py_RETURN_NONE;
}

PyMethodDef block_methods[] = {
    {"allocate", allocate, METH_O,
     "allocate(nbytes: int, /) -> Block\n\nUninitialized memory, aligned to 64 bytes, from the cache where possible.\n"
     "ValueError for a negative size, MemoryError when the system refuses."},
    {"allocator_statistics", allocator_statistics, METH_NOARGS,
     "allocator_statistics() -> dict[str, int]\n\nBytes: allocated_bytes (in use, rounded up to size classes),\n"
     "peak_allocated_bytes, cached_bytes, reserved_bytes (in use and cached), cache_limit_bytes.\n"
     "Counts since the start: allocations, reuses (allocations served from the cache), frees, system_allocations."},
    {"empty_cache", empty_cache, METH_NOARGS, "empty_cache() -> None\n\nGive all cached memory back to the system."},
    {"reset_peak_statistics", reset_peak_statistics, METH_NOARGS,
     "reset_peak_statistics() -> None\n\nMake peak_allocated_bytes start again from what is allocated now."},
    {"set_cache_limit", set_cache_limit, METH_O,
     "set_cache_limit(nbytes: int, /) -> None\n\nKeep at most so many freed bytes; 0 turns caching off. The default\n"
     "is a quarter of the memory, at most 4 GiB. ValueError for a negative limit."},
    {NULL, NULL, 0, NULL},
};
