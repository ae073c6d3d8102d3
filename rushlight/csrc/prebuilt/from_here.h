// What is included after this is compiled for the archive; what was included before, with RL_PREBUILT, is in another object.
#include <rushlight/vec.h>

#undef RL_PREBUILT
#undef RL_GIVEN
#undef RL_KERNEL
#define RL_GIVEN(...) template __VA_ARGS__;
#define RL_KERNEL __attribute__((noinline, used)) inline
#define RL_ARCHIVE  // what is compiled here asks the processor for what its instructions may lack
