#!/usr/bin/env python3
"""What watching accesses costs, as ratios to patches that do nothing. Writes access.json and access.txt.

    measure.py --sonde SONDE --bench BENCH --out FOLDER [--repeats 7] [--seconds 200]

`bench.cu` runs under each configuration in a process of its own. `kernel` is the time of the kernel by device events;
`readable` is the time from the launch until its results were in host memory, counters cleared and all, from the
port's own stamps. A script in the same process reads along what the port hands over; `records_to_disk` goes into a capture
instead. Both are medians over the launches after the first, divided by those of the configuration `empty`,
which patches the same instructions with a function that returns at once. Bars: see BARS. `sampled` is a loop of launches
of which one in 20 is watched, against the same loop without any tool.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent

# Configuration, kernel, measure, the most it may be.
BARS = [
    ("objects", "stream", "readable", 1.25),
    ("objects", "gather", "readable", 1.25),
    ("objects", "heavy", "readable", 1.25),
    ("check", "stream", "readable", 1.4),
    ("check", "gather", "readable", 1.4),
    ("check", "heavy", "readable", 1.4),
    ("intervals", "stream", "readable", 2.0),
    ("intervals", "heavy", "readable", 2.0),
    ("intervals", "gather", "readable", 6.0),
    ("records", "stream", "readable", 6.0),
    ("records", "gather", "readable", 6.0),
    ("records", "heavy", "readable", 6.0),
]
SAMPLED_BAR = 2.5
SAMPLED_LOOP = "2000"  # launches: the first of a kernel is always watched, so a short loop says little
RESIDENT_BAR = 3.0
# What the script that reads along takes, with the number that its records carry.
CONFIGURATIONS = {
    "empty": {"collect": "objects", "patch": "empty"},
    "naive": {"collect": "objects", "patch": "naive"},
    "objects": {"collect": "objects"},
    "check": {"collect": "check"},
    "pages": {"collect": "pages"},
    "intervals": {"collect": "intervals"},
    "records": {"collect": "records"},
    "values": {"collect": "values"},
    "instructions": {"collect": "instructions"},
    "objects_and_check": {"collect": "objects, check"},
}
TAKEN = {
    "empty": ("object", None),
    "naive": ("object", None),
    "objects": ("object", "reads"),
    "check": ("invalid", "count"),
    "pages": ("pages", "bytes"),
    "intervals": ("intervals", "touched"),
    "records": ("warps", "count"),
    "values": ("warps", "count"),
    "instructions": ("instruction", "threads"),
    "objects_and_check": ("object", "reads"),
}
KERNELS = ("stream", "gather", "heavy")


def run(command, seconds):
    return subprocess.run(
        command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
    )


def bench_result(name, done):
    try:
        return json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        raise RuntimeError(f"{name}: bench gave no result: {done.stderr[-600:]}") from None


def read_along(options, name, settings, arguments, seconds=40):
    """Bench's own JSON, the launches, and the bytes that a script in the same process read, nothing on disk."""
    configuration = options.out / f"{name}.yaml"
    report = options.out / f"{name}-report.json"
    report.unlink(missing_ok=True)
    kind, count = TAKEN[name]
    script = {"path": str(HERE / "readable.lua"), "deadline": "20s", "options": {"take": kind, "count": count or False}}
    tree = {
        "session": {"memory": "4Gi"},
        "ports": {"cuda_access": settings},
        "scripts": [script],
        "outputs": [{"format": "json", "path": str(report), "rows": 1000000}],
    }
    configuration.write_text(json.dumps(tree), encoding="utf-8")
    prefix = pathlib.Path(options.sonde).resolve().parent.parent
    inject = next(prefix.rglob("libsonde_inject.so"))
    environment = dict(os.environ, SONDE_RUN=str(configuration), CUDA_INJECTION64_PATH=str(inject))
    done = subprocess.run(
        [options.bench] + arguments, capture_output=True, text=True, errors="replace", timeout=seconds, check=False, env=environment
    )
    own = bench_result(name, done)
    if not report.exists():
        raise RuntimeError(f"{name}: no report: {done.stderr[-600:]}")
    tables = {
        name.split(".", 1)[1]: table for name, table in json.loads(report.read_text(encoding="utf-8"))["tables"].items()
    }
    report.unlink()
    launches = [{"time": row["time"], "fields": row} for row in rows_of(tables["launches"])]
    return own, launches, sum(row["bytes"] for row in rows_of(tables["totals"]))


def rows_of(table):
    names = [column["name"] if isinstance(column, dict) else column for column in table["columns"]]
    return [row if isinstance(row, dict) else dict(zip(names, row)) for row in table["rows"]]


def record(options, name, settings, arguments, seconds=40):
    """Bench's own JSON, the launches of the capture, and the folder's size in bytes."""
    folder = options.out / "captures" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    configuration = options.out / f"{name}.yaml"
    # Room for what comes faster than a disk takes it.
    tree = {"session": {"memory": "16Gi"}, "ports": {"cuda_access": settings}}
    configuration.write_text(json.dumps(tree), encoding="utf-8")
    command = [options.sonde, "record", "-o", str(folder), "-c", str(configuration), "--"]
    own = bench_result(name, run(command + [options.bench] + arguments, seconds))
    dump = run([options.sonde, "dump", str(folder), "--space", "sonde.access", "--type", "launch", "--format", "json"], 30)
    launches = [json.loads(line) for line in dump.stdout.splitlines() if line.strip()]
    bytes_of = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    shutil.rmtree(folder, ignore_errors=True)
    return own, launches, bytes_of


