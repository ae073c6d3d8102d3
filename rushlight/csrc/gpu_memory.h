/* Memory of a GPU: blocks of the driver's memory that are used again in the order of a stream. See rushlight.cuda.allocator. */
#ifndef RUSHLIGHT_GPU_MEMORY_H
#define RUSHLIGHT_GPU_MEMORY_H

#include "tensor_impl.h"

#include <stdint.h>

typedef struct DeviceHeap DeviceHeap;

/* Return an uninitialised storage for work on a stream, from the heap's present pool; NULL with an exception set. */
StorageImpl *heap_storage(DeviceHeap *heap, Py_ssize_t nbytes, uint64_t stream, PyObject *device);

extern PyTypeObject DeviceHeap_Type;
extern PyTypeObject DeviceMemory_Type;
extern PyTypeObject MemoryCounter_Type;

static inline int is_device_heap(PyObject *object) { return PyObject_TypeCheck(object, &DeviceHeap_Type); }

#endif
