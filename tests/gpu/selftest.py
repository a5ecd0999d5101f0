#!/usr/bin/env python3
"""Checks the counting, comparing and statistics of this folder without a GPU.

    python3 selftest.py

Exit code 0 when every check holds. Expected values are counted or calculated by hand in the
checks themselves.
"""

import contextlib
import io
import json
import os
import pathlib
import random
import stat
import subprocess
import sys
import tarfile
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "programs"), str(HERE / "overhead")]

import bars  # noqa: E402  (found through the line above)
import capture_counts  # noqa: E402
import compare  # noqa: E402
import names  # noqa: E402
import overhead  # noqa: E402
import stats  # noqa: E402
import torch_counts  # noqa: E402


def expect(condition, message):
    if not condition:
        raise AssertionError(message)


def expect_equal(value, reference, what=""):
    expect(value == reference, f"{what}: {value!r} instead of {reference!r}")


# ---- records as `sonde dump --format json` prints them


def record(space, name, /, **fields):
    head = {"source": 1, "stream": 1, "space": f"sonde.{space}", "type": name}
    return json.dumps({**head, "time_ns": 10, "time": 1, "fields": fields})


SMALL_CAPTURE = [
    record("session", "start", process=41),
    record("device", "kernel", name="_Z12scale_kernelIfEvPT_S0_j", graph_exec=0, graph_node=0),
    record("device", "kernel", name="fill_kernel", graph_exec=3, graph_node=2),
    record("device", "kernel", name="fill_kernel", graph_exec=0, graph_node=0),
    record("device", "copy", kind="host_to_device", bytes=100),
    record("device", "copy", kind="host_to_device", bytes=28),
    record("device", "copy", kind="device_to_host", bytes=8),
    record("device", "set", bytes=64),
    record("memory", "allocate", kind="device", flags=[], bytes=256),
    record("memory", "allocate", kind="device", flags=["stream_ordered", "pooled"], bytes=512),
    record("memory", "allocate", kind="pinned", flags=[], bytes=1024),
    record("memory", "free", kind="device", flags=["stream_ordered"], bytes=0),
    record("memory", "pool_create", pool=1),
    record("host", "call", function="__cudaLaunchKernel_ptsz_v13000", domain="cuda.runtime"),
    record("host", "call", function="cudaMemcpyAsync_ptsz", domain="cuda.runtime"),
    record("host", "call", function="cuLaunchKernel", domain="cuda.driver"),
    record("framework", "scope_push", name="a", domain="nvtx:streams.program"),
    record("framework", "scope_pop", domain="nvtx:streams.program"),
    record("framework", "mark", name="m", domain=""),
    record("com.example.other", "thing", value=1),
]

SMALL_REFERENCE = {
    "program": "small",
    "wrong": 0,
    "kernels": {"scale_kernel": 1, "fill_kernel": 2},
    "copies": {"HtoD": {"count": 2, "bytes": 128}, "DtoH": {"count": 1, "bytes": 8}},
    "sets": {"count": 1, "bytes": 64},
    "allocations": {
        "device": {"count": 1, "bytes": 256},
        "stream_ordered": {"count": 1, "bytes": 512},
        "pinned": {"count": 1, "bytes": 1024},
    },
    "frees": {"stream_ordered": {"count": 1, "bytes": 0}},
    "calls": {"cudaLaunchKernel": 1, "cudaMemcpyAsync": 1},
    "ranges": {"streams.program": {"push": 1, "pop": 1}, "default": {"mark": 1}},
}


def changed(content, *path_and_value):
    """A deep copy with the member at a path replaced."""
    *path, last, value = path_and_value
    copy = json.loads(json.dumps(content))
    place = copy
    for key in path:
        place = place[key]
    place[last] = value
    return copy


def check_counts_of_records():
    counts = capture_counts.counts_of_lines(SMALL_CAPTURE)
    expect_equal(counts["records"], len(SMALL_CAPTURE), "records")
    expect_equal(counts["graph_kernels"], 1, "kernels from graphs")
    expect_equal(counts["copies"], SMALL_REFERENCE["copies"], "copies")
    expect_equal(counts["allocations"], SMALL_REFERENCE["allocations"], "allocations")
    expect_equal(counts["calls"], SMALL_REFERENCE["calls"], "calls of the runtime alone")
    expect_equal(counts["processes"], [41], "processes")


