#!/usr/bin/env python3
"""Precision and recall of the analyses on programs whose findings are known.

    check.py --sonde SONDE (--patterns PROGRAM | --captures FOLDER) [--out FOLDER] [--keep FOLDER] [--only NAME,...]
             [--jobs N] [--standin]

  --sonde     the command
  --patterns  the programs, `nvcc *.cu -o patterns`: each is recorded as it is and improved, in a process of its own
  --captures  instead: what --keep left, replayed alone
  --out       where patterns.json and patterns.txt go, default: nowhere
  --keep      keeps captures and lists of objects there
  --jobs      processes beside each other while accesses are recorded, default 4; those where time matters run alone
  --standin   the programs are linked with a stand-in for CUDA's runtime (tests/integration/patterns): no port is asked
              for, and those that need a GPU are left out

A finding is right when expected.json names its rule and object for the program; objects are told apart by address and
life. Findings on objects that the program did not make (the runtime's own) are listed and count neither way. A rule
that could not look fails both variants of the programs that it has something to find in.

Exit code 0: precision and recall of 100 % over at least one program, and every program ran.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_OF_A_PROCESS = 60


class Failed(Exception):
    pass


def run(command, environment=None, seconds=SECONDS_OF_A_PROCESS):
    command = [str(word) for word in command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                          start_new_session=True) as process:
        try:
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as late:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failed(f"{' '.join(command)}: not done after {seconds} s") from late
    if process.returncode != 0:
        raise Failed(f"{' '.join(command)}: {process.returncode}: {errors[-1500:]}")
    return output


def load_expected(path):
    """Programs by name; each has its group's settings."""
    with open(path, encoding="utf-8") as file:
        expected = json.load(file)
    programs = {}
    for program in expected["programs"]:
        group = expected["groups"][program["group"]]
        for finding in program["findings"] + program["improved"]:
            if finding["rule"] not in group["rules"]:
                raise Failed(f"{path}: {program['name']} expects {finding['rule']}, which its group does not judge")
        programs[program["name"]] = {**program, "settings": group}
    return programs


class Names:
    """What a program calls an object of its capture."""

    def __init__(self, printed, allocations, rows=()):
        """`printed`: the program's objects; `allocations`: (address, bytes) in order of their records; `rows`: (number,
        address) of the analysis' own objects."""
        self.by_address = {}
        for item in printed["objects"]:
            self.by_address.setdefault(item["address"], {})[item["life"]] = item["name"]
        # The program's lives of an address are the last ones there: the runtime may have used it before.
        self.seen = collections.Counter(address for address, _ in allocations)
        self.skipped = {address: max(0, self.seen[address] - len(lives)) for address, lives in self.by_address.items()}
        # An analysis numbers objects in the order of their begin.
        self.numbers = {}
        counts = collections.Counter()
        for number, (address, _) in enumerate(allocations, 1):
            self.numbers[number] = (address, counts[address])
            counts[address] += 1
        self.rows = dict(rows)

    def of(self, finding):
        """Name; None: no object is meant; "": an object that the program did not make."""
        evidence = {entry["name"]: entry["value"] for entry in finding["evidence"]}
        if "object" in evidence:
            return self.of_number(finding, int(evidence["object"]), evidence.get("address"))
        if "address" not in evidence:
            return None
        # A part of an object: the one that it lies in.
        address = int(evidence["address"])
        below = [begin for begin in self.by_address if begin <= address]
        lives = self.by_address[max(below)] if below else {}
        return lives[0] if len(lives) == 1 else ""

    def of_number(self, finding, number, address):
        if address is None:
            address = self.rows.get(number, self.numbers.get(number, (None, 0))[0])
        lives = self.by_address.get(int(address) if address is not None else None, {})
        if not lives:
            return ""
        address = int(address)
        if len(lives) == 1 and self.seen[address] <= 1:
            return next(iter(lives.values()))
        there, life = self.numbers.get(number, (None, 0))
        if there != address:
            raise Failed(f"a finding of {finding['rule']} has object {number}, which is not the allocation of that "
                         f"number, so its life cannot be told: {finding['message']}")
        return lives.get(life - self.skipped[address], "")


def objects_of(report):
    """(number, address) of the table memory.objects, where there is one."""
    table = report["tables"].get("memory.objects")
    if table is None:
        return
    columns = [column["name"] for column in table["columns"]]
    number, address = columns.index("id"), columns.index("address")
    for row in table["rows"]:
        if row[number] and row[address] is not None:
            yield row[number], row[address]


def allocations_of(sonde, capture):
    output = run([sonde, "dump", capture, "--space", "sonde.memory", "--type", "allocate", "--format", "json"])
    records = [json.loads(line) for line in output.splitlines() if line.strip()]
    records.sort(key=lambda record: record["time"])
    return [(int(str(record["fields"]["address"]), 0), record["fields"]["bytes"]) for record in records]


