"""Native code made at run time: the compiler on this machine, and the folder where its results are kept."""
