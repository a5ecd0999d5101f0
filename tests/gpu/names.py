"""Kernel names in one spelling.

Recorders differ in how they write the same name: mangled or not, with or without spaces inside
template arguments; torch.profiler leaves names of more than 1024 characters mangled. Names are
compared after `spelling`, and where a program knows only its kernels' plain names, after
`plain_name`.
"""

import ctypes
import functools

_OPEN, _CLOSE = "<([{", ">)]}"


@functools.lru_cache(maxsize=1)
def _demangler():
    library = ctypes.CDLL("libstdc++.so.6")
    function = library.__cxa_demangle
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    release = ctypes.CDLL(None).free
    release.argtypes = [ctypes.c_void_p]
    release.restype = None
    return function, release


@functools.lru_cache(maxsize=None)
def demangled(name):
    """The name by the C++ library's demangler; unchanged when it is not a mangled name."""
    if not name.startswith("_Z"):
        return name
    function, release = _demangler()
    status = ctypes.c_int(0)
    text = function(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return ctypes.string_at(text).decode()
    finally:
        release(text)


@functools.lru_cache(maxsize=None)
def spelling(name):
    """Demangled and without white space: equal for all spellings of one name."""
    return "".join(demangled(name).split())


@functools.lru_cache(maxsize=None)
def plain_name(name):
    """The function's own name: no return type, scope, template arguments or parameters."""
    depth = 0
    outside = []
    for character in demangled(name):
        if character in _OPEN:
            depth += 1
        elif character in _CLOSE:
            depth -= 1
        elif depth == 0:
            outside.append(character)
    words = "".join(outside).split()
    return words[-1].split("::")[-1] if words else name


def merged(counts, rename):
    """Counts by `rename(name)`; names that become equal are added up."""
    result = {}
    for name, count in counts.items():
        name = rename(name)
        result[name] = result.get(name, 0) + count
    return result
