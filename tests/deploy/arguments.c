/* Calls every method of a model with right and with random wrong arguments: none may crash, leak or be read out of bounds.
 * Built with -DMODEL=name -DUPPER=NAME -DHEADER="name.h"; `./arguments weights trials seed` says how many calls were right. */
#include HEADER

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define M(word) JOIN(MODEL, word)
#define MODEL_TYPE MODEL
#define C(word) JOIN(UPPER, word)

static uint64_t state;
static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}
static int one_in(int n) { return next() % (uint64_t)n == 0; }

static void* taken[4096];
static int count;
static void* take(size_t bytes) {
  void* made = count < 4096 ? calloc(bytes ? bytes : 1, 1) : NULL;
  if (made) taken[count++] = made;
  return made;
}

static size_t bytes_of(int dtype) {
  static const size_t sizes[] = {1, 4, 8, 2, 2, 8, 4, 2, 1, 1, 1, 8, 16};
  return dtype >= 0 && dtype <= 12 ? sizes[dtype] : 1;
}

/* A tensor as the parameter says, open sizes within small bounds; its memory is exactly as large as it has to be. */
static M(tensor) right_tensor(const M(parameter) * about) {
  int64_t sizes[C(MAX_RANK)] = {0};
  size_t elements = 1, i;
  int dim;
  M(tensor) made;
  for (dim = 0; dim < about->rank; ++dim) {
    const int64_t least = about->least[dim] < 1 ? 1 : about->least[dim];
    const int64_t most = about->most[dim] < 0 || about->most[dim] > least + 4 ? least + 4 : about->most[dim];
    sizes[dim] = about->sizes[dim] >= 0 ? about->sizes[dim] : least + (int64_t)(next() % (uint64_t)(most - least + 1));
    elements *= (size_t)sizes[dim];
  }
  made = M(tensor_of)(about->dtype, take(elements * bytes_of(about->dtype)), about->rank, sizes);
  if (about->dtype == C(FLOAT32) && made.data)
    for (i = 0; i < elements; ++i) ((float*)made.data)[i] = (float)(int)(next() % 100) / 50;
  return made;
}

static M(value) right_value(const M(parameter) * about) {
  M(value) made;
  memset(&made, 0, sizeof(made));
  made.kind = about->kind;
  if (about->kind == C(TENSOR) && about->rank >= 0) made.as.tensor = right_tensor(about);
  else if (about->kind == C(INT)) made.as.integer = (int64_t)(next() % 10);
  else if (about->kind == C(BOOL)) made.as.integer = one_in(2);
  else if (about->kind == C(FLOAT)) made.as.real = (double)(next() % 100) / 10;
  return made;
}

static int64_t odd_number(void) {
  static const int64_t numbers[] = {0, 1, -1, 2, 7, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN, INT64_MAX / 2, -5};
  return numbers[next() % (sizeof(numbers) / sizeof(*numbers))];
}

/* Something wrong in a value that was right. */
static void spoil(M(value) * given) {
  switch (next() % 12) {
    case 0: given->kind = (int32_t)(next() % 12); memset(&given->as, 0, sizeof(given->as)); break;
    case 1: given->as.tensor.data = NULL; break;
    case 2: given->as.tensor.rank = (int32_t)odd_number(); break;
    case 3: given->as.tensor.dtype = (int32_t)(next() % 14); if (bytes_of(given->as.tensor.dtype) > 1) given->as.tensor.data = NULL; break;
    case 4: given->as.tensor.sizes[next() % C(MAX_RANK)] = odd_number(); given->as.tensor.data = NULL; break;
    case 5: given->as.tensor.strides[next() % C(MAX_RANK)] = -1 - (int64_t)(next() % 9); break;
    case 6:
      if (given->kind == C(TENSOR)) given->as.tensor.data = (char*)given->as.tensor.data + 1, given->as.tensor.sizes[0] -= 1;
      else given->as.integer = odd_number();
      break;
    case 7: given->kind = C(LIST); given->as.list.items = NULL; given->as.list.count = (size_t)odd_number(); break;
    case 8: given->kind = C(STRING); given->as.string.text = NULL; given->as.string.size = 5; break;
    case 9: given->as.tensor.sizes[next() % C(MAX_RANK)] = 0; break;
    case 10: given->kind = C(NONE); break;
    default: memset(given, 0xff, sizeof(*given)); break;
  }
}

