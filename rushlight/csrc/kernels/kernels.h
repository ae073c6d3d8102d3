/* The native CPU kernels, as C sees them. Plain C: knows nothing of Python, so any native code may call it from any thread.

   rushlight._kernels exports one RushlightKernels in a capsule of the name RUSHLIGHT_KERNELS_CAPSULE (PyCapsule_Import).
   Functions that return int return 1 if the work is done, and 0 if there is no kernel for these arguments: then nothing was
   written, and the caller does the work in another way. Large work is shared among threads inside. */
#ifndef RUSHLIGHT_KERNELS_H
#define RUSHLIGHT_KERNELS_H

#include <stdint.h>

#define RUSHLIGHT_KERNELS_CAPSULE "rushlight._kernels.table"
#define RUSHLIGHT_KERNELS_VERSION 2

/* Element types, in the order of rushlight.core.dtype.ALL. No native kernel takes complex numbers. */
typedef enum {
    RL_BOOL, RL_UINT8, RL_INT8, RL_INT16, RL_INT32, RL_INT64, RL_FLOAT16, RL_BFLOAT16, RL_FLOAT32, RL_FLOAT64,
    RL_DTYPE_COUNT
} RlDtype;

/* Pointwise operators: name, number of inputs, class. The class says for which types the operator is computed, and the result's
   type if it differs:

     FLOAT32     float32                                   FLOATING    float32 and float64
     NUMBER      FLOATING, int32 and int64                 INTEGER     int32, int64 and bool
     COMPARISON  NUMBER, returns bool                      PREDICATE   FLOATING, returns bool
     LOGICAL     bool, returns bool                        SELECT      NUMBER; the first input is bool

   16-bit floats are computed as float32, smaller integers as int32. Parameters, p below, are doubles. */
#define RL_POINTWISE(X)                                                                                              \
    X(positive, 1, NUMBER) X(neg, 1, NUMBER) X(abs, 1, NUMBER) X(sign, 1, NUMBER) X(relu, 1, NUMBER)                 \
    X(square, 1, NUMBER) X(cube, 1, FLOATING) X(bitwise_not, 1, INTEGER)                                             \
    X(floor, 1, FLOATING) X(ceil, 1, FLOATING) X(round, 1, FLOATING) X(trunc, 1, FLOATING)                           \
    X(sqrt, 1, FLOATING) X(rsqrt, 1, FLOATING) X(reciprocal, 1, FLOATING)                                            \
    X(exp, 1, FLOAT32) X(exp2, 1, FLOAT32) X(expm1, 1, FLOAT32) X(log, 1, FLOAT32) X(log1p, 1, FLOAT32)              \
    X(log2, 1, FLOAT32) X(log10, 1, FLOAT32) X(sin, 1, FLOAT32) X(cos, 1, FLOAT32) X(tan, 1, FLOAT32)                \
    X(tanh, 1, FLOAT32) X(erf, 1, FLOAT32) X(sigmoid, 1, FLOAT32) X(silu, 1, FLOAT32)                                \
    X(gelu, 1, FLOAT32) X(gelu_tanh, 1, FLOAT32)                                                                     \
    X(isnan, 1, PREDICATE) X(isinf, 1, PREDICATE) X(logical_not, 1, LOGICAL)                                         \
    X(add, 2, NUMBER) X(sub, 2, NUMBER) X(mul, 2, NUMBER) X(div, 2, FLOATING)                                        \
    X(add_scaled, 2, NUMBER) /* a + p[0] b */                                                                        \
    X(maximum, 2, NUMBER) X(minimum, 2, NUMBER) X(pow, 2, FLOAT32)                                                   \
    X(floor_divide, 2, NUMBER) X(trunc_divide, 2, NUMBER) X(remainder, 2, NUMBER) X(fmod, 2, NUMBER)                 \
    X(bitwise_and, 2, INTEGER) X(bitwise_or, 2, INTEGER) X(bitwise_xor, 2, INTEGER)                                  \
    X(eq, 2, COMPARISON) X(ne, 2, COMPARISON) X(lt, 2, COMPARISON) X(le, 2, COMPARISON)                              \
    X(gt, 2, COMPARISON) X(ge, 2, COMPARISON)                                                                        \
    X(logical_and, 2, LOGICAL) X(logical_or, 2, LOGICAL) X(logical_xor, 2, LOGICAL)                                  \
    X(threshold_backward, 2, FLOATING) /* of grad, x, threshold p[0] */                                              \
    X(sigmoid_backward, 2, FLOATING) X(tanh_backward, 2, FLOATING) /* of grad, result */                             \
    X(gelu_backward, 2, FLOAT32) X(gelu_tanh_backward, 2, FLOAT32) X(silu_backward, 2, FLOAT32) /* of grad, x */     \
    X(lerp, 2, FLOATING) /* a + p[0] (b - a) */                                                                      \
    X(addcmul, 3, NUMBER) X(addcdiv, 3, FLOATING) /* a + p[0] b c, a + p[0] b / c */                                 \
    X(where, 3, SELECT)