def check_bad_dump_is_refused_with_its_line():
    for bad in (
        '{"space": "sonde.device"',
        '{"type": "kernel"}',
        "[]",
        record("device", "copy", kind="host_to_device"),
        record("device", "copy", kind="host_to_device", bytes=None),
    ):
        try:
            capture_counts.counts_of_lines([SMALL_CAPTURE[0], bad])
        except capture_counts.DumpError as error:
            expect("line 2" in str(error), f"no line number in: {error}")
        else:
            raise AssertionError(f"accepted: {bad}")


def check_equal_program_has_no_difference():
    counts = capture_counts.counts_of_lines(SMALL_CAPTURE)
    table = compare.compare_program(counts, SMALL_REFERENCE)
    expect_equal(table.different, [], "differences")
    expect(len(table.rows) >= 15, f"only {len(table.rows)} rows were compared")


def check_every_changed_number_is_a_difference():
    counts = capture_counts.counts_of_lines(SMALL_CAPTURE)
    for change in (
        ("wrong", 1),
        ("wrong", ["matmul_kernel"]),
        ("kernels", "fill_kernel", 3),
        ("kernels", "missing_kernel", 1),
        ("copies", "HtoD", "count", 3),
        ("copies", "HtoD", "bytes", 129),
        ("copies", "DtoD", {"count": 1, "bytes": 1}),
        ("sets", "count", 0),
        ("sets", "bytes", 63),
        ("allocations", "pinned", "bytes", 1023),
        ("frees", "stream_ordered", "count", 2),
        ("calls", "cudaMemcpyAsync", 2),
        ("ranges", "streams.program", "push", 2),
        ("ranges", "default", "mark", 0),
    ):
        table = compare.compare_program(counts, changed(SMALL_REFERENCE, *change))
        expect(table.different, f"not noticed: {change}")


def check_a_kernel_too_many_is_a_difference_unless_others_are_allowed():
    counts = capture_counts.counts_of_lines(SMALL_CAPTURE)
    fewer = changed(SMALL_REFERENCE, "kernels", {"scale_kernel": 1})
    expect(compare.compare_program(counts, fewer).different, "two unlisted kernels passed")
    fewer["other_kernels"] = "any"
    expect_equal(compare.compare_program(counts, fewer).different, [], "others allowed")


def check_stated_losses_explain_only_what_they_cover():
    lossy = SMALL_CAPTURE + [
        record("session", "loss", records=2, cause="vendor"),
        record("session", "loss", records=7, cause="late"),
        record("session", "loss", records=2**64 - 1, cause="tail"),
    ]
    counts = capture_counts.counts_of_lines(lossy)
    for launched, verdict in ((4, "explained"), (5, "different"), (1, "different")):
        reference = changed(SMALL_REFERENCE, "kernels", "fill_kernel", launched)
        rows = compare.compare_program(counts, reference).rows
        found = [row["verdict"] for row in rows if row["what"] == "kernel fill_kernel"]
        expect_equal(found, [verdict], f"2 of {launched} kernels with 2 lost")


