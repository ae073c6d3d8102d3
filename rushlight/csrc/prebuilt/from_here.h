// Headers included after this file are compiled into the archive; those included before it, with RL_PREBUILT, are in another
// object.
#include <rushlight/vec.h>

#undef RL_PREBUILT
#undef RL_EXTERN
#undef RL_KERNEL
#define RL_EXTERN(...) template __VA_ARGS__;
#define RL_KERNEL __attribute__((noinline, used)) inline
// Archive kernels are compiled for one instruction set. They check at run time whether the processor has further instructions
// (VNNI).
#define RL_ARCHIVE
