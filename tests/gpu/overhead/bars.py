"""What the runs say: a table for each workload, and the bars that a recorder has to pass.

A bar passes when the whole 95 % interval lies on its good side, fails when it lies on the other, and is undecided
otherwise. Intervals come from a bootstrap over rounds (stats.py).
"""

import statistics

import stats

OVER_BARE = 1.05
OVER_PROTON = 1.0
FILE_SHARE = 1 / 50
STOP_FACTOR = 10
MEANS_COVERED = 0.9


def values(measurements, configuration, workload, member):
    return {
        run["round"]: run[member]
        for run in measurements.runs
        if run["configuration"] == configuration
        and run["workload"] == workload
        and run.get(member) is not None
    }


def process_values(measurements, configuration, member):
    return {
        process["round"]: process[member]
        for process in measurements.processes
        if process["configuration"] == configuration and process.get(member) is not None
    }


def sums(measurements, configuration, *members):
    """Of members of all workloads of a process, by round; rounds that lack one are left out."""
    result = {}
    for number in {run["round"] for run in measurements.runs}:
        runs = [
            run
            for run in measurements.runs
            if run["configuration"] == configuration and run["round"] == number
        ]
        if runs and all(run.get(member) is not None for run in runs for member in members):
            result[number] = sum(run[member] for run in runs for member in members)
    return result


def launches_of(measurements, workload):
    """Launches of the measured loop where they are known."""
    for run in measurements.runs:
        if run["workload"] == workload and run.get("launches"):
            return run["launches"]
    if workload == "training":
        # torch.profiler counts warm-up and loop; both are the same steps.
        for run in measurements.runs:
            if run["workload"] == workload and run["configuration"] == "torch" and run.get("kernels"):
                steps = run["iterations"] + run["warm_up"]
                return round(run["kernels"] * run["iterations"] / steps)
    return None


def analyse(measurements):
    """One entry for each workload and configuration with runs."""
    result = {}
    for workload in measurements.options.workloads:
        launches = launches_of(measurements, workload)
        none = values(measurements, "none", workload, "wall_ns")
        bare = values(measurements, "bare", workload, "wall_ns")
        none_cpu = values(measurements, "none", workload, "cpu_ns")
        entries = {}
        for configuration in measurements.options.configurations:
            wall = values(measurements, configuration, workload, "wall_ns")
            if not wall:
                continue
            cpu = values(measurements, configuration, workload, "cpu_ns")
            entry = {
                "wall_ns": stats.summary(list(wall.values())),
                "cpu_ns": stats.summary(list(cpu.values())),
                "to_none": stats.ratio_of_medians(wall, none) if none else None,
                "to_bare": stats.ratio_of_medians(wall, bare) if bare else None,
            }
            for member in ("start_ns", "stop_ns", "export_ns", "file_bytes"):
                some = values(measurements, configuration, workload, member)
                entry[member] = statistics.median(some.values()) if some else None
            if launches:
                entry["wall_ns_per_launch"] = entry["wall_ns"]["median"] / launches
                added = [cpu[number] - none_cpu[number] for number in cpu if number in none_cpu]
                if added:
                    entry["added_cpu_ns_per_launch"] = statistics.median(added) / launches
            entries[configuration] = entry
        result[workload] = {"launches": launches, "configurations": entries}
    return result


def compare_means(full, sampled):
    """How many kernels' means of a full trace lie in the intervals of a budgeted capture."""
    truth = {row["symbol"]: row for row in full["workload.kernels"]}
    inside, outside, without, counts, details = 0, 0, 0, 0, []
    for row in sampled.get("workload.sampled_kernels", []):
        known = truth.get(row["symbol"])
        if known is None or known["mean"] is None:
            continue
        counts += row["count_low"] <= known["count"] <= row["count_high"]
        if row["mean_low"] is None:
            without += 1
            continue
        good = row["mean_low"] <= known["mean"] <= row["mean_high"]
        inside += good
        outside += not good
        details.append(
            {
                "symbol": row["symbol"][:120],
                "mean": known["mean"],
                "low": row["mean_low"],
                "high": row["mean_high"],
                "count": known["count"],
                "count_estimate": row["count"],
                "count_low": row["count_low"],
                "count_high": row["count_high"],
            }
        )
    sampling = sampled.get("workload.sampling", [])
    return {
        "inside": inside,
        "outside": outside,
        "without_interval": without,
        "counts_inside": counts,
        "unseen": len(truth) - inside - outside - without,
        "collected_share": sampling[0]["collected_share"] if sampling else None,
        "windows": sampling[0]["windows"] if sampling else None,
        "collected_launches": sampling[0].get("collected_launches") if sampling else None,
        "recorded_launches": sampling[0].get("recorded_launches") if sampling else None,
        "kernels": details,
    }


