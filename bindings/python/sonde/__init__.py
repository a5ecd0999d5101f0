"""Sonde for Python: record scopes and metrics, open captures, read tables as dicts.

    import sonde

    with sonde.Run(analyses={"workload": {}}) as run:      # in this process
        with sonde.scope("step", domain="training"):
            sonde.metric("loss", 0.25)
    print(run.report())

    capture = sonde.open("run")                             # a recorded one
    results = capture.analyse("workload")
    for row in results.table("workload", "kernels"):
        print(row["name"], row["total"])

The extension `_sonde` needs libsonde beside it and no compiler. Integers of 64 bits are exact; text with bytes that
are not UTF-8 shows U+FFFD for them. Every failure of the SDK is a `sonde.Error` with its text and status.
"""

from ._sonde import Error, stamp, version
from .capture import Capture, Results, Run, open
from .plugins import Plugin, plugin, plugins
from .scopes import allocate, free, kernel, mark, metric, operator, scope

__version__ = version()

__all__ = [
    "Capture", "Error", "Plugin", "Results", "Run", "allocate", "free", "kernel", "mark", "metric", "open", "operator",
    "plugin", "plugins", "scope", "stamp", "version",
]
