"""Core: dtypes, devices, storages, tensor implementations and handles, strides, printing, generators."""
