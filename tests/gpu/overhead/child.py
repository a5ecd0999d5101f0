"""One measured process: all workloads under one configuration. Started by overhead.py.

It imports, makes the device's context and prints {"ready": 1}; then it waits for a line on standard input, so that the
processes of a round get ready side by side and are measured one after the other. The last line printed is JSON. Times
are in nanoseconds, for each workload:
    wall_ns   the loop with a final device synchronisation
    issue_ns  the loop without it: the time until the last launch was accepted
    cpu_ns    processor time of all threads of the process between the same two moments as wall_ns
    start_ns, stop_ns, export_ns  of the profiler that runs inside the process, if one does
The loop runs after a warm-up of the same operations with the profiler already on.
"""

import argparse
import json
import os
import resource
import sys
import time

import torch

import profilers
import workloads


def measure(workload, iterations, synchronize):
    processor = time.process_time_ns()
    begin = time.perf_counter_ns()
    workload.run(iterations)
    issued = time.perf_counter_ns()
    synchronize()
    end = time.perf_counter_ns()
    return {
        "wall_ns": end - begin,
        "issue_ns": issued - begin,
        "cpu_ns": time.process_time_ns() - processor,
    }


def timed(function, *arguments):
    begin = time.perf_counter_ns()
    value = function(*arguments)
    return time.perf_counter_ns() - begin, value


def run_workload(name, options, profiler, device, synchronize):
    kind = workloads.WORKLOADS[name]
    workload = kind(device, profiler.scopes())
    iterations = max(1, round(kind.iterations * options.scale))
    synchronize()
    result = {"iterations": iterations, "warm_up": kind.warm_up}
    if kind.launches is not None:
        result["launches"] = iterations * kind.launches
    result["start_ns"], _ = timed(profiler.start, name)
    workload.run(kind.warm_up)
    synchronize()
    result.update(measure(workload, iterations, synchronize))
    result["stop_ns"], _ = timed(profiler.stop)
    result["export_ns"], path = timed(profiler.export)
    result["file_bytes"] = os.path.getsize(path) if path is not None else None
    result["kernels"] = profiler.kernels(path) if options.count else None
    if path is not None:
        os.remove(path)
    return result


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--configuration", required=True)
    parser.add_argument("--workloads", required=True, help="names, separated by commas")
    parser.add_argument("--scale", type=float, default=1.0, help="of all iteration counts")
    parser.add_argument("--folder", required=True, help="for files of the profiler inside")
    parser.add_argument("--count", action="store_true", help="also count the profiler's kernels")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--no-wait", action="store_true", help="begin at once")
    options = parser.parse_args(arguments)

    device = torch.device(options.device)
    synchronize = torch.cuda.synchronize if options.device == "cuda" else (lambda: None)
    torch.zeros(1, device=device)
    synchronize()
    if "triton" in options.workloads.split(","):
        import triton_kernel  # noqa: F401  (slow to import)
    profiler = profilers.make_profiler(options.configuration, options.folder)
    if not options.no_wait:
        print(json.dumps({"ready": 1}), flush=True)
        if not sys.stdin.readline():
            return 1
    results = {}
    for name in options.workloads.split(","):
        results[name] = run_workload(name, options, profiler, device, synchronize)
    print(
        json.dumps(
            {
                "overhead_child": 1,
                "configuration": options.configuration,
                "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "workloads": results,
            }
        ),
        flush=True,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
