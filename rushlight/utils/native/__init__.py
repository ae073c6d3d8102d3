"""Native code built at run time: the compiler on this machine, and the cache folder."""
