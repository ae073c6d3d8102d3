// What is included after this is compiled for the archive; what was included before, with RL_PREBUILT, is in another object.
#include <rushlight/vec.h>

#undef RL_PREBUILT
#undef RL_GIVEN
#undef RL_KERNEL
#define RL_GIVEN(...) template __VA_ARGS__;
#define RL_KERNEL __attribute__((noinline, used)) inline
// Kernels of an archive are compiled for a set of instructions. They ask the processor at run time for those beyond it (VNNI).
#define RL_ARCHIVE
