#!/usr/bin/env python3
"""Overhead of recorders on programs that launch kernels.

Every measurement is a fresh process (child.py) that runs all workloads under one configuration. The processes of a
round get ready side by side, and are then measured one after the other, in random order; rounds follow each other
until the wished number or the time budget is reached, so all configurations see the same drift of the machine.
Configurations:

    none, none_again  no tool; twice, so that the noise of the comparison itself shows
    bare              the bare CUPTI client (../bare): kernel records counted and forgotten
    sonde             `sonde record` of kernels, copies, sets, allocations and NVTX ranges
    sonde_aggregate   the analysis `workload` inside the process, no trace: statistics of each kernel
    sonde_budget      as sonde, with --budget 3%
    sonde_rare_flush  as sonde, with a flush each ten seconds
    sonde_kernels, sonde_default, sonde_calls
                      device records alone, the port's own defaults, every call (only when asked for)
    proton, proton_trace
                      Triton's profiler, tree and trace, started inside the process
    torch, torch_full torch.profiler with device activities only, and with the CPU's (every third round, being slow)

Before the rounds, one pair of longer processes tells whether the means of a full trace lie in the intervals that a
budgeted capture states. Writes OUTPUT/overhead.json (all runs) and OUTPUT/overhead.txt (tables and bars). Exit code 0
when every configuration that was asked for has runs, 1 when one has none, 2 for wrong use. Bars do not change it.
"""

import argparse
import json
import os
import pathlib
import queue
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import bars  # noqa: E402  (found through the line above)

WORKLOADS = ("adds", "triton", "long", "graph", "threads", "scopes", "training")
CONFIGURATIONS = (
    "none", "none_again", "bare", "sonde", "sonde_aggregate", "sonde_budget", "sonde_kernels", "sonde_default",
    "sonde_calls", "sonde_rare_flush", "proton", "proton_trace", "torch", "torch_full",
)  # fmt: skip
# Files of ../configurations; None: the port's own defaults.
SONDE_CONFIGURATIONS = {
    "sonde": "trace.yaml",
    "sonde_budget": "trace.yaml",
    "sonde_kernels": "kernels.yaml",
    "sonde_default": None,
    "sonde_calls": "calls.yaml",
    "sonde_rare_flush": "trace_rare_flush.yaml",
}
DEFAULT_CONFIGURATIONS = (
    "none,none_again,bare,sonde,sonde_aggregate,sonde_budget,proton,proton_trace,torch,torch_full"
)
RARE = {"torch_full": 3}  # every so many rounds
# What another tool of the calling environment could switch on in every child.
FOREIGN_VARIABLES = (
    "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "SONDE_RUN", "LD_PRELOAD",
    "TRITON_CUPTI_LIB_PATH",
)  # fmt: skip


class ChildFailed(Exception):
    """A child ended badly; the message holds its last words."""


def injection_library(sonde):
    """libsonde_inject.so beside an installed command; None where there is none."""
    path = shutil.which(sonde)
    if path is None:
        return None
    for folder in ("../lib", "../lib64", "."):
        library = pathlib.Path(path).resolve().parent / folder / "libsonde_inject.so"
        if library.exists():
            return str(library.resolve())
    return None


def aggregate_configuration(folder):
    """A run of which nothing but the report of `workload` leaves the process."""
    ports = (HERE.parent / "configurations" / "trace.yaml").read_text()
    report = folder / "run" / "report.json"
    (folder / "run").mkdir()
    path = folder / "aggregate.yaml"
    path.write_text(
        f"{ports}analyses:\n  workload: {{}}\noutputs:\n  - format: json\n    path: {json.dumps(str(report))}\n"
    )
    return path


def plan_of(configuration, options, folder):
    """Command prefix and environment additions."""
    if configuration == "bare":
        counts = folder / "bare.json"
        return [], {"CUDA_INJECTION64_PATH": options.bare, "BARE_CUPTI_OUTPUT": str(counts)}
    if configuration == "sonde_aggregate":
        library = injection_library(options.sonde)
        if library is None:
            raise ChildFailed(f"no libsonde_inject.so beside {options.sonde}")
        variables = {"SONDE_RUN": str(aggregate_configuration(folder))}
        for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD"):
            variables[name] = library
        return [], variables
    if configuration in SONDE_CONFIGURATIONS:
        prefix = [options.sonde, "record", "-o", str(folder / "run")]
        if configuration == "sonde_budget":
            prefix += ["--budget", f"{options.slowdown:g}%"]
        if SONDE_CONFIGURATIONS[configuration] is not None:
            file = HERE.parent / "configurations" / SONDE_CONFIGURATIONS[configuration]
            prefix += ["-c", str(file)]
        return prefix + ["--"], {}
    return [], {}


