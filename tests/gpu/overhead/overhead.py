#!/usr/bin/env python3
"""Overhead of recorders on programs that are bound by their launches.

Every measurement is a fresh process (child.py). A round holds one process of each configuration
and workload, in random order; rounds follow each other until the wished number or the time
budget is reached, so all configurations see the same drift of the machine. Configurations:

    none, none_again  no tool; twice, so that the noise of the comparison itself shows
    bare              the bare CUPTI client (../bare): kernel records counted and forgotten
    sonde             `sonde record` of kernels, copies, sets and allocations
    sonde_kernels, sonde_default, sonde_calls
                      the same with device records alone, with the port's own defaults, and with
                      every call (not run unless asked for); see ../configurations
    proton            Triton's profiler, tree, started inside the process
    torch             torch.profiler, device activities only, started inside the process

Writes OUTPUT/overhead.json (all runs) and OUTPUT/overhead.txt (the table). Exit code 0 when every
configuration that was asked for has runs, 1 when one has none, 2 for wrong use.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import stats

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import capture_counts  # noqa: E402  (found through the line above)

CONFIGURATIONS = (
    "none", "none_again", "bare", "sonde", "sonde_kernels", "sonde_default", "sonde_calls",
    "proton", "torch",
)  # fmt: skip
# Files of ../configurations; None: the port's own defaults.
SONDE_CONFIGURATIONS = {
    "sonde": "kernels_memory.yaml",
    "sonde_kernels": "kernels.yaml",
    "sonde_default": None,
    "sonde_calls": "calls.yaml",
}
DEFAULT_CONFIGURATIONS = "none,none_again,bare,sonde,proton,torch"
GOAL_OVER_BARE = 1.05
# What another tool of the calling environment could switch on in every child.
FOREIGN_VARIABLES = (
    "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "SONDE_RUN", "LD_PRELOAD",
    "TRITON_CUPTI_LIB_PATH",
)  # fmt: skip


class ChildFailed(Exception):
    """A child ended badly; the message holds its last words."""


def plan_of(configuration, options, folder):
    """Command prefix, environment additions and the file with outside counts, if any."""
    if configuration == "bare":
        counts = folder / "bare.json"
        variables = {"CUDA_INJECTION64_PATH": options.bare, "BARE_CUPTI_OUTPUT": str(counts)}
        return [], variables
    if configuration in SONDE_CONFIGURATIONS:
        prefix = [options.sonde, "record", "-o", str(folder / "run")]
        if SONDE_CONFIGURATIONS[configuration] is not None:
            file = HERE.parent / "configurations" / SONDE_CONFIGURATIONS[configuration]
            prefix += ["-c", str(file)]
        return prefix + ["--"], {}
    return [], {}


def result_line(text):
    for line in reversed(text.splitlines()):
        if line.startswith("{") and '"overhead_child"' in line:
            return json.loads(line)
    raise ChildFailed(f"no result line; the last output was: {text[-400:]!r}")


def run_child(configuration, workload, options, folder, count):
    prefix, variables = plan_of(configuration, options, folder)
    environment = {
        name: value for name, value in os.environ.items() if name not in FOREIGN_VARIABLES
    }
    environment.update(variables)
    command = prefix + [
        sys.executable,
        str(HERE / "child.py"),
        "--configuration",
        configuration,
        "--workload",
        workload,
        "--iterations",
        str(options.iterations_of[workload]),
        "--folder",
        str(folder),
        "--device",
        options.device,
    ]
    if count:
        command.append("--count")
    begin = time.monotonic()
    try:
        process = subprocess.run(
            command,
            env=environment,
            cwd=folder,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=options.child_timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ChildFailed(f"ran longer than {options.child_timeout} s") from error
    except OSError as error:
        raise ChildFailed(str(error)) from error
    if process.returncode != 0:
        raise ChildFailed(f"exit code {process.returncode}: {process.stderr[-800:].strip()}")
    result = result_line(process.stdout)
    result["process_seconds"] = round(time.monotonic() - begin, 3)
    result["output_bytes"] = sum(
        path.stat().st_size for path in folder.rglob("*") if path.is_file()
    )
    return result


def kernels_seen(configuration, options, folder, result):
    """Kernels that the tool recorded in the whole process; None where there is no such number."""
    if configuration == "bare":
        return json.loads((folder / "bare.json").read_text())["kernels"]
    if configuration in SONDE_CONFIGURATIONS:
        counts = capture_counts.counts_of_capture(options.sonde, folder / "run")
        return sum(counts["kernels"].values())
    return result["kernels"]


class Measurements:
    """All runs, and what became of configurations that failed."""

    FAILURES_ALLOWED = 2

    def __init__(self, options):
        self.options = options
        self.runs = []
        self.failures = {}
        self.kernels = {}
        self.rounds = 0

    def wanted(self, configuration, workload):
        return len(self.failures.get((configuration, workload), [])) < self.FAILURES_ALLOWED

    def run_round(self, number, generator):
        cases = [
            (configuration, workload)
            for configuration in self.options.configurations
            for workload in self.options.workloads
            if self.wanted(configuration, workload)
        ]
        generator.shuffle(cases)
        for configuration, workload in cases:
            self.run_case(number, configuration, workload)
        self.rounds = number + 1

    def run_case(self, number, configuration, workload):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="overhead-"))
        key = (configuration, workload)
        try:
            # Reading the counts back costs time, so it is done once for each case.
            count = self.options.count and key not in self.kernels
            result = run_child(configuration, workload, self.options, folder, count)
            result["round"] = number
            self.runs.append(result)
            if count:
                self.kernels[key] = kernels_seen(configuration, self.options, folder, result)
            print(
                f"round {number} {workload:9} {configuration:13} "
                f"{result['wall_ns'] / 1e6:10.2f} ms",
                flush=True,
            )
        except (ChildFailed, capture_counts.DumpError, OSError, ValueError, KeyError) as error:
            self.failures.setdefault(key, []).append(f"{type(error).__name__}: {error}")
            print(f"round {number} {workload:9} {configuration:13} FAILED", flush=True)
            if len(self.failures[key]) == 1:
                print(f"    {error}", flush=True)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def values(self, configuration, workload, member):
        return {
            run["round"]: run[member]
            for run in self.runs
            if run["configuration"] == configuration and run["workload"] == workload
        }


def launches_of(measurements, workload):
    """Launches in the measured loop; for training from the bare client's count, else unknown."""
    iterations = measurements.options.iterations_of[workload]
    if workload == "adds":
        return iterations
    kernels = measurements.kernels.get(("bare", workload))
    runs = [run for run in measurements.runs if run["workload"] == workload]
    if not kernels or not runs:
        return None
    return round(kernels * iterations / (iterations + runs[0]["warm_up"]))


