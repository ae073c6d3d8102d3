"""TorchScript archives, in the order of the data.

Reading: `archive.py` the records, `unpickling.py` objects, `importer.py` and `names.py` types and code, `loading.py` modules.
Writing: `code_names.py`, `code_expressions.py` and `code_printer.py` graphs to code, `class_printer.py` whole files of it,
`pickling.py` objects, `saving.py` the records.
"""