class Child:
    """A process under way: `ready`, then `measure`, then gone."""

    def __init__(self, configuration, options, workloads, count, scale=None):
        self.configuration = configuration
        self.timeout = options.child_timeout
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="overhead-"))
        self.lines = queue.Queue()
        self.process = None
        try:
            self.start(options, workloads, count, scale)
        except (OSError, ChildFailed):
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def start(self, options, workloads, count, scale):
        prefix, variables = plan_of(self.configuration, options, self.folder)
        environment = {
            name: value for name, value in os.environ.items() if name not in FOREIGN_VARIABLES
        }
        environment.update(variables)
        command = prefix + [
            sys.executable, str(HERE / "child.py"),
            "--configuration", self.configuration,
            "--workloads", ",".join(workloads),
            "--scale", str(options.scale if scale is None else scale),
            "--folder", str(self.folder),
            "--device", options.device,
        ]  # fmt: skip
        if count:
            command.append("--count")
        self.errors = open(self.folder / "stderr.txt", "w+", encoding="utf-8", errors="replace")
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            command,
            env=environment,
            cwd=self.folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def wait_line(self, key, deadline):
        """The JSON line that holds `key`."""
        last = ""
        while True:
            try:
                line = self.lines.get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                raise ChildFailed(f"no answer within {self.timeout} s") from None
            if line is None:
                code = self.process.wait()
                raise ChildFailed(f"exit code {code}: {self.words() or last!r}")
            last = line
            if line.startswith("{") and f'"{key}"' in line:
                return json.loads(line)

    def words(self):
        self.errors.flush()
        return (self.folder / "stderr.txt").read_text(errors="replace")[-800:].strip()

    def ready(self):
        self.wait_line("ready", self.begun + self.timeout)
        self.ready_seconds = time.monotonic() - self.begun

    def measure(self):
        """The child's result, with how long the process still took to end and what it left behind."""
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        result = self.wait_line("overhead_child", time.monotonic() + self.timeout)
        since = time.monotonic()
        try:
            code = self.process.wait(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise ChildFailed(f"did not end within {self.timeout} s") from None
        result["exit_seconds"] = time.monotonic() - since
        result["ready_seconds"] = self.ready_seconds
        if code != 0:
            raise ChildFailed(f"exit code {code}: {self.words()}")
        result["output_bytes"] = sum(
            path.stat().st_size for path in (self.folder / "run").rglob("*") if path.is_file()
        )
        return result

    def close(self):
        if self.process is not None and self.process.poll() is None:
            # The group of the session that was started for this child.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def report_tables(text):
    """Tables of a report in JSON, as lists of dictionaries."""
    tables = json.loads(text)["tables"]
    result = {}
    for name, table in tables.items():
        columns = [column["name"] for column in table["columns"]]
        result[name] = [dict(zip(columns, row)) for row in table["rows"]]
    return result


def replayed(options, folder):
    """Tables of the analysis `workload` on the capture that a child left in `folder`."""
    done = subprocess.run(
        [options.sonde, "replay", str(folder / "run"), "-p", "workload", "--format", "json"],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=options.child_timeout,
        check=False,
    )
    # 1: findings, which a program may well give rise to.
    if done.returncode not in (0, 1):
        raise ChildFailed(f"sonde replay: exit code {done.returncode}: {done.stderr[-400:].strip()}")
    return report_tables(done.stdout)


def kernels_of(tables):
    return sum(row["count"] for row in tables["workload.kernels"])


def kernels_seen(configuration, options, folder):
    """Kernels that a tool outside recorded in the whole process; None where there is no such number."""
    if configuration == "bare":
        return json.loads((folder / "bare.json").read_text())["kernels"]
    if configuration == "sonde_aggregate":
        return kernels_of(report_tables((folder / "run" / "report.json").read_text()))
    if configuration in SONDE_CONFIGURATIONS and configuration != "sonde_budget":
        return kernels_of(replayed(options, folder))
    return None


class Measurements:
    """All runs, and what became of configurations that failed."""

    FAILURES_ALLOWED = 2
    COUNTED_ROUNDS = 3  # in which captures are read back: the counts do not change

    def __init__(self, options):
        self.options = options
        self.runs = []  # a workload of a process each
        self.processes = []
        self.failures = {}
        self.budget_means = None
        self.rounds = 0
        self.child_seconds = 8.0  # of the slowest so far, from "go" to its end

    def wanted(self, configuration, number):
        if len(self.failures.get(configuration, [])) >= self.FAILURES_ALLOWED:
            return False
        return number % RARE.get(configuration, 1) == 0

    def fail(self, configuration, number, error):
        self.failures.setdefault(configuration, []).append(f"{type(error).__name__}: {error}")
        print(f"round {number} {configuration:15} FAILED: {str(error)[-400:]}", flush=True)

    def run_round(self, number, generator, deadline):
        """False when the time did not suffice for all of it."""
        names = [name for name in self.options.configurations if self.wanted(name, number)]
        children = []
        for name in names:
            try:
                children.append(Child(name, self.options, self.options.workloads, self.options.count))
            except (OSError, ChildFailed) as error:
                self.fail(name, number, error)
        whole = True
        try:
            ready = []
            for child in children:
                try:
                    child.ready()
                    ready.append(child)
                except ChildFailed as error:
                    self.fail(child.configuration, number, error)
            generator.shuffle(ready)
            for child in ready:
                if time.monotonic() + self.child_seconds > deadline and self.runs:
                    whole = False
                    break
                self.run_child(child, number)
        finally:
            for child in children:
                child.close()
        self.rounds = number + 1
        return whole

    def run_child(self, child, number):
        since = time.monotonic()
        try:
            result = child.measure()
            if self.options.count and number < self.COUNTED_ROUNDS:
                result["kernels_seen"] = kernels_seen(child.configuration, self.options, child.folder)
        except (ChildFailed, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            self.fail(child.configuration, number, error)
            return
        self.child_seconds = max(self.child_seconds, time.monotonic() - since)
        workloads = result.pop("workloads")
        result["configuration"] = child.configuration
        result["round"] = number
        self.processes.append(result)
        for workload, run in workloads.items():
            self.runs.append(
                {"configuration": child.configuration, "workload": workload, "round": number, **run}
            )
        shown = "  ".join(f"{name} {run['wall_ns'] / 1e6:.0f}" for name, run in workloads.items())
        print(f"round {number} {child.configuration:15} ms: {shown}", flush=True)

    def measure_means(self):
        """A full trace and a budgeted capture of the same longer program: are the means where they are said to be?"""
        tables = {}
        for name in ("sonde", "sonde_budget"):
            child = Child(name, self.options, ["training", "adds"], False, self.options.means_scale)
            try:
                child.ready()
                child.measure()
                tables[name] = replayed(self.options, child.folder)
            finally:
                child.close()
        self.budget_means = bars.compare_means(tables["sonde"], tables["sonde_budget"])


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
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--scale", type=float, default=1.0, help="of all iteration counts")
    parser.add_argument("--repeats", type=int, default=9, help="rounds (7 or more for a claim)")
    parser.add_argument("--budget", type=float, default=420.0, help="seconds for everything")
    parser.add_argument("--slowdown", type=float, default=3.0, help="percent, for sonde_budget")
    parser.add_argument(
        "--means-scale", type=float, default=16.0, help="of the longer pair of processes; 0: left out"
    )
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
    options.workloads = parse_list(options.workloads, WORKLOADS, parser, "--workloads")
    if options.repeats < 1 or options.scale <= 0:
        parser.error("--repeats must be at least 1 and --scale above 0")
    if "none" not in options.configurations:
        parser.error("--configurations needs none: everything is compared with it")
    if "bare" in options.configurations:
        options.bare = str(pathlib.Path(options.bare).resolve())
        if not os.path.exists(options.bare):
            # The driver would pass over a missing library in silence and measure nothing.
            parser.error(f"--bare: {options.bare} does not exist; build it with ../bare/build.sh")
    return options


def write_results(measurements, output):
    analysis = bars.analyse(measurements)
    rows = bars.judge(measurements, analysis)
    text = bars.tables_text(measurements, analysis, rows)
    content = {
        "rounds": measurements.rounds,
        "bars": rows,
        "analysis": analysis,
        "budget_means": measurements.budget_means,
        "processes": measurements.processes,
        "runs": measurements.runs,
        "failures": measurements.failures,
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
    deadline = begin + options.budget
    if "sonde_budget" in options.configurations and options.means_scale > 0:
        # This pair also fills the file cache and wakes the device.
        try:
            measurements.measure_means()
        except (ChildFailed, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            print(f"the comparison of means failed: {error}", flush=True)
    longest = 0.0
    for number in range(options.repeats):
        since = time.monotonic()
        if number > 0 and since + longest / 2 > deadline:
            print(f"time budget: stopped after {number} of {options.repeats} rounds", flush=True)
            break
        whole = measurements.run_round(number, generator, deadline)
        if "none" in measurements.failures and not any(
            run["configuration"] == "none" for run in measurements.runs
        ):
            print("the workloads do not run without a tool either: stopped", flush=True)
            break
        longest = max(longest, time.monotonic() - since)
        write_results(measurements, output)  # a killed run leaves its rounds behind
        if not whole:
            print(f"time budget: stopped within round {number}", flush=True)
            break
    print(write_results(measurements, output))
    present = {run["configuration"] for run in measurements.runs}
    missing = [name for name in options.configurations if name not in present]
    if missing:
        print(f"no runs of: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
