"""C++ sources for the extension tests, written as for PyTorch."""

from __future__ import annotations

LLTM = """
#include <torch/extension.h>
#include <vector>

// A cell with two gates and an ELU candidate.
using torch::Tensor;

Tensor sigmoid_slope(Tensor y) { return (1 - y) * y; }
Tensor tanh_slope(Tensor x) { return 1 - x.tanh().pow(2); }
Tensor elu_slope(Tensor x, torch::Scalar alpha = 1.0) {
  auto grown = x.exp();
  auto below = (alpha * (grown - 1)) < 0;
  return (x > 0).type_as(x) + below.type_as(x) * (alpha * grown);
}

std::vector<at::Tensor> cell_forward(Tensor input, Tensor weights, Tensor bias, Tensor hidden, Tensor cell) {
  auto both = torch::cat({hidden, input}, /*dim=*/1);
  auto raw = torch::addmm(bias, both, weights.transpose(0, 1));
  auto gates = raw.chunk(3, /*dim=*/1);
  auto in = torch::sigmoid(gates[0]);
  auto out = torch::sigmoid(gates[1]);
  auto candidate = torch::elu(gates[2], /*alpha=*/1.0);
  auto new_cell = cell + candidate * in;
  auto new_hidden = torch::tanh(new_cell) * out;
  return {new_hidden, new_cell, in, out, candidate, both, raw};
}

std::vector<Tensor> cell_backward(Tensor grad_hidden, Tensor grad_cell, Tensor new_cell, Tensor in, Tensor out,
                                  Tensor candidate, Tensor both, Tensor raw, Tensor weights) {
  auto grad_out = torch::tanh(new_cell) * grad_hidden;
  auto grad_new_cell = grad_cell + out * grad_hidden * tanh_slope(new_cell);
  auto grad_candidate = in * grad_new_cell, grad_in = candidate * grad_new_cell;
  auto gates = raw.chunk(3, 1);
  grad_in *= sigmoid_slope(torch::sigmoid(gates[0]));
  grad_out *= sigmoid_slope(torch::sigmoid(gates[1]));
  grad_candidate *= elu_slope(gates[2]);
  auto grad_gates = torch::cat({grad_in, grad_out, grad_candidate}, 1);
  auto grad_weights = grad_gates.t().mm(both);
  auto grad_bias = grad_gates.sum(/*dim=*/0, /*keepdim=*/true);
  auto grad_both = grad_gates.mm(weights);
  const auto state = grad_hidden.size(1);
  return {grad_both.slice(1, state), grad_weights, grad_bias, grad_both.slice(/*dim=*/1, 0, state), grad_new_cell};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &cell_forward, "the cell's step");
  m.def("backward", &cell_backward, "its gradients");
}
"""

