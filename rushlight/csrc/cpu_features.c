/* The vector instructions that this processor and its operating system offer. */
#include "module.h"

enum { MAX_FEATURES = 8 };

/* __builtin_cpu_supports wants a literal, hence one line per feature. */
static int detect(const char **names)
{
    int count = 0;
#if defined(__x86_64__) || defined(__i386__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) names[count++] = "avx2";
    if (__builtin_cpu_supports("fma")) names[count++] = "fma";
    if (__builtin_cpu_supports("avx512f")) names[count++] = "avx512f";
    if (__builtin_cpu_supports("avx512bw")) names[count++] = "avx512bw";
    if (__builtin_cpu_supports("avx512vl")) names[count++] = "avx512vl";
    if (__builtin_cpu_supports("avx512bf16")) names[count++] = "avx512_bf16";
    if (__builtin_cpu_supports("avx512vnni")) names[count++] = "avx512_vnni";
#elif defined(__ARM_NEON)
    names[count++] = "neon";
#endif
    return count;
}

static PyObject *cpu_features(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    const char *names[MAX_FEATURES];
    int count = detect(names);
    PyObject *result = PyTuple_New(count);
    if (!result)
        return NULL;
    for (int i = 0; i < count; i++) {
        PyObject *name = PyUnicode_FromString(names[i]);
        if (!name) {
            Py_DECREF(result);
            return NULL;
        }
        PyTuple_SET_ITEM(result, i, name);
    }
    return result;
}

PyMethodDef cpu_features_methods[] = {
    {"cpu_features", cpu_features, METH_NOARGS,
     "cpu_features() -> tuple[str, ...]\n\nThose of avx2, fma, avx512f, avx512bw, avx512vl, avx512_bf16,\n"
     "avx512_vnni and neon that can be used here, named as in /proc/cpuinfo."},
    {NULL, NULL, 0, NULL},
};