static int looks_at_weights(const char* path) {
  char message[64];
  MODEL_TYPE* model = NULL;
  FILE* file = fopen(path, "rb");
  size_t size, trial;
  char *content, *changed;
  fseek(file, 0, SEEK_END);
  size = (size_t)ftell(file);
  rewind(file);
  content = malloc(size);
  if (fread(content, 1, size, file) != size) return 1;
  fclose(file);
  for (trial = 0; trial < 40; ++trial) {
    const size_t length = trial < 20 ? next() % size : trial;
    changed = malloc(length ? length : 1);
    memcpy(changed, content, length);
    if (M(create_from_memory)(changed, length, &model, message, sizeof(message)) == C(OK) || model || !message[0]) return 1;
    free(changed);
  }
  changed = malloc(size);
  for (trial = 0; trial < 40; ++trial) {
    memcpy(changed, content, size);
    changed[trial] = (char)(changed[trial] + 1);
    if (M(create_from_memory)(changed, size, &model, NULL, 0) == C(OK)) return 1;
  }
  if (M(create_from_memory)(content, size, &model, NULL, 0) != C(OK)) return 1;
  M(destroy)(model);
  if (M(create_from_memory)(content + 0, size, NULL, message, 3) == C(OK)) return 1;
  if (M(create)("/nowhere/at/all", &model, message, sizeof(message)) != C(BAD_WEIGHTS)) return 1;
  if (M(create)("/", &model, message, sizeof(message)) != C(BAD_WEIGHTS)) return 1;
  free(changed);
  free(content);
  return 0;
}

int main(int argc, char** argv) {
  MODEL_TYPE* model;
  const long trials = argc > 2 ? atol(argv[2]) : 1000;
  long trial, right = 0, was_right = 0;
  state = argc > 3 ? (uint64_t)atol(argv[3]) * 2654435761u + 1 : 88172645463325252u;
  if (looks_at_weights(argv[1])) return 2;
  if (M(create)(argv[1], &model, NULL, 0) != C(OK)) return 3;
  for (trial = 0; trial < trials; ++trial) {
    const size_t number = next() % M(method_count)();
    const M(method)* method = M(method_at)(number);
    M(value) inputs[16], outputs[16];
    size_t i, in = method->input_count, out = method->output_count;
    int spoilt = one_in(2), status;
    memset(outputs, 0, sizeof(outputs));
    for (i = 0; i < in; ++i) inputs[i] = right_value(&method->inputs[i]);
    if (spoilt && in) spoil(&inputs[next() % in]);
    if (one_in(20) && out) spoil(&outputs[next() % out]), spoilt = 1;
    if (one_in(40)) in += 1, spoilt = 1;
    status = M(run)(one_in(100) ? NULL : model, one_in(50) ? 99 : number, one_in(60) ? NULL : inputs, in,
                    one_in(60) ? NULL : outputs, out);
    if (status == C(OK)) ++right;
    if (status == C(OK) && !spoilt) ++was_right;
    if (status != C(OK) && M(error)(model)[0] == 0 && status != C(BAD_ARGUMENT)) return 4;
    if (one_in(30)) M(reset)(model);
    if (one_in(30)) M(set_threads)(model, (int)odd_number() % 5);
    while (count) free(taken[--count]);
  }
  M(set_threads)(NULL, 2);
  M(reset)(NULL);
  M(destroy)(NULL);
  M(destroy)(model);
  printf("%ld of %ld calls were right, %ld of them unspoilt\n", right, trials, was_right);
  return was_right ? 0 : 5;
}