def analyse(measurements):
    """One entry for each workload and configuration with runs."""
    result = {}
    for workload in measurements.options.workloads:
        launches = launches_of(measurements, workload)
        none = measurements.values("none", workload, "wall_ns")
        bare = measurements.values("bare", workload, "wall_ns")
        entries = {}
        for configuration in measurements.options.configurations:
            wall = measurements.values(configuration, workload, "wall_ns")
            if not wall:
                continue
            entry = {
                "wall_ns": stats.summary(list(wall.values())),
                "issue_ns": stats.summary(
                    list(measurements.values(configuration, workload, "issue_ns").values())
                ),
                "cpu_ns": stats.summary(
                    list(measurements.values(configuration, workload, "cpu_ns").values())
                ),
                "to_none": stats.ratio_of_medians(wall, none) if none else None,
                "to_bare": stats.ratio_of_medians(wall, bare) if bare else None,
                "kernels_seen": measurements.kernels.get((configuration, workload)),
                "peak_memory_bytes": max(
                    measurements.values(configuration, workload, "peak_memory_bytes").values()
                ),
                "output_bytes": max(
                    measurements.values(configuration, workload, "output_bytes").values()
                ),
            }
            if launches:
                entry["ns_per_launch"] = entry["wall_ns"]["median"] / launches
            entries[configuration] = entry
        result[workload] = {"launches": launches, "configurations": entries}
    return result


def kernels_expected(measurements, workload):
    """The least number of kernels in a whole process, warm-up included; None if not known."""
    options = measurements.options
    runs = [run for run in measurements.runs if run["workload"] == workload]
    if workload == "adds":
        return options.iterations_of[workload] + runs[0]["warm_up"] if runs else None
    return measurements.kernels.get(("bare", workload))


def ratio_text(ratio):
    if ratio is None:
        return "-"
    if ratio["low"] is None:
        return f"{ratio['ratio']:.3f}"
    return f"{ratio['ratio']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"