def compare(wanted, rules, report, names):
    """One program's result: lists of right, missed, wrong, foreign findings, and rules that could not look."""
    found, foreign, blind, others = [], [], [], []
    for finding in report["findings"]:
        rule = finding["rule"]
        if finding["verdict"] == "unsupported" and rule in rules:
            blind.append({"rule": rule, "reason": finding.get("reason") or finding.get("message")})
        if finding["verdict"] != "violation":
            continue
        name = names.of(finding)
        entry = {"rule": rule, "object": name, "message": finding["message"]}
        if rule not in rules:
            others.append(entry)
        elif name == "":
            foreign.append(entry)
        else:
            found.append(entry)
    right, missed = [], []
    left = list(found)
    for one in wanted:
        hit = next((entry for entry in left if entry["rule"] == one["rule"] and
                    (one.get("object") is None or entry["object"] == one["object"])), None)
        if hit is None:
            missed.append(one)
        else:
            left.remove(hit)
            right.append(hit)
    return {"right": right, "missed": missed, "wrong": left, "foreign": foreign, "blind": blind, "others": others}


class Recorder:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}

    def configuration(self, program, which, name):
        path = self.work / f"{name}.yaml"  # of this process alone: others are read while it is written
        settings = {"session": {"ring": "8Mi", "memory": "256Mi", "policy": "stall"}}
        if self.options.standin:
            settings["record"] = {"start": "eager"}
        else:
            settings["ports"] = program["settings"][which]
        path.write_text(json.dumps(settings) + "\n", encoding="utf-8")  # JSON is YAML
        return path

    def capture(self, program, variant, which, name):
        """Runs it under the port that the group names `which`; what it printed."""
        environment = dict(self.environment)
        if program["group"] == "kernels":
            environment["STANDIN_INSTRUCTIONS"] = "1"
        command = [self.options.sonde, "record", "-o", self.work / name,
                   "-c", self.configuration(program, which, name), "--",
                   self.options.patterns, program["name"], *(["improved"] if variant == "improved" else [])]
        output = run(command, environment)
        begin = output.find('{"objects"')
        if begin < 0:
            raise Failed(f"{name} printed no objects: {output[-500:]}")
        return json.JSONDecoder().raw_decode(output[begin:])[0]

    def record(self, program, variant):
        """Capture and printed objects of one process, or of two joined ones: then those of the traced one."""
        name = capture_name(program, variant)
        if "joined_with" in program["settings"] and not self.options.standin:
            self.capture(program, variant, "port", f"{name}.accesses")
            printed = self.capture(program, variant, "joined_with", f"{name}.trace")
            run([self.options.sonde, "merge", self.work / f"{name}.trace", self.work / f"{name}.accesses", "-o",
                 self.work / name])
        else:
            printed = self.capture(program, variant, "port", name)
        if self.options.keep:
            keep = pathlib.Path(self.options.keep)
            keep.mkdir(parents=True, exist_ok=True)
            shutil.copytree(self.work / name, keep / name, dirs_exist_ok=True)
            (keep / f"{name}.objects.json").write_text(json.dumps(printed) + "\n", encoding="utf-8")
        return self.work / name, printed

    def kept(self, program, variant):
        folder = pathlib.Path(self.options.captures)
        name = capture_name(program, variant)
        with open(folder / f"{name}.objects.json", encoding="utf-8") as file:
            return folder / name, json.load(file)

    def one(self, program, variant):
        began = time.monotonic()
        result = {"program": program["name"], "variant": variant}
        try:
            capture, printed = self.record(program, variant) if self.options.patterns else self.kept(program, variant)
            result["record_seconds"] = round(time.monotonic() - began, 2)
            result["capture_bytes"] = sum(file.stat().st_size for file in capture.rglob("*") if file.is_file())
            command = [self.options.sonde, "replay", capture, "--format", "json"]
            for analysis in program["settings"]["analyses"]:
                command += ["-p", analysis]
            report = json.loads(run(command))
            names = Names(printed, allocations_of(self.options.sonde, capture), objects_of(report))
            wanted = program["findings" if variant == "as it is" else "improved"]
            result.update(compare(wanted, program["settings"]["rules"], report, names))
            result["losses"] = report["losses"]["records"]
            # A rule that could not look where it has something to find, here or in the other variant.
            concerned = {one["rule"] for one in program["findings"] + program["improved"]}
            result["blind"] = [entry for entry in result["blind"] if entry["rule"] in concerned]
        except (Failed, OSError, ValueError, KeyError) as failure:
            result["failure"] = f"{type(failure).__name__}: {failure}"
        return result


def capture_name(program, variant):
    return program["name"] + ("_improved" if variant == "improved" else "")


