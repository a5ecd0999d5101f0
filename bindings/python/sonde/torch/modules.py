"""Calls of torch.nn modules as scopes.

The name of a scope is the module's path from the outermost module that is being called ("layers.0.linear"), that of the
outermost one its class; the category is the class.

While somebody captures, the code of `torch.nn.Module.__call__` is exchanged, not the function: torch.compile knows a
module by that function and goes straight to `forward` when it is the one it knows, so graphs, guards and source lines
stay as they are. Global module hooks would not do: torch.compile warns about them and compiles anew when they change,
and they miss calls that end in an exception. Within a compiled graph there are no modules.
"""

import itertools
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
_paths = weakref.WeakKeyDictionary()  # outermost module -> {module: path}, weak too
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

    def called(module, arguments, keywords):
        return _called(original, module, arguments, keywords)

    function.__globals__.update(_sonde_original=original, _sonde_called=called,
                                _sonde_is_compiling=getattr(compiler, "is_compiling", None) or (lambda: False))
    # Under PyTorch's own file name: what torch.compile leaves out of its traces and what it does not, it knows by that.
    function.__code__ = _call.__code__.replace(co_filename=own.co_filename, co_name=own.co_name)
    _exchanged = function, own
    _skip((called, _called, _name, _path, _emit))


def _restore():
    global _exchanged
    function, own = _exchanged
    function.__code__ = own
    _exchanged = None


def _skip(functions):
    # torch.compile looks at every Python function that a compiled one reaches eagerly; these it shall run as they are.
    try:
        from torch._C._dynamo.eval_frame import skip_code
    except ImportError:
        return
    for function in functions:
        skip_code(function.__code__)


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
