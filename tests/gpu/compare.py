#!/usr/bin/env python3
"""Compares a capture with what the program, or torch.profiler, says was done.

    compare.py torch   --sonde SONDE --capture DIR --reference profile.json
    compare.py program --sonde SONDE --capture DIR --reference stdout-of-the-program
    compare.py images  --sonde SONDE --capture DIR --reference stdout-of-fork_exec

`torch`: kernels by name, copies by direction with bytes, sets, against torch.profiler's counts of
the same command. `program`: everything that the program counted itself. `images`: kernels for
each process image of a run. With --report FILE (output of `sonde replay -p workload --format
json`) the report's kernel counts are compared with the capture's records too.

Each row is `equal`, `explained` (with the reason) or `different`. The only reasons that explain a
difference are ones that can be checked: records that the capture itself says were lost.
Exit code 0: no row is different. 1: some are. 2: an input could not be read.
"""

import argparse
import json
import pathlib
import sys

import capture_counts
import names


class InputError(Exception):
    """An input is missing or not what it should be."""


class Table:
    """Rows of one comparison."""

    def __init__(self, lost=0):
        self.rows = []
        self.lost = lost

    def compare(self, what, capture, reference):
        why = ""
        if capture == reference:
            verdict = "equal"
        elif capture < reference <= capture + self.lost:
            verdict = "explained"
            why = f"the capture states {self.lost} lost records"
        else:
            verdict = "different"
            why = f"{capture - reference:+d}"
        self.rows.append(
            {
                "what": what,
                "capture": capture,
                "reference": reference,
                "verdict": verdict,
                "why": why,
            }
        )

    def compare_amounts(self, what, capture, reference, with_bytes=True):
        """Two {key: {count, bytes}} tables, key by key."""
        nothing = {"count": 0, "bytes": 0}
        for key in sorted(set(capture) | set(reference)):
            ours, theirs = capture.get(key, nothing), reference.get(key, nothing)
            self.compare(f"{what} {key}", ours["count"], theirs["count"])
            if with_bytes:
                self.compare_bytes(f"{what} {key}, bytes", ours, theirs)

    def compare_bytes(self, what, ours, theirs):
        """Bytes are held to equality where the counts are equal; else the counts say it already."""
        if ours["count"] == theirs["count"]:
            lost, self.lost = self.lost, 0
            self.compare(what, ours["bytes"], theirs["bytes"])
            self.lost = lost

    def compare_names(self, what, capture, reference):
        """Two {name: count} tables: one row for all equal names, one for each other name."""
        keys = sorted(set(capture) | set(reference))
        differing = [key for key in keys if capture.get(key, 0) != reference.get(key, 0)]
        same = len(keys) - len(differing)
        self.compare(f"{what}: names with equal counts", same, same)
        for key in differing:
            self.compare(f"{what} {shortened(key)}", capture.get(key, 0), reference.get(key, 0))

    @property
    def different(self):
        return [row for row in self.rows if row["verdict"] == "different"]

    def text(self, title):
        heads = ("what", "capture", "reference", "verdict", "why")
        cells = [heads] + [tuple(str(row[head]) for head in heads) for row in self.rows]
        widths = [max(len(line[column]) for line in cells) for column in range(len(heads))]
        lines = [title, "=" * len(title)]
        for line in cells:
            left = line[0].ljust(widths[0])
            numbers = "  ".join(line[column].rjust(widths[column]) for column in (1, 2))
            lines.append(f"{left}  {numbers}  {line[3].ljust(widths[3])}  {line[4]}".rstrip())
        tally = {}
        for row in self.rows:
            tally[row["verdict"]] = tally.get(row["verdict"], 0) + 1
        lines.append(", ".join(f"{count} {verdict}" for verdict, count in sorted(tally.items())))
        return "\n".join(lines) + "\n"


