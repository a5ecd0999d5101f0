"""Calls of torch.nn modules as scopes.

The name of a scope is the module's path from the outermost module that is being called ("layers.0.linear"), that of the
outermost one its class; the category is the class.

While somebody captures, the code of `torch.nn.Module.__call__` is exchanged, not the function: torch.compile knows a
module by that function and goes straight to `forward` when it is the one it knows, so graphs, guards and source lines
stay as they are. Global module hooks would not do: torch.compile warns about them and compiles anew when they change,
and they miss calls that end in an exception. Within a compiled graph there are no modules.
"""

import functools
import itertools
import sys
import threading
import types
import weakref

from .. import _sonde

_PUSH, _POP = 3, 4
_DOMAIN = "torch.nn"
_lock = threading.Lock()
_sessions = []  # of those who capture now
_exchanged = None  # (function, its own code) while somebody captures
_local = threading.local()
# By the identity of the outermost module: a reference that empties the entry, and {identity of a part: (reference, path)}.
_paths = {}
# Bit 62 keeps them apart from the numbers of scopes.
_identities = itertools.count((1 << 62) + 1)


class ModuleScopes:
    """Scopes for one session until `stop`."""

    def __init__(self, torch, session):
        self._session = session
        with _lock:
            if not _sessions:
                _exchange(torch)
            _sessions.append(session)

    def stop(self):
        with _lock:
            _sessions[:] = [session for session in _sessions if session is not self._session]
            if not _sessions:
                _restore()


def _call(self, *arguments, **keywords):
    # Runs in the namespace of the function that it replaces. torch.compile, where it comes here at all, takes the
    # first way: the answer is a constant to it.
    if _sonde_is_compiling():  # noqa: F821
        return _sonde_original(self, *arguments, **keywords)  # noqa: F821
    return _sonde_called(self, arguments, keywords)  # noqa: F821


def _exchange(torch):
    global _exchanged
    function = torch.nn.Module.__call__
    if not isinstance(function, types.FunctionType) or function.__closure__:
        raise _sonde.Error("the program replaced torch.nn.Module.__call__", -1)
    own = function.__code__
    original = types.FunctionType(own, function.__globals__, function.__name__, function.__defaults__)
    original.__kwdefaults__ = function.__kwdefaults__
    compiler = getattr(torch, "compiler", None)
    function.__globals__.update(_sonde_original=original, _sonde_called=functools.partial(_sonde_called, original),
                                _sonde_is_compiling=getattr(compiler, "is_compiling", None) or (lambda: False))
    # torch.compile looks at each Python function that is reached from one it compiled, and compiles it, unless it
    # comes from one of PyTorch's own files. So what stands between a module and its forward function bears the name of
    # the file whose place it takes. No function of the standard library that is written in Python is called there.
    for helper in (_sonde_called, _sonde_emit, _sonde_name, _sonde_path):
        helper.__code__ = helper.__code__.replace(co_filename=own.co_filename)
    function.__code__ = _call.__code__.replace(co_filename=own.co_filename, co_name=own.co_name,
                                               co_firstlineno=own.co_firstlineno)
    # And it can be told so, once it is there.
    skip_code = getattr(sys.modules.get("torch._dynamo.eval_frame"), "skip_code", None)
    if skip_code is not None:
        for helper in (_sonde_called, _sonde_emit, _sonde_name, _sonde_path):
            skip_code(helper.__code__)
    _exchanged = function, own


def _restore():
    global _exchanged
    function, own = _exchanged
    function.__code__ = own
    _exchanged = None


# The names of these four tell the reader of call paths to leave them out, see native/stacks.cpp.


def _sonde_called(original, module, arguments, keywords):
    stack = _local.__dict__.setdefault("stack", [])
    name, category = _sonde_name(stack, module), type(module).__name__
    identity = next(_identities)
    sessions = tuple(_sessions)
    for session in sessions:
        _sonde_emit(_sonde.emit_begin, session, _PUSH, name, _DOMAIN, identity, category)
    stack.append(module)
    try:
        return original(module, *arguments, **keywords)
    finally:
        stack.pop()
        for session in sessions:
            _sonde_emit(_sonde.emit_end, session, _POP, _DOMAIN, identity)


def _sonde_emit(emit, *arguments):
    try:
        emit(*arguments)
    except _sonde.Error:
        pass  # the session was closed inside the module


def _sonde_name(stack, module):
    if not stack:
        return type(module).__name__
    entry = _paths.get(id(stack[0]))
    found = entry[1].get(id(module)) if entry is not None else None
    # Identities are used again once an object is gone, so each is checked.
    if found is None or entry[0]() is not stack[0] or found[0]() is not module:
        return _sonde_path(stack[0], module) or type(module).__name__
    return found[1] or type(module).__name__


def _sonde_path(outermost, module):
    parts = {}
    for path, inner in outermost.named_modules():
        parts[id(inner)] = weakref.ref(inner), path
    if id(module) not in parts:  # called by another without being a part of it: it has no path
        parts[id(module)] = weakref.ref(module), ""
    key = id(outermost)
    _paths[key] = weakref.ref(outermost, functools.partial(_paths.pop, key)), parts
    return parts[id(module)][1]