def check_torch_trace_counts_and_compares():
    mangled = "_Z12scale_kernelIfEvPT_S0_j"
    trace = {
        "traceEvents": [
            {"ph": "X", "cat": "kernel", "name": "fill_kernel", "dur": 1.5, "args": {}},
            {"ph": "X", "cat": "Kernel", "name": "fill_kernel", "dur": 0.5, "args": {}},
            {
                "ph": "X",
                "cat": "kernel",
                "name": "void scale_kernel<float>(float*, float, unsigned int)",
                "dur": 1,
                "args": {},
            },
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 1, "args": {}},
            {"ph": "f", "cat": "ac2g", "name": "ac2g"},
            {
                "ph": "X",
                "cat": "gpu_memcpy",
                "name": "Memcpy HtoD (Pinned -> Device)",
                "args": {"bytes": 100},
            },
            {
                "ph": "X",
                "cat": "gpu_memcpy",
                "name": "Memcpy HtoD (Pageable -> Device)",
                "args": {"bytes": 28},
            },
            {
                "ph": "X",
                "cat": "gpu_memcpy",
                "name": "Memcpy DtoH (Device -> Pageable)",
                "args": {"bytes": 8},
            },
            {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "args": {"bytes": 64}},
        ]
    }
    reference = torch_counts.counts_of_trace(trace)
    expect_equal(reference["kernel_total"], 3, "kernels of the trace")
    expect_equal(reference["kernel_time_ns"], 3000, "time of the trace")
    expect_equal(reference["copies"]["HtoD"], {"count": 2, "bytes": 128}, "copies of the trace")
    counts = capture_counts.counts_of_lines(SMALL_CAPTURE)
    expect(mangled in counts["kernels"], "the capture should hold the mangled name")
    expect_equal(compare.compare_torch(counts, reference).different, [], "differences")
    reference["kernels"]["fill_kernel"] = 1
    expect(compare.compare_torch(counts, reference).different, "a changed count passed")


def check_names():
    mangled = "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi"
    expect_equal(names.plain_name(mangled), "vectorized_elementwise_kernel")
    spaced = "void at::native::vectorized_elementwise_kernel<4>( int )"
    expect_equal(names.spelling(mangled), names.spelling(spaced))
    expect_equal(names.plain_name("void (anonymous namespace)::k<f(int)>(float*)"), "k")
    expect_equal(names.plain_name("softmax_kernel"), "softmax_kernel")
    expect_equal(names.demangled("_Znonsense"), "_Znonsense")
    expect_equal(names.merged({"a b": 1, "ab": 2}, names.spelling), {"ab": 3})


def image_counts(process, launches, name="count_kernel"):
    lines = [record("session", "start", process=process)]
    lines += [record("device", "kernel", name=name)] * launches
    return capture_counts.counts_of_lines(lines)


def check_images_of_a_run():
    reference = {
        "wrong": 0,
        "images": [
            {"role": "parent", "process": 1, "kernels": {"count_kernel": 5}},
            {"role": "before exec", "process": 2, "kernels": {"count_kernel": 2}},
            {"role": "after exec", "process": 2, "kernels": {"count_kernel": 3}},
        ],
    }
    good = [image_counts(*pair) for pair in ((1, 5), (2, 3), (2, 2), (3, 0))]
    expect_equal(compare.compare_images(good, reference).different, [], "good run")
    for what, captures in (
        ("an image is missing", ((1, 5), (2, 3))),
        ("two images in one file", ((1, 5), (2, 5))),
        ("a record in the wrong process", ((1, 6), (2, 3), (2, 1))),
        ("an unexpected process", ((1, 5), (2, 3), (2, 2), (3, 1))),
        ("a file too many", ((1, 5), (2, 3), (2, 2), (1, 1))),
    ):
        bad = [image_counts(*pair) for pair in captures]
        expect(compare.compare_images(bad, reference).different, f"not noticed: {what}")


def small_report():
    """The report of SMALL_CAPTURE as `sonde replay -p workload --format json` prints it."""
    # Two instances of a template share the short name; the symbol tells them apart.
    rows = [
        ["fill_kernel", "fill_kernel", 0, 2],
        ["scale_kernel", "_Z12scale_kernelIfEvPT_S0_j", 0, 1],
    ]
    columns = [{"name": name} for name in ("kernel", "symbol", "device", "count")]
    return {
        "tables": {"workload.kernels": {"columns": columns, "rows": rows}},
        "findings": [],
        "losses": {"records": 0, "exact": True},
    }


def check_report_against_records():
    counts = capture_counts.counts_of_lines(SMALL_CAPTURE)
    report = small_report()
    table = compare.Table()
    compare.compare_report(table, counts, report)
    expect_equal(table.different, [], "differences")
    for change in (
        ("tables", "workload.kernels", "rows", 0, 3, 3),
        ("losses", "records", 1),
        ("losses", "exact", False),
    ):
        table = compare.Table()
        compare.compare_report(table, counts, changed(report, *change))
        expect(table.different, f"not noticed: {change}")


