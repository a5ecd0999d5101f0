#!/usr/bin/env python3
"""Plans for managed memory on a GPU: what they save, and how well the simulator tells it beforehand.

  check.py [--sonde COMMAND] [--streaming FILE] [--calibrate FILE] [--library FILE] [--work FOLDER]
           [--out FILE] [--repeats 7] [--budget 170] [--skip pytorch,validation] [--selftest]

  --sonde      the command, default: sonde in PATH
  --streaming  the built streaming.cu, --calibrate the built calibrate.cu; else they are built by nvcc
  --library    libsonde_managed.so, default: beside the command, in ../lib
  --work       folder for captures, kept; default: a fresh one, removed at the end
  --out        file for all figures as JSON; it grows while the run goes on
  --repeats    processes of each case of the streaming workload; a third of them of other cases
  --budget     seconds; what would begin later is left out and said so
  --selftest   checks the arithmetic and the table on made-up figures, without a GPU

Records the streaming workload twice (times; accesses), joins the two, has the plan made without any
hint, runs it, and compares. Managed memory is at most 4 GiB, and the card is never oversubscribed.
Exit code 0: every bar holds. 1: one does not, or was not reached. 2: wrong use, or no GPU.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
LEAST_SAVING = 0.75
MOST_OVER_BOUND = 1.1
MOST_ERROR = 0.15
LEAST_RUNS = 4


def median(values):
    return statistics.median(values) if values else None


# ---- figures to bars: no GPU in it


def bound_ns(figures):
    """max(bytes / link, resident time) of the streaming workload."""
    transfer = figures["streaming_bytes"] / figures["to_device"] * 1e9
    return max(transfer, figures["resident_ns"])


def errors_of(validation):
    """Relative errors of the simulator, by run."""
    return {
        name: run["simulated_ns"] / run["measured_ns"] - 1
        for name, run in validation.items()
        if run.get("measured_ns") and run.get("simulated_ns")
    }


def judge(figures):
    """Rows (bar, value, wanted, verdict); verdict PASS, FAIL or UNKNOWN where a figure is missing."""
    rows = []

    def bar(name, value, text, holds, wanted):
        verdict = "UNKNOWN" if value is None else "PASS" if holds else "FAIL"
        rows.append({"bar": name, "value": value, "shown": text if value is not None else "not measured",
                     "wanted": wanted, "verdict": verdict})

    before, after = figures.get("demand_ns"), figures.get("plan_ns")
    saving = (before - after) / before if before and after else None
    bar("streaming: (T0 - T1) / T0", saving, f"{saving or 0:.3f}", (saving or 0) >= LEAST_SAVING, f">= {LEAST_SAVING}")
    over = None
    if after and figures.get("to_device") and figures.get("resident_ns"):
        over = after / bound_ns(figures)
    bar("streaming: T1 / max(bytes / link, resident)", over, f"{over or 0:.3f}", (over or 9) <= MOST_OVER_BOUND,
        f"<= {MOST_OVER_BOUND}")
    planned = figures.get("plan_written")
    bar("streaming: a plan without any hint", planned, str(planned), planned, "True")
    applied = figures.get("applied")
    bar("streaming: the plan was applied as it stands", applied, str(applied), applied == "ok", "ok")
    judged = {name: run for name, run in figures.get("validation", {}).items() if not run.get("reported")}
    errors = errors_of(judged)
    bar("simulator: runs that did not calibrate it", len(errors) if judged else None, str(len(errors)),
        len(errors) >= LEAST_RUNS, f">= {LEAST_RUNS}")
    for name in judged:
        error = errors.get(name)
        bar(f"simulator: {name}", error, f"{100 * (error or 0):+.1f} %", abs(error or 0) <= MOST_ERROR,
            f"within {100 * MOST_ERROR:.0f} %")
    return rows


def table_text(figures, rows):
    lines = []
    milliseconds = lambda value: "-" if value is None else f"{value / 1e6:.2f} ms"
    link = figures.get("to_device")
    if link:
        lines.append(f"link by prefetch: {link / 1e9:.1f} GB/s to the device, {figures.get('to_host', 0) / 1e9:.1f} GB/s "
                     f"to the host; pinned copies {figures.get('pinned_to_device', 0) / 1e9:.1f} and "
                     f"{figures.get('pinned_to_host', 0) / 1e9:.1f} GB/s")
    for key, words in (("demand_ns", "T0, on demand"), ("plan_ns", "T1, planned"),
                       ("plan_inline_ns", "planned, moves on the launching thread"),
                       ("ahead_ns", "written by hand, one pair ahead"), ("all_ns", "written by hand, all at once"),
                       ("resident_ns", "resident")):
        runs = figures.get(key.removesuffix("_ns") + "_runs_ns", [])
        spread = f" ({min(runs) / 1e6:.1f} to {max(runs) / 1e6:.1f}, {len(runs)} processes)" if runs else ""
        lines.append(f"streaming, {words + ':':<42} {milliseconds(figures.get(key))}{spread}")
    if link and figures.get("resident_ns"):
        lines.append(f"streaming, {'bound:':<42} {milliseconds(bound_ns(figures))}")
    torch = figures.get("pytorch", {})
    if torch.get("demand_ns"):
        bound = max(torch["weight_bytes"] / link * 1e9 if link else 0, torch.get("resident_ns") or 0)
        lines.append(f"PyTorch model, {torch['weight_bytes'] / 2**30:.2f} GiB of weights: on demand "
                     f"{milliseconds(torch['demand_ns'])}, planned {milliseconds(torch.get('plan_ns'))}, resident "
                     f"{milliseconds(torch.get('resident_ns'))}, bound {milliseconds(bound)}")
        if torch.get("plan_ns"):
            lines.append(f"PyTorch model: saved {100 * (1 - torch['plan_ns'] / torch['demand_ns']):.1f} %, "
                         f"{torch['plan_ns'] / bound if bound else 0:.2f} times the bound, plan {torch.get('applied')}")
    for name, run in figures.get("validation", {}).items():
        error = errors_of({name: run}).get(name)
        lines.append(f"simulator, {name + ':':<42} measured {milliseconds(run.get('measured_ns'))}, simulated "
                     f"{milliseconds(run.get('simulated_ns'))}" + (f", {100 * error:+.1f} %" if error is not None else "") +
                     (" (reported, not judged)" if run.get("reported") else ""))
    for row in figures.get("oversubscription", []):
        lines.append(f"extrapolated, {row['oversubscription']:.2f}x of the capacity: none {milliseconds(row['no_prefetch'])}, "
                     f"whole allocations at each launch {milliseconds(row['each_launch'])}, plan "
                     f"{milliseconds(row['plan'])}, optimum {milliseconds(row['optimum'])}")
    for text in figures.get("left_out", []):
        lines.append(f"left out: {text}")
    lines.append("")
    width = max(len(row["bar"]) for row in rows)
    for row in rows:
        lines.append(f"{row['verdict']:<7} {row['bar']:<{width}}  {row['shown']}  (wanted {row['wanted']})")
    return "\n".join(lines)


def verdict_of(rows):
    return all(row["verdict"] == "PASS" for row in rows)


# ---- reading what the command prints


def json_line(text, program):
    """The line that a program of this folder prints, or None."""
    for line in text.splitlines():
        if line.startswith("{") and f'"{program}"' in line:
            try:
                return json.loads(line)
            except ValueError:
                pass
    return None


def table_of(report, name):
    """Rows of a report's table as dicts; [] when it is not there."""
    table = report.get("tables", {}).get(name)
    if table is None:
        return []
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


