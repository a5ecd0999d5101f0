"""Three Triton kernels (vector addition, softmax, matrix product), each launched a known number of
times and checked against PyTorch.

    python3 triton_kernels.py --repeats 50
    python3 triton_kernels.py --check-profile F     counts by torch.profiler go to F

The last line printed is JSON: how often each Triton kernel was launched. PyTorch's own kernels
(inputs, checks) also run and are not listed there; --check-profile counts those too, over the
same window as in train.py.
"""

import argparse
import json
import sys

import torch
import triton
import triton.language as tl

import torch_counts


@triton.jit
def vector_add_kernel(left, right, result, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < count
    total = tl.load(left + offsets, mask=mask) + tl.load(right + offsets, mask=mask)
    tl.store(result + offsets, total, mask=mask)


@triton.jit
def softmax_kernel(source, result, columns, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    values = tl.load(source + row * row_stride + offsets, mask=mask, other=-float("inf"))
    exponentials = tl.exp(values - tl.max(values, axis=0))
    quotients = exponentials / tl.sum(exponentials, axis=0)
    tl.store(result + row * row_stride + offsets, quotients, mask=mask)


@triton.jit
def matmul_kernel(
    left,
    right,
    result,
    rows,
    columns,
    depth,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
    BLOCK_DEPTH: tl.constexpr,
):
    # Row-major operands whose sizes are multiples of the block sizes.
    row_offsets = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    column_offsets = tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)
    depth_offsets = tl.arange(0, BLOCK_DEPTH)
    left_tile = left + row_offsets[:, None] * depth + depth_offsets[None, :]
    right_tile = right + depth_offsets[:, None] * columns + column_offsets[None, :]
    accumulator = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), dtype=tl.float32)
    for step in range(0, depth, BLOCK_DEPTH):
        accumulator = tl.dot(tl.load(left_tile), tl.load(right_tile), accumulator)
        left_tile += BLOCK_DEPTH
        right_tile += BLOCK_DEPTH * columns
    place = result + row_offsets[:, None] * columns + column_offsets[None, :]
    tl.store(place, accumulator)


def relative_error(value, reference):
    value = value.double()
    reference = reference.double()
    return (torch.linalg.norm(value - reference) / torch.linalg.norm(reference)).item()


def run_vector_add(repeats):
    """A length that is no multiple of the block, so that the mask matters."""
    count, block = 100_003, 1024
    left = torch.randn(count, device="cuda")
    right = torch.randn(count, device="cuda")
    result = torch.full_like(left, float("nan"))
    for _ in range(repeats):
        vector_add_kernel[(triton.cdiv(count, block),)](left, right, result, count, BLOCK=block)
    return relative_error(result, left.double() + right.double())


def run_softmax(repeats):
    rows, columns = 512, 777
    source = torch.randn(rows, columns, device="cuda")
    result = torch.full_like(source, float("nan"))
    for _ in range(repeats):
        softmax_kernel[(rows,)](
            source, result, columns, source.stride(0), BLOCK=triton.next_power_of_2(columns)
        )
    return relative_error(result, torch.softmax(source.double(), dim=1))


def run_matmul(repeats):
    rows, columns, depth = 512, 256, 384
    left = torch.randn(rows, depth, device="cuda", dtype=torch.bfloat16)
    right = torch.randn(depth, columns, device="cuda", dtype=torch.bfloat16)
    result = torch.full((rows, columns), float("nan"), device="cuda")
    grid = (rows // 64, columns // 64)
    for _ in range(repeats):
        matmul_kernel[grid](
            left,
            right,
            result,
            rows,
            columns,
            depth,
            BLOCK_ROWS=64,
            BLOCK_COLUMNS=64,
            BLOCK_DEPTH=32,
        )
    return relative_error(result, left.double() @ right.double())


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=50, help="launches of each kernel")
    parser.add_argument("--check-profile", metavar="FILE", help="counts by torch.profiler")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    torch.manual_seed(20)
    torch.cuda.synchronize()  # creates the context, starts no kernel

    # Limits: float32 arithmetic for the first two; bf16 operands with exact products and float32
    # sums for the matrix product, so it is held to float32 as well.
    limits = {"vector_add_kernel": 1e-6, "softmax_kernel": 1e-5, "matmul_kernel": 1e-4}
    with torch_counts.whole_run(options.check_profile):
        errors = {
            "vector_add_kernel": run_vector_add(options.repeats),
            "softmax_kernel": run_softmax(options.repeats),
            "matmul_kernel": run_matmul(options.repeats),
        }
        torch.cuda.synchronize()
    wrong = {name: error for name, error in errors.items() if not error <= limits[name]}
    print(
        json.dumps(
            {
                "program": "triton_kernels",
                "kernels": {name: options.repeats for name in errors},
                "other_kernels": "any",
                "relative_errors": errors,
                "wrong": sorted(wrong),
            }
        )
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
