#!/usr/bin/env python3
"""What the analyses cost on big captures: events a second and core, and memory, beside the floor of the same run.

    tests/bench/analyses/analyses.py [BUILD] [--records 1e5,1e6,1e7] [--rounds N] [--analyses workload,memory,uvm]
                                     [--json FILE]

The captures are generated (capture.cpp says what they hold) into a temporary folder. Floor: one subscriber that looks
at the header of each record. Analyses: `sonde replay FILE -p ... --format json` in a process of its own, report
included. CPU time is of all threads of the process, user and system, so 1e6 records in 0.1 s of it are 10 M events/s
a core however many threads share them; `net` leaves the floor's time out. Rounds are interleaved, medians are shown.

The bar: at least 5 M events/s a core with all analyses on the largest capture, and a peak of resident memory that
does not grow with it: at most 1.25 times that at a tenth of the records.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BAR_EVENTS = 5e6
BAR_GROWTH = 1.25


def measured(command, output):
    """(CPU seconds of all threads, peak resident bytes) of a process that must succeed."""
    with open(output, "wb") as out:
        child = subprocess.Popen([str(word) for word in command], stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measure(options, records, folder):
    build = pathlib.Path(options.build)
    bench, sonde = build / "bin" / "bench" / "analyses_capture", build / "bin" / "sonde"
    capture = folder / f"{records}.sonde"
    made = subprocess.run([bench, "generate", capture, str(records)], check=True, capture_output=True, text=True)
    count = json.loads(made.stdout)["records"]
    analyses = options.analyses.split(",")
    commands = {"floor": [bench, "floor", capture]}
    for names in [[name] for name in analyses] + ([analyses] if len(analyses) > 1 else []):
        command = [sonde, "replay", capture, "--format", "json"]
        for name in names:
            command += ["-p", name]
        commands[" + ".join(names)] = command
    samples = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            samples[name].append(measured(command, folder / "report.json"))
            if name != "floor":
                with open(folder / "report.json", encoding="utf-8") as file:
                    losses = json.load(file)["losses"]["records"]
                if losses:
                    raise SystemExit(f"{name}: {losses} records were lost")
    rows = []
    floor = statistics.median(cpu for cpu, _ in samples["floor"])
    for name, values in samples.items():
        cpu = statistics.median(value for value, _ in values)
        rows.append({"records": count, "what": name, "cpu_seconds": cpu, "events_per_core_second": count / cpu,
                     "net_events_per_core_second": count / (cpu - floor) if cpu > floor else None,
                     "peak_rss": max(peak for _, peak in values), "all_cpu_seconds": [value for value, _ in values],
                     "is_all": name == " + ".join(analyses)})
    capture.unlink()
    return rows


def print_rows(rows):
    print(f"{'records':>10} {'what':<26} {'CPU s':>8} {'M events/s':>11} {'net':>8} {'peak MiB':>9}")
    for row in rows:
        net = row["net_events_per_core_second"]
        print(f"{row['records']:>10} {row['what']:<26} {row['cpu_seconds']:>8.3f} "
              f"{row['events_per_core_second'] / 1e6:>11.2f} {f'{net / 1e6:.2f}' if net else '-':>8} "
              f"{row['peak_rss'] / 2**20:>9.1f}", flush=True)


def judge(rows):
    """The bar's lines as (text, holds)."""
    mine = [row for row in rows if row["is_all"]]
    largest = max(mine, key=lambda row: row["records"])
    speed = largest["events_per_core_second"]
    lines = [(f"{speed / 1e6:.2f} M events/s a core at {largest['records']} records, bar {BAR_EVENTS / 1e6:.0f}",
              speed >= BAR_EVENTS)]
    before = [row for row in mine if row["records"] < largest["records"]]
    if before:
        earlier = max(before, key=lambda row: row["records"])
        growth = largest["peak_rss"] / earlier["peak_rss"]
        lines.append((f"peak memory {growth:.2f} times that at {earlier['records']} records, bar {BAR_GROWTH}",
                      growth <= BAR_GROWTH))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build/release")
    parser.add_argument("--records", default="1e5,1e6,1e7")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--analyses", default="workload,memory,uvm")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="sonde-analyses-") as folder:
        for text in options.records.split(","):
            part = measure(options, int(float(text)), pathlib.Path(folder))
            rows += part
            print_rows(part)
    lines = judge(rows)
    for text, holds in lines:
        print(f"{'PASS' if holds else 'FAIL'}: {text}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows, "bars": [{"text": text, "holds": holds} for text, holds in lines]}, file, indent=1)
            file.write("\n")
    return 0 if all(holds for _, holds in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
