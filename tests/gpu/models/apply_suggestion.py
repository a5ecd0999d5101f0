#!/usr/bin/env python3
"""A training step whose peak the memory analysis lowers: what it predicts, and what PyTorch counts when it is done.

    apply_suggestion.py --sonde SONDE [--out FOLDER] [--batch N] [--length N] [--seconds N]

1. Records three training steps of the GPT-2-like network under the port cuda_access, with the PyTorch adapter. The
   loop is the usual one: it computes logits, a loss from them, the backward pass, the optimizer's step.
2. `sonde replay -p memory` reports tensors that live longer than they are used at the moment of the peak. The logits
   are among them: the loss's backward pass needs their logarithms, not the logits themselves, but the loop's variable
   keeps them.
3. Runs the loop again, without a recorder, as it is and with `del logits` in front of the backward pass, which is
   what the finding suggests, and compares torch.cuda.max_memory_allocated: seen saving against predicted one.

Exit code 0: the analysis names the logits, the losses stay the same, the peak sinks, and prediction and sight differ
by at most 5 %.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import working_set

HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 0.05


def child(options):
    """The training loop; prints one JSON line."""
    import torch

    import networks
    import run

    device = "cpu" if options.cpu else "cuda"
    if device == "cuda":
        torch.cuda.init()
        torch.backends.cuda.matmul.allow_tf32 = False
    attachment = run.attach(options.python) if options.python else None
    torch.manual_seed(1)
    model, make_batch, loss_of = networks.build("gpt2", options.tiny, options.length)
    model = model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses, addresses = [], []
    for _ in range(3):
        inputs, targets = make_batch(options.batch, device)
        optimizer.zero_grad(set_to_none=True)
        logits = model(inputs)
        addresses.append(logits.data_ptr())
        size = logits.numel() * logits.element_size()
        loss = loss_of(logits, targets)
        if options.improved:
            del logits
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if not options.improved:
            del logits
        del loss
    facts = {"improved": options.improved, "losses": losses, "logits_addresses": addresses, "logits_bytes": size}
    if device == "cuda":
        torch.cuda.synchronize()
        facts["max_memory_allocated"] = torch.cuda.max_memory_allocated()
        facts["requested_peak"] = torch.cuda.memory_stats()["requested_bytes.all.peak"]
    if attachment is not None:
        attachment.detach()
    print(json.dumps(facts), flush=True)


def facts_of(output):
    return next(json.loads(line) for line in output.splitlines() if line.startswith("{"))


def predicted(report, facts):
    """What the tables and findings of the memory analysis say of the logits."""
    tables = {name: working_set.rows_of({"tables": {f"workload.{name}": report["tables"][f"memory.{name}"]}}, name)
              for name in ("objects", "peak", "live_at_peak") if f"memory.{name}" in report["tables"]}
    addresses = set(facts["logits_addresses"])
    late = [row for row in tables.get("objects", ()) if row["address"] in addresses and row["level"] == "tensor" and
            row["bytes"] == facts["logits_bytes"] and "late_deallocation" in (row["patterns"] or "")]
    # Of those that lived at the peak: bytes that freeing them in time takes off it.
    numbers = {row["id"] for row in late}
    at_peak = [row for row in tables.get("live_at_peak", ())
               if row["id"] in numbers and row["by"] == "late_deallocation"]
    findings = []
    for finding in report["findings"]:
        evidence = {entry["name"]: entry["value"] for entry in finding["evidence"]}
        if finding["verdict"] == "violation" and finding["rule"] == "memory.late_deallocation" and \
                evidence.get("address") in addresses:
            findings.append({"message": finding["message"], "advice": finding.get("advice"), "evidence": evidence})
    return late, at_peak, findings, tables


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sonde")
    parser.add_argument("--out", default=os.environ.get("OUT") or "gpu-out")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--keep", help="folder for the capture")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--improved", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--python", help=argparse.SUPPRESS)
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--cpu", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(options)
    if not options.sonde:
        parser.error("--sonde is needed")
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    result = {"ok": False}
    with tempfile.TemporaryDirectory(prefix="sonde-apply-") as folder:
        work = pathlib.Path(folder)
        measurement = working_set.Measurement(
            argparse.Namespace(sonde=options.sonde, seconds=options.seconds, scale=1.0, iterations=3, keep=False), work)
        environment = measurement.environment
        code, _, errors = measurement.build_adapter()
        if code != 0:
            print(f"the adapter could not be built: {errors[-1500:]}", file=sys.stderr)
        capture = pathlib.Path(options.keep) if options.keep else work / "training"
        script = [sys.executable, HERE / "apply_suggestion.py", "--child", "--batch", options.batch, "--length",
                  options.length]
        code, output, errors = working_set.run(
            [options.sonde, "record", "-o", capture, "-c", measurement.configuration, "--", *script, "--python",
             measurement.python], measurement.left(), environment)
        if code != 0:
            raise SystemExit(f"recording failed with {code}: {errors[-2000:]}")
        recorded = facts_of(output)
        done = subprocess.run([str(options.sonde), "replay", str(capture), "-p", "memory", "--format", "json"],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"replay failed with {done.returncode}: {done.stderr[-2000:]}")
        report = json.loads(done.stdout)
        late, at_peak, findings, tables = predicted(report, recorded)
        runs = {}
        for name, more in (("as it is", []), ("improved", ["--improved"])):
            code, output, errors = working_set.run([*script, *more], 120, environment)
            if code != 0:
                raise SystemExit(f"{name}: {code}: {errors[-2000:]}")
            runs[name] = facts_of(output)
    before, after = runs["as it is"]["max_memory_allocated"], runs["improved"]["max_memory_allocated"]
    saving = sum(row["saved"] for row in at_peak)
    result.update({"predicted": saving, "seen": before - after, "before": before, "after": after,
                   "recorded": recorded, "runs": runs, "late_rows": late, "at_peak": at_peak,
                   "findings": findings, "peak": tables.get("peak")})
    same = runs["as it is"]["losses"] == runs["improved"]["losses"]
    close = abs((before - after) - saving) <= TOLERANCE * saving
    result["ok"] = bool(late) and saving > 0 and before > after and close and same
    lines = [
        f"GPT-2-like training, batch {options.batch}, {options.length} tokens",
        f"the analysis names the logits as freed late in {len(late)} of 3 steps; {saving / 1e6:.1f} MB at the peak",
        *(f"  {finding['message']} {finding['advice'] or ''}" for finding in findings[:3]),
        f"peak as it is {before / 1e6:.1f} MB, with `del logits` {after / 1e6:.1f} MB: "
        f"{(before - after) / 1e6:.1f} MB less ({100 * (before - after) / before:.1f} %); "
        f"predicted {saving / 1e6:.1f} MB",
        f"losses {'are the same' if same else 'DIFFER'}: {runs['as it is']['losses']} {runs['improved']['losses']}",
        "passed" if result["ok"] else "FAILED",
    ]
    print("\n".join(lines))
    (out / "apply_suggestion.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (out / "apply_suggestion.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
