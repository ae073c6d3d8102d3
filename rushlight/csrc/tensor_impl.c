/* TensorImpl: memory with sizes, strides, a dtype and autograd data. See rushlight.core.tensor_impl. */
#include "tensor_impl.h"

#include <stddef.h>
#include <structmember.h>

#define SYMBOLIC_OFFSET PY_SSIZE_T_MIN

static int impl_traverse(TensorImpl *self, visitproc visit, void *arg)
{
    Py_VISIT(self->storage);
    Py_VISIT(self->autograd);
    Py_VISIT(self->view);
    Py_VISIT(self->array);
    return 0;
}

static int impl_clear(TensorImpl *self)
{
    Py_CLEAR(self->autograd);
    Py_CLEAR(self->view);
    Py_CLEAR(self->array);
    return 0;
}

static void impl_dealloc(TensorImpl *self)
{
    PyObject_GC_UnTrack(self);
    if (self->weak_references)
        PyObject_ClearWeakRefs((PyObject *)self);
    impl_clear(self);
    Py_XDECREF(self->storage);
    Py_XDECREF(self->sizes);
    Py_XDECREF(self->strides);
    Py_XDECREF(self->symbolic_offset);
    Py_XDECREF(self->dtype);
    Py_XDECREF(self->device);
    Py_XDECREF(self->version);
    PyObject_GC_Del(self);
}

/* Return the key set of a tensor of this dtype. Dtypes that few operators compute with add the key Narrow. */
static unsigned long keys_for(PyObject *dtype, unsigned long key_set)
{
    if (dtype_code(dtype) != OTHER_DTYPE || !configuration.narrow_dtypes)
        return key_set & ~NARROW_BIT;
    int narrow = PySet_Contains(configuration.narrow_dtypes, dtype);
    if (narrow < 0)
        PyErr_Clear(); /* unhashable, so not a dtype */
    return narrow == 1 ? key_set | NARROW_BIT : key_set & ~NARROW_BIT;
}

/* Make an impl. Steal `storage` and `version` (NULL after a failure); the other arguments are borrowed. */
static TensorImpl *impl_make(PyObject *storage, PyObject *sizes, PyObject *strides, Py_ssize_t storage_offset, PyObject *dtype,
                             PyObject *device, unsigned long key_set, PyObject *version)
{
    TensorImpl *self = storage && version ? PyObject_GC_New(TensorImpl, &TensorImpl_Type) : NULL;
    if (!self) {
        Py_XDECREF(storage);
        Py_XDECREF(version);
        return NULL;
    }
    self->storage = storage;
    self->sizes = Py_NewRef(sizes);
    self->strides = Py_NewRef(strides);
    self->storage_offset = storage_offset;
    self->symbolic_offset = NULL;
    self->dtype = Py_NewRef(dtype);
    self->device = Py_NewRef(device);
    self->key_set = keys_for(dtype, key_set);
    self->version = version;
    self->autograd = self->view = self->array = NULL;
    self->numel = self->contiguous = -1;
    self->inference = self->fake = 0;
    self->weak_references = NULL;
    PyObject_GC_Track(self);
    return self;
}

static PyObject *new_version(void)
{
    VersionCounter *made = PyObject_New(VersionCounter, &VersionCounter_Type);
    if (made)
        made->value = made->separate = 0;
    return (PyObject *)made;
}

TensorImpl *impl_alias(TensorImpl *impl, PyObject *sizes, PyObject *strides, Py_ssize_t storage_offset)
{
    TensorImpl *made = impl_make(Py_NewRef(impl->storage), sizes, strides, storage_offset, impl->dtype, impl->device,
                                 impl->key_set, Py_NewRef(impl->version));
    if (made) {
        made->fake = impl->fake;
        made->inference = impl->inference;
        if (storage_offset == SYMBOLIC_OFFSET)
            made->symbolic_offset = Py_XNewRef(impl->symbolic_offset);
    }
    return made;
}

/* Read an offset. A symbolic one is stored separately and reads as a placeholder. */
static int read_offset(PyObject *value, Py_ssize_t *offset)
{
    int symbolic = (PyObject *)Py_TYPE(value) == configuration.symbolic_type;
    *offset = symbolic ? SYMBOLIC_OFFSET : PyNumber_AsSsize_t(value, PyExc_OverflowError);
    return *offset == -1 && PyErr_Occurred() ? -1 : 0;
}

