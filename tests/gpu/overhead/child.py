"""One measured process: one workload under one configuration. Started by overhead.py.

The last line printed is JSON. Times are in nanoseconds:
    wall_ns   the loop with a final device synchronisation
    issue_ns  the loop without it: the time until the last launch was accepted
    cpu_ns    processor time of all threads of the process between the same two moments as wall_ns
    start_ns, stop_ns  start and stop of the profiler that runs inside the process, if one does
Whatever the configuration, the loop runs after a warm-up of the same operations with the profiler
already on.
"""

import argparse
import json
import os
import resource
import sys
import time

import torch
from torch import nn


class NoProfiler:
    """Nothing inside the process; a recorder outside of it may still be at work."""

    def start(self):
        pass

    def stop(self):
        pass

    def kernels(self):
        return None


class ProtonTree:
    """Triton's profiler: kernels only, added up in a tree."""

    def __init__(self, folder):
        import triton.profiler as proton

        self.proton = proton
        self.path = os.path.join(folder, "proton")
        self.session = None

    def start(self):
        self.session = self.proton.start(self.path, context="shadow", data="tree")

    def stop(self):
        self.proton.finalize(self.session)

    def kernels(self):
        with open(self.path + ".hatchet", encoding="utf-8") as stream:
            roots = json.load(stream)
        waiting = list(roots)
        total = 0
        while waiting:
            node = waiting.pop()
            waiting.extend(node.get("children", []))
            total += int(node.get("metrics", {}).get("count", 0))
        return total


class TorchDeviceOnly:
    """torch.profiler with device activities only; started once before, as its first start is slow."""

    def __init__(self, folder):
        del folder
        from torch.profiler import ProfilerActivity, profile

        self.make = lambda: profile(activities=[ProfilerActivity.CUDA])
        first = self.make()
        first.start()
        first.stop()
        self.profiler = self.make()

    def start(self):
        self.profiler.start()

    def stop(self):
        self.profiler.stop()

    def kernels(self):
        cuda = torch.autograd.DeviceType.CUDA
        events = self.profiler.profiler.kineto_results.events()
        return sum(
            1
            for event in events
            if event.device_type() == cuda and not event.name().startswith(("Memcpy", "Memset"))
        )


def make_profiler(configuration, folder):
    if configuration == "proton":
        return ProtonTree(folder)
    if configuration == "torch":
        return TorchDeviceOnly(folder)
    return NoProfiler()


def tiny_adds(device, elements=256):
    """One addition of a few numbers: the launch is all there is to it."""
    values = torch.zeros(elements, device=device)
    one = torch.ones(elements, device=device)

    def run():
        torch.add(values, one, out=values)

    return run


def training_step(device, layers=8, width=256, batch=8, length=64):
    """Forward and backward of an encoder whose kernels are shorter than their launches."""
    torch.manual_seed(20)
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).to(device)
    inputs = torch.randn(batch, length, width, device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=True)

    def run():
        optimizer.zero_grad(set_to_none=True)
        model(inputs).square().mean().backward()
        optimizer.step()

    return run


WORKLOADS = {"adds": (tiny_adds, 2000), "training": (training_step, 10)}  # and warm-up


def measure(run, iterations, synchronize):
    processor = time.process_time_ns()
    begin = time.perf_counter_ns()
    for _ in range(iterations):
        run()
    issued = time.perf_counter_ns()
    synchronize()
    end = time.perf_counter_ns()
    return {
        "wall_ns": end - begin,
        "issue_ns": issued - begin,
        "cpu_ns": time.process_time_ns() - processor,
    }


def timed(function):
    begin = time.perf_counter_ns()
    function()
    return time.perf_counter_ns() - begin


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configuration", required=True)
    parser.add_argument("--workload", choices=sorted(WORKLOADS), required=True)
    parser.add_argument("--iterations", type=int, required=True)
    parser.add_argument("--folder", required=True, help="for files of the profiler inside")
    parser.add_argument("--count", action="store_true", help="also count the profiler's kernels")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args(arguments)

    make, warm_up = WORKLOADS[options.workload]
    device = torch.device(options.device)
    synchronize = torch.cuda.synchronize if options.device == "cuda" else (lambda: None)
    profiler = make_profiler(options.configuration, options.folder)
    run = make(device)
    synchronize()
    result = {
        "overhead_child": 1,
        "configuration": options.configuration,
        "workload": options.workload,
        "iterations": options.iterations,
        "warm_up": warm_up,
        "start_ns": timed(profiler.start),
    }
    for _ in range(warm_up):
        run()
    synchronize()
    result.update(measure(run, options.iterations, synchronize))
    result["stop_ns"] = timed(profiler.stop)
    result["peak_memory_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    result["kernels"] = profiler.kernels() if options.count else None
    print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
