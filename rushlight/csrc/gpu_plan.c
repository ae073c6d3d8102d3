/* LaunchPlan: running. Memory for results is allocated first, then all kernels are put on the thread's stream without the
   interpreter lock, then results are made. `gpu_plan_make.c` reads a plan's description. */
#include "gpu_plan.h"

#include <string.h>

enum { VALUES_ON_STACK = 64, SLOTS_ON_STACK = 32 };

/* What one run works with. */
typedef struct {
    uint64_t stream;
    uint64_t few_addresses[SLOTS_ON_STACK], *addresses; /* the addresses of all slots */
    PyObject *few_storages[SLOTS_ON_STACK], **storages; /* owned: of the allocated slots */
    uint64_t few_values[VALUES_ON_STACK], *values;
    void *few_pointers[VALUES_ON_STACK], **pointers; /* to `values` */
    Py_ssize_t allocated;
} Run;

static void *room(void *few, size_t available, size_t count, size_t size)
{
    return count <= available ? few : PyMem_Malloc(count * size);
}

static int run_reserve(Run *run, const LaunchPlan *plan)
{
    size_t slots = (size_t)(plan->input_count + plan->memory_count), values = (size_t)plan->value_count;
    run->allocated = 0;
    run->stream = plan_stream(plan);
    run->addresses = room(run->few_addresses, SLOTS_ON_STACK, slots, sizeof(uint64_t));
    run->storages = room(run->few_storages, SLOTS_ON_STACK, (size_t)plan->memory_count, sizeof(PyObject *));
    run->values = room(run->few_values, VALUES_ON_STACK, values, sizeof(uint64_t));
    run->pointers = room(run->few_pointers, VALUES_ON_STACK, values, sizeof(void *));
    if (run->addresses && run->storages && run->values && run->pointers)
        return 0;
    PyErr_NoMemory();
    return -1;
}

static void run_release(Run *run)
{
    for (Py_ssize_t i = 0; i < run->allocated; i++)
        Py_DECREF(run->storages[i]);
    if (run->addresses != run->few_addresses)
        PyMem_Free(run->addresses);
    if (run->storages != run->few_storages)
        PyMem_Free(run->storages);
    if (run->values != run->few_values)
        PyMem_Free(run->values);
    if (run->pointers != run->few_pointers)
        PyMem_Free(run->pointers);
}

/* Read the address of an input; -1 with an exception set if it lacks memory. */
static int read_input(const LaunchPlan *plan, PyObject *tensor, Py_ssize_t position, uint64_t *address)
{
    TensorImpl *impl = impl_of(tensor);
    if (!impl || impl->device != plan->place || !Py_IS_TYPE(impl->storage, &StorageImpl_Type)) {
        PyErr_Format(PyExc_RuntimeError, "input %zd of a launch plan must be a tensor on %S", position, plan->place);
        return -1;
    }
    int itemsize = itemsize_of(impl->dtype);
    char *data = itemsize < 0 ? NULL : storage_data((StorageImpl *)impl->storage);
    if (!data && PyErr_Occurred())
        return -1;
    Py_ssize_t nbytes = ((StorageImpl *)impl->storage)->nbytes, reach = plan->reaches[position];
    if (reach && (!data || impl->storage_offset < 0 || nbytes < reach || impl->storage_offset > (nbytes - reach) / itemsize)) {
        PyErr_Format(PyExc_RuntimeError, "input %zd of the compiled graph needs a storage of %zd bytes behind its first element",
                     position, reach);
        return -1;
    }
    *address = (uint64_t)(uintptr_t)data + (uint64_t)(impl->storage_offset * itemsize);
    return 0;
}

static int read_inputs(Run *run, const LaunchPlan *plan, PyObject *const *inputs)
{
    for (Py_ssize_t i = 0; i < plan->input_count; i++)
        if (read_input(plan, inputs[i], i, &run->addresses[i]) < 0)
            return -1;
    return 0;
}

static int allocate(Run *run, const LaunchPlan *plan)
{
    for (; run->allocated < plan->memory_count; run->allocated++) {
        StorageImpl *made = heap_storage(plan->heap, plan->memory[run->allocated], run->stream, plan->place);
        if (!made)
            return -1;
        run->storages[run->allocated] = (PyObject *)made;
        run->addresses[plan->input_count + run->allocated] = (uint64_t)(uintptr_t)made->data;
    }
    for (Py_ssize_t i = 0; i < plan->value_count; i++) {
        const PlannedValue *value = &plan->values[i];
        run->values[i] = (value->slot < 0 ? 0 : run->addresses[value->slot]) + (uint64_t)value->offset;
        run->pointers[i] = &run->values[i];
    }
    return 0;
}

/* Make the plan's device the driver's current one for this thread. */
static int use_device(const LaunchPlan *plan)
{
    if (gpu_thread.owner == plan->owner && gpu_thread.in_use == plan->index)
        return 0;
    PyObject *used = PyObject_CallMethod(plan->device, "use", NULL);
    Py_XDECREF(used);
    return used ? 0 : -1;
}

static int note_reason(const LaunchPlan *plan)
{
    return plan->reason ? PyDict_SetItem(plan->failing, plan->reason, Py_None) : 0;
}