def median_of(values):
    values = values[1:] if len(values) > 1 else values
    return statistics.median(values) if values else None


def measure(options, name):
    if name == "records_to_disk":
        own, launches, bytes_of = record(options, name, CONFIGURATIONS["records"], [str(options.repeats)])
    else:
        own, launches, bytes_of = read_along(options, name, CONFIGURATIONS[name], [str(options.repeats)])
    row = {"bytes": bytes_of, "flags": {}, "dropped": 0}
    for kernel in KERNELS:
        row[kernel] = {"kernel": median_of(own[kernel])}
        mine = [one for one in launches if one["fields"]["name"] == kernel]
        stamps = [
            int(one["fields"]["readable"]) - int(one["time"])
            for one in mine
            if int(one["fields"]["readable"]) != 0
        ]
        row[kernel]["readable"] = median_of(stamps)
        row[kernel]["launches"] = len(mine)
        row[kernel]["accesses"] = mine[-1]["fields"]["accesses"] if mine else None
        row["dropped"] += sum(one["fields"]["dropped"] for one in mine)
        for one in mine:
            for flag in one["fields"]["flags"] if isinstance(one["fields"]["flags"], list) else [one["fields"]["flags"]]:
                row["flags"][str(flag)] = row["flags"].get(str(flag), 0) + 1
    return row


def ratio(results, name, kernel, what):
    try:
        return results[name][kernel][what] / results["empty"][kernel][what]
    except (KeyError, TypeError, ZeroDivisionError):
        return None


def table(results, none, sampled):
    lines = ["ratios to `empty`; kernel / readable", f"{'':20}" + "".join(f"{k:>18}" for k in KERNELS) + f"{'bytes handed over':>20}"]
    if none:
        lines.append(f"{'no tool, ms':20}" + "".join(f"{median_of(none[k]):>18.3f}" for k in KERNELS))
        for kernel_row in ("empty",):
            if kernel_row in results:
                cells = "".join(f"{results['empty'][k]['kernel'] / median_of(none[k]):>17.2f}x" for k in KERNELS)
                lines.append(f"{'empty / no tool':20}{cells}")
    for name, row in results.items():
        cells = []
        for kernel in KERNELS:
            both = [ratio(results, name, kernel, what) for what in ("kernel", "readable")]
            cells.append(" / ".join("-" if one is None else f"{one:.2f}" for one in both))
        lines.append(f"{name:20}" + "".join(f"{cell:>18}" for cell in cells) + f"{row['bytes']:>20}")
    lines.append("")
    failed = False
    for name, kernel, what, most in BARS:
        value = ratio(results, name, kernel, what)
        verdict = "NOT RUN" if value is None else "PASS" if value <= most else "FAIL"
        failed |= verdict == "FAIL"
        lines.append(f"{verdict:8} {name} {kernel} {what}: {'-' if value is None else f'{value:.2f}'} (bar {most})")
    # Records in host memory are only the begin of an analysis on the CPU, so this ratio is the least that it can be.
    for kernel in KERNELS:
        records, resident = (ratio(results, name, kernel, "readable") for name in ("records", "objects"))
        value = records / resident if records and resident else None
        verdict = "NOT RUN" if value is None else "PASS" if value >= RESIDENT_BAR else "FAIL"
        failed |= verdict == "FAIL"
        text = "-" if value is None else f"{value:.2f}"
        lines.append(f"{verdict:8} totals made on the device, against records alone, {kernel}: {text}x faster (bar {RESIDENT_BAR})")
    if sampled:
        value = sampled["loop_ms"] / sampled["none_ms"]
        verdict = "PASS" if value <= SAMPLED_BAR else "FAIL"
        failed |= verdict == "FAIL"
        lines.append(
            f"{verdict:8} one launch in 20: {value:.2f} (bar {SAMPLED_BAR}); {sampled['watched']} of {sampled['launches']} watched"
        )
    return "\n".join(lines), failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sonde", required=True)
    parser.add_argument("--bench", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=200)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    results, errors = {}, {}
    none = json.loads(run([options.bench, str(options.repeats), SAMPLED_LOOP], 60).stdout)
    sampled = None
    for name in list(CONFIGURATIONS) + ["records_to_disk"]:
        if time.monotonic() - begin > options.seconds:
            errors[name] = "out of time"
            continue
        try:
            results[name] = measure(options, name)
        except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
            errors[name] = str(error)[-800:]
    try:
        own, launches, _ = record(
            options, "sampled", {"collect": "objects", "kernel_period": 20}, ["1", SAMPLED_LOOP], 40
        )
        loop = [one["fields"] for one in launches if one["fields"]["name"] == "stream"]
        sampled = {
            "loop_ms": own["loop_ms"],
            "none_ms": none["loop_ms"],
            "launches": len(loop),
            "watched": sum(1 for one in loop if "watched" in str(one["flags"])),
        }
    except (RuntimeError, subprocess.TimeoutExpired, ValueError) as error:
        errors["sampled"] = str(error)[-800:]
    text, failed = table(results, none, sampled)
    for name, error in errors.items():
        text += f"\nNOT RUN  {name}: {error}"
    (options.out / "access.txt").write_text(text + "\n", encoding="utf-8")
    (options.out / "access.json").write_text(
        json.dumps({"none": none, "results": results, "sampled": sampled, "errors": errors}, indent=1),
        encoding="utf-8",
    )
    print(text)
    return 1 if failed or errors else 0


if __name__ == "__main__":
    sys.exit(main())
