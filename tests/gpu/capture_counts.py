"""Counts of what a capture holds, from the records that `sonde dump --format json` prints.

The result has the shape that the programs of this folder print, so the two can be compared
member by member:

    kernels      {name: count}              names as recorded, see names.py for comparing them
    copies       {direction: {count, bytes}}    direction as "HtoD", "DtoH", "DtoD", ...
    sets         {count, bytes}
    allocations  {kind: {count, bytes}}     device, pinned, managed, ..., stream_ordered
    frees        {kind: {count, bytes}}     bytes 0: a free names an address only
    calls        {function: count}          calls of the CUDA runtime, as a program writes them
    ranges       {domain: {push, pop, start, end, mark}}
    graph_kernels                           kernels that came from graphs
    lost, losses_of_unknown_size            what the capture says it lost
    notes, processes                        the capture's notes; its process ids
"""

import json
import re
import subprocess

# Words of the copy kinds (SONDE_COPY_* in include/sonde/spaces/device.h) as one letter each.
_PLACES = {"host": "H", "device": "D", "peer": "P", "array": "A"}
RANGE_WORDS = {
    "scope_push": "push",
    "scope_pop": "pop",
    "range_start": "start",
    "range_end": "end",
    "mark": "mark",
}
UNKNOWN_COUNT = 2**64 - 1
LATE = "late"  # delivered out of order, not lost (include/sonde/ledger.h)
_CALL_SUFFIX = re.compile(r"(_ptsz|_ptds|_v\d+)+$")


class DumpError(Exception):
    """The dump could not be made or read; the message says which line or command."""


def copy_direction(kind):
    """`HtoD` and so on, from the schema's word; `other` for what is neither known nor named."""
    match = re.fullmatch(r"(host|device|peer|array)_to_(host|device|peer|array)", str(kind))
    return f"{_PLACES[match.group(1)]}to{_PLACES[match.group(2)]}" if match else "other"


def domain_name(domain):
    """`default` for ranges outside of any domain, otherwise the program's name for the domain."""
    if domain.startswith("nvtx:"):
        domain = domain[len("nvtx:") :]
    return domain if domain not in ("", "nvtx") else "default"


def empty_counts():
    return {
        "kernels": {},
        "copies": {},
        "sets": {"count": 0, "bytes": 0},
        "allocations": {},
        "frees": {},
        "calls": {},
        "ranges": {},
        "graph_kernels": 0,
        "records": 0,
        "lost": 0,
        "losses_of_unknown_size": 0,
        "notes": [],
        "processes": [],
    }


def _increase(table, key, amount=1):
    table[key] = table.get(key, 0) + amount


def _add_amount(table, key, bytes_of_one):
    entry = table.setdefault(key, {"count": 0, "bytes": 0})
    entry["count"] += 1
    entry["bytes"] += bytes_of_one


def _add_device(counts, kind, record):
    if kind == "kernel":
        _increase(counts["kernels"], record["name"])
        if record.get("graph_exec") or record.get("graph_node"):
            counts["graph_kernels"] += 1
    elif kind == "copy":
        _add_amount(counts["copies"], copy_direction(record["kind"]), record["bytes"])
    elif kind == "set":
        counts["sets"]["count"] += 1
        counts["sets"]["bytes"] += record["bytes"]


def _add_memory(counts, kind, record):
    if kind not in ("allocate", "free"):
        return
    name = str(record["kind"])
    if "stream_ordered" in (record.get("flags") or ()):
        name = "stream_ordered"
    if kind == "allocate":
        _add_amount(counts["allocations"], name, record["bytes"])
    else:
        _add_amount(counts["frees"], name, 0)


def function_name(function):
    """The function as a program writes it, from the name of the entry point that was called.

    Entry points carry version suffixes, and from CUDA 13 on the compiler launches kernels through
    a twin with two underscores in front.
    """
    return _CALL_SUFFIX.sub("", function).lstrip("_")


def _add_host(counts, kind, record):
    if kind in ("call", "call_begin") and "runtime" in record.get("domain", ""):
        _increase(counts["calls"], function_name(record["function"]))


def _add_framework(counts, kind, record):
    if kind in RANGE_WORDS:
        domain = counts["ranges"].setdefault(domain_name(record.get("domain", "")), {})
        _increase(domain, RANGE_WORDS[kind])


def _add_session(counts, kind, record):
    if kind == "start":
        counts["processes"].append(record.get("process", 0))
    elif kind == "loss":
        if record.get("records", 0) >= UNKNOWN_COUNT:
            counts["losses_of_unknown_size"] += 1
        elif record.get("cause") != LATE:
            counts["lost"] += record.get("records", 0)
    elif kind == "note":
        counts["notes"].append(record.get("text", ""))


_ADDERS = {
    "device": _add_device,
    "memory": _add_memory,
    "host": _add_host,
    "framework": _add_framework,
    "session": _add_session,
}


def add_record(counts, record):
    """Adds one record: an object with `space`, `type` and, in `fields`, the fields of its schema."""
    space = record["space"]
    if space.startswith("sonde."):
        space = space[len("sonde.") :]
    counts["records"] += 1
    adder = _ADDERS.get(space)
    if adder is not None:
        adder(counts, record["type"], record["fields"])


def counts_of_lines(lines, source="dump"):
    counts = empty_counts()
    for number, line in enumerate(lines, start=1):
        line = line.strip()
        if not line:
            continue
        try:
            add_record(counts, json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise DumpError(f"{source}, line {number}: {error!r} in {line[:200]}") from error
    return counts


def counts_of_capture(sonde, path):
    """Runs `sonde dump` on a capture file or run directory and counts its records."""
    command = [sonde, "dump", str(path), "--format", "json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, encoding="utf-8", errors="replace"
    ) as process:
        try:
            counts = counts_of_lines(process.stdout, " ".join(command))
        except DumpError:
            process.kill()
            raise
    if process.returncode != 0:
        raise DumpError(f"{' '.join(command)} ended with exit code {process.returncode}")
    return counts