typedef enum {
#define RL_CODE(name, inputs, class) RL_POINTWISE_##name,
    RL_POINTWISE(RL_CODE)
#undef RL_CODE
        RL_POINTWISE_COUNT
} RlPointwise;

enum { RL_MAX_INPUTS = 3, RL_MAX_PARAMETERS = 2, RL_MAX_DIMENSIONS = 32 };

/* Optimizers: name, option struct, state tensors, scalars, class. SPANS are elementwise and can be split anywhere; MATRICES
   need whole row-major parameters. The option structs below document the states and scalars. */
#define RL_OPTIMIZERS(X)                                                                                             \
    X(sgd, RlSgd, 1, 1, SPANS) X(adam, RlAdam, 3, 1, SPANS) X(rmsprop, RlRmsprop, 3, 1, SPANS)                       \
    X(adagrad, RlAdagrad, 1, 1, SPANS) X(adadelta, RlAdadelta, 2, 1, SPANS) X(adamax, RlAdamax, 2, 1, SPANS)         \
    X(nadam, RlNadam, 2, 2, SPANS) X(radam, RlRadam, 2, 1, SPANS) X(asgd, RlAsgd, 1, 3, SPANS)                       \
    X(rprop, RlRprop, 2, 1, SPANS) X(adafactor, RlAdafactor, 3, 1, MATRICES)

typedef enum {
#define RL_CODE(name, options, states, scalars, class) RL_OPTIMIZER_##name,
    RL_OPTIMIZERS(RL_CODE)
#undef RL_CODE
        RL_OPTIMIZER_COUNT
} RlOptimizer;

enum { RL_MAX_STATES = 3, RL_MAX_SCALARS = 3 };

/* One parameter of an optimizer, with its gradient and its states, all of the same dtype and layout. States that the options do
   not need are NULL. An optimizer step writes to the parameter, its states and its scalars. */
typedef struct {
    void *parameter;
    const void *gradient;
    void *states[RL_MAX_STATES];
    int dtype;
    int64_t count, rows, columns; /* elements; the last two dimensions, or 0 if there are fewer (MATRICES) */
    double scalars[RL_MAX_SCALARS]; /* the first is the number of steps so far */
} RlParameter;

/* The options of each optimizer, as in rushlight.optim; flags are 0 or 1. The comment at each struct lists the optimizer's state
   tensors and, after a semicolon, its scalars. */
typedef struct {
    double lr, momentum, dampening, weight_decay, nesterov, maximize;
/* state: momentum_buffer, uninitialised while the number of steps is 0; SGD does not advance that number */
} RlSgd;

typedef struct {
    double lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize;
} RlAdam; /* exp_avg, exp_avg_sq, max_exp_avg_sq (with amsgrad) */

typedef struct {
    double lr, alpha, eps, weight_decay, momentum, maximize;
} RlRmsprop; /* square_avg, momentum_buffer (with momentum), grad_avg (centered) */

typedef struct {
    double lr, lr_decay, eps, weight_decay, maximize;
} RlAdagrad; /* sum */

typedef struct {
    double lr, rho, eps, weight_decay, maximize;
} RlAdadelta; /* square_avg, acc_delta */

typedef struct {
    double lr, beta1, beta2, eps, weight_decay, maximize;
} RlAdamax; /* exp_avg, exp_inf */

typedef struct {
    double lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize;
} RlNadam; /* exp_avg, exp_avg_sq; step, mu_product */

typedef struct {
    double lr, beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize;
} RlRadam; /* exp_avg, exp_avg_sq */

typedef struct {
    double lr, lambd, alpha, t0, weight_decay, maximize;
} RlAsgd; /* ax; step, eta, mu */

typedef struct {
    double shrink, grow, smallest, largest, maximize;
} RlRprop; /* prev, step_size */

typedef struct {
    double lr, beta2_decay, eps, min_scale, threshold, weight_decay, maximize;
} RlAdafactor; /* variance, or row_var and col_var; eps NaN stands for the dtype's own */

typedef struct {
    uint32_t version; /* RUSHLIGHT_KERNELS_VERSION; check it before anything else */
    const char *instructions; /* "baseline", "avx2" or "avx512": the set chosen for this processor */

    /* out[i] = code(inputs[0][i], ...), contiguous, i < count. Inputs and out have type `dtype`, except that the first input of
       `where` is bool, and out is bool if the class says so. If bit i of `scalars` is set, inputs[i] is a single element.
       `parameters` may be NULL if the operator has none. out may be one of the inputs. */
    int (*pointwise)(int code, int dtype, const void *const *inputs, unsigned scalars, void *out, int64_t count,
                     const double *parameters);

    /* One step of an optimizer over a list of parameters that share no memory; `options` is the struct of that optimizer. */
    int (*optimizer)(int code, const double *options, RlParameter *parameters, int64_t count);

    /* The number of threads of every kernel, at least 1. */
    void (*set_threads)(int count);
    int (*threads)(void);

    /* c[m, n] = a[m, k] b[k, n] (+ bias[n] where not NULL), float32; strides in elements, c row-major. */
    int (*matmul)(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_column, const float *b,
                  int64_t b_row, int64_t b_column, const float *bias, float *c);
} RushlightKernels;

#endif
