/* Launches of kernels on a GPU, by the driver's cuLaunchKernel, whose address is given: a call by ctypes costs ten times as much.

   Arguments of kernels have at most 64 bits. Each is stored in 64 bits, of which the driver reads as many as the kernel declares. */
#include "module.h"

#include <stdint.h>

enum { MOST_ARGUMENTS = 512, FACTS = 8 }; /* 4096 bytes of arguments, the limit of all drivers */

typedef int (*Launcher)(void *function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                        void *stream, void **arguments, void **extra);

/* Read consecutive numbers of a sequence of Python integers; negative ones in two's complement. */
static int read_numbers(PyObject *const *items, Py_ssize_t count, uint64_t *numbers)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        numbers[i] = PyLong_AsUnsignedLongLongMask(items[i]);
        if (numbers[i] == (uint64_t)-1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

static PyObject *launch_on_gpu(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    uint64_t facts[FACTS], numbers[MOST_ARGUMENTS];
    void *addresses[MOST_ARGUMENTS];
    if (count != FACTS + 1 || !PyTuple_Check(arguments[FACTS])) {
        PyErr_SetString(PyExc_TypeError, "launch_on_gpu() takes 8 integers and a tuple");
        return NULL;
    }
    Py_ssize_t size = PyTuple_GET_SIZE(arguments[FACTS]);
    if (size > MOST_ARGUMENTS) {
        PyErr_Format(PyExc_ValueError, "a kernel takes at most %d arguments here, got %zd", MOST_ARGUMENTS, size);
        return NULL;
    }
    if (read_numbers(arguments, FACTS, facts) < 0 || read_numbers(&PyTuple_GET_ITEM(arguments[FACTS], 0), size, numbers) < 0)
        return NULL;
    for (Py_ssize_t i = 0; i < size; i++)
        addresses[i] = &numbers[i];
    Launcher launch = (Launcher)(uintptr_t)facts[0];
    void *function = (void *)(uintptr_t)facts[1], *stream = (void *)(uintptr_t)facts[7];
    int status;
    Py_BEGIN_ALLOW_THREADS /* the driver waits while its queue is full */
    status = launch(function, (unsigned)facts[2], (unsigned)facts[3], (unsigned)facts[4], (unsigned)facts[5], 1, 1,
                    (unsigned)facts[6], stream, addresses, NULL);
    Py_END_ALLOW_THREADS
    return PyLong_FromLong(status);
}

PyMethodDef gpu_launch_methods[] = {
    {"launch_on_gpu", (PyCFunction)(void (*)(void))launch_on_gpu, METH_FASTCALL,
     "launch_on_gpu(entry: int, function: int, x: int, y: int, z: int, threads: int, shared: int, stream: int, "
     "arguments: tuple, /) -> int\n\n"
     "Call cuLaunchKernel, whose address is `entry`, with a grid of x * y * z programs; return its status."},
    {NULL, NULL, 0, NULL},
};