ARGUMENTS = """
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>

int64_t integer(int64_t x) { return x + 1; }
int8_t small(int8_t x) { return x; }
unsigned counted(unsigned x) { return x; }
double number(double x) { return x / 2; }
float narrow(float x) { return x; }
bool truth(bool x) { return !x; }
std::string text(const std::string& x) { return x + "!"; }
std::string_view viewed(std::string_view x) { return x; }
std::string characters(const char* x) { return x; }
std::vector<int64_t> reversed(std::vector<int64_t> x) { return {x.rbegin(), x.rend()}; }
std::vector<bool> flags(std::vector<bool> x) { return x; }
int64_t total(at::IntArrayRef x) { int64_t sum = 0; for (auto i : x) sum += i; return sum; }
std::optional<double> half(c10::optional<double> x) { return x ? std::optional<double>(*x / 2) : c10::nullopt; }
std::tuple<int64_t, std::string, torch::Tensor> three(std::tuple<int64_t, std::string, torch::Tensor> x) { return x; }
std::pair<int, int> swapped(std::pair<int, int> x) { return {x.second, x.first}; }
std::map<std::string, double> doubled(std::map<std::string, double> x) { for (auto& [k, v] : x) v *= 2; return x; }
torch::Scalar scalar(torch::Scalar x) { return x; }
torch::ScalarType kind(torch::ScalarType x) { return x; }
torch::Tensor tensor(const torch::Tensor& x) { return x; }
std::vector<torch::Tensor> several(torch::TensorList x) { return x.vec(); }
c10::optional<torch::Tensor> maybe(const c10::optional<torch::Tensor>& x) { return x; }
bool defined(torch::Tensor x) { return x.defined(); }
int64_t optional_total(std::optional<at::IntArrayRef> x) { return x ? total(*x) : -1; }
void nothing() {}
int64_t named(int64_t a, int64_t b, double c) { return a * 100 + b * 10 + (int64_t)c; }
void check(bool right) { TORCH_CHECK(right, "wrong: ", 1, ' ', 2.5, " ", torch::kFloat); }
void plain_check(bool right) { TORCH_CHECK(right); }
void value_check() { TORCH_CHECK_VALUE(false, "a value"); }
void throw_range() { std::vector<int>().at(3); }
void throw_invalid() { throw std::invalid_argument("no"); }
void throw_other() { throw 7; }
void throw_memory() { throw std::bad_alloc(); }
int64_t huge() { return (int64_t)std::vector<char>((size_t)-1 / 2).size(); }
torch::Tensor python_error(torch::Tensor x) { return torch::mm(x, x); }
double caught(torch::Tensor x) {
  try { torch::mm(x, x); } catch (const c10::Error& error) { return (double)std::string(error.what()).size(); }
  return 0;
}
void warned() { TORCH_WARN("careful: ", 3); }
int64_t elsewhere(torch::Tensor x) {
  int64_t found = 0;
  std::thread other([&] { auto y = torch::relu(x); found = y.numel(); });
  other.join();
  return found;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("integer", &integer); m.def("small", &small); m.def("counted", &counted); m.def("number", &number);
  m.def("narrow", &narrow); m.def("truth", &truth); m.def("text", &text); m.def("viewed", &viewed);
  m.def("characters", &characters); m.def("reversed", &reversed); m.def("flags", &flags); m.def("total", &total);
  m.def("half", &half); m.def("three", &three); m.def("swapped", &swapped); m.def("doubled", &doubled);
  m.def("scalar", &scalar); m.def("kind", &kind); m.def("tensor", &tensor); m.def("several", &several);
  m.def("maybe", &maybe); m.def("defined", &defined); m.def("optional_total", &optional_total); m.def("nothing", &nothing);
  m.def("named", &named, "What named does.", py::arg("a"), py::arg("b") = 2, py::arg("c") = 3.0);
  m.def("check", &check); m.def("plain_check", &plain_check); m.def("value_check", &value_check);
  m.def("throw_range", &throw_range); m.def("throw_invalid", &throw_invalid); m.def("throw_other", &throw_other);
  m.def("throw_memory", &throw_memory); m.def("huge", &huge); m.def("python_error", &python_error); m.def("caught", &caught);
  m.def("warned", &warned);
  m.def("elsewhere", &elsewhere, py::call_guard<py::gil_scoped_release>());
  m.def("added", [offset = 5](int64_t x) { return x + offset; });
  m.attr("answer") = 42;
}
"""