static void keep_symbolic_offset(TensorImpl *self, PyObject *value)
{
    Py_XSETREF(self->symbolic_offset, self->storage_offset == SYMBOLIC_OFFSET ? Py_NewRef(value) : NULL);
}

static void enter_mode(TensorImpl *made, const ThreadRecord *record)
{
    if (record->inference) {
        made->inference = 1;
        made->key_set &= ~AUTOGRAD_BITS;
    }
}

TensorImpl *impl_empty(PyObject *sizes, PyObject *strides, PyObject *dtype, Py_ssize_t numel)
{
    const ThreadRecord *record = thread_record();
    Py_ssize_t nbytes, count = numel < 0 ? count_elements(sizes) : numel;
    int itemsize = record ? itemsize_of(dtype) : -1;
    if (itemsize < 0)
        return NULL;
    if (count < 0) {
        PyErr_Format(PyExc_RuntimeError, "Trying to create tensor with negative dimension: %R", sizes);
        return NULL;
    }
    if (count == PY_SSIZE_T_MAX || __builtin_mul_overflow(count, (Py_ssize_t)itemsize, &nbytes)) {
        PyErr_Format(PyExc_RuntimeError, "Storage size calculation overflowed with sizes=%R", sizes);
        return NULL;
    }
    StorageImpl *storage = storage_allocate(nbytes);
    TensorImpl *made = storage ? impl_make((PyObject *)storage, sizes, strides, 0, dtype, configuration.cpu, CPU_KEYS,
                                           new_version()) : NULL;
    if (made) {
        made->numel = count;
        enter_mode(made, record);
    }
    return made;
}

TensorImpl *impl_over(PyObject *storage, PyObject *sizes, PyObject *strides, Py_ssize_t storage_offset, PyObject *dtype)
{
    const ThreadRecord *record = thread_record();
    PyObject *device = ((StorageImpl *)storage)->device;
    unsigned long keys = device == configuration.cpu ? CPU_KEYS : CUDA_KEYS;
    TensorImpl *made = record ? impl_make(Py_NewRef(storage), sizes, strides, storage_offset, dtype, device, keys,
                                          new_version()) : NULL;
    if (made)
        enter_mode(made, record);
    return made;
}

static int check_tuples(PyObject *sizes, PyObject *strides)
{
    if (PyTuple_Check(sizes) && PyTuple_Check(strides) && PyTuple_GET_SIZE(sizes) == PyTuple_GET_SIZE(strides))
        return 0;
    PyErr_Format(PyExc_TypeError, "TensorImpl: sizes and strides must be tuples of one length, got %R and %R", sizes, strides);
    return -1;
}

static PyObject *impl_new(PyTypeObject *Py_UNUSED(type), PyObject *arguments, PyObject *keywords)
{
    static char *names[] = {"storage", "sizes", "strides", "storage_offset", "element_type", "where", "key_set", "version", NULL};
    PyObject *storage, *sizes, *strides, *position, *dtype, *device, *version = Py_None;
    Py_ssize_t offset;
    unsigned long key_set;
    if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O!OOOOOk|O:TensorImpl", names, &StorageImpl_Type, &storage, &sizes,
                                     &strides, &position, &dtype, &device, &key_set, &version))
        return NULL;
    if (check_tuples(sizes, strides) < 0 || read_offset(position, &offset) < 0)
        return NULL;
    if (version != Py_None && !Py_IS_TYPE(version, &VersionCounter_Type))
        return PyErr_Format(PyExc_TypeError, "TensorImpl: version must be a VersionCounter, got %.200s", Py_TYPE(version)->tp_name);
    TensorImpl *made = impl_make(Py_NewRef(storage), sizes, strides, offset, dtype, device, key_set,
                                 version == Py_None ? new_version() : Py_NewRef(version));
    if (made)
        keep_symbolic_offset(made, position);
    return (PyObject *)made;
}

/* Clear what was computed from sizes and strides. */
static void forget_geometry(TensorImpl *self)
{
    Py_CLEAR(self->array);
    self->numel = self->contiguous = -1;
}

static PyObject *get_sizes(TensorImpl *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->sizes); }
static PyObject *get_strides(TensorImpl *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->strides); }
static PyObject *get_storage(TensorImpl *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->storage); }
static PyObject *get_version(TensorImpl *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->version); }