/* Do steps with entries in the driver, up to the first one without; return the driver's status. */
static int do_native_steps(const Run *run, const LaunchPlan *plan, Py_ssize_t *position)
{
    void *stream = (void *)(uintptr_t)run->stream;
    for (; *position < plan->step_count; (*position)++) {
        const PlannedStep *step = &plan->steps[*position];
        const uint64_t *values = run->values + step->first;
        int status;
        if (step->kernel ? !step->entry : !plan->copy)
            return 0;
        if (step->kernel)
            status = step->entry(step->function, step->grid[0], step->grid[1], step->grid[2], step->threads, 1, 1, step->shared,
                                 stream, run->pointers + step->first, NULL);
        else
            status = plan->copy(values[0], values[1], (size_t)values[2], stream);
        if (status)
            return status;
    }
    return 0;
}

/* Do a step by Python methods. */
static int do_python_step(const Run *run, const LaunchPlan *plan, const PlannedStep *step)
{
    const uint64_t *values = run->values + step->first;
    PyObject *done;
    if (!step->kernel)
        done = PyObject_CallMethod(plan->driver, "copy_on_device", "KKKK", values[0], values[1], values[2], run->stream);
    else {
        PyObject *arguments = PyTuple_New(step->count);
        for (Py_ssize_t i = 0; arguments && i < step->count; i++) {
            /* Numbers are signed; addresses are not. */
            PyObject *item = plan->values[step->first + i].slot < 0 ? PyLong_FromLongLong((long long)values[i])
                                                                    : PyLong_FromUnsignedLongLong(values[i]);
            if (!item)
                Py_CLEAR(arguments);
            else
                PyTuple_SET_ITEM(arguments, i, item);
        }
        done = arguments ? PyObject_CallMethod(step->kernel, "launch", "K(III)NO", run->stream, step->grid[0], step->grid[1],
                                               step->grid[2], arguments, step->constants) : NULL;
    }
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int do_steps(const Run *run, const LaunchPlan *plan)
{
    for (Py_ssize_t position = 0; position < plan->step_count; position++) {
        int status = 0;
        Py_BEGIN_ALLOW_THREADS /* the driver waits while its queue is full */
        status = do_native_steps(run, plan, &position);
        Py_END_ALLOW_THREADS
        if (status) {
            const char *name = plan->steps[position].kernel ? "cuLaunchKernel" : "cuMemcpyAsync";
            PyObject *failed = PyObject_CallMethod(plan->driver, "fail", "si", name, status);
            Py_XDECREF(failed);
            if (failed)
                PyErr_Format(PyExc_RuntimeError, "CUDA error: a launch failed with status %d", status);
            return -1;
        }
        if (position < plan->step_count && do_python_step(run, plan, &plan->steps[position]) < 0)
            return -1;
    }
    return 0;
}

static PyObject *make_output(const Run *run, const LaunchPlan *plan, const PlannedOutput *output, PyObject *const *inputs)
{
    switch (output->kind) {
    case OUTPUT_MEMORY:
        return tensor_wrap_new(impl_over(run->storages[output->slot - plan->input_count], output->sizes, output->strides,
                                         output->offset, output->object));
    case OUTPUT_INPUT: return Py_NewRef(inputs[output->slot]);
    case OUTPUT_OBJECT: return Py_NewRef(output->object);
    default: {
        const TensorImpl *impl = impl_of(inputs[output->slot]);
        return impl ? PyObject_CallMethod(inputs[output->slot], "as_strided", "OOn", output->sizes, output->strides,
                                          impl->storage_offset + output->offset)
                    : PyErr_Format(PyExc_TypeError, "a result of a launch plan is a view of no tensor");
    }
    }
}

static PyObject *make_outputs(const Run *run, const LaunchPlan *plan, PyObject *const *inputs, int is_single)
{
    if (is_single)
        return make_output(run, plan, &plan->outputs[0], inputs);
    PyObject *results = PyTuple_New(plan->output_count);
    for (Py_ssize_t i = 0; results && i < plan->output_count; i++) {
        PyObject *result = make_output(run, plan, &plan->outputs[i], inputs);
        if (!result)
            Py_CLEAR(results);
        else
            PyTuple_SET_ITEM(results, i, result);
    }
    return results;
}

static PyObject *run_plan(LaunchPlan *plan, PyObject *const *inputs, int is_single)
{
    if (plan->generation != gpu_plan_generation || (is_single && plan->output_count != 1)) {
        PyErr_SetString(PyExc_RuntimeError, "a launch plan is for a former driver or the parent process, or has several results");
        return NULL;
    }
    Run run;
    PyObject *results = NULL;
    Py_INCREF(plan);
    if (run_reserve(&run, plan) == 0 && use_device(plan) == 0 && read_inputs(&run, plan, inputs) == 0 &&
        allocate(&run, plan) == 0 && note_reason(plan) == 0 && do_steps(&run, plan) == 0)
        results = make_outputs(&run, plan, inputs, is_single);
    run_release(&run);
    Py_DECREF(plan);
    return results;
}

PyObject *plan_run(LaunchPlan *plan, PyObject *const *inputs) { return run_plan(plan, inputs, 0); }

PyObject *plan_run_single(LaunchPlan *plan, PyObject *const *inputs) { return run_plan(plan, inputs, 1); }

int plan_is_capturing(const LaunchPlan *plan, uint64_t stream)
{
    int status = 0;
    if (!stream)
        return 0; /* the default stream cannot be captured */
    if (plan->is_capturing && plan->is_capturing((void *)(uintptr_t)stream, &status) == 0)
        return status != 0;
    PyObject *found = PyObject_CallMethod(plan->driver, "is_capturing", "K", stream);
    int answer = found ? PyObject_IsTrue(found) : -1;
    Py_XDECREF(found);
    return answer;
}
