// The C interface of an exported model over what the model's file says of it: `methods`, `identity`, `weights_bytes` and
// `set_first_state`; RL_MODEL(weights) is their address where they are compiled in.
//
// Included last. RL_HANDLE is the type of handles in the model's C header, RL_MODEL(name) spells a
// name of that.
#pragma once

#include <new>

namespace rl {
namespace deployed {
namespace {

constexpr size_t method_count = sizeof(methods) / sizeof(*methods);

void tell(char* message, size_t room, const char* text) {
  if (message && room) snprintf(message, room, "%s", text);
}

void let_go(weights* held) {
  if (held && __atomic_sub_fetch(&held->users, 1, __ATOMIC_ACQ_REL) == 0) {
    held->~weights();
    free(held);
  }
}

// A handle over weights that are ready; takes them over.
int make_handle(weights* held, model_handle** into, char* message, size_t room) {
  void* place = take_aligned(sizeof(model_handle));
  model_handle* made = place ? new (place) model_handle : nullptr;
  if (made) made->held = held;
  if (!made || !set_first_state(*made)) {
    if (made) made->~model_handle();
    free(place);
    let_go(held);
    tell(message, room, "there is no memory left");
    return no_memory;
  }
  *into = made;
  return ok;
}

template <class Find> int create(model_handle** into, char* message, size_t room, const Find& find) {
  complaint wrong;
  tell(message, room, "");
  if (!into) {
    tell(message, room, "the place for the model is a null pointer");
    return bad_argument;
  }
  *into = nullptr;
  void* place = take_aligned(sizeof(weights));
  if (!place) {
    tell(message, room, "there is no memory left");
    return no_memory;
  }
  weights* held = new (place) weights;
  int status = find(*held, wrong);
  if (status == ok) status = check_weights(*held, identity, weights_bytes, wrong);
  if (status == ok) {
    const int64_t bytes = (program_count + 1) * (int64_t)sizeof(void**);
    held->kept = (void***)held->made.take(bytes);
    if (held->kept) memset(held->kept, 0, (size_t)bytes);
    else status = wrong.no_more();
  }
  if (status != ok) {
    tell(message, room, wrong.text);
    let_go(held);
    return status;
  }
  return make_handle(held, into, message, room);
}

// What is wrong with an input whatever the form: its kind, dtype, rank, a size that is always the same, or one beyond its bounds.
int look_at(handle& self, const value& given, const ::RL_MODEL(parameter)& about) {
  if (about.kind == RL_CONSTANT(NONE)) return ok;
  if (about.kind != RL_CONSTANT(TENSOR)) return self.has_kind(given, about.name, about.kind, -1) ? ok : unfit;
  if (about.dtype == RL_CONSTANT(NO_DTYPE) || about.rank < 0) return ok;
  const tensor* const found = self.tensor_in(given, about.name, about.dtype, about.rank);
  if (!found) return unfit;
  for (int dim = 0; dim < about.rank; ++dim) {
    const int64_t size = found->sizes[dim];
    if (about.sizes[dim] < 0 && size >= about.least[dim] && (about.most[dim] < 0 || size <= about.most[dim])) continue;
    if (about.sizes[dim] == size) continue;
    char sizes[200], bounds[80] = "";
    if (about.sizes[dim] < 0 && about.most[dim] < 0)
      snprintf(bounds, sizeof(bounds), " with at least %lld in dimension %d", (long long)about.least[dim], dim);
    else if (about.sizes[dim] < 0)
      snprintf(bounds, sizeof(bounds), " with %lld to %lld in dimension %d", (long long)about.least[dim],
               (long long)about.most[dim], dim);
    return self.say(unfit, "%s must be as in %s%s, got the sizes %s", about.name, about.text, bounds,
                    self.sizes_text(*found, sizes, sizeof(sizes)));
  }
  return ok;
}

int run_method(model_handle* model, size_t index, const value* inputs, size_t input_count, value* outputs, size_t output_count) {
  if (!model) return bad_argument;
  if (index >= method_count)
    return model->say(bad_argument, "there is no method %zu: the model has %zu", index, method_count);
  const method& called = methods[index];
  if (input_count != called.info.input_count)
    return model->say(bad_argument, "%s takes %zu inputs, got %zu", called.info.name, called.info.input_count, input_count);
  if (output_count != called.info.output_count)
    return model->say(bad_argument, "%s gives %zu outputs, and has places for %zu", called.info.name, called.info.output_count,
                      output_count);
  if ((input_count && !inputs) || (output_count && !outputs))
    return model->say(bad_argument, "the %s of %s are a null pointer", inputs ? "outputs" : "inputs", called.info.name);
  for (size_t i = 0; i < input_count; ++i)
    if (!is_sound(inputs[i], 0)) return model->say(bad_argument, "%s is no value", called.info.inputs[i].name);
  for (size_t i = 0; i < output_count; ++i)
    if (!is_place(outputs[i]))
      return model->say(bad_argument, "the place for %s must be empty (zeros), an earlier result, or a tensor", called.info.outputs[i].name);
  if (__atomic_exchange_n(&model->running, true, __ATOMIC_ACQUIRE)) return bad_argument;  // its message is another thread's
  for (size_t i = 0; i < output_count; ++i)
    if (model->is_own(outputs[i])) outputs[i] = none();
  model->begin();
#ifdef RL_THREADS
  rl_team::helpers* const outer = rl_team::helpers::current;
  rl_team::helpers::current = &model->pool;
#endif
  int status = ok;
  for (size_t i = 0; i < input_count && status == ok; ++i) status = look_at(*model, inputs[i], called.info.inputs[i]);
  if (status == ok) status = called.run(*model, inputs, outputs);
#ifdef RL_THREADS
  rl_team::helpers::current = outer;
#endif
  if (status == unfit) status = bad_argument;
  __atomic_store_n(&model->running, false, __ATOMIC_RELEASE);
  return status;
}

int create_from_file(const char* path, model_handle** into, char* message, size_t room) {
  return create(into, message, room, [&](weights& held, complaint& wrong) {
#ifdef RL_EMBEDDED
    if (!path) return borrow_weights(::RL_MODEL(weights), (size_t)weights_bytes, held, wrong);
#endif
    return read_weights(path, held, wrong);
  });
}

int create_from_memory(const void* data, size_t size, model_handle** into, char* message, size_t room) {
  return create(into, message, room, [&](weights& held, complaint& wrong) { return borrow_weights(data, size, held, wrong); });
}

void destroy(model_handle* model) {
  if (!model) return;
  weights* held = model->held;
  model->~model_handle();
  free(model);
  let_go(held);
}

int share(model_handle* other, model_handle** into) {
  if (!into) return bad_argument;
  *into = nullptr;
  if (!other) return bad_argument;
  __atomic_add_fetch(&other->held->users, 1, __ATOMIC_RELAXED);
  const int status = make_handle(other->held, into, nullptr, 0);
  if (status == ok) (*into)->threads = 1;
  return status;
}

int set_threads(model_handle* model, int threads) {
  if (!model) return bad_argument;
  if (threads < 1 || threads > RL_CONSTANT(MAX_THREADS))
    return model->say(bad_argument, "a model runs on 1 to %d threads, not on %d", RL_CONSTANT(MAX_THREADS), threads);
#if !defined(_OPENMP) && !defined(RL_THREADS)
  if (threads > 1) return model->say(bad_argument, "the model was built without threads");
#endif
  model->threads = threads;
  model->text[0] = 0;
  return ok;
}

int reset(model_handle* model) {
  if (!model) return bad_argument;
  model->text[0] = 0;
  return set_first_state(*model) ? ok : model->no_more();
}

void set_seed(model_handle* model, uint64_t number) {
  if (!model) return;
  model->seed = number;
  model->drawn = 0;
}

const ::RL_MODEL(method)* method_at(size_t index) { return index < method_count ? &methods[index].info : nullptr; }

model_handle* inside(::RL_HANDLE* model) { return (model_handle*)model; }
model_handle** inside(::RL_HANDLE** into) { return (model_handle**)into; }

}  // namespace
}  // namespace deployed
}  // namespace rl