def verdict(ratio, limit):
    words = {"met": "PASS", "missed": "FAIL", "undecided": "UNDECIDED"}
    return words[stats.verdict_of_limit(ratio, limit)]


def bar(name, workload, ratio, limit):
    ratio = ratio or {"ratio": None, "low": None, "high": None}
    return {
        "bar": name,
        "workload": workload,
        "value": ratio["ratio"],
        "low": ratio["low"],
        "high": ratio["high"],
        "limit": limit,
        "verdict": verdict(ratio, limit) if ratio["ratio"] is not None else "UNDECIDED",
    }


def judge(measurements, analysis):
    """Rows of all bars, in the order of the issue that states them."""
    rows = []
    for workload, part in analysis.items():
        entry = part["configurations"].get("sonde")
        rows.append(bar("sonde loop / bare", workload, entry and entry["to_bare"], OVER_BARE))
    for workload in analysis:
        ratio = stats.ratio_of_medians(
            values(measurements, "sonde", workload, "wall_ns"),
            values(measurements, "proton", workload, "wall_ns"),
        )
        rows.append(bar("sonde loop / proton tree", workload, ratio, OVER_PROTON))

    # Bytes for a kernel: torch.profiler's file holds the kernels of one workload, Sonde's those of the process.
    kernels = process_values(measurements, "sonde", "kernels_seen")
    size = process_values(measurements, "sonde", "output_bytes")
    ours = {number: size[number] / kernels[number] for number in kernels if kernels[number]}
    theirs_bytes = sums(measurements, "torch", "file_bytes")
    theirs_kernels = sums(measurements, "torch", "kernels")
    theirs = {
        number: theirs_bytes[number] / theirs_kernels[number]
        for number in theirs_bytes
        if theirs_kernels.get(number)
    }
    rows.append(
        bar("file bytes per kernel, sonde / torch", "all", stats.ratio_of_medians(ours, theirs), FILE_SHARE)
    )
    # Stop and export: what the process takes to end beyond one without a tool, against torch's own calls.
    none = process_values(measurements, "none", "exit_seconds")
    exits = process_values(measurements, "sonde", "exit_seconds")
    ends = {n: max(exits[n] - none[n], 1e-3) for n in exits if n in none}
    calls = {n: ns / 1e9 for n, ns in sums(measurements, "torch", "stop_ns", "export_ns").items()}
    rows.append(
        bar("stop and export, sonde / torch", "all", stats.ratio_of_medians(ends, calls), 1 / STOP_FACTOR)
    )

    for name in ("sonde", "sonde_aggregate"):
        seen = process_values(measurements, name, "kernels_seen")
        expected = process_values(measurements, "bare", "kernels_seen")
        pairs = stats.paired(seen, expected)
        share = min((one / other for one, other in pairs if other), default=None)
        rows.append(
            {
                "bar": f"kernels recorded, {name} / bare",
                "workload": "all",
                "value": share,
                "low": share,
                "high": share,
                "limit": 1.0,
                "verdict": "UNDECIDED" if share is None else "PASS" if share >= 1 else "FAIL",
            }
        )

    limit = 1 + measurements.options.slowdown / 100
    name = f"loop with --budget {measurements.options.slowdown:g}% / none"
    budget, plain = sums(measurements, "sonde_budget", "wall_ns"), sums(measurements, "none", "wall_ns")
    rows.append(bar(name, "all", stats.ratio_of_medians(budget, plain), limit))
    for workload in analysis:
        ratio = stats.ratio_of_medians(
            values(measurements, "sonde_budget", workload, "wall_ns"),
            values(measurements, "none", workload, "wall_ns"),
        )
        rows.append(bar(name, workload, ratio, limit))
    means = measurements.budget_means
    judged = means["inside"] + means["outside"] if means else 0
    share = means["inside"] / judged if judged else None
    rows.append(
        {
            "bar": "means of the full trace inside the stated intervals",
            "workload": "training, adds",
            "value": share,
            "low": share,
            "high": share,
            "limit": MEANS_COVERED,
            "verdict": "UNDECIDED" if share is None else "PASS" if share >= MEANS_COVERED else "FAIL",
        }
    )
    return rows