def shortened(name, limit=70):
    return name if len(name) <= limit else f"{name[: limit - 13]}...{name[-10:]}"


def last_json_line(text):
    """The last line that is a JSON object: programs print theirs after everything else."""
    for line in reversed(text.splitlines()):
        line = line.strip()
        if line.startswith("{") and line.endswith("}"):
            try:
                return json.loads(line)
            except ValueError:
                continue
    raise InputError("no JSON object on a line of its own")


def compare_torch(counts, reference):
    table = Table(counts["lost"])
    ours = names.merged(counts["kernels"], names.spelling)
    theirs = names.merged(reference["kernels"], names.spelling)
    table.compare("kernels", sum(ours.values()), sum(theirs.values()))
    table.compare("kernel names", len(ours), len(theirs))
    table.compare_names("kernel", ours, theirs)
    table.compare_amounts("copies", counts["copies"], reference["copies"])
    table.compare("sets", counts["sets"]["count"], reference["sets"]["count"])
    table.compare_bytes("sets, bytes", counts["sets"], reference["sets"])
    return table


def compare_program(counts, reference):
    """Compares each member that the program states; a member it does not state is not compared."""
    table = Table(counts["lost"])
    wrong = reference.get("wrong", 0)  # a number, or the names of the wrong results
    table.compare("wrong results", wrong if isinstance(wrong, int) else len(wrong), 0)
    ours = names.merged(counts["kernels"], names.plain_name)
    theirs = reference["kernels"]
    if reference.get("other_kernels") != "any":
        table.compare("kernels", sum(ours.values()), sum(theirs.values()))
        table.compare("kernel names", len(ours), len(theirs))
        listed = sorted(set(ours) | set(theirs))
    else:
        listed = sorted(theirs)
    for name in listed:
        table.compare(f"kernel {shortened(name)}", ours.get(name, 0), theirs.get(name, 0))
    if "copies" in reference:
        table.compare_amounts("copies", counts["copies"], reference["copies"])
    if "sets" in reference:
        table.compare("sets", counts["sets"]["count"], reference["sets"]["count"])
        table.compare_bytes("sets, bytes", counts["sets"], reference["sets"])
    if "allocations" in reference:
        table.compare_amounts("allocations", counts["allocations"], reference["allocations"])
    if "frees" in reference:
        table.compare_amounts("frees", counts["frees"], reference["frees"], with_bytes=False)
    # Calls that the runtime makes of itself are not the program's, so only those it made count.
    for function, count in sorted(reference.get("calls", {}).items()):
        table.compare(f"calls of {function}", counts["calls"].get(function, 0), count)
    for domain, words in sorted(reference.get("ranges", {}).items()):
        for word, count in sorted(words.items()):
            found = counts["ranges"].get(domain, {}).get(word, 0)
            table.compare(f"ranges {domain} {word}", found, count)
    return table


def compare_images(counts_of_files, reference):
    """`counts_of_files`: one count for each capture file of the run.

    An image is a process id with its kernel counts; a process that executed another program has
    two. Captures without kernels are processes that did not use the device and are left out.
    """
    lost = sum(counts["lost"] for counts in counts_of_files)
    table = Table(lost)
    table.compare("wrong results", reference["wrong"], 0)
    ours = {}
    for counts in counts_of_files:
        launches = names.merged(counts["kernels"], names.plain_name)
        if launches:
            process = counts["processes"][0] if counts["processes"] else 0
            ours.setdefault(process, []).append(sum(launches.values()))
    theirs = {}
    for image in reference["images"]:
        theirs.setdefault(image["process"], []).append(image)
    table.compare("captures with kernels", sum(map(len, ours.values())), len(reference["images"]))
    for process, images in sorted(theirs.items()):
        found = sorted(ours.pop(process, []))
        wanted = sorted(images, key=lambda image: sum(image["kernels"].values()))
        found += [0] * (len(wanted) - len(found))
        for image, count in zip(wanted, found):
            table.compare(
                f"{image['role']} (process {process})", count, sum(image["kernels"].values())
            )
        for count in found[len(wanted) :]:
            table.compare(f"one more capture of process {process}", count, 0)
    for process, found in sorted(ours.items()):
        table.compare(f"unexpected process {process}", sum(found), 0)
    return table


