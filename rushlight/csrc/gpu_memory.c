/* DeviceHeap and DeviceMemory: the part of a GPU's caching allocator that every allocation needs. See rushlight.cuda.allocator,
   whose CachingAllocator derives from DeviceHeap and asks the driver for segments.

   The GIL protects a heap. A block is used again at once by its own stream; a block that other streams use is handed to Python,
   in `pending`, when its memory is released. */
#include "gpu_memory.h"

#include "gpu_blocks.h"

#include <stddef.h>
#include <structmember.h>

/* A number of bytes or blocks. */
typedef struct {
    PyObject_HEAD
    long long current, peak, allocated, freed;
} MemoryCounter;

struct DeviceHeap {
    PyObject_HEAD
    GpuBlocks blocks;
    long pool;         /* the pool that new memory comes from; 0 unless a graph is captured */
    PyObject *pending; /* owned: a list of DeviceMemory that other streams use, and that was released */
    PyObject *allocation, *allocated_bytes, *requested_bytes; /* owned: MemoryCounters */
    char awaits; /* whether released memory waits for other streams */
};

typedef struct {
    PyObject_HEAD
    DeviceHeap *heap; /* owned */
    GpuBlock *block;
    PyObject *users; /* owned: a set of the other streams that use the block; NULL without */
    Py_ssize_t nbytes;
    int is_counted; /* whether the heap's counters include it */
    PyObject *weak_references;
} DeviceMemory;

static void add_to(PyObject *object, long long amount)
{
    MemoryCounter *counter = (MemoryCounter *)object;
    counter->current += amount;
    if (amount < 0) {
        counter->freed -= amount;
        return;
    }
    counter->allocated += amount;
    if (counter->current > counter->peak)
        counter->peak = counter->current;
}

static PyObject *counter_add(PyObject *self, PyObject *amount)
{
    long long value = PyLong_AsLongLong(amount);
    if (value == -1 && PyErr_Occurred())
        return NULL;
    add_to(self, value);
    Py_RETURN_NONE;
}

