"""Calls of torch.nn modules as scopes.

The name of a scope is the module's path from the outermost module that is being called ("layers.0.linear"), that of the
outermost one its class; the category is the class. `torch.nn.Module.__call__` is wrapped while somebody captures:
global module hooks would do, but torch.compile warns about them and compiles anew when they change, and they miss
calls that end in an exception. While torch.compile traces, the wrapper is the original, so that graphs stay as they
are; within a compiled graph there are no modules.
"""

import functools
import itertools
import threading
import weakref

from .. import _sonde

_PUSH, _POP = 3, 4
_DOMAIN = "torch.nn"
_lock = threading.Lock()
_sessions = []  # of those who capture now
_original = None
_wrapper = None
_local = threading.local()
_paths = weakref.WeakKeyDictionary()  # outermost module -> {module: path}, weak too
# Bit 62 keeps them apart from the numbers of scopes.
_identities = itertools.count((1 << 62) + 1)


class ModuleScopes:
    """Scopes for one session until `stop`."""

    def __init__(self, torch, session):
        self._session = session
        self._module = torch.nn.Module
        with _lock:
            _sessions.append(session)
            if len(_sessions) == 1:
                _install(torch)

    def stop(self):
        with _lock:
            _sessions[:] = [session for session in _sessions if session is not self._session]
            if not _sessions:
                _remove(self._module)


def _install(torch):
    global _original, _wrapper
    if torch.nn.Module.__call__ is _wrapper:
        return  # it could not be removed earlier, see _remove
    compiler = getattr(torch, "compiler", None)
    is_compiling = getattr(compiler, "is_compiling", None) or (lambda: False)
    original = torch.nn.Module.__call__

    @functools.wraps(original)
    def __call__(self, *arguments, **keywords):
        if is_compiling() or not _sessions:
            return original(self, *arguments, **keywords)
        return _called(original, self, arguments, keywords)

    _original, _wrapper = original, __call__
    torch.nn.Module.__call__ = __call__


def _remove(module):
    # Where somebody wrapped the wrapper it stays, and does nothing.
    if module.__call__ is _wrapper:
        module.__call__ = _original


def _called(original, module, arguments, keywords):
    stack = _local.__dict__.setdefault("stack", [])
    name, category = _name(stack, module), type(module).__name__
    identity = next(_identities)
    sessions = tuple(_sessions)
    for session in sessions:
        _emit(_sonde.emit_begin, session, _PUSH, name, _DOMAIN, identity, category)
    stack.append(module)
    try:
        return original(module, *arguments, **keywords)
    finally:
        stack.pop()
        for session in sessions:
            _emit(_sonde.emit_end, session, _POP, _DOMAIN, identity)


def _emit(emit, *arguments):
    try:
        emit(*arguments)
    except _sonde.Error:
        pass  # the session was closed inside the module


def _name(stack, module):
    try:
        return _path(stack, module)
    except TypeError:  # the class compares modules its own way and has no hash
        return type(module).__name__


def _path(stack, module):
    if not stack:
        return type(module).__name__
    outermost = stack[0]
    paths = _paths.get(outermost)
    path = paths.get(module) if paths is not None else None
    if path is None:
        paths = _paths[outermost] = weakref.WeakKeyDictionary(
            (inner, path) for path, inner in outermost.named_modules())
        # A module that is called by another without being a part of it has no path.
        path = paths.setdefault(module, type(module).__name__)
    return path or type(module).__name__
