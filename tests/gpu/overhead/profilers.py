"""Profilers that run inside the measured process.

start() and stop() bracket one workload; export() writes what was recorded to a file, as a user of the tool would, and
returns the file. kernels() counts what it holds. scopes() gives the tool's own way to open and close a scope.
"""

import json
import os

import torch


def nvtx_scopes():
    """Ranges of NVTX: nothing without a tool that listens."""
    if not torch.cuda.is_available():
        return (lambda name: None), (lambda opened: None)
    nvtx = torch.cuda.nvtx
    return nvtx.range_push, lambda opened: nvtx.range_pop()


class NoProfiler:
    """Nothing inside the process; a recorder outside of it may still be at work."""

    def __init__(self, folder):
        del folder

    def start(self, workload):
        pass

    def stop(self):
        pass

    def export(self):
        return None

    def kernels(self, path):
        return None

    def scopes(self):
        return nvtx_scopes()


class Proton:
    """Triton's profiler: kernels only, added up in a tree or as a trace."""

    def __init__(self, folder, data):
        import triton.profiler as proton

        self.proton = proton
        self.folder = folder
        self.data = data
        self.session = None
        self.path = None

    def start(self, workload):
        self.path = os.path.join(self.folder, f"proton-{workload}")
        self.session = self.proton.start(self.path, context="shadow", data=self.data)

    def stop(self):
        # Proton writes its file where it stops; there is no separate export.
        self.proton.finalize(self.session)

    def export(self):
        return self.path + (".hatchet" if self.data == "tree" else ".chrome_trace")

    def kernels(self, path):
        # A trace may be followed by more JSON values.
        with open(path, encoding="utf-8") as stream:
            content, _ = json.JSONDecoder().raw_decode(stream.read().lstrip())
        if self.data == "trace":
            return sum(1 for event in content["traceEvents"] if event.get("ph") == "X")
        waiting = list(content)
        total = 0
        while waiting:
            node = waiting.pop()
            waiting.extend(node.get("children", []))
            total += int(node.get("metrics", {}).get("count", 0))
        return total

    def scopes(self):
        return self.proton.enter_scope, lambda opened: self.proton.exit_scope()


class Torch:
    """torch.profiler; started once before, as its first start is slow."""

    def __init__(self, folder, with_host):
        from torch.profiler import ProfilerActivity, profile

        activities = [ProfilerActivity.CUDA]
        if with_host:
            activities.append(ProfilerActivity.CPU)
        self.make = lambda: profile(activities=activities)
        self.folder = folder
        self.workload = ""
        self.profiler = None
        first = self.make()
        first.start()
        first.stop()

    def start(self, workload):
        self.workload = workload
        self.profiler = self.make()
        self.profiler.start()

    def stop(self):
        self.profiler.stop()

    def export(self):
        path = os.path.join(self.folder, f"torch-{self.workload}.json")
        self.profiler.export_chrome_trace(path)
        return path

    def kernels(self, path):
        del path
        cuda = torch.autograd.DeviceType.CUDA
        events = self.profiler.profiler.kineto_results.events()
        return sum(
            1
            for event in events
            if event.device_type() == cuda and not event.name().startswith(("Memcpy", "Memset"))
        )

    def scopes(self):
        def push(name):
            scope = torch.profiler.record_function(name)
            scope.__enter__()
            return scope

        return push, lambda opened: opened.__exit__(None, None, None)


def make_profiler(configuration, folder):
    if configuration == "proton":
        return Proton(folder, "tree")
    if configuration == "proton_trace":
        return Proton(folder, "trace")
    if configuration == "torch":
        return Torch(folder, with_host=False)
    if configuration == "torch_full":
        return Torch(folder, with_host=True)
    return NoProfiler(folder)