static PyMemberDef counter_members[] = {
    {"current", T_LONGLONG, offsetof(MemoryCounter, current), 0, "How much there is now."},
    {"peak", T_LONGLONG, offsetof(MemoryCounter, peak), 0, "The largest `current`."},
    {"allocated", T_LONGLONG, offsetof(MemoryCounter, allocated), 0, "All that was added."},
    {"freed", T_LONGLONG, offsetof(MemoryCounter, freed), 0, "All that was taken away."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef counter_methods[] = {
    {"add", counter_add, METH_O, "add(amount: int, /)\n\nCount an addition, or a removal if the amount is negative."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject MemoryCounter_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.MemoryCounter",
    .tp_basicsize = sizeof(MemoryCounter),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc = "A number of bytes or blocks: now, at most, and all that were added and taken.",
    .tp_new = PyType_GenericNew,
    .tp_members = counter_members,
    .tp_methods = counter_methods,
};

/* Memory */

static void count_memory(DeviceMemory *memory, int sign)
{
    const DeviceHeap *heap = memory->heap;
    add_to(heap->allocation, sign);
    add_to(heap->allocated_bytes, sign * (long long)memory->block->size);
    add_to(heap->requested_bytes, sign * (long long)memory->nbytes);
    memory->is_counted = sign > 0;
}

/* Make an owner of a block; the block goes back if that fails. */
static DeviceMemory *memory_make(DeviceHeap *heap, GpuBlock *block, Py_ssize_t nbytes)
{
    DeviceMemory *made = PyObject_New(DeviceMemory, &DeviceMemory_Type);
    if (!made) {
        gpu_put_back(block);
        return NULL;
    }
    made->heap = (DeviceHeap *)Py_NewRef((PyObject *)heap);
    made->block = block;
    made->users = made->weak_references = NULL;
    made->nbytes = nbytes;
    made->is_counted = 0;
    return made;
}

/* Hand a block that other streams use to Python, which waits for them; without memory for that, the block is lost. */
static void hand_over(DeviceMemory *memory)
{
    DeviceMemory *heir = PyObject_New(DeviceMemory, &DeviceMemory_Type);
    if (!heir) {
        PyErr_Clear();
        return;
    }
    heir->heap = (DeviceHeap *)Py_NewRef((PyObject *)memory->heap);
    heir->block = memory->block;
    heir->users = Py_NewRef(memory->users);
    heir->weak_references = NULL;
    heir->nbytes = memory->nbytes;
    heir->is_counted = 0;
    if (PyList_Append(memory->heap->pending, (PyObject *)heir) < 0) {
        PyErr_Clear();
        heir->block = NULL;
    }
    memory->heap->awaits = 1;
    Py_DECREF(heir);
}

static void memory_dealloc(DeviceMemory *self)
{
    if (self->weak_references)
        PyObject_ClearWeakRefs((PyObject *)self);
    if (self->block) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        if (self->is_counted)
            count_memory(self, -1);
        if (self->users && PySet_GET_SIZE(self->users))
            hand_over(self);
        else
            gpu_put_back(self->block);
        PyErr_Restore(type, value, traceback);
    }
    Py_XDECREF(self->users);
    Py_DECREF(self->heap);
    PyObject_Free(self);
}

static PyObject *memory_record_stream(DeviceMemory *self, PyObject *stream)
{
    unsigned long long value = PyLong_AsUnsignedLongLong(stream);
    if (value == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    if (value == self->block->list->stream)
        Py_RETURN_NONE;
    if (!self->users && !(self->users = PySet_New(NULL)))
        return NULL;
    if (PySet_Add(self->users, stream) < 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *memory_take_users(DeviceMemory *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *users = self->users;
    self->users = NULL;
    return users ? users : PySet_New(NULL);
}

static PyObject *get_users(DeviceMemory *self, void *Py_UNUSED(closure))
{
    return self->users ? PyFrozenSet_New(self->users) : PyFrozenSet_New(NULL);
}

static PyObject *get_address(DeviceMemory *self, void *Py_UNUSED(closure))
{
    return PyLong_FromUnsignedLongLong(self->block->address);
}

static PyGetSetDef memory_getset[] = {
    {"data_ptr", (getter)get_address, NULL, "The address of the first byte.", NULL},
    {"users", (getter)get_users, NULL, "The other streams that use the memory.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef memory_members[] = {
    {"nbytes", T_PYSSIZET, offsetof(DeviceMemory, nbytes), READONLY, "The bytes that were asked for."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef memory_methods[] = {
    {"record_stream", (PyCFunction)memory_record_stream, METH_O,
     "record_stream(stream: int, /)\n\nKeep the memory from being used again before the present work of a stream is done."},
    {"take_users", (PyCFunction)memory_take_users, METH_NOARGS, "take_users()\n\nReturn the other streams, and forget them."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject DeviceMemory_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.DeviceMemory",
    .tp_basicsize = sizeof(DeviceMemory),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Owns a block of a GPU's memory: the `buffer` of a device storage. Its last reference gives the block back.",
    .tp_dealloc = (destructor)memory_dealloc,
    .tp_getset = memory_getset,
    .tp_members = memory_members,
    .tp_methods = memory_methods,
    .tp_weaklistoffset = offsetof(DeviceMemory, weak_references),
};

/* The heap */

/* Return memory; ask Python to settle what waits, and for a segment, where that is needed. */
static DeviceMemory *heap_memory(DeviceHeap *heap, Py_ssize_t nbytes, uint64_t stream, long pool)
{
    size_t size = gpu_rounded((size_t)nbytes);
    if (size > PY_SSIZE_T_MAX)
        return (DeviceMemory *)PyErr_Format(out_of_memory_error(), "CUDA out of memory. Tried to allocate %zd bytes", nbytes);
    if (heap->awaits) {
        PyObject *settled = PyObject_CallMethod((PyObject *)heap, "settle", NULL);
        if (!settled)
            return NULL;
        Py_DECREF(settled);
    }
    for (;;) {
        FreeList *list = gpu_free_list(&heap->blocks, stream, gpu_is_small(size), pool);
        if (!list)
            return (DeviceMemory *)PyErr_NoMemory();
        GpuBlock *block = gpu_take(list, size);
        if (block) {
            DeviceMemory *made = memory_make(heap, block, nbytes);
            if (made)
                count_memory(made, 1);
            return made;
        }
        PyObject *grown = PyObject_CallMethod((PyObject *)heap, "grow", "nKl", (Py_ssize_t)size, (unsigned long long)stream, pool);
        if (!grown)
            return NULL;
        Py_DECREF(grown);
    }
}

StorageImpl *heap_storage(DeviceHeap *heap, Py_ssize_t nbytes, uint64_t stream, PyObject *device)
{
    DeviceMemory *memory = heap_memory(heap, nbytes, stream, heap->pool);
    StorageImpl *made = memory ? PyObject_New(StorageImpl, &StorageImpl_Type) : NULL;
    if (!made) {
        Py_XDECREF(memory);
        return NULL;
    }
    made->data = (void *)(uintptr_t)memory->block->address;
    made->capacity = 0;
    made->nbytes = nbytes;
    made->buffer = (PyObject *)memory;
    made->device = Py_NewRef(device);
    made->read_only = made->generation = 0;
    made->weak_references = NULL;
    return made;
}

static PyObject *heap_allocate(DeviceHeap *self, PyObject *arguments)
{
    Py_ssize_t nbytes;
    unsigned long long stream;
    long pool = 0;
    if (!PyArg_ParseTuple(arguments, "nK|l:allocate", &nbytes, &stream, &pool))
        return NULL;
    if (nbytes < 0)
        return PyErr_Format(PyExc_ValueError, "allocate: expected a number of bytes >= 0, got %zd", nbytes);
    return (PyObject *)heap_memory(self, nbytes, stream, pool);
}

static PyObject *heap_allocate_storage(DeviceHeap *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 3)
        return PyErr_Format(PyExc_TypeError, "allocate_storage: expected (nbytes: int, stream: int, device)");
    Py_ssize_t nbytes = PyNumber_AsSsize_t(arguments[0], PyExc_OverflowError);
    if (nbytes == -1 && PyErr_Occurred())
        return NULL;
    unsigned long long stream = PyLong_AsUnsignedLongLong(arguments[1]);
    if (stream == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    if (nbytes < 0)
        return PyErr_Format(PyExc_ValueError, "allocate_storage: expected a number of bytes >= 0, got %zd", nbytes);
    return (PyObject *)heap_storage(self, nbytes, stream, arguments[2]);
}

/* Return the bytes that a tensor of these sizes and strides needs; -1 with an exception set. */
static Py_ssize_t bytes_of(PyObject *sizes, PyObject *strides, int itemsize)
{
    Py_ssize_t reach = 0, nbytes = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes); i++) {
        Py_ssize_t size = PyLong_AsSsize_t(PyTuple_GET_ITEM(sizes, i)), step;
        Py_ssize_t stride = PyErr_Occurred() ? -1 : PyLong_AsSsize_t(PyTuple_GET_ITEM(strides, i));
        if (PyErr_Occurred())
            return -1;
        if (size == 0)
            return 0;
        if (size < 0 || stride < 0 || __builtin_mul_overflow(size - 1, stride, &step) ||
            __builtin_add_overflow(reach, step, &reach))
            reach = -1;
        if (reach < 0)
            break;
    }
    if (reach < 0 || reach == PY_SSIZE_T_MAX || __builtin_mul_overflow(reach + 1, (Py_ssize_t)itemsize, &nbytes)) {
        PyErr_Format(PyExc_RuntimeError, "no memory holds a tensor with sizes=%R and strides=%R", sizes, strides);
        return -1;
    }
    return nbytes;
}

static int are_ints(PyObject *tuple)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (!PyLong_Check(PyTuple_GET_ITEM(tuple, i)))
            return 0;
    return 1;
}

static PyObject *heap_empty(DeviceHeap *self, PyObject *const *arguments, Py_ssize_t count)
{
    if (count != 5 || !PyTuple_Check(arguments[0]) || !are_ints(arguments[0]) ||
        (arguments[1] != Py_None && (!PyTuple_Check(arguments[1]) || !are_ints(arguments[1]) ||
                                     PyTuple_GET_SIZE(arguments[0]) != PyTuple_GET_SIZE(arguments[1]))))
        return PyErr_Format(PyExc_TypeError, "empty: expected (sizes: tuple, strides: tuple | None, dtype, stream: int, device)");
    int itemsize = itemsize_of(arguments[2]);
    unsigned long long stream = itemsize < 0 ? 0 : PyLong_AsUnsignedLongLong(arguments[3]);
    if (PyErr_Occurred())
        return NULL;
    PyObject *strides = arguments[1] == Py_None ? contiguous_strides(arguments[0]) : Py_NewRef(arguments[1]), *made = NULL;
    Py_ssize_t nbytes = strides ? bytes_of(arguments[0], strides, itemsize) : -1;
    StorageImpl *storage = nbytes < 0 ? NULL : heap_storage(self, nbytes, stream, arguments[4]);
    if (storage) {
        made = tensor_wrap_new(impl_over((PyObject *)storage, arguments[0], strides, 0, arguments[2]));
        Py_DECREF(storage);
    }
    Py_XDECREF(strides);
    return made;
}

static PyObject *heap_add_segment(DeviceHeap *self, PyObject *arguments)
{
    unsigned long long address, stream;
    Py_ssize_t size;
    int is_small;
    long pool;
    if (!PyArg_ParseTuple(arguments, "KnKpl:add_segment", &address, &size, &stream, &is_small, &pool))
        return NULL;
    FreeList *list = gpu_free_list(&self->blocks, stream, is_small, pool);
    if (size <= 0)
        return PyErr_Format(PyExc_ValueError, "add_segment: expected a number of bytes > 0, got %zd", size);
    if (!list || gpu_add_segment(&self->blocks, list, address, (size_t)size) < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *heap_remove_segment(DeviceHeap *self, PyObject *argument)
{
    unsigned long long address = PyLong_AsUnsignedLongLong(argument);
    if (address == (unsigned long long)-1 && PyErr_Occurred())
        return NULL;
    if (gpu_remove_segment(&self->blocks, address) < 0)
        return PyErr_Format(PyExc_ValueError, "remove_segment: no unused segment is at %S", argument);
    Py_RETURN_NONE;
}

static PyObject *heap_segments(DeviceHeap *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *found = PyList_New(0);
    for (size_t i = 0; found && i < self->blocks.segment_count; i++) {
        const GpuBlock *block = self->blocks.segments[i];
        PyObject *blocks = PyList_New(0);
        PyObject *row = blocks ? Py_BuildValue("(KliN)", (unsigned long long)block->list->stream, block->list->pool,
                                               block->list->is_small, blocks) : NULL;
        int failed = !row || PyList_Append(found, row) < 0;
        for (; !failed && block; block = block->after) {
            PyObject *item = Py_BuildValue("(KnO)", (unsigned long long)block->address, (Py_ssize_t)block->size,
                                           block->is_free ? Py_True : Py_False);
            failed = !item || PyList_Append(blocks, item) < 0;
            Py_XDECREF(item);
        }
        Py_XDECREF(row);
        if (failed)
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *heap_new(PyTypeObject *type, PyObject *Py_UNUSED(arguments), PyObject *Py_UNUSED(keywords))
{
    DeviceHeap *self = (DeviceHeap *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->pending = PyList_New(0);
    self->allocation = PyObject_CallNoArgs((PyObject *)&MemoryCounter_Type);
    self->allocated_bytes = PyObject_CallNoArgs((PyObject *)&MemoryCounter_Type);
    self->requested_bytes = PyObject_CallNoArgs((PyObject *)&MemoryCounter_Type);
    if (!self->pending || !self->allocation || !self->allocated_bytes || !self->requested_bytes)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static int heap_traverse(DeviceHeap *self, visitproc visit, void *arg)
{
    Py_VISIT(self->pending);
    return 0;
}

static void heap_dealloc(DeviceHeap *self)
{
    PyObject_GC_UnTrack(self);
    Py_CLEAR(self->pending);
    gpu_release_blocks(&self->blocks);
    Py_XDECREF(self->allocation);
    Py_XDECREF(self->allocated_bytes);
    Py_XDECREF(self->requested_bytes);
    Py_TYPE(self)->tp_free(self);
}

static PyObject *heap_take_pending(DeviceHeap *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *fresh = PyList_New(0), *pending = self->pending;
    if (!fresh)
        return NULL;
    self->pending = fresh;
    return pending;
}

static PyMemberDef heap_members[] = {
    {"pool", T_LONG, offsetof(DeviceHeap, pool), 0, "The pool of new storages; 0 unless a graph is captured."},
    {"awaits", T_BOOL, offsetof(DeviceHeap, awaits), 0, "Whether `settle` has something to do before an allocation."},
    {"allocation", T_OBJECT_EX, offsetof(DeviceHeap, allocation), READONLY, "Counts blocks."},
    {"allocated_bytes", T_OBJECT_EX, offsetof(DeviceHeap, allocated_bytes), READONLY, "Counts the bytes of blocks."},
    {"requested_bytes", T_OBJECT_EX, offsetof(DeviceHeap, requested_bytes), READONLY, "Counts the bytes that were asked for."},
    {NULL, 0, 0, 0, NULL},
};

static PyMethodDef heap_methods[] = {
    {"allocate", (PyCFunction)heap_allocate, METH_VARARGS,
     "allocate(nbytes: int, stream: int, pool: int = 0, /) -> DeviceMemory\n\nMemory for work on a stream."},
    {"allocate_storage", (PyCFunction)(void (*)(void))heap_allocate_storage, METH_FASTCALL,
     "allocate_storage(nbytes: int, stream: int, device, /) -> StorageImpl\n\nA storage for work on a stream, from `pool`."},
    {"empty", (PyCFunction)(void (*)(void))heap_empty, METH_FASTCALL,
     "empty(sizes: tuple, strides: tuple | None, dtype, stream: int, device, /) -> Tensor\n\n"
     "An uninitialised tensor in a storage of its own; row-major without strides. RuntimeError for negative numbers, and for\n"
     "more bytes than there are addresses."},
    {"add_segment", (PyCFunction)heap_add_segment, METH_VARARGS,
     "add_segment(address: int, size: int, stream: int, is_small: bool, pool: int, /)\n\nAdd memory of the driver."},
    {"remove_segment", (PyCFunction)heap_remove_segment, METH_O,
     "remove_segment(address: int, /)\n\nForget a segment that nothing uses; ValueError if there is none at the address."},
    {"blocks_by_segment", (PyCFunction)heap_segments, METH_NOARGS,
     "blocks_by_segment()\n\nEach segment's stream, pool, whether it is for small blocks, and its blocks' address, size and\n"
     "whether it is free."},
    {"take_pending", (PyCFunction)heap_take_pending, METH_NOARGS,
     "take_pending()\n\nReturn the released memory that other streams use, and forget it."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject DeviceHeap_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.DeviceHeap",
    .tp_basicsize = sizeof(DeviceHeap),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "The free memory of a GPU. A subclass has `grow(size, stream, pool)`, which adds a segment or raises an error, and\n"
              "`settle()`, which puts memory back that other streams used.",
    .tp_new = heap_new,
    .tp_dealloc = (destructor)heap_dealloc,
    .tp_traverse = (traverseproc)heap_traverse,
    .tp_members = heap_members,
    .tp_methods = heap_methods,
};
