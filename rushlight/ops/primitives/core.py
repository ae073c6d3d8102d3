"""The primitive table: every operator that has a rule in each stage, by its ATen schema.

All other operators are composites (`ops/composite`) of these. The completeness test checks that each primitive has rows in the
Meta, CPU, derivative and lowering tables.
"""

from __future__ import annotations

from rushlight.ops.registry import PRIMITIVES, define_inplace, define_primitives

VIEWS = """
alias(Tensor(a) self) -> Tensor(a)
detach(Tensor(a) self) -> Tensor(a)
as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)
view(Tensor(a) self, SymInt[] size) -> Tensor(a)
permute(Tensor(a) self, int[] dims) -> Tensor(a)
expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)
select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)
slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)
unsqueeze(Tensor(a) self, int dim) -> Tensor(a)
squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)
"""

CREATION = """
empty.memory_format(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? memory_format=None) -> Tensor
empty_strided(SymInt[] size, SymInt[] stride, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor
randperm(SymInt n, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, Generator? generator=None) -> Tensor
lift_fresh(Tensor(a) self) -> Tensor(a)
"""

COPIES = """
clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor
_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor
copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)
"""

UNARY = """
neg(Tensor self) -> Tensor
abs(Tensor self) -> Tensor
sign(Tensor self) -> Tensor
exp(Tensor self) -> Tensor
expm1(Tensor self) -> Tensor
log(Tensor self) -> Tensor
log1p(Tensor self) -> Tensor
log2(Tensor self) -> Tensor
sqrt(Tensor self) -> Tensor
rsqrt(Tensor self) -> Tensor
reciprocal(Tensor self) -> Tensor
sin(Tensor self) -> Tensor
cos(Tensor self) -> Tensor
tanh(Tensor self) -> Tensor
erf(Tensor self) -> Tensor
sigmoid(Tensor self) -> Tensor
floor(Tensor self) -> Tensor
ceil(Tensor self) -> Tensor
round(Tensor self) -> Tensor
trunc(Tensor self) -> Tensor
relu(Tensor self) -> Tensor
gelu(Tensor self, *, str approximate='none') -> Tensor
silu(Tensor self) -> Tensor
logical_not(Tensor self) -> Tensor
bitwise_not(Tensor self) -> Tensor
isnan(Tensor self) -> Tensor
isinf(Tensor self) -> Tensor
"""

BINARY = """
add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
mul.Tensor(Tensor self, Tensor other) -> Tensor
div.Tensor(Tensor self, Tensor other) -> Tensor
div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor
remainder.Tensor(Tensor self, Tensor other) -> Tensor
fmod.Tensor(Tensor self, Tensor other) -> Tensor
pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor
pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor
pow.Scalar(Scalar self, Tensor exponent) -> Tensor
maximum(Tensor self, Tensor other) -> Tensor
minimum(Tensor self, Tensor other) -> Tensor
eq.Tensor(Tensor self, Tensor other) -> Tensor
ne.Tensor(Tensor self, Tensor other) -> Tensor
lt.Tensor(Tensor self, Tensor other) -> Tensor
le.Tensor(Tensor self, Tensor other) -> Tensor
gt.Tensor(Tensor self, Tensor other) -> Tensor
ge.Tensor(Tensor self, Tensor other) -> Tensor
logical_and(Tensor self, Tensor other) -> Tensor
logical_or(Tensor self, Tensor other) -> Tensor
logical_xor(Tensor self, Tensor other) -> Tensor
bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor
bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor
bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor
where.self(Tensor condition, Tensor self, Tensor other) -> Tensor
threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor
gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor
"""

REDUCTIONS = """
sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor
any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor
var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor
sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)
_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor
_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor
_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor
"""

PRODUCTS = """
mm(Tensor self, Tensor mat2) -> Tensor
addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
bmm(Tensor self, Tensor mat2) -> Tensor
convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor
convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)
_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)
"""

INDEXING = """
cat(Tensor[] tensors, int dim=0) -> Tensor
index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor
index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)
index_select(Tensor self, int dim, Tensor index) -> Tensor
gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor
scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
nonzero(Tensor self) -> Tensor
embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor
embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor
constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor
"""

NETWORK = """
native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)
native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)
_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)
native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)
max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)
max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor
avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor
avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor
nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)
nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor
"""

RANDOM = """
uniform_(Tensor(a!) self, float from=0, float to=1, *, Generator? generator=None) -> Tensor(a!)
normal_(Tensor(a!) self, float mean=0, float std=1, *, Generator? generator=None) -> Tensor(a!)
random_.from(Tensor(a!) self, int from, int? to, *, Generator? generator=None) -> Tensor(a!)
bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None) -> Tensor(a!)
"""

SCALARS = """
_local_scalar_dense(Tensor self) -> Scalar
equal(Tensor self, Tensor other) -> bool
"""

for _group in (VIEWS, CREATION, COPIES, UNARY, BINARY, REDUCTIONS, PRODUCTS, INDEXING, NETWORK, RANDOM, SCALARS):
    define_primitives(_group)


for _op in PRIMITIVES:
    if _op._opname in ("uniform_", "normal_", "random_", "bernoulli_", "randperm", "native_dropout"):
        _op.tags = frozenset({"nondeterministic_seeded"})


def _names(group: str) -> list[str]:
    return [line.partition("(")[0] for line in group.strip().splitlines()]


define_inplace(name for name in _names(UNARY) if name not in ("isnan", "isinf"))
NOT_IN_PLACE = "maximum minimum where.self pow.Scalar threshold_backward gelu_backward".split()
define_inplace(
    (name for name in _names(BINARY) if name not in NOT_IN_PLACE),
    overloads={"Tensor_Tensor": "Tensor", "Tensor_Scalar": "Scalar"},
)
define_inplace(("addmm", "cumsum", "scatter.src", "scatter_add"))