# ---- the commands, over a stand-in for `sonde`

STAND_IN = """#!{python}
import json, pathlib, shutil, subprocess, sys
words = sys.argv[1:]
if words[0] == "dump":
    sys.stdout.write(pathlib.Path(words[1]).read_text())
elif words[0] == "replay":
    sys.stdout.write({report!r})
elif words[0] in ("doctor", "--version"):
    print("stand-in")
elif words[0] == "record":
    folder = pathlib.Path(words[words.index("-o") + 1])
    folder.mkdir(parents=True)
    folder.joinpath("x.sonde").write_text({capture!r})
    sys.exit(subprocess.call(words[words.index("--") + 1:]))
else:
    sys.exit(2)
"""


@contextlib.contextmanager
def stand_in_folder(capture=SMALL_CAPTURE):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        command = folder / "sonde"
        command.write_text(
            STAND_IN.format(
                python=sys.executable,
                capture="\n".join(capture) + "\n",
                report=json.dumps(small_report()),
            )
        )
        command.chmod(command.stat().st_mode | stat.S_IXUSR)
        yield folder, str(command)


def quiet(function, *arguments):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return function(*arguments)


def check_compare_command():
    with stand_in_folder() as (folder, sonde):
        run = folder / "run"
        run.mkdir()
        (run / "one.sonde").write_text("\n".join(SMALL_CAPTURE))
        output = folder / "stdout.txt"
        output.write_text("warming up\n" + json.dumps(SMALL_REFERENCE) + "\nbye\n")
        rows = folder / "rows.json"
        words = ["program", "--sonde", sonde, "--capture", str(run), "--reference", str(output)]
        expect_equal(quiet(compare.main, words + ["--json", str(rows)]), 0, "equal run")
        expect(json.loads(rows.read_text())["rows"], "no rows were written")
        output.write_text(json.dumps(changed(SMALL_REFERENCE, "sets", "count", 9)))
        expect_equal(quiet(compare.main, words), 1, "different run")
        output.write_text("no json here\n")
        expect_equal(quiet(compare.main, words), 2, "unreadable reference")
        words[words.index(str(run))] = str(folder / "absent")
        expect_equal(quiet(compare.main, words), 2, "absent capture")


def check_two_capture_files_are_added_up():
    with stand_in_folder() as (folder, sonde):
        run = folder / "run"
        run.mkdir()
        parts = []
        for name in ("one.sonde", "two.sonde"):
            (run / name).write_text("\n".join(SMALL_CAPTURE))
            parts.append(capture_counts.counts_of_capture(sonde, run / name))
        counts = compare.sum_counts(parts)
        expect_equal(counts["copies"]["HtoD"], {"count": 4, "bytes": 256}, "copies")
        expect_equal(counts["processes"], [41, 41], "processes")
        expect_equal(parts[0]["copies"]["HtoD"]["count"], 2, "a part after the sum")


# ---- statistics


def check_summary_by_hand():
    result = stats.summary([4, 1, 3, 2])
    expect_equal((result["median"], result["min"], result["max"]), (2.5, 1, 4))
    # Ordered 1 2 3 4; 0.25 * 3 = 0.75 of the way from the first to the second.
    expect_equal((result["quartile_1"], result["quartile_3"]), (1.75, 3.25))


def check_bootstrap_of_equal_runs():
    same = {number: 10.0 + number for number in range(7)}
    result = stats.ratio_of_medians(same, same)
    expect_equal((result["ratio"], result["low"], result["high"]), (1.0, 1.0, 1.0))


def check_bootstrap_keeps_rounds_together():
    # The machine drifts by a factor of two; each round's ratio is exactly 1.1, so is any draw's.
    base = {number: 100.0 * (1 + number / 8) for number in range(9)}
    slower = {number: 1.1 * value for number, value in base.items()}
    result = stats.ratio_of_medians(slower, base)
    expect(abs(result["low"] - 1.1) < 1e-9 and abs(result["high"] - 1.1) < 1e-9, f"{result}")