def number_text(value, form="{:.3f}"):
    return "-" if value is None else form.format(value)


def ratio_text(ratio):
    if ratio is None:
        return "-"
    if ratio["low"] is None:
        return f"{ratio['ratio']:.3f}"
    return f"{ratio['ratio']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"


def grid_text(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        rest = "  ".join(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
        lines.append(f"  {row[0].ljust(widths[0])}  {rest}".rstrip())
    return lines


def workload_lines(workload, part, measurements):
    heads = (
        "configuration", "runs", "median ms", "min", "max", "ns/launch", "added cpu ns/launch", "to none [95 %]",
        "to bare [95 %]", "start ms", "stop ms", "export ms", "file KiB",
    )  # fmt: skip
    launches = part["launches"]
    lines = [f"{workload}: {launches if launches else 'an unknown number of'} launches in the loop"]
    rows = [heads]
    for configuration, entry in part["configurations"].items():
        wall = entry["wall_ns"]

        def milliseconds(member, entry=entry):
            value = entry[member]
            return "-" if value is None else f"{value / 1e6:.1f}"

        rows.append(
            (
                configuration,
                str(wall["runs"]),
                f"{wall['median'] / 1e6:.2f}",
                f"{wall['min'] / 1e6:.2f}",
                f"{wall['max'] / 1e6:.2f}",
                number_text(entry.get("wall_ns_per_launch"), "{:.0f}"),
                number_text(entry.get("added_cpu_ns_per_launch"), "{:.0f}"),
                ratio_text(entry["to_none"]),
                ratio_text(entry["to_bare"]),
                milliseconds("start_ns"),
                milliseconds("stop_ns"),
                milliseconds("export_ns"),
                "-" if entry["file_bytes"] is None else f"{entry['file_bytes'] / 1024:.0f}",
            )
        )
    return lines + grid_text(rows) + [""]


def process_lines(measurements):
    rows = [("process", "runs", "end ms", "peak MiB", "files KiB", "kernels recorded")]
    for configuration in measurements.options.configurations:
        exits = process_values(measurements, configuration, "exit_seconds")
        if not exits:
            continue
        seen = process_values(measurements, configuration, "kernels_seen")
        rows.append(
            (
                configuration,
                str(len(exits)),
                f"{statistics.median(exits.values()) * 1e3:.0f}",
                f"{max(process_values(measurements, configuration, 'peak_memory_bytes').values()) / 2**20:.0f}",
                f"{max(process_values(measurements, configuration, 'output_bytes').values()) / 1024:.0f}",
                number_text(max(seen.values()) if seen else None, "{}"),
            )
        )
    return ["processes: from the end of the last workload to the end of the process"] + grid_text(rows) + [""]


def tables_text(measurements, analysis, rows):
    lines = [f"{measurements.rounds} rounds", ""]
    shown = [("bar", "workload", "value [95 %]", "limit", "verdict")]
    for row in rows:
        shown.append(
            (
                row["bar"],
                row["workload"],
                ratio_text({"ratio": row["value"], "low": row["low"], "high": row["high"]})
                if row["value"] is not None
                else "-",
                f"{row['limit']:.3f}",
                row["verdict"],
            )
        )
    lines += grid_text(shown) + [""]
    for workload, part in analysis.items():
        lines += workload_lines(workload, part, measurements)
    lines += process_lines(measurements)
    if measurements.budget_means:
        means = measurements.budget_means
        lines.append(
            f"budget: {means['inside']} means inside, {means['outside']} outside, {means['without_interval']} without an "
            f"interval, {means['unseen']} kernels unseen; collected "
            f"{number_text(means['collected_share'])} of the time in {means['windows']} windows; counts of "
            f"{means['counts_inside']} kernels inside; {means['recorded_launches']} of "
            f"{means['collected_launches']} launches in these windows have a record"
        )
    for configuration, messages in measurements.failures.items():
        reason = messages[-1].strip().splitlines()[-1]
        lines.append(f"failed: {configuration}, {len(messages)} times: {reason}")
    return "\n".join(lines).rstrip() + "\n"
