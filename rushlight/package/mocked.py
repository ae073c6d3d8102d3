"""Stubs for modules that a package mocks. Packages contain this file's text as `_mock.py`, so it imports nothing."""

_OPERATORS = """
    add and divmod floordiv lshift matmul mod mul or pow rshift sub truediv xor
""".split()
_METHODS = """
    abs bool bytes call ceil complex contains copy deepcopy delattr delitem dir enter eq exit float floor ge getitem getstate
    gt hash index instancecheck int invert iter le len lt ne neg pos reduce reversed round setattr setitem subclasscheck trunc
""".split()


class MockedObject:
    """An object of a mocked module; every use of it raises NotImplementedError."""

    def __init__(self, name, _suppress_err):
        self.__dict__["_name"] = name
        if not _suppress_err:
            self._refuse("creation")

    def _refuse(self, use):
        raise NotImplementedError(
            f"Object '{self.__dict__['_name']}' was mocked out during packaging but it is being used in {use}"
        )

    def __getattr__(self, name):
        self._refuse("__getattr__")

    def __repr__(self):
        return f"MockedObject({self.__dict__['_name']})"


def _make_refusing(name):
    def method(self, *args, **kwargs):
        self._refuse(name)

    method.__name__ = name
    return method


_VARIANTS = [prefix + each for prefix in ("", "r", "i") for each in _OPERATORS if prefix + each != "idivmod"]
for _method in (*_METHODS, *_VARIANTS):
    setattr(MockedObject, f"__{_method}__", _make_refusing(f"__{_method}__"))
