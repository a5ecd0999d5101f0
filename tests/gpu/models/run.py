#!/usr/bin/env python3
"""Runs one network; under `sonde record` it tells the session of its tensors.

    run.py NAME inference|forward|step [--batch N] [--length N] [--iterations N] [--python FOLDER] [--tiny] [--cpu]

inference: eval, without gradients. forward: what a training step does up to the loss, with everything kept for the
backward pass that does not come. step: forward, backward, and SGD with momentum (GPT-2 and BERT: AdamW). Prints one
JSON line with what PyTorch itself counted.
"""

import argparse
import json
import sys
import time

import torch

import networks


def attach(folder):
    """The adapter of this session, for tensors alone; None outside a session."""
    sys.path.insert(0, folder)
    import sonde
    import sonde.torch

    try:
        return sonde.torch.attach(operators=False, modules=False, compiles=False, tensors="cuda")
    except Exception as failure:  # the table must say why there are no tensors
        print(f"no adapter: {failure}", file=sys.stderr)
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=networks.NAMES)
    parser.add_argument("mode", choices=("inference", "forward", "step"))
    parser.add_argument("--batch", type=int)
    parser.add_argument("--length", type=int)
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--python", help="folder of the package sonde")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    device = "cpu" if options.cpu else "cuda"
    if device == "cuda":
        torch.cuda.init()
        # Kernels that the port can watch completely: those of reduced precision copy through tensor maps.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
    attachment = attach(options.python) if options.python else None
    torch.manual_seed(1)
    batch = options.batch or networks.BATCHES[options.name]
    model, make_batch, loss_of = networks.build(options.name, options.tiny, options.length)
    model = model.to(device)
    model.train(options.mode != "inference")
    optimizer = None
    if options.mode == "step":
        if options.name in ("bert", "gpt2"):
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        else:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    began = time.monotonic()
    for _ in range(options.iterations):
        inputs, targets = make_batch(batch, device)
        if options.mode == "inference":
            with torch.no_grad():
                outputs = model(inputs)
        else:
            loss = loss_of(model(inputs), targets)
            if optimizer is not None:
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
            del loss
        outputs = None
    if device == "cuda":
        torch.cuda.synchronize()
    facts = {"name": options.name, "mode": options.mode, "batch": batch, "iterations": options.iterations,
             "length": inputs.shape[1] if inputs.dim() == 2 else None,
             "parameters": sum(parameter.numel() for parameter in model.parameters()), "torch": torch.__version__,
             "seconds": round(time.monotonic() - began, 3), "tensors": attachment is not None}
    if device == "cuda":
        statistics = torch.cuda.memory_stats()
        facts["requested_peak"] = statistics["requested_bytes.all.peak"]
        facts["allocated_peak"] = statistics["allocated_bytes.all.peak"]
        facts["reserved_peak"] = statistics["reserved_bytes.all.peak"]
    if attachment is not None:
        attachment.detach()
    print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
