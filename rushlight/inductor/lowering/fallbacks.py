"""Primitives that run as eager kernels inside a compiled graph, with the reason. The graph is split around them."""

from __future__ import annotations

from rushlight.inductor.lowering.registry import fallback

fallback(
    "writes to its input; functionalization removes those it can",
    "copy_", "fill_.Scalar", "index_put_", "uniform_", "normal_", "random_.from", "bernoulli_.float",
)  # fmt: skip
fallback("writes its running statistics", "native_batch_norm")
fallback("draws random numbers from the eager generator", "randperm", "native_dropout", "_philox_seed")
fallback("reads the bytes of a buffer as elements of another dtype", "view.dtype")
fallback("its value or size depends on data", "_local_scalar_dense", "equal", "nonzero")
fallback("part of a backward pass, which runs in eager", "_softmax_backward_data", "_log_softmax_backward_data",
         "native_layer_norm_backward", "native_batch_norm_backward", "nll_loss_forward", "nll_loss_backward")  # fmt: skip
fallback("reads the bits of elements", "hash_tensor")
fallback("its size depends on data", "_unique2", "unique_dim", "unique_consecutive")
fallback("works on regions of images", *(f"torchvision::{name}" for name in (
    "nms", "box_iou_rotated", "roi_align", "_roi_align_backward", "roi_pool", "_roi_pool_backward", "ps_roi_align",
    "_ps_roi_align_backward", "ps_roi_pool", "_ps_roi_pool_backward")))  # fmt: skip
fallback("walks along a sequence", "_ctc_loss", "_ctc_loss_backward")
fallback("factorizes or solves with LAPACK", "linalg_ldl_factor_ex", "geqrf", "linalg_householder_product", "linalg_eig",
         "_linalg_eigvals", "linalg_ldl_solve", "linalg_lstsq", "linalg_matrix_exp")  # fmt: skip
fallback("draws random numbers from the eager generator", "cauchy_", "exponential_", "geometric_", "log_normal_", "random_",
         "bernoulli_.Tensor", "multinomial", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet")  # fmt: skip
fallback("integrates numerically", "_standard_gamma_grad", "_dirichlet_grad")
fallback("writes what an observer saw", "_fused_moving_avg_obs_fq_helper")
fallback("decompositions of `aot` take its place", "fake_quantize_per_tensor_affine_cachemask",
         "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
         "fake_quantize_per_channel_affine_cachemask")  # fmt: skip
fallback("rounds a zero point that is learned", "_fake_quantize_learnable_per_tensor_affine",
         "_fake_quantize_learnable_per_channel_affine")  # fmt: skip
fallback("unpacks weights of 4 bits", "_convert_weight_to_int4pack_for_cpu", "_weight_int4pack_mm_for_cpu",
         "_dyn_quant_pack_4bit_weight", "_dyn_quant_matmul_4bit")  # fmt: skip