def finding_of(report, rule):
    return next((one for one in report.get("findings", []) if one.get("rule") == rule), None)


# ---- running


class Runner:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.begin = time.monotonic()
        self.figures = {"left_out": [], "validation": {}}

    def left(self):
        return self.options.budget - (time.monotonic() - self.begin)

    def has_time(self, seconds, what):
        if self.left() >= seconds:
            return True
        self.figures["left_out"].append(f"{what}: {self.left():.0f} s were left, it takes about {seconds} s")
        print("left out:", what, flush=True)
        return False

    def run(self, command, seconds=60, cwd=None):
        command = [str(part) for part in command]
        print(f"+ [{time.monotonic() - self.begin:5.1f} s]", " ".join(command), flush=True)
        # A group of its own, so that what the command started ends with it.
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
                              errors="replace", start_new_session=True) as process:
            try:
                output, errors = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, errors = process.communicate()
                errors += f"\nended after {seconds} s"
        done = subprocess.CompletedProcess(command, process.returncode, output, errors)
        if done.returncode != 0:
            print(f"   exit code {done.returncode}\n{output[-1500:]}\n{errors[-3000:]}", flush=True)
        elif errors.strip():
            print("  ", errors.strip()[-1500:].replace("\n", "\n   "), flush=True)
        return done

    def save(self):
        rows = judge(self.figures)
        self.figures["bars"] = rows
        if self.options.out:
            self.options.out.write_text(json.dumps(self.figures, indent=1) + "\n")
        return rows


