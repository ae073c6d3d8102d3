/* What the files of rushlight._C share. Each file offers one PyMethodDef table (and its types); module.c joins them.

   To add a file: declare its table here, list it in `method_tables` in module.c. The build takes every *.c here. */
#ifndef RUSHLIGHT_MODULE_H
#define RUSHLIGHT_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

typedef struct {
    PyTypeObject *block_type;
} ModuleState;

static inline ModuleState *module_state(PyObject *module) { return (ModuleState *)PyModule_GetState(module); }

extern PyType_Spec block_spec;
extern PyMethodDef block_methods[];
extern PyMethodDef launch_methods[];
extern PyMethodDef cpu_features_methods[];

#endif