def table_text(analysis, measurements):
    heads = (
        "configuration", "runs", "median ms", "min", "max", "issue ms", "cpu ms", "ns/launch",
        "to none [95 %]", "to bare [95 %]", "kernels seen", "peak MiB", "files KiB",
    )  # fmt: skip
    lines = []
    for workload, part in analysis.items():
        launches = part["launches"]
        lines.append(
            f"{workload}: {measurements.options.iterations_of[workload]} iterations, "
            f"{launches if launches else 'unknown number of'} launches in the loop"
        )
        rows = [heads]
        for configuration, entry in part["configurations"].items():
            wall = entry["wall_ns"]
            seen = entry["kernels_seen"]
            rows.append(
                (
                    configuration,
                    str(wall["runs"]),
                    f"{wall['median'] / 1e6:.2f}",
                    f"{wall['min'] / 1e6:.2f}",
                    f"{wall['max'] / 1e6:.2f}",
                    f"{entry['issue_ns']['median'] / 1e6:.2f}",
                    f"{entry['cpu_ns']['median'] / 1e6:.2f}",
                    f"{entry['ns_per_launch']:.0f}" if "ns_per_launch" in entry else "-",
                    ratio_text(entry["to_none"]),
                    ratio_text(entry["to_bare"]),
                    "-" if seen is None else str(seen),
                    f"{entry['peak_memory_bytes'] / 2**20:.0f}",
                    f"{entry['output_bytes'] / 1024:.0f}",
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
        for row in rows:
            first = row[0].ljust(widths[0])
            rest = "  ".join(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
            lines.append(f"  {first}  {rest}")
        expected = kernels_expected(measurements, workload)
        for configuration, entry in part["configurations"].items():
            seen = entry["kernels_seen"]
            if expected is not None and seen is not None and seen < expected:
                lines.append(f"  incomplete: {configuration} saw {seen} of {expected} kernels")
        for configuration in ("sonde", "sonde_kernels"):
            entry = part["configurations"].get(configuration)
            if entry is None or entry["to_bare"] is None:
                continue
            verdict = stats.verdict_of_limit(entry["to_bare"], GOAL_OVER_BARE)
            lines.append(
                f"  goal: {configuration} at most {GOAL_OVER_BARE:.2f} of bare: {verdict}, "
                f"{ratio_text(entry['to_bare'])}"
            )
        lines.append("")
    for (configuration, workload), messages in measurements.failures.items():
        reason = messages[-1].strip().splitlines()[-1]
        lines.append(f"failed: {workload} {configuration}, {len(messages)} times: {reason}")
    return "\n".join(lines).rstrip() + "\n"


def parse_list(text, allowed, parser, what):
    words = [word for word in text.split(",") if word]
    unknown = [word for word in words if word not in allowed]
    if unknown or not words:
        parser.error(f"{what}: unknown {unknown}; allowed are {', '.join(allowed)}")
    return words


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog=__doc__.split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", default="gpu-out", help="folder for the results")
    parser.add_argument("--configurations", default=DEFAULT_CONFIGURATIONS)
    parser.add_argument("--workloads", default="adds,training")
    parser.add_argument("--launches", type=int, default=100000, help="additions in `adds`")
    parser.add_argument("--steps", type=int, default=60, help="steps in `training`")
    parser.add_argument("--repeats", type=int, default=9, help="rounds (7 or more for a claim)")
    parser.add_argument("--budget", type=float, default=480.0, help="seconds for all rounds")
    parser.add_argument("--child-timeout", type=float, default=120.0, help="seconds for a process")
    parser.add_argument("--seed", type=int, default=1, help="of the order within the rounds")
    parser.add_argument("--sonde", default="sonde")
    parser.add_argument("--bare", default="bare_cupti.so", help="library made by ../bare/build.sh")
    parser.add_argument("--no-count", dest="count", action="store_false")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args(arguments)
    options.configurations = parse_list(
        options.configurations, CONFIGURATIONS, parser, "--configurations"
    )
    options.workloads = parse_list(options.workloads, ("adds", "training"), parser, "--workloads")
    options.iterations_of = {"adds": options.launches, "training": options.steps}
    if min(options.launches, options.steps, options.repeats) < 1:
        parser.error("--launches, --steps and --repeats must be at least 1")
    if "none" not in options.configurations:
        parser.error("--configurations needs none: everything is compared with it")
    if "bare" in options.configurations:
        options.bare = str(pathlib.Path(options.bare).resolve())
        if not os.path.exists(options.bare):
            # The driver would pass over a missing library in silence and measure nothing.
            parser.error(f"--bare: {options.bare} does not exist; build it with ../bare/build.sh")
    return options


def warm_machine(options):
    """One process whose times are thrown away: it fills the file cache and wakes the device."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="overhead-"))
    try:
        run_child("none", options.workloads[0], options, folder, count=False)
    except ChildFailed as error:
        print(f"the process before the rounds failed: {error}", flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_results(measurements, output):
    analysis = analyse(measurements)
    text = table_text(analysis, measurements)
    content = {
        "rounds": measurements.rounds,
        "analysis": analysis,
        "runs": measurements.runs,
        "failures": {
            f"{configuration}/{workload}": messages
            for (configuration, workload), messages in measurements.failures.items()
        },
    }
    output.mkdir(parents=True, exist_ok=True)
    (output / "overhead.json").write_text(json.dumps(content, indent=1) + "\n")
    (output / "overhead.txt").write_text(text)
    return text


def main(arguments=None):
    options = parse_arguments(arguments)
    output = pathlib.Path(options.output)
    generator = random.Random(options.seed)
    measurements = Measurements(options)
    begin = time.monotonic()
    warm_machine(options)
    longest = 0.0
    for number in range(options.repeats):
        elapsed = time.monotonic() - begin
        if number > 0 and elapsed + longest > options.budget:
            print(f"time budget: stopped after {number} of {options.repeats} rounds", flush=True)
            break
        measurements.run_round(number, generator)
        if not any(run["configuration"] == "none" for run in measurements.runs):
            print("the workloads do not run without a tool either: stopped", flush=True)
            break
        longest = max(longest, time.monotonic() - begin - elapsed)
        write_results(measurements, output)  # a killed run leaves its whole rounds behind
    print(write_results(measurements, output))
    missing = [
        f"{workload}/{configuration}"
        for workload in options.workloads
        for configuration in options.configurations
        if not measurements.values(configuration, workload, "wall_ns")
    ]
    if missing:
        print(f"no runs of: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
