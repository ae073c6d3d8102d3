"""Primitives that run as eager kernels inside a compiled graph, and why. The graph is cut around them."""

from __future__ import annotations

from rushlight.inductor.lowering.registry import fallback

fallback(
    "writes to its input; functionalization removes those it can",
    "copy_", "fill_.Scalar", "index_put_", "uniform_", "normal_", "random_.from", "bernoulli_.float",
)  # fmt: skip
fallback("writes its running statistics", "native_batch_norm")
fallback("draws random numbers from the eager generator", "randperm", "native_dropout")
fallback("its result is uninitialised memory", "empty.memory_format", "empty_strided")
fallback("its value or size depends on data", "_local_scalar_dense", "equal", "nonzero")
fallback("needs a sort or a scan", "cumsum", "sort.stable", "topk")
fallback("scatters: needs atomics or an ordered loop", "index_put", "scatter.src", "scatter_add")
fallback("part of a backward pass, which runs in eager", "gelu_backward", "_softmax_backward_data",
         "_log_softmax_backward_data", "convolution_backward", "embedding_dense_backward", "native_layer_norm_backward",
         "native_batch_norm_backward", "max_pool2d_with_indices_backward", "avg_pool2d_backward", "nll_loss_forward",
         "nll_loss_backward", "_scaled_dot_product_flash_attention_for_cpu_backward")  # fmt: skip