// Names are qualified, since the model may be called as anything here is.
extern "C" {

RL_MODEL(status) RL_MODEL(create)(const char* path, struct RL_HANDLE** into, char* message, size_t room) {
  return (RL_MODEL(status))rl::deployed::create_from_file(path, rl::deployed::inside(into), message, room);
}

RL_MODEL(status) RL_MODEL(create_from_memory)(const void* data, size_t size, struct RL_HANDLE** into, char* message, size_t room) {
  return (RL_MODEL(status))rl::deployed::create_from_memory(data, size, rl::deployed::inside(into), message, room);
}

RL_MODEL(status) RL_MODEL(share)(RL_HANDLE* model, struct RL_HANDLE** into) {
  return (RL_MODEL(status))rl::deployed::share(rl::deployed::inside(model), rl::deployed::inside(into));
}

void RL_MODEL(destroy)(RL_HANDLE* model) { rl::deployed::destroy(rl::deployed::inside(model)); }

const char* RL_MODEL(error)(const RL_HANDLE* model) {
  return model ? ((const rl::deployed::model_handle*)model)->text : "the model is a null pointer";
}

RL_MODEL(status) RL_MODEL(set_threads)(RL_HANDLE* model, int threads) {
  return (RL_MODEL(status))rl::deployed::set_threads(rl::deployed::inside(model), threads);
}

RL_MODEL(status) RL_MODEL(reset)(RL_HANDLE* model) { return (RL_MODEL(status))rl::deployed::reset(rl::deployed::inside(model)); }

void RL_MODEL(seed)(RL_HANDLE* model, uint64_t number) { rl::deployed::set_seed(rl::deployed::inside(model), number); }

size_t RL_MODEL(method_count)(void) { return rl::deployed::method_count; }

const RL_MODEL(method)* RL_MODEL(method_at)(size_t index) { return rl::deployed::method_at(index); }

RL_MODEL(status) RL_MODEL(run)(RL_HANDLE* model, size_t index, const RL_MODEL(value)* inputs, size_t input_count,
                               RL_MODEL(value)* outputs, size_t output_count) {
  return (RL_MODEL(status))rl::deployed::run_method(rl::deployed::inside(model), index, inputs, input_count, outputs, output_count);
}

// The module of JavaScript calls the first for a new worker, and the second in that worker.
#if defined(RL_THREADS) && defined(__wasm__)
__attribute__((visibility("default"))) void* RL_MODEL(add_worker)(RL_HANDLE* model) { return rl::deployed::inside(model)->pool.add(); }
__attribute__((visibility("default"))) void RL_MODEL(work)(void* pool) { ((rl_team::thread_pool*)pool)->work(); }
#endif

}  // extern "C"
