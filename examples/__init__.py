"""Programs written with `import rushlight as torch`; `python -m examples.NAME` runs one."""