static PyObject *none_for_null(PyObject *field) { return Py_NewRef(field ? field : Py_None); }
static PyObject *get_autograd(TensorImpl *self, void *Py_UNUSED(closure)) { return none_for_null(self->autograd); }
static PyObject *get_view(TensorImpl *self, void *Py_UNUSED(closure)) { return none_for_null(self->view); }

static int set_field(PyObject **field, PyObject *value, PyTypeObject *type, int optional, const char *name)
{
    if (!value || !(PyObject_TypeCheck(value, type) || (optional && value == Py_None))) {
        PyErr_Format(PyExc_TypeError, "TensorImpl.%s must be a %s%s", name, strrchr(type->tp_name, '.') ?
                     strrchr(type->tp_name, '.') + 1 : type->tp_name, optional ? " or None" : "");
        return -1;
    }
    Py_XSETREF(*field, Py_NewRef(value));
    return 0;
}

static int set_tuple(TensorImpl *self, PyObject **field, PyObject *value, const char *name)
{
    if (set_field(field, value, &PyTuple_Type, 0, name) < 0)
        return -1;
    forget_geometry(self);
    return 0;
}

static int set_sizes(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    return set_tuple(self, &self->sizes, value, "sizes");
}

static int set_strides(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    return set_tuple(self, &self->strides, value, "strides");
}

static int set_storage(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    forget_geometry(self);
    return set_field(&self->storage, value, &StorageImpl_Type, 0, "storage");
}

static int set_version(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    return set_field(&self->version, value, &VersionCounter_Type, 0, "version");
}

static int set_autograd(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    return set_field(&self->autograd, value, &AutogradMeta_Type, 1, "autograd");
}

static int set_view(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    return set_field(&self->view, value, &ViewMeta_Type, 1, "view");
}

static PyObject *get_dtype(TensorImpl *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->dtype); }
static PyObject *get_device(TensorImpl *self, void *Py_UNUSED(closure)) { return Py_NewRef(self->device); }

static int set_dtype(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (set_field(&self->dtype, value, &PyBaseObject_Type, 0, "dtype") < 0)
        return -1;
    self->key_set = keys_for(self->dtype, self->key_set);
    return 0;
}

static int set_device(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    return set_field(&self->device, value, &PyBaseObject_Type, 0, "device");
}

static PyObject *get_offset(TensorImpl *self, void *Py_UNUSED(closure))
{
    return self->symbolic_offset ? Py_NewRef(self->symbolic_offset) : PyLong_FromSsize_t(self->storage_offset);
}

static int set_offset(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    Py_ssize_t offset;
    if (!value) {
        PyErr_SetString(PyExc_TypeError, "TensorImpl.storage_offset cannot be deleted");
        return -1;
    }
    if (read_offset(value, &offset) < 0)
        return -1;
    self->storage_offset = offset;
    keep_symbolic_offset(self, value);
    Py_CLEAR(self->array);
    return 0;
}

static PyObject *get_numel(TensorImpl *self, void *Py_UNUSED(closure))
{
    return self->fake ? count_symbolic(self->sizes) : PyLong_FromSsize_t(impl_numel(self));
}

static PyObject *get_requires_grad(TensorImpl *self, void *Py_UNUSED(closure)) { return PyBool_FromLong(requires_grad(self)); }

/* Return the array over a row-major tensor; NULL without an exception to let Python make it. */
static PyObject *row_major_array(TensorImpl *self)
{
    StorageImpl *storage = (StorageImpl *)self->storage;
    if (self->fake || !configuration.ndarray || impl_numel(self) == 0 || !impl_is_contiguous(self) ||
        !Py_IS_TYPE(storage, &StorageImpl_Type) || !(storage->capacity || storage->buffer) ||
        storage->device != configuration.cpu)
        return NULL;
    int itemsize = itemsize_of(self->dtype);
    PyObject *kind = itemsize < 0 ? NULL : PyObject_GetAttr(self->dtype, configuration.numpy_name);
    PyObject *buffer = kind ? storage_buffer(storage) : NULL;
    PyObject *offset = buffer ? PyLong_FromSsize_t(self->storage_offset * itemsize) : NULL;
    PyObject *made = offset ? PyObject_CallFunctionObjArgs(configuration.ndarray, self->sizes, kind, buffer, offset, NULL) : NULL;
    Py_XDECREF(kind);
    Py_XDECREF(buffer);
    Py_XDECREF(offset);
    return made;
}

