#!/usr/bin/env python3
"""Cost of one PyTorch operator on the CPU while it is captured, beside torch.profiler and nothing.

  python_torch.py [--repeats 7] [--operators 20000]      (PYTHONPATH holds the package)

Each configuration runs in a fresh process, in random order, `repeats` times. The operator negates one element in place:
all of its time is overhead, and PyTorch calls no other for it. Times are CPU time of the calling thread, which a busy
machine changes little. Prints, for each configuration, median and quartiles of ns an operator, and what that is above the
plain loop of the same process (median of the differences). Each process counts its fastest loop of five: the first ones
touch fresh memory.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

CONFIGURATIONS = {
    "nothing": None,
    "operators": {"modules": False, "tensors": False},
    "operators, shapes": {"modules": False, "tensors": False, "shapes": True},
    "operators, call paths": {"modules": False, "tensors": False, "stacks": True},
    "operators, dispatch mode": {"modules": False, "tensors": False, "native": False},
    "torch.profiler": None,
    "torch.profiler, shapes": None,
}


def loop(tensor, count):
    begin = time.thread_time_ns()
    for _ in range(count):
        tensor.neg_()
    return (time.thread_time_ns() - begin) / count


def child(name, count):
    import torch

    import sonde

    torch.set_num_threads(1)
    tensor = torch.zeros(1)
    loop(tensor, count)
    plain = min(loop(tensor, count) for _ in range(5))
    if name == "nothing":
        captured = min(loop(tensor, count) for _ in range(5))
    elif name.startswith("torch.profiler"):
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities):
            loop(tensor, 10)
        with torch.profiler.profile(activities=activities, record_shapes="shapes" in name):
            captured = min(loop(tensor, count) for _ in range(5))
    else:
        # What is captured is delivered and dropped: the cost is the program's, not that of making dicts.
        session = {"ring": "16Mi", "memory": "512Mi"}  # a reader that the machine keeps waiting loses nothing
        with sonde.capture(torch=CONFIGURATIONS[name], records_limit=1, configuration={"session": session}) as run:
            captured = min(loop(tensor, count) for _ in range(5))
        if not 10 * count <= run.left_out <= 10 * count + 100:
            raise SystemExit(f"{name}: {run.left_out} records for {count} operators, expected a begin and an end each")
        if any(loss["records"] for loss in run.results.losses):
            raise SystemExit(f"{name}: lost records: {run.results.losses}")
    print(json.dumps({"plain": plain, "captured": captured}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--operators", type=int, default=40000)
    parser.add_argument("--child")
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child, arguments.operators)
        return
    jobs = [name for name in CONFIGURATIONS for _ in range(arguments.repeats)]
    random.shuffle(jobs)
    results = {name: [] for name in CONFIGURATIONS}
    for name in jobs:
        command = [sys.executable, os.path.abspath(__file__), "--child", name, "--operators", str(arguments.operators)]
        out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        results[name].append(json.loads(out.splitlines()[-1]))
    print(f"{'ns an operator':28} {'median':>8} {'quartiles':>15} {'above plain':>12}")
    for name, rows in results.items():
        times = [row["captured"] for row in rows]
        above = statistics.median(row["captured"] - row["plain"] for row in rows)
        low, _, high = statistics.quantiles(times, n=4)
        print(f"{name:28} {statistics.median(times):8.0f} {low:7.0f}-{high:<7.0f} {above:12.0f}")


if __name__ == "__main__":
    main()