def build(runner):
    for name in ("streaming", "calibrate"):
        given = getattr(runner.options, name)
        if given is None:
            given = runner.work / name
            arch = os.environ.get("CUDA_ARCH", "sm_90")
            nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
            if runner.run([nvcc, f"-arch={arch}", "-std=c++17", "-O2", HERE / f"{name}.cu", "-o", given],
                          120).returncode != 0:
                return False
        setattr(runner.options, name, pathlib.Path(given).resolve())
    return True


def calibrate(runner):
    measured = runner.work / "measurements.yaml"
    done = runner.run([runner.options.calibrate, "--out", measured, "--repeats", 5], 90)
    print(done.stdout)
    if not measured.exists():
        return None
    values = {}
    for line in measured.read_text().splitlines():
        name, _, value = line.strip().partition(": ")
        try:
            values[name] = float(value)
        except ValueError:
            pass
    runner.figures["measurements"] = values
    fitted = runner.run([runner.options.sonde, "call", "uvm", "fit", measured])
    if fitted.returncode != 0:
        return None
    parameters = runner.work / "parameters.yaml"
    parameters.write_text(fitted.stdout)
    print(fitted.stdout)
    runner.figures["parameters"] = fitted.stdout
    for line in fitted.stdout.splitlines():
        name, _, value = line.strip().partition(": ")
        if name in ("to_device", "to_host"):
            runner.figures[name] = float(value)
    for name in ("pinned_to_device", "pinned_to_host"):
        if values.get(name + "_large"):
            runner.figures[name] = values["large_bytes"] / values[name + "_large"] * 1e9
    return parameters


def repeat(runner, key, count, command, program="streaming", seconds=40, into=None):
    """Median ns of `count` processes, stored as KEY_ns with all of them as KEY_runs_ns."""
    into = runner.figures if into is None else into
    times, last = [], None
    for _ in range(count):
        line = json_line(runner.run(command, seconds).stdout, program)
        if line is None:
            continue
        last = line
        times.append(line["total_ns"])
    into[key + "_runs_ns"] = times
    into[key + "_ns"] = median(times)
    print(f"   {key}: median {(median(times) or 0) / 1e6:.2f} ms of {[round(one / 1e6, 2) for one in times]}", flush=True)
    runner.save()
    return last


def record_and_plan(runner, name, command, parameters, seconds=60):
    """Two runs, joined and replayed: (plan file or None, report)."""
    work = runner.work / f"{name}-runs"  # the built programs lie beside it
    work.mkdir(parents=True, exist_ok=True)
    configs = {"times": {"cuda": {"managed": True}}, "accesses": {"cuda_access": {"collect": "intervals"}}}
    for part, ports in configs.items():
        config = work / f"{part}.yaml"
        config.write_text(json.dumps({"ports": ports}))
        shutil.rmtree(work / part, ignore_errors=True)
        done = runner.run([runner.options.sonde, "record", "-o", work / part, "-c", config, "--", *command], seconds)
        if not list((work / part).glob("*.sonde")):
            print(done.stdout[-1000:], done.stderr[-3000:])
            return None, {}
    shutil.rmtree(work / "joined", ignore_errors=True)
    merged = runner.run([runner.options.sonde, "merge", work / "times", work / "accesses", "-o", work / "joined",
                         "--tolerance", 5], seconds)
    print(merged.stdout[-2500:])
    if not (work / "joined").exists():
        return None, {}
    plan = work / "plan.yaml"
    plan.unlink(missing_ok=True)
    config = work / "uvm.yaml"
    options = {"plan": str(plan)}
    if parameters:
        options["calibration"] = str(parameters)
    config.write_text(json.dumps({"analyses": {"uvm": options}}))
    report = work / "report.json"
    runner.run([runner.options.sonde, "replay", work / "joined", "-c", config, "--format", "json", "-o", report], seconds)
    if not report.exists():
        return None, {}
    parsed = json.loads(report.read_text())
    for one in parsed.get("findings", []):
        print(f"   {one.get('rule')}: {one.get('verdict')}: {one.get('message')} {one.get('reason') or ''}")
    if plan.exists():
        text = plan.read_text()
        print("\n".join(text.splitlines()[:60]), f"\n... {len(text.splitlines())} lines in all")
    return (plan if plan.exists() else None), parsed