static PyObject *get_array(TensorImpl *self, void *Py_UNUSED(closure))
{
    if (self->key_set & LAZY_BITS) {
        PyErr_SetString(PyExc_RuntimeError, "the memory of a view does not hold the conjugate or the negative that it stands "
                                            "for: resolve_conj() and resolve_neg() make a tensor that does");
        return NULL;
    }
    int generation = ((StorageImpl *)self->storage)->generation;
    if (self->array && self->array_generation == generation)
        return Py_NewRef(self->array);
    PyObject *made = row_major_array(self);
    if (!made && !PyErr_Occurred())
        made = PyObject_CallOneArg(configuration.make_array, (PyObject *)self);
    if (made) {
        Py_XSETREF(self->array, Py_NewRef(made)); /* another thread may have set it meanwhile */
        self->array_generation = generation;
    }
    return made;
}

static int set_array(TensorImpl *self, PyObject *value, void *Py_UNUSED(closure))
{
    Py_XSETREF(self->array, is_set(value) ? Py_NewRef(value) : NULL);
    self->array_generation = ((StorageImpl *)self->storage)->generation;
    return 0;
}

static PyObject *get_data_ptr(TensorImpl *self, void *Py_UNUSED(closure))
{
    char *data = storage_data((StorageImpl *)self->storage);
    int itemsize = !data && PyErr_Occurred() ? -1 : itemsize_of(self->dtype);
    return itemsize < 0 ? NULL : PyLong_FromVoidPtr(data + self->storage_offset * itemsize);
}

