"""Sonde for Python: capture what a program does, record scopes and metrics, open captures, read results as dicts.

    import sonde

    with sonde.capture(analyses={"workload": {}}) as captured:    # in this process; PyTorch too where it is imported
        with sonde.scope("step", domain="training"):
            sonde.metric("loss", 0.25)
    print(captured.report())
    for scope in captured.scopes:
        print(scope["name"], scope["duration_ns"])

    recorded = sonde.open("run")                                  # a recorded one
    for row in recorded.analyse("workload").table("workload", "kernels"):
        print(row["name"], row["total"])

`capture` is a context manager and a decorator; `Run` is the plain run below it; `sonde.torch` is the PyTorch adapter.
The extension `_sonde` needs libsonde beside it and no compiler. Integers of 64 bits are exact; text with bytes that
are not UTF-8 shows U+FFFD for them. Every failure of the SDK is a `sonde.Error` with its text and status.
"""

from ._sonde import Error, stamp, version
from .capturing import capture
from .events import Events
from .plugins import Plugin, plugin, plugins
from .runs import Capture, Results, Run, open
from .scopes import allocate, free, kernel, mark, metric, operator, scope

__version__ = version()

__all__ = [
    "Capture", "Error", "Events", "Plugin", "Results", "Run", "allocate", "capture", "free", "kernel", "mark",
    "metric", "open", "operator", "plugin", "plugins", "scope", "stamp", "version",
]


def __getattr__(name):
    # Imported at its first use: the package itself needs no PyTorch.
    if name == "torch":
        import importlib

        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
