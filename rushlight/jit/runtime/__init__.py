"""The runtime: graphs become instructions, which a stack machine or native code runs."""
