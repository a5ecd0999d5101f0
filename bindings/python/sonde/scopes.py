"""Emitting from Python into the current session: the one of `sonde run`, or of a `sonde.Run`.

Without a session, or where nobody wants the event, a call costs one look and does nothing.
"""

import contextlib
import functools
import itertools

from . import _sonde

_OPERATOR_BEGIN, _OPERATOR_END, _SCOPE_PUSH, _SCOPE_POP, _MARK = 1, 2, 3, 4, 7
_RULES = {"inclusive": 0, "exclusive": 1, "property": 2}
_MEMORY = {"unknown": 0, "pageable": 1, "pinned": 2, "device": 3, "array": 4, "managed": 5}
_identities = itertools.count(1)
_is_compiling = None  # set by the PyTorch adapter; while torch.compile traces, a scope is nothing and breaks no graph


class _Interval(contextlib.ContextDecorator):
    """A scope or operator; as a context manager or a decorator. Reentrant; an exception still closes it."""

    def __init__(self, begin, end, name, domain):
        self._begin, self._end, self._name, self._domain = begin, end, name, domain
        self._open = []

    def __enter__(self):
        if _is_compiling is not None and _is_compiling():
            return self
        session = _sonde.current_session()
        identity = next(_identities)
        self._open.append((session, identity))
        if session is not None:
            _sonde.emit_begin(session, self._begin, self._name, self._domain, identity)
        return self

    def __exit__(self, *failure):
        if _is_compiling is not None and _is_compiling():
            return False
        session, identity = self._open.pop()
        if session is None:
            return False
        try:
            _sonde.emit_end(session, self._end, self._domain, identity)
        except _sonde.Error:
            pass  # the session was closed inside the scope: the begin stays without an end, which reports show
        return False

    def _recreate_cm(self):
        return type(self)(self._begin, self._end, self._name, self._domain)


def scope(name, domain="python"):
    """A named scope on this thread: `with scope("step"): ...` or `@scope("forward")`."""
    return _Interval(_SCOPE_PUSH, _SCOPE_POP, name, domain)


def operator(name, domain="python"):
    """An operator of a framework on this thread; used like `scope`."""
    return _Interval(_OPERATOR_BEGIN, _OPERATOR_END, name, domain)


def _with_session(emit):
    @functools.wraps(emit)
    def call(*arguments, **keywords):
        if _is_compiling is not None and _is_compiling():
            return False
        session = _sonde.current_session()
        return False if session is None else emit(session, *arguments, **keywords)

    return call


@_with_session
def mark(session, name, domain="python"):
    """A moment. True when it was captured."""
    return _sonde.emit_begin(session, _MARK, name, domain)


@_with_session
def metric(session, name, value, unit="", rule="inclusive"):
    """A number of the open scope; rule: inclusive (summed upwards), exclusive, property (the last stands)."""
    return _sonde.emit_metric(session, name, float(value), unit, _RULES[rule])


@_with_session
def allocate(session, address, bytes, kind="device", device=0, name=""):
    """Memory was allocated at `address` (an integer)."""
    return _sonde.emit_allocate(session, address, bytes, _MEMORY[kind], device, name)


@_with_session
def free(session, address, kind="device", device=0):
    """Memory was freed."""
    return _sonde.emit_free(session, address, _MEMORY[kind], device)


@_with_session
def kernel(session, name, begin, end, device=0, stream=0):
    """A kernel that the program timed itself, from `sonde.stamp()` to `sonde.stamp()`."""
    return _sonde.emit_kernel(session, name, begin, end, device, stream)
