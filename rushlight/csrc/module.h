/* Declarations that the files of rushlight._C share.

   Each file defines one PyMethodDef table (and its types); module.c registers them. To add a file, declare its table here, and
   list it in `method_tables` in module.c. The build takes every *.c file of this folder. */
#ifndef RUSHLIGHT_MODULE_H
#define RUSHLIGHT_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    PyTypeObject *block_type;
} ModuleState;

static inline ModuleState *module_state(PyObject *module) { return (ModuleState *)PyModule_GetState(module); }

extern PyType_Spec block_spec;
void block_use_type(PyTypeObject *type);
int block_is(PyObject *object); /* whether it is a Block */
/* Make a Block that owns memory of the allocator. On failure, return NULL with an exception set; the memory is then the caller's. */
PyObject *block_make(void *memory, size_t capacity, Py_ssize_t nbytes);

extern PyMethodDef block_methods[];
extern PyMethodDef launch_methods[];
extern PyMethodDef gpu_launch_methods[];
extern PyMethodDef gpu_thread_methods[];
extern PyMethodDef cpu_features_methods[];
extern PyMethodDef checksum_methods[];
extern PyMethodDef configuration_methods[];
extern PyMethodDef storage_methods[];
extern PyMethodDef tensor_methods[];
extern PyMethodDef elementwise_methods[];
extern PyMethodDef optimizer_methods[];
extern PyMethodDef region_methods[];
extern PyMethodDef cache_entry_methods[];
extern PyMethodDef tail_call_methods[];
extern PyMethodDef accumulate_methods[];
extern PyMethodDef engine_methods[];
extern PyMethodDef dispatch_methods[];
extern PyMethodDef compiled_history_methods[];
extern PyMethodDef machine_methods[];

/* Request CPython's extra slot of code objects for the frame hook's state; -1 with an exception set. */
int slots_initialize(void);

/* Static types, shared by all module objects: C code compares their addresses. */
extern PyTypeObject StorageImpl_Type;
extern PyTypeObject VersionCounter_Type;
extern PyTypeObject AutogradMeta_Type;
extern PyTypeObject ViewMeta_Type;
extern PyTypeObject TensorImpl_Type;
extern PyTypeObject TensorBase_Type;
extern PyTypeObject ThreadState_Type;
extern PyTypeObject OperatorBase_Type;
extern PyTypeObject PacketBase_Type;
extern PyTypeObject BinaryMethod_Type;
extern PyTypeObject AutogradKernel_Type;
extern PyTypeObject ViewOrWriteKernel_Type;
extern PyTypeObject ElementwiseKernel_Type;
extern PyTypeObject ViewKernel_Type;
extern PyTypeObject ConcatenateKernel_Type;
extern PyTypeObject MersenneTwister_Type;
extern PyTypeObject CreationKernel_Type;
extern PyTypeObject AttributeChecks_Type;
extern PyTypeObject NodeBase_Type;
extern PyTypeObject OperatorNode_Type;
extern PyTypeObject SavedTensorBase_Type;
extern PyTypeObject AccumulateNode_Type;
extern PyTypeObject GuardTree_Type;
extern PyTypeObject GraphLaunch_Type;
extern PyTypeObject PreparedConstants_Type;
extern PyTypeObject CacheEntry_Type;
extern PyTypeObject FrameView_Type;
extern PyTypeObject TailCall_Type;
extern PyTypeObject MachineCode_Type;
extern PyTypeObject Machine_Type;
extern PyTypeObject ModuleSlotsBase_Type;
extern PyTypeObject MemoryCounter_Type;
extern PyTypeObject DeviceMemory_Type;
extern PyTypeObject DeviceHeap_Type;
extern PyTypeObject LaunchPlan_Type;
extern PyTypeObject PlannedCalls_Type;

#endif
