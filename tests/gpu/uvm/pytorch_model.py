#!/usr/bin/env python3
"""A transformer whose weights lie in managed memory, on the host at first: forward passes, timed.

  pytorch_model.py LIBRARY [--layers 12] [--width 1536] [--batch 4] [--tokens 128] [--passes 4]
                   [--mode demand|resident]

LIBRARY is libsonde_managed.so. Prints one JSON line: nanoseconds from the first launch of the first
pass to the final synchronisation, and what moved. At most 2 GiB are managed.

The kernels are loaded by a pass of a model of the same shape in ordinary memory. The weights are
written by the host, so that all pages are the host's when the first pass begins, and no kernel has
touched them. Everything else (activations) is in ordinary memory. float32 throughout: what Hopper's
tensor maps copy cannot be watched.

  demand    the driver's faults bring the weights in
  resident  each weight is summed on the device before the first pass
"""

import argparse
import ctypes
import json
import random
import sys
import time

import torch


class Block(torch.nn.Module):
    def __init__(self, width, heads, device):
        super().__init__()
        self.heads = heads
        self.first = torch.nn.LayerNorm(width, device=device)
        self.attention = torch.nn.Linear(width, 3 * width, device=device)
        self.projection = torch.nn.Linear(width, width, device=device)
        self.second = torch.nn.LayerNorm(width, device=device)
        self.up = torch.nn.Linear(width, 4 * width, device=device)
        self.down = torch.nn.Linear(4 * width, width, device=device)

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.attention(self.first(x)).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = (part.transpose(1, 2) for part in parts.unbind(2))
        weight = torch.softmax(query @ key.transpose(2, 3) * (width // self.heads) ** -0.5, dim=-1)
        x = x + self.projection((weight @ value).transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))


def make(options, device):
    return torch.nn.Sequential(*(Block(options.width, options.width // 64, device) for _ in range(options.layers)))


def write_by_host(parameter, noise):
    """Copies bytes of `noise`, repeated, into the parameter by the CPU alone."""
    address, left, at = parameter.data_ptr(), parameter.numel() * 4, 0
    while left > 0:
        part = min(left, len(noise))
        ctypes.memmove(address + at, noise, part)
        at += part
        left -= part


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=1536)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--passes", type=int, default=4)
    parser.add_argument("--mode", choices=("demand", "resident"), default="demand")
    options = parser.parse_args()
    if options.layers * (12 * options.width**2 + 13 * options.width) * 4 > 1900 << 20:
        parser.error("more than 1900 MiB of weights")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.manual_seed(1)
    library = ctypes.CDLL(options.library)
    library.sonde_managed_statistic.restype = ctypes.c_uint64
    library.sonde_managed_statistic.argtypes = [ctypes.c_uint32]

    with torch.no_grad():
        x = torch.randn(options.batch, options.tokens, options.width, device="cuda")
        twin = make(argparse.Namespace(**{**vars(options), "layers": 1}), "cuda")
        for _ in range(3):
            twin(x)
        torch.cuda.synchronize()

        model = make(options, "meta")
        allocator = torch.cuda.memory.CUDAPluggableAllocator(options.library, "sonde_managed_malloc",
                                                             "sonde_managed_free")
        pool = torch.cuda.MemPool(allocator.allocator())
        with torch.cuda.use_mem_pool(pool):
            model.to_empty(device="cuda")
        generator = random.Random(1)
        # Small numbers, so that twelve layers stay finite.
        noise = b"".join(
            ctypes.string_at(ctypes.byref(ctypes.c_float(generator.uniform(-0.02, 0.02))), 4) for _ in range(1 << 16))
        noise *= 64
        for parameter in model.parameters():
            write_by_host(parameter, noise)
        torch.cuda.synchronize()
        if options.mode == "resident":
            for parameter in model.parameters():
                parameter.sum()
        torch.cuda.synchronize()

        begin = time.perf_counter_ns()
        out = x
        for _ in range(options.passes):
            out = model(x)
        torch.cuda.synchronize()
        total = time.perf_counter_ns() - begin
        finite = bool(torch.isfinite(out).all().item())
    print(
        json.dumps({
            "program": "pytorch_model", "mode": options.mode, "total_ns": total, "finite": finite,
            "checksum": float(out.double().sum().item()),
            "weight_bytes": sum(parameter.numel() * 4 for parameter in model.parameters()),
            "managed_bytes": int(library.sonde_managed_statistic(2)),
            "managed_blocks": int(library.sonde_managed_statistic(4)), "passes": options.passes,
            "torch": torch.__version__,
        }), flush=True)
    return 0 if finite else 1


if __name__ == "__main__":
    sys.exit(main())
