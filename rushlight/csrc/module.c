/* The extension module rushlight._C: the mechanism below rushlight.core. Policy belongs in Python. */
#include "module.h"

#include "allocator.h"

static PyMethodDef *const method_tables[] = {
    block_methods,   launch_methods,      gpu_launch_methods,   cpu_features_methods, configuration_methods, checksum_methods,
    storage_methods, elementwise_methods, tensor_methods,       optimizer_methods,    region_methods, cache_entry_methods, tail_call_methods,
    accumulate_methods, engine_methods,   dispatch_methods,     compiled_history_methods, machine_methods,
    gpu_thread_methods,
};

static PyTypeObject *const types[] = {
    &StorageImpl_Type,    &VersionCounter_Type,    &AutogradMeta_Type,      &ViewMeta_Type,   &TensorImpl_Type,
    &TensorBase_Type,     &ThreadState_Type,       &OperatorBase_Type,      &PacketBase_Type, &BinaryMethod_Type,
    &AutogradKernel_Type, &ViewOrWriteKernel_Type, &ElementwiseKernel_Type, &NodeBase_Type,   &OperatorNode_Type,
    &SavedTensorBase_Type, &AccumulateNode_Type, &GuardTree_Type, &GraphLaunch_Type, &PreparedConstants_Type, &CacheEntry_Type, &FrameView_Type, &TailCall_Type, &ViewKernel_Type, &ConcatenateKernel_Type,
    &MersenneTwister_Type, &CreationKernel_Type, &AttributeChecks_Type, &MachineCode_Type, &Machine_Type,
    &ModuleSlotsBase_Type, &MemoryCounter_Type, &DeviceMemory_Type, &DeviceHeap_Type, &LaunchPlan_Type, &PlannedCalls_Type,
};

static int execute(PyObject *module)
{
    ModuleState *state = module_state(module);
    state->block_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &block_spec, NULL);
    if (!state->block_type || PyModule_AddType(module, state->block_type) < 0)
        return -1;
    block_use_type(state->block_type);
    TensorBase_Type.tp_new = PyBaseObject_Type.tp_new; /* lets Python call object.__new__(Tensor) */
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (PyModule_AddType(module, types[i]) < 0)
            return -1;
    for (size_t i = 0; i < sizeof method_tables / sizeof *method_tables; i++)
        if (PyModule_AddFunctions(module, method_tables[i]) < 0)
            return -1;
    return slots_initialize();
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    Py_VISIT(module_state(module)->block_type);
    return 0;
}

static int clear(PyObject *module)
{
    Py_CLEAR(module_state(module)->block_type);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rushlight._C",
    .m_doc = "Memory, tensors and dispatch, launching of compiled kernels, and processor features.",
    .m_size = sizeof(ModuleState),
    .m_slots = slots,
    .m_traverse = traverse,
    .m_clear = clear,
};

PyMODINIT_FUNC PyInit__C(void)
{
    static int initialized;
    if (!initialized) {
        allocator_initialize();
        initialized = 1;
    }
    return PyModuleDef_Init(&definition);
}
