#!/usr/bin/env python3
"""Compares a capture of `kernels.cu` with what the kernels must have done. Exit code 1 when a row differs.

    check.py --sonde SONDE --capture RUN --expected kernels.json [--json OUT]

Each launch that touched an expected object must have done exactly what is expected of it; where a kernel is launched
several times with different objects (k_meet, k_ends), an object appears in some of the launches.
"""

import argparse
import json
import subprocess
import sys

MEMBERS = ("reads", "writes", "atomics", "copies", "read_bytes", "write_bytes", "copy_bytes")


def records(sonde, capture, kind):
    command = [sonde, "dump", capture, "--space", "sonde.access", "--type", kind, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return [json.loads(line)["fields"] for line in done.stdout.splitlines() if line.strip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sonde", required=True)
    parser.add_argument("--capture", required=True)
    parser.add_argument("--expected", required=True)
    parser.add_argument("--json")
    options = parser.parse_args()
    with open(options.expected, encoding="utf-8") as file:
        expected = json.load(file)
    launches = {}
    for launch in records(options.sonde, options.capture, "launch"):
        launches.setdefault(launch["name"], []).append(launch)
    objects = {}
    for item in records(options.sonde, options.capture, "object"):
        objects.setdefault(item["launch"], {})[int(str(item["address"]), 0)] = item
    rows = []

    def row(kernel, what, wanted, seen):
        rows.append({"kernel": kernel, "what": what, "expected": wanted, "seen": seen, "ok": wanted == seen})

    last = {}
    for kernel in expected["kernels"]:
        last[kernel["kernel"]] = kernel["launches"]
    for name, count in last.items():
        seen = launches.get(name, [])
        row(name, "launches", count, len(seen))
        row(name, "watched", count, sum(1 for launch in seen if "watched" in str(launch["flags"])))
        row(name, "outside", 0, sum(launch["outside"] for launch in seen))
        row(name, "dropped", 0, sum(launch["dropped"] for launch in seen))
    for kernel in expected["kernels"]:
        name = kernel["kernel"]
        seen = launches.get(name, [])
        incomplete = all("incomplete" in str(launch["flags"]) for launch in seen) and bool(seen)
        row(name, "incomplete", kernel["incomplete"], incomplete)
        for item in kernel["objects"]:
            found = [objects.get(launch["launch"], {}).get(item["address"]) for launch in seen]
            found = [one for one in found if one is not None]
            wanted = {member: item[member] for member in MEMBERS}
            if not found:
                row(name, item["name"], wanted, None)
                continue
            for one in found:
                row(name, item["name"], wanted, {member: one[member] for member in MEMBERS})
    bad = [one for one in rows if not one["ok"]]
    for one in bad[:40]:
        print(f"DIFFERENT {one['kernel']} {one['what']}: expected {one['expected']}, seen {one['seen']}")
    print(f"{len(rows) - len(bad)} of {len(rows)} rows equal, {len(last)} kernels")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rows": len(rows), "different": bad}, file, indent=1)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