def check_bootstrap_covers_the_true_ratio():
    generator = random.Random(7)
    covered = 0
    trials = 200
    for trial in range(trials):
        base = {number: generator.gauss(100, 3) for number in range(11)}
        slower = {number: generator.gauss(105, 3) for number in range(11)}
        result = stats.ratio_of_medians(slower, base, resamples=400, seed=trial)
        covered += result["low"] <= 1.05 <= result["high"]
    # 95 % is the aim; medians of 11 rounds are known to fall somewhat short of it or exceed it.
    expect(covered / trials >= 0.85, f"covered {covered} of {trials}")


def check_bootstrap_edge_cases():
    expect_equal(stats.ratio_of_medians({1: 2.0}, {2: 1.0}), None, "no common round")
    two = stats.ratio_of_medians({1: 2.0, 2: 2.0}, {1: 1.0, 2: 1.0})
    expect_equal((two["ratio"], two["low"]), (2.0, None), "two rounds")
    noisy = {number: float(1 + number % 3) for number in range(9)}
    flat = {number: 1.0 for number in range(9)}
    first = stats.ratio_of_medians(noisy, flat, resamples=200)
    expect_equal(first, stats.ratio_of_medians(noisy, flat, resamples=200), "same seed")
    expect_equal(stats.verdict_of_limit({"low": 1.0, "high": 1.04}, 1.05), "met")
    expect_equal(stats.verdict_of_limit({"low": 1.06, "high": 1.2}, 1.05), "missed")
    expect_equal(stats.verdict_of_limit({"low": 1.0, "high": 1.2}, 1.05), "undecided")


def overhead_options(*words):
    return overhead.parse_arguments(["--configurations", "none,sonde", "--workloads", "adds", *words])


def check_overhead_analysis_by_hand():
    with tempfile.TemporaryDirectory() as folder:
        options = overhead_options()
        options.configurations = ["none", "bare", "sonde", "proton", "torch", "sonde_budget"]
        measurements = overhead.Measurements(options)
        times = {
            "none": 1e6, "bare": 2e6, "sonde": 2.05e6, "proton": 2.5e6, "torch": 3e6, "sonde_budget": 1.02e6,
        }  # fmt: skip
        for number in range(5):
            for configuration, wall in times.items():
                run = {
                    "configuration": configuration,
                    "workload": "adds",
                    "round": number,
                    "iterations": 1000,
                    "warm_up": 2000,
                    "launches": 1000,
                    "wall_ns": wall * (1 + number / 10),
                    "cpu_ns": wall,
                    "start_ns": 5,
                    "stop_ns": 4e8,
                    "export_ns": 6e8,
                    "file_bytes": 3_000_000 if configuration == "torch" else None,
                    "kernels": 3000 if configuration == "torch" else None,
                }
                measurements.runs.append(run)
                measurements.processes.append(
                    {
                        "configuration": configuration,
                        "round": number,
                        "exit_seconds": 0.25 if configuration == "sonde" else 0.2,
                        "output_bytes": 30_000,
                        "peak_memory_bytes": 2**20,
                        "kernels_seen": 2999 if configuration == "sonde" else 3000,
                    }
                )
        analysis = bars.analyse(measurements)
        entries = analysis["adds"]["configurations"]
        # Median over the rounds: factor 1.2; 2.4 ms for 1000 launches are 2400 ns each.
        expect(abs(entries["bare"]["wall_ns_per_launch"] - 2400) < 1e-6, "ns per launch")
        expect(abs(entries["sonde"]["to_none"]["ratio"] - 2.05) < 1e-9, "ratio to none")
        expect(abs(entries["bare"]["added_cpu_ns_per_launch"] - 1000) < 1e-6, "added CPU")
        rows = {(row["bar"], row["workload"]): row for row in bars.judge(measurements, analysis)}
        verdicts = {key: row["verdict"] for key, row in rows.items()}
        expect_equal(verdicts[("sonde loop / bare", "adds")], "PASS", "1.025 of bare")
        expect_equal(verdicts[("sonde loop / proton tree", "adds")], "PASS", "below proton")
        # 30,000 bytes for 2,999 kernels against 3,000,000 for 3,000: a hundredth.
        expect_equal(verdicts[("file bytes per kernel, sonde / torch", "all")], "PASS", "file")
        # 0.05 s beyond a process without a tool against 1 s: a twentieth.
        expect_equal(verdicts[("stop and export, sonde / torch", "all")], "PASS", "stop")
        expect_equal(verdicts[("kernels recorded, sonde / bare", "all")], "FAIL", "2999 of 3000")
        expect_equal(verdicts[("loop with --budget 3% / none", "all")], "PASS", "2 percent")
        expect_equal(
            verdicts[("means of the full trace inside the stated intervals", "training, adds")],
            "UNDECIDED",
            "not measured",
        )
        text = overhead.write_results(measurements, pathlib.Path(folder))
        expect("FAIL" in text and "sonde loop / bare" in text, f"no bars in:\n{text}")
        content = json.loads((pathlib.Path(folder) / "overhead.json").read_text())
        expect_equal(len(content["runs"]), 30, "runs in the file")


