"""The C header of an exported model: types, constants and functions, all prefixed with the model's name."""

from __future__ import annotations

from rushlight.deploy.model import MAX_DIMS, Method, Model
from rushlight.deploy.source import typed_head

MAX_THREADS = 64

_TYPES = """\
#ifndef @NAME_H
#define @NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) && !defined(@NAME_API)
#define @NAME_API __attribute__((visibility("default")))
#elif !defined(@NAME_API)
#define @NAME_API
#endif

#define @NAME_MAX_RANK @RANK
#define @NAME_MAX_THREADS @THREADS

/* What functions return. After all but @NAME_OK, @name_error tells more in a sentence. */
typedef enum @name_status {
  @NAME_OK = 0,
  @NAME_BAD_ARGUMENT = 1, /* a null pointer; an input of a kind, dtype or size that the model was not exported for */
  @NAME_BAD_WEIGHTS = 2,  /* the weights can't be read, are cut off, or belong to another model */
  @NAME_FAILED = 3,       /* the model itself raises: an index is out of range, and the like */
  @NAME_NO_MEMORY = 4
} @name_status;

typedef enum @name_dtype {
  @NAME_NO_DTYPE = 0,
  @NAME_FLOAT32,
  @NAME_FLOAT64,
  @NAME_FLOAT16,
  @NAME_BFLOAT16,
  @NAME_INT64,
  @NAME_INT32,
  @NAME_INT16,
  @NAME_INT8,
  @NAME_UINT8,
  @NAME_BOOLEAN, /* one byte, 0 or 1 */
  @NAME_COMPLEX64, /* a float and another one, the imaginary part */
  @NAME_COMPLEX128 /* the same of doubles */
} @name_dtype;

/* A tensor: sizes, and strides in elements. As an input it is read, and written to only if the method's parameter says so. As
 * an output it is all zeros, or what the last run of the handle set it to, and the model sets it to memory of its own, which
 * stays until the next run of that handle returns; or it is the caller's memory with the result's sizes, by any strides. */
typedef struct @name_tensor {
  void* data;
  int32_t dtype; /* @name_dtype */
  int32_t rank;
  int64_t sizes[@NAME_MAX_RANK];
  int64_t strides[@NAME_MAX_RANK];
} @name_tensor;

typedef enum @name_kind {
  @NAME_NONE = 0,
  @NAME_BOOL,   /* as.integer, 0 or 1 */
  @NAME_INT,    /* as.integer */
  @NAME_FLOAT,  /* as.real */
  @NAME_STRING, /* as.string: bytes of UTF-8, and how many */
  @NAME_TENSOR, /* as.tensor */
  @NAME_LIST,   /* as.list */
  @NAME_TUPLE,  /* as.list; a NamedTuple's fields in their order */
  @NAME_DICT    /* as.list: each key, then its value */
} @name_kind;

/* Any value: None is @NAME_NONE, an Optional is that or its value. */
typedef struct @name_value {
  int32_t kind; /* @name_kind */
  union {
    int64_t integer;
    double real;
    struct {
      const char* text;
      size_t size;
    } string;
    @name_tensor tensor;
    struct {
      struct @name_value* items;
      size_t count;
    } list;
  } as;
} @name_value;

/* What a method takes or gives: a rank of -1 and sizes of -1 are open, within least and most (-1: no limit). */
typedef struct @name_parameter {
  const char* name;
  int32_t kind;
  int32_t dtype;
  int32_t rank;
  int64_t sizes[@NAME_MAX_RANK];
  int64_t least[@NAME_MAX_RANK];
  int64_t most[@NAME_MAX_RANK];
  const char* text; /* the same in words, such as "x: float32[n, 3]" */
  bool written;     /* the model writes to the memory of this input, or to that of tensors in it */
} @name_parameter;

typedef struct @name_method {
  const char* name;
  const @name_parameter* inputs;
  size_t input_count;
  const @name_parameter* outputs;
  size_t output_count;
} @name_method;

/* A model with its weights and state. One thread at a time may use a handle; handles are independent of one another. */
typedef struct @name @name;

/* Makes a handle from a file of weights, which is mapped@EMBEDDED. On failure *model is null, and a sentence is
 * written to `message`, of which `room` bytes are there; it may be null. */
@NAME_API @name_status @name_create(const char* weights, struct @name** model, char* message, size_t room);
/* The same from weights in memory, which has to stay as long as the handle, and those that share with it. */
@NAME_API @name_status @name_create_from_memory(const void* weights, size_t size, struct @name** model,
                                                char* message, size_t room);
/* Another handle over the same weights: for another thread. It begins with the model's first state, and with one thread. */
@NAME_API @name_status @name_share(@name* other, struct @name** model);
/* Frees a handle once, when no thread runs it; null is allowed. Other handles over its weights stay. */
@NAME_API void @name_destroy(@name* model);

/* What went wrong in the last call for this handle. It stays until the next call. */
@NAME_API const char* @name_error(const @name* model);
/* How many threads share the work of a run: 1 at first, at most @NAME_MAX_THREADS. */
@NAME_API @name_status @name_set_threads(@name* model, int threads);
/* Gives the model the state back that it had when it was exported. */
@NAME_API @name_status @name_reset(@name* model);
/* Where random numbers begin, 0 at first. */
@NAME_API void @name_seed(@name* model, uint64_t seed);

@NAME_API size_t @name_method_count(void);
/* Null where there is no such method. */
@NAME_API const @name_method* @name_method_at(size_t index);
/* Runs a method by its number: inputs as the method says, and a place for each output, which is zeros, an earlier result,
 * or a tensor. */
@NAME_API @name_status @name_run(@name* model, size_t method, const @name_value* inputs, size_t input_count,
                                 @name_value* outputs, size_t output_count);

/* A contiguous tensor. */
static inline @name_tensor @name_tensor_of(int32_t dtype, void* data, int32_t rank, const int64_t* sizes) {
  @name_tensor made = {0};
  int64_t step = 1;
  int32_t dim;
  made.data = data;
  made.dtype = dtype;
  made.rank = rank;
  for (dim = rank - 1; dim >= 0 && dim < @NAME_MAX_RANK; --dim) {
    made.sizes[dim] = sizes[dim];
    made.strides[dim] = step;
    step *= sizes[dim] > 1 ? sizes[dim] : 1;
  }
  return made;
}
"""

_END = """\

#ifdef __cplusplus
}
#endif

#endif
"""


def write_header(model: Model, embedded: bool) -> str:
    """Return the header's text."""
    text = _TYPES.replace("@RANK", str(MAX_DIMS)).replace("@THREADS", str(MAX_THREADS))
    text = text.replace("@EMBEDDED", ", or from those compiled in, if the path is null" if embedded else "")
    text = text.replace("@NAME", model.name.upper()).replace("@name", model.name)
    first = f"/* The model {model.name}: how to call it from C. Written by Rushlight. */\n"
    methods = "\n".join(_declare_method(model, method) for method in model.methods)
    return f"{first}{text}\n{methods}{_END}"


def _declare_method(model: Model, method: Method) -> str:
    def listed(parameters: list) -> str:
        return ", ".join(map(str, parameters)) or "nothing"

    about = f"/* {method.name}({listed(method.inputs)}) -> {listed(method.outputs)} */"
    return f"{about}\n{model.name.upper()}_API {typed_head(model, method)};\n"
