#!/usr/bin/env python3
"""Streams over managed tensors, pages on the host at first: the workload of check.py.

  workload.py LIBRARY [--tensors N] [--bytes N] [--rounds N]

Prints one JSON line: what was done, and the allocator's numbers. At most 2 GiB are managed.
"""

import argparse
import ctypes
import json
import sys

import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('library')
    parser.add_argument('--tensors', type=int, default=4)
    parser.add_argument('--bytes', type=int, default=16 << 20)
    parser.add_argument('--rounds', type=int, default=3)
    options = parser.parse_args()
    if options.tensors * options.bytes > 2 << 30:
        parser.error('more than 2 GiB of managed memory')
    library = ctypes.CDLL(options.library)
    library.sonde_managed_statistic.restype = ctypes.c_uint64
    library.sonde_managed_statistic.argtypes = [ctypes.c_uint32]
    library.sonde_managed_set_cap.argtypes = [ctypes.c_uint64]
    names = ('cap', 'live_bytes', 'peak_bytes', 'live_blocks', 'total_blocks', 'refused_blocks', 'refused_bytes',
             'failed_blocks', 'unknown_frees', 'announced')

    def numbers():
        return {name: library.sonde_managed_statistic(which) for which, name in enumerate(names)}

    allocator = torch.cuda.memory.CUDAPluggableAllocator(options.library, 'sonde_managed_malloc', 'sonde_managed_free')
    pool = torch.cuda.MemPool(allocator.allocator())
    elements = options.bytes // 4
    with torch.cuda.use_mem_pool(pool):
        tensors = [torch.empty(elements, dtype=torch.float32, device='cuda') for _ in range(options.tensors)]
        small = [torch.empty(1000, device='cuda') for _ in range(8)]
    shared = len({one.data_ptr() >> 21 for one in small})
    # Written by the CPU, so that every page is on the host when the first kernel comes.
    for one in tensors:
        ctypes.memset(one.data_ptr(), 0, options.bytes)
    torch.cuda.synchronize()
    for _ in range(options.rounds):
        for one in tensors:
            one.add_(1.0)
    torch.cuda.synchronize()
    first = [ctypes.c_float.from_address(one.data_ptr()).value for one in tensors]
    # Read back by the CPU: pages return.
    for one in tensors:
        ctypes.string_at(one.data_ptr(), options.bytes)
    during = numbers()
    library.sonde_managed_set_cap(during['live_bytes'] + (4 << 20))
    refused = False
    try:
        with torch.cuda.use_mem_pool(pool):
            torch.empty(64 << 20, dtype=torch.uint8, device='cuda')
    except torch.cuda.OutOfMemoryError:
        refused = True
    after = numbers()
    addresses = [one.data_ptr() for one in tensors]
    del tensors, small, one
    del pool
    torch.cuda.empty_cache()
    print(json.dumps({'values': first, 'rounds': options.rounds, 'tensors': options.tensors, 'bytes': options.bytes,
                      'small_blocks': shared, 'refused': refused, 'during': during, 'after_refusal': after,
                      'at_end': numbers(), 'addresses': addresses, 'torch': torch.__version__}))
    return 0


if __name__ == '__main__':
    sys.exit(main())
