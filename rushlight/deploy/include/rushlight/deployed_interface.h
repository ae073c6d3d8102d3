// The C interface of an exported model over what the model's file says of it: `methods`, `identity`, `weights_bytes` and
// `set_first_state`; RL_MODEL(weights) is their address where they are compiled in.
//
// Included last. RL_HANDLE is the type of handles, RL_MODEL(name) spells a name of the header.
#pragma once

namespace {

using namespace rl::deployed;

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
int make_handle(weights* held, RL_HANDLE** into, char* message, size_t room) {
  void* place = take_aligned(sizeof(RL_HANDLE));
  RL_HANDLE* made = place ? new (place) RL_HANDLE : nullptr;
  if (made) made->held = held;
  if (!made || !set_first_state(*made)) {
    if (made) made->~RL_HANDLE();
    free(place);
    let_go(held);
    tell(message, room, "there is no memory left");
    return no_memory;
  }
  *into = made;
  return ok;
}

template <class Find> int create(RL_HANDLE** into, char* message, size_t room, const Find& find) {
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

// What is wrong with an input whatever the form: its kind, dtype, rank, or a size that is always the same.
int look_at(handle& self, const value& given, const RL_MODEL(parameter)& about) {
  if (about.kind == RL_CONSTANT(NONE)) return ok;
  if (about.kind != RL_CONSTANT(TENSOR)) return self.has_kind(given, about.name, about.kind, -1) ? ok : unfit;
  if (about.dtype == RL_CONSTANT(NO_DTYPE) || about.rank < 0) return ok;
  const tensor* const found = self.tensor_in(given, about.name, about.dtype, about.rank);
  if (!found) return unfit;
  for (int dim = 0; dim < about.rank; ++dim)
    if (about.sizes[dim] >= 0 && about.sizes[dim] != found->sizes[dim]) {
      char sizes[200];
      return self.say(unfit, "%s must be as in %s, got the sizes %s", about.name, about.text,
                      self.sizes_text(*found, sizes, sizeof(sizes)));
    }
  return ok;
}

int run_method(RL_HANDLE* model, size_t index, const value* inputs, size_t input_count, value* outputs, size_t output_count) {
  if (!model) return bad_argument;
  if (index >= sizeof(methods) / sizeof(*methods))
    return model->say(bad_argument, "there is no method %zu: the model has %zu", index, sizeof(methods) / sizeof(*methods));
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
      return model->say(bad_argument, "the place for %s must be empty (zeros), or a tensor", called.info.outputs[i].name);
  if (__atomic_exchange_n(&model->running, true, __ATOMIC_ACQUIRE)) return bad_argument;  // its message is another thread's
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

}  // namespace

extern "C" {

RL_MODEL(status) RL_MODEL(create)(const char* path, RL_HANDLE** into, char* message, size_t room) {
  return (RL_MODEL(status))create(into, message, room, [&](weights& held, complaint& wrong) {
#ifdef RL_EMBEDDED
    if (!path) return borrow_weights(RL_MODEL(weights), (size_t)weights_bytes, held, wrong);
#endif
    return read_weights(path, held, wrong);
  });
}

RL_MODEL(status) RL_MODEL(create_from_memory)(const void* data, size_t size, RL_HANDLE** into, char* message, size_t room) {
  return (RL_MODEL(status))create(into, message, room, [&](weights& held, complaint& wrong) {
    return borrow_weights(data, size, held, wrong);
  });
}

RL_MODEL(status) RL_MODEL(share)(RL_HANDLE* other, RL_HANDLE** into) {
  if (!into) return (RL_MODEL(status))bad_argument;
  *into = nullptr;
  if (!other) return (RL_MODEL(status))bad_argument;
  __atomic_add_fetch(&other->held->users, 1, __ATOMIC_RELAXED);
  const int status = make_handle(other->held, into, nullptr, 0);
  if (status == ok) (*into)->threads = 1;
  return (RL_MODEL(status))status;
}

void RL_MODEL(destroy)(RL_HANDLE* model) {
  if (!model) return;
  weights* held = model->held;
  model->~RL_HANDLE();
  free(model);
  let_go(held);
}

const char* RL_MODEL(error)(const RL_HANDLE* model) { return model ? model->text : "the model is a null pointer"; }

RL_MODEL(status) RL_MODEL(set_threads)(RL_HANDLE* model, int threads) {
  if (!model) return (RL_MODEL(status))bad_argument;
  if (threads < 1 || threads > RL_CONSTANT(MAX_THREADS))
    return (RL_MODEL(status))model->say(bad_argument, "a model runs on 1 to %d threads, not on %d", RL_CONSTANT(MAX_THREADS), threads);
#if !defined(_OPENMP) && !defined(RL_THREADS)
  if (threads > 1) return (RL_MODEL(status))model->say(bad_argument, "the model was built without threads");
#endif
  model->threads = threads;
  return (RL_MODEL(status))ok;
}

RL_MODEL(status) RL_MODEL(reset)(RL_HANDLE* model) {
  if (!model) return (RL_MODEL(status))bad_argument;
  return (RL_MODEL(status))(set_first_state(*model) ? ok : model->no_more());
}

void RL_MODEL(seed)(RL_HANDLE* model, uint64_t seed) {
  if (!model) return;
  model->seed = seed;
  model->drawn = 0;
}

size_t RL_MODEL(method_count)(void) { return sizeof(methods) / sizeof(*methods); }

const RL_MODEL(method)* RL_MODEL(method_at)(size_t index) {
  return index < sizeof(methods) / sizeof(*methods) ? &methods[index].info : nullptr;
}

RL_MODEL(status) RL_MODEL(run)(RL_HANDLE* model, size_t index, const RL_MODEL(value)* inputs, size_t input_count,
                               RL_MODEL(value)* outputs, size_t output_count) {
  return (RL_MODEL(status))run_method(model, index, inputs, input_count, outputs, output_count);
}

// The module of JavaScript calls the first for a new worker, and the second in that worker.
#if defined(RL_THREADS) && defined(__wasm__)
__attribute__((visibility("default"))) void* RL_MODEL(add_worker)(RL_HANDLE* model) { return model->pool.add(); }
__attribute__((visibility("default"))) void RL_MODEL(work)(void* pool) { ((rl_team::thread_pool*)pool)->work(); }
#endif

}  // extern "C"