def planned_runs(runner, key, count, plan, command, program="streaming", into=None):
    """Runs by the plan: their times, and what the last one says of the plan."""
    into = runner.figures if into is None else into
    report = runner.work / f"{key}.report.json"
    report.unlink(missing_ok=True)
    repeat(runner, key, count, [runner.options.sonde, "run", "-c", plan, "--format", "json", "--report", report, "--",
                                *command], program, into=into)
    finding = finding_of(json.loads(report.read_text()), "uvm.applied") if report.exists() else None
    verdict = (finding or {}).get("verdict")
    print("   plan:", verdict, (finding or {}).get("message", "no report"), (finding or {}).get("reason") or "", flush=True)
    return verdict


def with_option(plan, target, **options):
    """The plan with further options of the port."""
    lines = []
    for line in plan.read_text().splitlines():
        lines.append(line)
        if line.strip() == "cuda_paging:":
            margin = " " * (len(line) - len(line.lstrip()) + 2)
            lines.extend(f"{margin}{name}: {value}" for name, value in options.items())
    target.write_text("\n".join(lines) + "\n")
    return target


def streaming_part(runner, parameters):
    options, figures = runner.options, runner.figures
    streaming = options.streaming
    few = max(options.repeats // 3, 2)
    workload = runner.work / "workload.yaml"
    demand = [streaming, "--variant", "demand"]
    facts = repeat(runner, "demand", options.repeats, demand + ["--workload", workload])
    if facts is None:
        return False
    figures["streaming_bytes"] = 2 * facts["bytes"] * facts["pairs"]
    figures["resident_launch_ns"] = facts["resident_launch_ns"]
    repeat(runner, "resident", few, [streaming, "--variant", "resident"])
    plan, report = record_and_plan(runner, "streaming", demand, parameters)
    figures["plan_written"] = plan is not None
    prediction = table_of(report, "uvm.prediction")
    figures["prediction"] = prediction
    figures["oversubscription"] = [row for row in prediction if row.get("extrapolated")]
    runner.save()
    if plan is not None:
        figures["applied"] = planned_runs(runner, "plan", options.repeats, plan, demand)
        inline = with_option(plan, runner.work / "inline.yaml", thread="false")
        if runner.has_time(60, "moves on the launching thread"):
            planned_runs(runner, "plan_inline", few, inline, demand)
    if prediction:
        figures["validation"]["streaming on demand, from the capture"] = {
            "measured_ns": figures.get("demand_ns"), "simulated_ns": prediction[0].get("no_prefetch")}
        figures["validation"]["streaming planned, from the capture"] = {
            "measured_ns": figures.get("plan_ns"), "simulated_ns": prediction[0].get("plan")}
    runner.save()
    return True


# Runs that only the simulator is judged by: name, arguments, key of their figures, and whether they are reported without
# being judged. What is judged walks over whole objects, as the micro-benchmark of streaming does; the other patterns and
# the host's faults by many threads were not calibrated, and show how far the model carries.
VALIDATION = (
    ("hand-written, one pair ahead", ["--variant", "ahead"], "ahead", False),
    ("hand-written, all at once", ["--variant", "all"], "all", False),
    ("small: 4 pairs of 32 MiB, 5 launches", ["--pairs", "4", "--mib", "32", "--launches", "5"], None, False),
    ("large: 2 pairs of 256 MiB, 3 launches", ["--pairs", "2", "--mib", "256", "--launches", "3"], None, False),
    ("one page in three, on demand", ["--pattern", "strided", "--pairs", "2"], None, True),
    ("every second block backwards, on demand", ["--pattern", "scattered", "--pairs", "2"], None, True),
    ("host writes in between", ["--pattern", "pingpong", "--pairs", "2", "--mib", "64", "--launches", "5"], None, True),
)


def validation_part(runner, parameters):
    count = 3
    for name, arguments, key, reported in VALIDATION:
        if not runner.has_time(12, f"validation, {name}"):
            continue
        workload = runner.work / "validation.yaml"
        into = {}
        repeat(runner, "one", count, [runner.options.streaming, *arguments, "--workload", workload], into=into)
        simulated = runner.run([runner.options.sonde, "call", "uvm", "simulate_file", workload, parameters or "", 0])
        try:
            simulated_ns = int(simulated.stdout.split()[0])
        except (IndexError, ValueError):
            simulated_ns = None
        runner.figures["validation"][name] = {"measured_ns": into["one_ns"], "runs_ns": into["one_runs_ns"],
                                              "simulated_ns": simulated_ns, "reported": reported}
        if key:
            runner.figures[f"{key}_ns"] = into["one_ns"]
            runner.figures[f"{key}_runs_ns"] = into["one_runs_ns"]
        runner.save()


def pytorch_part(runner, parameters):
    library = runner.options.library
    if library is None or not library.exists():
        runner.figures["left_out"].append(f"PyTorch: no {library}")
        return
    model = [sys.executable, HERE / "pytorch_model.py", library]
    figures = runner.figures["pytorch"] = {}
    if not runner.has_time(30, "PyTorch"):
        return
    facts = repeat(runner, "demand", 2, model, "pytorch_model", into=figures)
    if facts is None:
        runner.figures["left_out"].append("PyTorch: the model did not run")
        return
    figures["weight_bytes"] = facts["weight_bytes"]
    repeat(runner, "resident", 1, [*model, "--mode", "resident"], "pytorch_model", into=figures)
    if not runner.has_time(25, "PyTorch's plan"):
        return
    plan, report = record_and_plan(runner, "pytorch", model, parameters, 90)
    prediction = table_of(report, "uvm.prediction")
    if plan is not None:
        figures["applied"] = planned_runs(runner, "plan", 2 if runner.left() > 25 else 1, plan, model, "pytorch_model",
                                          figures)
    if prediction:
        for name, measured, simulated in (("on demand", "demand_ns", "no_prefetch"), ("planned", "plan_ns", "plan")):
            runner.figures["validation"][f"PyTorch model {name}, from the capture"] = {
                "measured_ns": figures.get(measured), "simulated_ns": prediction[0].get(simulated), "reported": True}
    runner.save()


# ---- checks of this file itself


def selftest():
    def expect(condition, what):
        if not condition:
            raise AssertionError(what)

    # 2 GiB at 32 GiB/s take 62.5 ms; 68 ms is 1.088 times that. (300 - 68) / 300 = 0.7733.
    figures = {
        "demand_ns": 300e6, "plan_ns": 68e6, "resident_ns": 19e6, "streaming_bytes": 2 << 30, "to_device": 32 * 2.0**30,
        "plan_written": True, "applied": "ok",
        "validation": {
            "a": {"measured_ns": 100e6, "simulated_ns": 115e6}, "b": {"measured_ns": 100e6, "simulated_ns": 86e6},
            "c": {"measured_ns": 50e6, "simulated_ns": 50e6}, "d": {"measured_ns": 10e6, "simulated_ns": 11e6},
            "e": {"measured_ns": 10e6, "simulated_ns": 99e6, "reported": True},
        },
    }
    expect(abs(bound_ns(figures) - 62.5e6) < 1, "bound by the link")
    expect(bound_ns({**figures, "resident_ns": 70e6}) == 70e6, "bound by the kernels")
    rows = judge(figures)
    expect(verdict_of(rows), table_text(figures, rows))
    expect(len(rows) == 9, "one row a bar, none for a reported run")
    expect("PASS" in table_text(figures, rows), "the table shows verdicts")

    def broken(**changes):
        found = [row for row in judge({**figures, **changes}) if row["verdict"] != "PASS"]
        return [row["bar"] for row in found], [row["verdict"] for row in found]

    # 75.1 ms: (300 - 75.1) / 300 = 0.7497, and 1.2 times the bound.
    expect(broken(plan_ns=75.1e6)[1] == ["FAIL", "FAIL"], "saving and bound fail")
    expect(broken(plan_ns=68.75e6)[0] == [], "1.1 times the bound exactly holds")
    expect(broken(plan_ns=None)[1] == ["UNKNOWN", "UNKNOWN"], "what is not measured is not passed")
    expect(broken(plan_written=False)[1] == ["FAIL"], "no plan")
    expect(broken(applied="violation")[1] == ["FAIL"], "a plan that was given up")
    expect(broken(applied=None)[1] == ["UNKNOWN"], "a plan that was not seen")
    few = dict(list(figures["validation"].items())[:3])
    expect(broken(validation=few)[0] == ["simulator: runs that did not calibrate it"], "three runs are too few")
    off = {**figures["validation"], "a": {"measured_ns": 100e6, "simulated_ns": 116e6}}
    expect(broken(validation=off)[0] == ["simulator: a"], "16 % are too many")
    table_text({"left_out": ["x"], "validation": {}}, judge({}))

    text = 'noise\n{"program": "streaming", "total_ns": 5}\n'
    expect(json_line(text, "streaming")["total_ns"] == 5, "the program's line")
    expect(json_line("{}", "streaming") is None, "no line")
    report = {"tables": {"uvm.prediction": {"columns": [{"name": "a"}, {"name": "b"}], "rows": [[1, 2], [3, None]]}},
              "findings": [{"rule": "uvm.applied", "verdict": "ok"}]}
    expect(table_of(report, "uvm.prediction") == [{"a": 1, "b": 2}, {"a": 3, "b": None}], "rows by name")
    expect(table_of(report, "uvm.other") == [], "a table that is not there")
    expect(finding_of(report, "uvm.applied")["verdict"] == "ok" and finding_of(report, "x") is None, "findings by rule")
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder) / "plan.yaml"
        plan.write_text("ports:\n  cuda_paging:\n    plan: {}\n")
        changed = with_option(plan, pathlib.Path(folder) / "other.yaml", thread="false").read_text()
        expect(changed == "ports:\n  cuda_paging:\n    thread: false\n    plan: {}\n", changed)
    import captures
    row = {"oversubscription": 3.0, "no_prefetch": 100, "each_launch": 300, "plan": 90, "optimum": 80}
    rows = {"a": row, "b": {**row, "plan": 95}}
    expect(all(holds for _, holds in captures.judge(rows, ["a"])), "10 % on one of two, 1.125 of the optimum")
    expect([holds for _, holds in captures.judge({"a": row, "b": {**row, "plan": 95}, "c": {**row, "plan": 99}}, [])] ==
           [False, True], "on one of three")
    expect([holds for _, holds in captures.judge(rows, ["b", "x"])] == [True, True, True, False], "1.19, and none")
    expect(not captures.judge({}, [])[0][1], "nothing was judged")
    print("selftest: every check holds")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sonde", default="sonde")
    parser.add_argument("--streaming", type=pathlib.Path)
    parser.add_argument("--calibrate", type=pathlib.Path)
    parser.add_argument("--library", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--budget", type=float, default=170)
    parser.add_argument("--skip", default="")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    if options.selftest:
        return selftest()
    command = shutil.which(options.sonde)
    if command is None:
        parser.error(f"no command {options.sonde}")
    options.sonde = pathlib.Path(command).resolve()
    if options.library is None:
        options.library = options.sonde.parent.parent / "lib" / "libsonde_managed.so"
    folder = None
    if options.work is None:
        folder = tempfile.TemporaryDirectory(prefix="sonde-uvm-")
    work = options.work or pathlib.Path(folder.name)
    work.mkdir(parents=True, exist_ok=True)
    runner = Runner(options, work.resolve())
    skipped = set(filter(None, options.skip.split(",")))
    if not build(runner):
        print("the programs could not be built")
        return 2
    runner.begin = time.monotonic()  # building takes no GPU
    try:
        parameters = calibrate(runner)
        if streaming_part(runner, parameters) and "validation" not in skipped:
            validation_part(runner, parameters)
        if "pytorch" not in skipped:
            pytorch_part(runner, parameters)
    except Exception as error:  # what was measured so far is shown whatever happens
        import traceback
        traceback.print_exc()
        runner.figures["left_out"].append(f"stopped by {error!r}")
    rows = runner.save()
    print("\n" + table_text(runner.figures, rows))
    return 0 if verdict_of(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
