"""Counts of one whole run as torch.profiler sees them, written as JSON.

The window opens when `whole_run` is entered and closes when it is left. The programs of this
folder enter it after `import torch` and the creation of the CUDA context, and before the first
tensor, and leave it after the last synchronisation, so the window holds every kernel, copy and
set that the program asks for. A capture of the same command made from outside covers the whole
process and should therefore hold the same records; what the driver does on its own account
outside the window, if a tool shows it, is the only difference to expect.
"""

import contextlib
import json
import os
import re
import tempfile

# "Memcpy HtoD (Pageable -> Device)" and "Memcpy DtoD (Device -> Device)"
_COPY_NAME = re.compile(r"Memcpy\s+(\w+)to(\w+)")


def copy_direction(name):
    """Direction of a copy, as `HtoD`, from the profiler's event name; `other` if it has none."""
    match = _COPY_NAME.search(name)
    return f"{match.group(1)}to{match.group(2)}" if match else "other"


def counts_of_trace(trace):
    """Counts in a Chrome trace that torch.profiler wrote.

    Device records are told apart by their category, never by name. Sizes are in bytes, times in
    nanoseconds.
    """
    kernels = {}
    copies = {}
    sets = {"count": 0, "bytes": 0}
    kernel_time = 0.0
    for event in trace.get("traceEvents", []):
        if event.get("ph") != "X":
            continue
        category = event.get("cat", "").lower()
        arguments = event.get("args", {})
        if category == "kernel":
            kernels[event["name"]] = kernels.get(event["name"], 0) + 1
            kernel_time += float(event.get("dur", 0.0)) * 1000.0
        elif category == "gpu_memcpy":
            entry = copies.setdefault(copy_direction(event["name"]), {"count": 0, "bytes": 0})
            entry["count"] += 1
            entry["bytes"] += int(arguments.get("bytes", 0))
        elif category == "gpu_memset":
            sets["count"] += 1
            sets["bytes"] += int(arguments.get("bytes", 0))
    return {
        "kernels": kernels,
        "kernel_total": sum(kernels.values()),
        "kernel_time_ns": round(kernel_time),
        "copies": copies,
        "sets": sets,
    }


@contextlib.contextmanager
def whole_run(path):
    """Runs the body under torch.profiler (device activities only) and writes its counts to `path`.

    With `path` None the body runs without a profiler, so that both forms of a program do the
    same work in the same order.
    """
    if path is None:
        yield
        return
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        yield
        torch.cuda.synchronize()
    handle, trace_path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    try:
        profiler.export_chrome_trace(trace_path)
        with open(trace_path, encoding="utf-8", errors="replace") as stream:
            counts = counts_of_trace(json.load(stream))
    finally:
        os.unlink(trace_path)
    counts["tool"] = "torch.profiler"
    counts["torch"] = torch.__version__
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(counts, stream, indent=1, sort_keys=True)
        stream.write("\n")
