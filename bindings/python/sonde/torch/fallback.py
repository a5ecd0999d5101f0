"""Operators without the native part: a dispatch mode.

It sees the operators below autograd, on the thread that entered it and in the backward passes which that thread starts.
"""

import itertools

from torch.utils._python_dispatch import TorchDispatchMode

from .. import _sonde

_BEGIN, _END = 1, 2
_identities = itertools.count((1 << 61) + 1)


class DispatchOperators(TorchDispatchMode):
    """Operators for one session until `stop`, which must be called on the thread that made it."""

    def __init__(self, session):
        super().__init__()
        self._session = session
        self.__enter__()

    def stop(self):
        self.__exit__(None, None, None)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        schema = getattr(function, "_schema", None)
        name = schema.name if schema is not None else str(function)
        identity = next(_identities)
        _sonde.emit_begin(self._session, _BEGIN, name, "torch", identity, "dispatch")
        try:
            return function(*args, **(kwargs or {}))
        finally:
            _sonde.emit_end(self._session, _END, "torch", identity)