def kernel_counts_of_report(report):
    """{symbol: count} from the workload report's table of kernels, all processes and devices."""
    tables = report.get("tables")
    if not isinstance(tables, dict) or "workload.kernels" not in tables:
        found = sorted(tables) if isinstance(tables, dict) else tables
        raise InputError(f"the report has no table workload.kernels; it has {found}")
    counts = {}
    for row in rows_of_table(tables["workload.kernels"]):
        counts[row["symbol"]] = counts.get(row["symbol"], 0) + row["count"]
    return counts


def rows_of_table(table):
    """Rows as objects, from a table's columns and rows."""
    columns = [column["name"] for column in table["columns"]]
    return [dict(zip(columns, row)) for row in table["rows"]]


def compare_report(table, counts, report):
    ours = names.merged(kernel_counts_of_report(report), names.spelling)
    records = names.merged(counts["kernels"], names.spelling)
    table.compare("report: kernels", sum(ours.values()), sum(records.values()))
    table.compare_names("report: kernel", ours, records)
    losses = report["losses"]
    table.compare("report: lost records", losses["records"], 0)
    table.compare("report: losses known exactly", int(losses["exact"]), 1)


def capture_files(path):
    path = pathlib.Path(path)
    files = sorted(path.glob("*.sonde")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise InputError(f"{path}: no capture there")
    return files


def sum_counts(parts):
    """One count of several capture files."""

    def add(total, part):
        for key, value in part.items():
            if isinstance(value, dict):
                add(total.setdefault(key, {}), value)
            elif isinstance(value, list):
                total.setdefault(key, []).extend(value)
            else:
                total[key] = total.get(key, 0) + value

    total = capture_counts.empty_counts()
    for part in parts:
        add(total, part)
    return total


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog=__doc__.split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("mode", choices=("torch", "program", "images"))
    parser.add_argument("--sonde", default="sonde", help="the command, default: sonde in PATH")
    parser.add_argument("--capture", required=True, help="run directory or capture file")
    parser.add_argument("--reference", required=True, help="counts to compare with")
    parser.add_argument("--report", help="workload report of the capture as JSON")
    parser.add_argument("--title", help="title of the table")
    parser.add_argument("--json", help="also write the rows to this file")
    return parser.parse_args(arguments)


def run(options):
    reference_text = pathlib.Path(options.reference).read_text(encoding="utf-8")
    reference = (
        json.loads(reference_text) if options.mode == "torch" else last_json_line(reference_text)
    )
    parts = [
        capture_counts.counts_of_capture(options.sonde, path)
        for path in capture_files(options.capture)
    ]
    counts = sum_counts(parts)
    if options.mode == "torch":
        table = compare_torch(counts, reference)
    elif options.mode == "program":
        table = compare_program(counts, reference)
    else:
        table = compare_images(parts, reference)
    if options.report:
        report = json.loads(pathlib.Path(options.report).read_text(encoding="utf-8"))
        compare_report(table, counts, report)
    title = options.title or f"{options.capture} against {options.reference}"
    print(table.text(title))
    for note in counts["notes"]:
        print(f"note in the capture: {note}")
    if options.json:
        content = {"title": title, "rows": table.rows, "lost": counts["lost"]}
        pathlib.Path(options.json).write_text(json.dumps(content, indent=1) + "\n")
    return 1 if table.different else 0


def main(arguments=None):
    options = parse_arguments(arguments)
    try:
        return run(options)
    except (InputError, capture_counts.DumpError, OSError, ValueError, KeyError) as error:
        print(f"compare.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