def rates(results):
    """Right, missed, wrong by rule and in all; precision and recall, None where they have no meaning."""
    rows = collections.defaultdict(collections.Counter)
    for result in results:
        for kind in ("right", "missed", "wrong"):
            for entry in result.get(kind, ()):
                rows[entry["rule"]][kind] += 1
                rows["all"][kind] += 1
    out = []
    for rule in sorted(rows, key=lambda name: (name == "all", name)):
        row = rows[rule]
        found, wanted = row["right"] + row["wrong"], row["right"] + row["missed"]
        out.append({"rule": rule, "expected": wanted, "found": found, "missed": row["missed"], "wrong": row["wrong"],
                    "precision": row["right"] / found if found else None,
                    "recall": row["right"] / wanted if wanted else None})
    return out


def is_good(result):
    if "failure" in result or result["missed"] or result["wrong"] or result["losses"]:
        return False
    return not result["blind"]


def percent(value):
    return "-" if value is None else f"{100 * value:.1f} %"


def print_results(results, skipped, out):
    for result in results:
        if is_good(result):
            continue
        print(f"DIFFERENT {result['program']}, {result['variant']}:", file=out)
        if "failure" in result:
            print(f"  failed: {result['failure']}", file=out)
            continue
        for kind in ("missed", "wrong", "blind"):
            for entry in result[kind]:
                text = entry.get("message") or entry.get("reason") or ""
                print(f"  {kind}: {entry['rule']} {entry.get('object') or ''} {text}", file=out)
        if result["losses"]:
            print(f"  {result['losses']} records were lost", file=out)
    foreign = collections.Counter(entry["rule"] for result in results for entry in result.get("foreign", ()))
    if foreign:
        print("on objects of the runtime, not judged: " +
              ", ".join(f"{rule} {count}" for rule, count in sorted(foreign.items())), file=out)
    others = collections.Counter(entry["rule"] for result in results for entry in result.get("others", ()))
    if others:
        print("of rules that are not judged: " +
              ", ".join(f"{rule} {count}" for rule, count in sorted(others.items())), file=out)
    print(f"{'rule':<32} {'expected':>8} {'found':>6} {'missed':>6} {'wrong':>6} {'precision':>10} {'recall':>8}",
          file=out)
    for row in rates(results):
        print(f"{row['rule']:<32} {row['expected']:>8} {row['found']:>6} {row['missed']:>6} {row['wrong']:>6} "
              f"{percent(row['precision']):>10} {percent(row['recall']):>8}", file=out)
    good = sum(is_good(result) for result in results)
    print(f"{good} of {len(results)} captures as expected" +
          (f"; not run: {', '.join(skipped)}" if skipped else ""), file=out)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sonde", required=True)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--patterns")
    source.add_argument("--captures")
    parser.add_argument("--expected", default=HERE / "expected.json")
    parser.add_argument("--out")
    parser.add_argument("--keep")
    parser.add_argument("--only")
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--standin", action="store_true")
    return parser.parse_args(arguments)


def measure(options, work):
    """(results, names of what was left out)."""
    programs = load_expected(options.expected)
    if options.patterns:
        there = set(run([options.patterns, "--list"]).split())
        unknown = sorted(set(programs) - there)
        if unknown:
            raise Failed(f"{options.patterns} has no program {', '.join(unknown)}")
    if options.only:
        wanted = options.only.split(",")
        unknown = [name for name in wanted if name not in programs]
        if unknown:
            raise Failed(f"--only: expected.json has no program {', '.join(unknown)}")
        programs = {name: programs[name] for name in wanted}
    skipped = [name for name, program in programs.items() if options.standin and program["settings"].get("needs_gpu")]
    todo = [(program, variant) for name, program in programs.items() if name not in skipped
            for variant in ("as it is", "improved")]
    recorder = Recorder(options, work)
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, options.jobs)) as pool:
        results = list(pool.map(lambda one: recorder.one(*one),
                                [one for one in todo if not one[0]["settings"].get("alone")]))
    results += [recorder.one(*one) for one in todo if one[0]["settings"].get("alone")]
    return results, skipped


def main():
    options = parse()
    with tempfile.TemporaryDirectory(prefix="sonde-patterns-") as folder:
        try:
            results, skipped = measure(options, pathlib.Path(folder))
        except Failed as failure:
            print(f"check.py: {failure}", file=sys.stderr)
            return 2
    print_results(results, skipped, sys.stdout)
    if options.out:
        out = pathlib.Path(options.out)
        out.mkdir(parents=True, exist_ok=True)
        with open(out / "patterns.json", "w", encoding="utf-8") as file:
            json.dump({"rates": rates(results), "results": results, "not_run": skipped}, file, indent=1)
            file.write("\n")
        with open(out / "patterns.txt", "w", encoding="utf-8") as file:
            print_results(results, skipped, file)
    return 0 if results and all(is_good(result) for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
