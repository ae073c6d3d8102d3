/* The bits of dispatch keys that C code knows; rushlight.core.dispatch_key defines them all. */
#ifndef RUSHLIGHT_DISPATCH_KEYS_H
#define RUSHLIGHT_DISPATCH_KEYS_H

#define CPU_BIT (1UL << 1)
#define META_BIT (1UL << 2)
#define CUDA_BIT (1UL << 3)
#define SPARSE_CPU_BIT (1UL << 4)
#define QUANTIZED_CPU_BIT (1UL << 5)
#define PYTHON_BIT (1UL << 6)
#define CONJUGATE_BIT (1UL << 8)
#define NEGATIVE_BIT (1UL << 9)
#define ADINPLACE_OR_VIEW_BIT (1UL << 10)
#define AUTOGRAD_BIT (1UL << 11)
#define DUAL_BIT (1UL << 12)
#define AUTOCAST_BIT (1UL << 14)
#define BATCHED_BIT (1UL << 16)
#define NARROW_BIT (1UL << 18)

#define FORMAT_BITS (SPARSE_CPU_BIT | QUANTIZED_CPU_BIT)
#define LAZY_BITS (CONJUGATE_BIT | NEGATIVE_BIT) /* the tensor stands for the conjugate or the negative of its memory */
#define SPECIAL_BITS (FORMAT_BITS | LAZY_BITS)   /* tensors whose memory alone does not say what they hold */
#define BACKEND_BITS (CPU_BIT | META_BIT | CUDA_BIT | FORMAT_BITS)
#define AUTOGRAD_BITS (AUTOGRAD_BIT | ADINPLACE_OR_VIEW_BIT)
#define CPU_KEYS (CPU_BIT | AUTOGRAD_BITS)
#define CUDA_KEYS (CUDA_BIT | AUTOGRAD_BITS)

#endif