def check_overhead_verdicts_need_the_whole_interval():
    def ratio(low, high):
        return {"ratio": (low + high) / 2, "low": low, "high": high}

    expect_equal(bars.verdict(ratio(1.0, 1.04), 1.05), "PASS")
    expect_equal(bars.verdict(ratio(1.0, 1.06), 1.05), "UNDECIDED")
    expect_equal(bars.verdict(ratio(1.06, 1.2), 1.05), "FAIL")
    expect_equal(bars.bar("x", "y", None, 1)["verdict"], "UNDECIDED", "nothing measured")


def check_overhead_means_are_looked_up_by_symbol():
    full = {
        "workload.kernels": [
            {"symbol": "a", "mean": 100.0, "count": 10},
            {"symbol": "b", "mean": 50.0, "count": 10},
            {"symbol": "c", "mean": 7.0, "count": 1},
            {"symbol": "d", "mean": 7.0, "count": 1},
        ]
    }
    row = {"count": 10.0, "count_low": 5.0, "count_high": 15.0}
    sampled = {
        "workload.sampled_kernels": [
            {"symbol": "a", "mean": 99.0, "mean_low": 90.0, "mean_high": 110.0, **row},
            {"symbol": "b", "mean": 60.0, "mean_low": 55.0, "mean_high": 65.0, **row},
            {"symbol": "c", "mean": None, "mean_low": None, "mean_high": None, **row},
        ],
        "workload.sampling": [{"collected_share": 0.05, "windows": 40}],
    }
    means = bars.compare_means(full, sampled)
    expect_equal((means["inside"], means["outside"]), (1, 1), "a is inside, b outside")
    expect_equal((means["without_interval"], means["unseen"]), (1, 1), "c and d")
    expect_equal(means["counts_inside"], 2, "10 lies in [5, 15], 1 does not")


def check_overhead_driver_reports_failing_children():
    with tempfile.TemporaryDirectory() as folder:
        words = ["--output", folder, "--configurations", "none,none_again"]
        words += ["--workloads", "adds", "--repeats", "3"]
        original = overhead.HERE
        overhead.HERE = pathlib.Path(folder)  # there is no child.py
        try:
            code = quiet(overhead.main, words)
        finally:
            overhead.HERE = original
        expect_equal(code, 1, "exit code")
        content = json.loads((pathlib.Path(folder) / "overhead.json").read_text())
        expect_equal(sorted(content["failures"]), ["none", "none_again"], "failures")
        # Nothing runs without a tool either, so the first round is the last.
        expect_equal(len(content["failures"]["none"]), 1, "tries of a failing case")
        expect_equal(content["rounds"], 1, "rounds")


def check_overhead_driver_gives_a_failing_configuration_up():
    with tempfile.TemporaryDirectory() as folder:
        options = overhead_options("--device", "cpu")
        options.sonde = str(pathlib.Path(folder) / "absent")
        options.configurations = ["sonde"]
        measurements = overhead.Measurements(options)
        for number in range(4):
            quiet(measurements.run_round, number, random.Random(1), float("inf"))
        tries = len(measurements.failures["sonde"])
        expect_equal(tries, overhead.Measurements.FAILURES_ALLOWED, "tries")