TENSORS = """
using namespace torch::indexing;

template <class T> T sum_of(torch::TensorAccessor<T, 2> a) {
  T sum = 0;
  for (int64_t i = 0; i < a.size(0); ++i)
    for (int64_t j = 0; j < a.size(1); ++j) sum += a[i][j];
  return sum;
}

double sum_elements(const torch::Tensor& x) {
  double result = 0;
  AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "sum_elements", [&] {
    auto a = x.accessor<scalar_t, 2>();
    for (int64_t i = 0; i < a.size(0); ++i)
      for (int64_t j = 0; j < a.size(1); ++j) result += (double)a[i][j];
  });
  return result;
}

float sum_floats(const torch::Tensor& x) { return sum_of<float>(x.accessor<float, 2>()); }

torch::Tensor doubled(torch::Tensor x) {
  auto in = x.contiguous();
  auto out = torch::empty_like(in);
  AT_DISPATCH_FLOATING_TYPES(in.scalar_type(), "doubled", ([&] {
    const auto* from = in.const_data_ptr<scalar_t>();
    auto* to = out.data_ptr<scalar_t>();
    at::parallel_for(0, in.numel(), 1000, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) to[i] = from[i] * 2;
    });
  }));
  return out;
}

std::string described(const torch::Tensor& x) {
  std::string text = std::to_string(x.dim()) + " " + std::to_string(x.numel()) + " " + std::to_string(x.size(-1));
  text += x.is_contiguous() ? " contiguous" : " strided";
  text += " ";
  text += toString(x.scalar_type());
  return text + (x.requires_grad() ? " grad" : "") + " " + x.device().str();
}

int64_t size_of(const torch::Tensor& x, int64_t dim) { return x.size(dim); }
double wrong_pointer(const torch::Tensor& x) { return x.data_ptr<double>()[0]; }

std::vector<torch::Tensor> made() {
  auto options = torch::TensorOptions().dtype(torch::kFloat64).device(torch::kCPU);
  float values[] = {1, 2, 3, 4, 5, 6};
  return {torch::zeros({2, 3}), torch::ones({2}, torch::kInt64), torch::full({2}, 1.5, options), torch::arange(3),
          torch::tensor({1.0, 2.0}), torch::tensor(7), torch::from_blob(values, {2, 3}).clone(), torch::eye(2, options),
          torch::empty({0, 4}), torch::zeros({2}, torch::dtype(torch::kBool).requires_grad(false)),
          torch::empty({2, 3, 4, 5, 6}, options.memory_format(torch::MemoryFormat::ChannelsLast3d)).zero_()};
}

std::vector<torch::Tensor> operated(torch::Tensor x, torch::Tensor y) {
  auto [largest, where] = x.max(1);
  auto z = x.clone();
  z.add_(1).mul_(y);
  z -= 2;
  auto parts = torch::split(x, 1, 0);
  return {x + y, 2 - x, x * 2.5, x / y, -x, x > y, (x == y) | (x < 1), largest, where, z, torch::stack({x, y}),
          x.sum({0, 1}), x.mean(), x.view({-1}), x.permute({1, 0}), parts[1], x[0], x.index({Slice(), 1}),
          x.index({"...", Slice(0, None, 2)}), torch::softmax(x, 1), x.to(torch::kFloat64), x.masked_fill(x > 0, 9),
          torch::where(x > y, x, y), x.sum(0, true), x.unsqueeze(0).expand({2, 2, 3}), torch::max(x), torch::relu(x)};
}
"""

OPERATORS = """
#include <torch/library.h>

namespace {
at::Tensor scaled(const at::Tensor& x, double factor, int64_t times) {
  TORCH_CHECK(x.dtype() == at::kFloat, "scaled expects float32, got ", x.dtype());
  TORCH_INTERNAL_ASSERT(x.device().type() == at::DeviceType::CPU);
  auto from = x.contiguous();
  auto out = torch::empty(from.sizes(), from.options());
  for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<float>()[i] = from.data_ptr<float>()[i] * (float)factor * (float)times;
  return out;
}
void fill_with(at::Tensor& x, double value) { x.fill_(value); }
at::Tensor twice(const at::Tensor& x) { return x * 2; }
std::tuple<at::Tensor, at::Tensor> both(const at::Tensor& x, at::OptionalIntArrayRef dims) { return {x + 1, x - 1}; }
}

TORCH_LIBRARY(NAMESPACE, m) {
  m.def("scaled(Tensor x, float factor=3.0, *, int times=1) -> Tensor");
  m.def("fill_with(Tensor(a!) x, float value) -> ()");
  m.def("twice", &twice);
  m.def("both(Tensor x, int[]? dims=None) -> (Tensor, Tensor)");
}
TORCH_LIBRARY_IMPL(NAMESPACE, CPU, m) {
  m.impl("scaled", &scaled);
  m.impl("fill_with", TORCH_FN(fill_with));
  m.impl("both", both);
}
"""
