#!/usr/bin/env python3
"""Plans on captured workloads at 3x oversubscription, in simulation. Needs no GPU.

  captures.py [--sonde COMMAND] [--calibration FILE] [--out FILE] [--streaming NAME,...] CAPTURE...

  CAPTURE      directories that `sonde merge` made
  --streaming  names of captures that go through their memory in order

Memory of any kind of the device stands for managed memory where a capture has none. All of this is
extrapolation: the simulator is calibrated without oversubscription.
Exit code 0: at least 10 % faster than without prefetching on half of the captures, slower on none,
and within 1.3 of the optimum on those that stream. 1: not so, or a capture has no plan to judge.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import check  # noqa: E402  (found through the line above)


def row_at_three(report):
    rows = [row for row in check.table_of(report, "uvm.prediction") if row.get("oversubscription")]
    return min(rows, key=lambda row: abs(row["oversubscription"] - 3), default=None)


def judge(rows, streaming):
    """(bar, holds) of rows {name: row}."""
    gains = {name: 1 - min(row["plan"], row["no_prefetch"]) / row["no_prefetch"] for name, row in rows.items()}
    bars = [(f"at least 10 % faster on half: {sum(gain >= 0.1 - 1e-9 for gain in gains.values())} of {len(rows)}",
             2 * sum(gain >= 0.1 - 1e-9 for gain in gains.values()) >= len(rows) > 0)]
    # A plan that would be slower is not made, so the run is the one without.
    bars.append(("slower on none", all(gain >= 0 for gain in gains.values())))
    for name in streaming:
        row = rows.get(name)
        ratio = row["plan"] / row["optimum"] if row and row.get("optimum") else None
        bars.append((f"{name}: {ratio:.2f} of the optimum" if ratio else f"{name}: no optimum",
                     ratio is not None and ratio <= 1.3))
    return bars


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sonde", default="sonde")
    parser.add_argument("--calibration", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--streaming", default="")
    parser.add_argument("captures", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    rows, failed = {}, []
    for capture in options.captures:
        name = capture.resolve().parent.name if capture.name == "joined" else capture.name
        with tempfile.TemporaryDirectory() as folder:
            uvm = {"plan": ""}
            if options.calibration:
                uvm["calibration"] = str(options.calibration.resolve())
            config = pathlib.Path(folder) / "uvm.yaml"
            config.write_text(json.dumps({"analyses": {"uvm": uvm}}))
            report = pathlib.Path(folder) / "report.json"
            done = subprocess.run([options.sonde, "replay", capture, "-c", config, "--format", "json", "-o", report],
                                  capture_output=True, text=True)
            row = row_at_three(json.loads(report.read_text())) if report.exists() else None
        if row is None:
            print(f"{name}: no prediction\n{done.stderr[-500:]}")
            failed.append(name)
        else:
            rows[name] = row
    print("simulated (extrapolation), ms")
    print(f"{'capture':<24} {'over':>5} {'none':>10} {'each launch':>12} {'plan':>10} {'optimum':>10} {'gain':>7}")
    for name, row in rows.items():
        optimum = f"{row['optimum'] / 1e6:10.1f}" if row.get("optimum") else f"{'-':>10}"
        print(f"{name:<24} {row['oversubscription']:5.2f} {row['no_prefetch'] / 1e6:10.1f} {row['each_launch'] / 1e6:12.1f} "
              f"{row['plan'] / 1e6:10.1f} {optimum} {100 * (1 - row['plan'] / row['no_prefetch']):6.1f}%")
    bars = judge(rows, [name for name in options.streaming.split(",") if name])
    for text, holds in bars:
        print("PASS   " if holds else "FAIL   ", text)
    if options.out:
        options.out.write_text(json.dumps({"rows": rows, "bars": bars, "failed": failed}, indent=1) + "\n")
    return 0 if rows and not failed and all(holds for _, holds in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