STAND_IN_CHILD = """
import json, sys
print(json.dumps({"ready": 1}), flush=True)
sys.stdin.readline()
run = {"iterations": 10, "warm_up": 1, "launches": 10, "wall_ns": 1000000, "issue_ns": 1, "cpu_ns": 1,
       "start_ns": 1, "stop_ns": 1, "export_ns": 1, "file_bytes": None, "kernels": None}
print(json.dumps({"overhead_child": 1, "peak_memory_bytes": 1048576, "workloads": {"adds": run}}), flush=True)
"""


def check_overhead_driver_runs_rounds_within_its_time():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "child.py").write_text(STAND_IN_CHILD)
        words = ["--output", folder, "--configurations", "none,none_again"]
        words += ["--workloads", "adds", "--repeats", "4", "--no-count"]
        original = overhead.HERE
        overhead.HERE = pathlib.Path(folder)
        try:
            code = quiet(overhead.main, words)
            content = json.loads((pathlib.Path(folder) / "overhead.json").read_text())
            expect_equal((code, content["rounds"], len(content["runs"])), (0, 4, 8), "all rounds")
            quiet(overhead.main, [*words, "--budget", "0.01"])
        finally:
            overhead.HERE = original
        content = json.loads((pathlib.Path(folder) / "overhead.json").read_text())
        expect(content["rounds"] == 1 and len(content["runs"]) >= 1, "the time was up after a start")


PROGRAM_STAND_IN = """#!{python}
print({line!r})
"""

RECORD_IMAGES = {"wrong": 0, "images": [{"role": "a", "process": 41, "kernels": {"k": 3}}]}


def run_record_script(folder, sonde, streams_line):
    build = folder / "build"
    build.mkdir()
    for name, line in (("streams", streams_line), ("fork_exec", json.dumps(RECORD_IMAGES))):
        program = build / name
        program.write_text(PROGRAM_STAND_IN.format(python=sys.executable, line=line))
        program.chmod(0o755)
    return subprocess.run(
        ["bash", str(HERE / "record.sh"), "--sonde", sonde, "--build", str(build)]
        + ["--only", "streams,fork", "--work", str(folder / "work")],
        env={**os.environ, "OUT": str(folder / "out")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def check_record_script_with_a_stand_in():
    with stand_in_folder() as (folder, sonde):
        process = run_record_script(folder, sonde, json.dumps(SMALL_REFERENCE))
        expect_equal(process.returncode, 0, process.stdout + process.stderr)
        checks = (folder / "out" / "checks.txt").read_text()
        expect("report: kernels" in checks, f"the report was not compared:\n{checks}")
        with tarfile.open(folder / "out" / "captures.tar") as archive:
            found = archive.getnames()
        for name in ("captures/streams/x.sonde", "captures/streams.txt", "captures/fork/x.sonde"):
            expect(name in found, f"{name} is not in {found}")
        for path in (folder / "out").iterdir():
            expect(path.is_file(), f"{path} is no file: results are flat")


def check_record_script_notices_a_wrong_count():
    with stand_in_folder() as (folder, sonde):
        wrong = changed(SMALL_REFERENCE, "kernels", "fill_kernel", 3)
        process = run_record_script(folder, sonde, json.dumps(wrong))
        expect_equal(process.returncode, 1, process.stdout + process.stderr)
        expect("FAILED: streams: counts" in process.stdout, process.stdout)


def main():
    failed = 0
    checks = [(name, value) for name, value in globals().items() if name.startswith("check_")]
    for name, check in checks:
        try:
            check()
            print(f"ok      {name[len('check_') :].replace('_', ' ')}")
        except Exception:  # a check may fail in any way; all are run
            failed += 1
            print(f"FAILED  {name[len('check_') :].replace('_', ' ')}")
            traceback.print_exc(file=sys.stdout)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
