/* The bits of dispatch keys that C code knows; rushlight.core.dispatch_key defines them all. */
#ifndef RUSHLIGHT_DISPATCH_KEYS_H
#define RUSHLIGHT_DISPATCH_KEYS_H

#define CPU_BIT (1UL << 1)
#define META_BIT (1UL << 2)
#define SPARSE_CPU_BIT (1UL << 3)
#define ADINPLACE_OR_VIEW_BIT (1UL << 6)
#define AUTOGRAD_BIT (1UL << 7)
#define AUTOCAST_BIT (1UL << 9)

#define BACKEND_BITS (CPU_BIT | META_BIT | SPARSE_CPU_BIT)
#define AUTOGRAD_BITS (AUTOGRAD_BIT | ADINPLACE_OR_VIEW_BIT)
#define CPU_KEYS (CPU_BIT | AUTOGRAD_BITS)

#endif