static PyGetSetDef impl_getset[] = {
    {"storage", (getter)get_storage, (setter)set_storage, "The StorageImpl.", NULL},
    {"sizes", (getter)get_sizes, (setter)set_sizes, "The sizes, a tuple.", NULL},
    {"strides", (getter)get_strides, (setter)set_strides, "The strides in elements, a tuple.", NULL},
    {"storage_offset", (getter)get_offset, (setter)set_offset, "The offset of the first element, in elements.", NULL},
    {"dtype", (getter)get_dtype, (setter)set_dtype, "The element type.", NULL},
    {"device", (getter)get_device, (setter)set_device, "Where the elements lie.", NULL},
    {"version", (getter)get_version, (setter)set_version, "The VersionCounter.", NULL},
    {"autograd", (getter)get_autograd, (setter)set_autograd, "The AutogradMeta, or None.", NULL},
    {"view", (getter)get_view, (setter)set_view, "The ViewMeta, or None.", NULL},
    {"numel", (getter)get_numel, NULL, "The number of elements.", NULL},
    {"requires_grad", (getter)get_requires_grad, NULL,
     "Whether autograd records what is done with this tensor; a view also takes part if its base does.", NULL},
    {"array", (getter)get_array, (setter)set_array,
     "The elements as a NumPy array over the same memory; RuntimeError where there is no data.", NULL},
    {"data_ptr", (getter)get_data_ptr, NULL, "The address of the first element.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef impl_members[] = {
    {"key_set", T_ULONG, offsetof(TensorImpl, key_set), 0, "A mask of dispatch keys."},
    {"inference", T_BOOL, offsetof(TensorImpl, inference), 0, "Whether it was made in inference mode."},
    {"fake", T_BOOL, offsetof(TensorImpl, fake), 0, "Whether it stands for a tensor while a program is captured."},
    {NULL, 0, 0, 0, NULL},
};

static PyObject *is_contiguous(TensorImpl *self, PyObject *Py_UNUSED(ignored))
{
    int answer = self->fake ? lies_row_major_symbolically(self->sizes, self->strides) : impl_is_contiguous(self);
    return answer < 0 ? NULL : PyBool_FromLong(answer);
}

static PyObject *alias(TensorImpl *self, PyObject *arguments)
{
    PyObject *sizes, *strides, *position;
    Py_ssize_t offset;
    if (!PyArg_ParseTuple(arguments, "OOO:alias", &sizes, &strides, &position) || check_tuples(sizes, strides) < 0 ||
        read_offset(position, &offset) < 0)
        return NULL;
    TensorImpl *made = impl_alias(self, sizes, strides, offset);
    if (made)
        keep_symbolic_offset(made, position);
    return (PyObject *)made;
}

static PyObject *replace_geometry(TensorImpl *self, PyObject *arguments)
{
    PyObject *storage, *sizes, *strides, *position;
    Py_ssize_t offset;
    if (!PyArg_ParseTuple(arguments, "O!OOO:replace_geometry", &StorageImpl_Type, &storage, &sizes, &strides, &position) ||
        check_tuples(sizes, strides) < 0 || read_offset(position, &offset) < 0)
        return NULL;
    Py_SETREF(self->storage, Py_NewRef(storage));
    Py_SETREF(self->sizes, Py_NewRef(sizes));
    Py_SETREF(self->strides, Py_NewRef(strides));
    self->storage_offset = offset;
    keep_symbolic_offset(self, position);
    forget_geometry(self);
    Py_RETURN_NONE;
}

static PyMethodDef impl_method_table[] = {
    {"is_contiguous", (PyCFunction)is_contiguous, METH_NOARGS, "Whether the elements lie row-major without gaps."},
    {"alias", (PyCFunction)alias, METH_VARARGS,
     "alias(sizes, strides, storage_offset)\n\nAn impl over the same storage that shares the version counter and no autograd state."},
    {"replace_geometry", (PyCFunction)replace_geometry, METH_VARARGS,
     "replace_geometry(storage, sizes, strides, storage_offset)\n\n"
     "Point this impl at other memory or another shape (`set_`, `resize_`, swapping a parameter's data)."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject TensorImpl_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "rushlight._C.TensorImpl",
    .tp_basicsize = sizeof(TensorImpl),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc = "TensorImpl(storage, sizes, strides, storage_offset, element_type, where, key_set, version=None)\n--\n\n"
              "The state behind a Tensor handle. Sizes, strides and offset are in elements; `key_set` is a dispatch-key mask.",
    .tp_new = impl_new,
    .tp_dealloc = (destructor)impl_dealloc,
    .tp_traverse = (traverseproc)impl_traverse,
    .tp_clear = (inquiry)impl_clear,
    .tp_getset = impl_getset,
    .tp_members = impl_members,
    .tp_methods = impl_method_table,
    .tp_weaklistoffset = offsetof(TensorImpl, weak_references),
};

/* Functions of rushlight.core.tensor_impl */

/* Return `sizes` itself if all are ints, else a tuple of their values as ints. */
static PyObject *plain_sizes(PyObject *sizes)
{
    Py_ssize_t count = PyTuple_GET_SIZE(sizes), plain = 0;
    while (plain < count && PyLong_Check(PyTuple_GET_ITEM(sizes, plain)))
        plain++;
    if (plain == count)
        return Py_NewRef(sizes);
    PyObject *made = PyTuple_New(count);
    for (Py_ssize_t i = 0; made && i < count; i++) {
        PyObject *size = PyNumber_Index(PyTuple_GET_ITEM(sizes, i));
        if (!size)
            Py_CLEAR(made);
        else
            PyTuple_SET_ITEM(made, i, size);
    }
    return made;
}

static PyObject *empty_impl(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    if (count < 2 || count > 3 || !PyTuple_Check(arguments[0]))
        return PyErr_Format(PyExc_TypeError, "empty_impl: expected (sizes: tuple, dtype, strides: tuple | None = None)");
    PyObject *given = count == 3 && arguments[2] != Py_None ? arguments[2] : NULL;
    if (given && check_tuples(arguments[0], given) < 0)
        return NULL;
    PyObject *sizes = plain_sizes(arguments[0]), *strides = NULL;
    if (sizes)
        strides = given && PyTuple_GET_SIZE(given) ? plain_sizes(given) : contiguous_strides(sizes);
    TensorImpl *made = strides ? impl_empty(sizes, strides, arguments[1], -1) : NULL;
    Py_XDECREF(sizes);
    Py_XDECREF(strides);
    return (PyObject *)made;
}

static PyObject *wrap(PyObject *Py_UNUSED(module), PyObject *impl)
{
    if (!Py_IS_TYPE(impl, &TensorImpl_Type))
        return PyErr_Format(PyExc_TypeError, "wrap: expected a TensorImpl, got %.200s", Py_TYPE(impl)->tp_name);
    return tensor_wrap((TensorImpl *)impl);
}

PyMethodDef tensor_methods[] = {
    {"empty_impl", (PyCFunction)(void (*)(void))empty_impl, METH_FASTCALL,
     "empty_impl(sizes, element_type, strides=None, /) -> TensorImpl\n\n"
     "An uninitialised CPU impl; row-major unless `strides` are given (they must fit the sizes without gaps)."},
    {"wrap", wrap, METH_O, "wrap(impl, /) -> Tensor\n\nA handle for `impl`."},
    {NULL, NULL, 0, NULL},
};
