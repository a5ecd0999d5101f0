#!/usr/bin/env python3
"""The PyTorch adapter on a GPU: each check compares what Sonde captured with what PyTorch itself says.

  check.py --package PREFIX [--output FOLDER]

PREFIX is an installation or unpacked package of Sonde. Prints a JSON table (name, expected, seen, ok) and exits with 1
when a check fails. FOLDER receives the table and the compiler's trace as raw text. Needs PyTorch 2.x with CUDA and a C++
compiler; takes about 40 s.
"""

import argparse
import collections
import ctypes
import json
import logging
import os
import sys
import tempfile
import threading
import time
import traceback

checks = []


def check(name, expected, seen, ok=None):
    ok = expected == seen if ok is None else bool(ok)
    checks.append({"name": name, "expected": expected, "seen": seen, "ok": ok})
    if not ok:
        print(f"FAILED {name}: expected {expected!r}, saw {seen!r}", file=sys.stderr)


def names(operators, **wanted):
    return [o["name"] for o in operators if all(o[key] == value for key, value in wanted.items())]


def check_operators(torch, sonde):
    a = torch.ones(2, 3, device="cuda", requires_grad=True)
    b = torch.ones(3, 4, device="cuda")
    with sonde.capture(torch={"shapes": True}) as captured:
        torch.mm(a, b).sum().backward()
    operators = captured.operators
    check("operators: forward", ["aten::mm", "aten::sum"], names(operators, link="forward", depth=0))
    backward = [o for o in operators if o["link"] == "backward"]
    check("operators: backward", ["SumBackward0", "MmBackward0"], [o["name"] for o in backward])
    check("operators: backward linked to forward", ["aten::sum", "aten::mm"],
          [operators[o["forward"]]["name"] if o["forward"] is not None else None for o in backward])
    main = threading.get_native_id()
    check("operators: backward on the device's autograd thread", True, all(o["thread"] != main for o in backward))
    check("operators: forward thread of backward", [main, main], [o["forward_thread"] for o in backward])
    mm = next(o for o in operators if o["name"] == "aten::mm")
    check("operators: inputs", [["float32", [2, 3]], ["float32", [3, 4]]],
          [[i["type"], i["shape"]] for i in mm["inputs"]])
    half = torch.ones(8, device="cuda", dtype=torch.bfloat16)
    with sonde.capture(torch={"shapes": True, "stacks": True}) as captured:
        half.neg()
    neg = captured.operators[0]
    check("operators: bfloat16", [{"argument": 0, "type": "bfloat16", "shape": [8]}], neg["inputs"])
    check("operators: call path", True, neg["call_path"][0].endswith("@check_operators"))
    check("operators: nothing lost", [], captured.results.losses)


def check_modules(torch, sonde):
    model = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True), 2, enable_nested_tensor=False)
    model = model.cuda()
    x = torch.randn(2, 5, 32, device="cuda")
    with sonde.capture() as captured:
        model(x).sum().backward()
        torch.cuda.synchronize()
    paths = {path for path, _ in model.named_modules()}
    scopes = [s for s in captured.scopes if s["domain"] == "torch.nn"]
    check("modules: paths are those of named_modules", [],
          sorted({s["name"] for s in scopes[1:]} - paths))
    linear = [s["name"] for s in scopes if s["category"] == "Linear"]
    # out_proj is not called as a module: attention passes its weights on.
    check("modules: linear layers in order", [f"layers.{i}.linear{j}" for i in (0, 1) for j in (1, 2)], linear)
    backward = [o["module"] for o in captured.operators if o["name"] == "AddmmBackward0"]
    want = [f"layers.{i}.linear{j}" for i in (1, 0) for j in (2, 1)]
    check("modules: of backward operators", want, [m for m in backward if m and ".linear" in m])
    check("modules: all closed", True, all(s["end_ns"] is not None for s in scopes))


def check_threads(torch, sonde):
    def work(number):
        with sonde.scope(f"thread{number}"):
            for _ in range(20):
                x = torch.ones(4, device="cuda", requires_grad=True)
                (x * number).sum().backward()

    with sonde.capture() as captured:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    count = collections.Counter(o["scopes"][0] for o in captured.operators if o["name"] == "aten::mul" and o["scopes"])
    check("threads: forward operators of each", {f"thread{n}": 20 for n in range(4)}, dict(count))
    backward = [o for o in captured.operators if o["name"] == "MulBackward0"]
    check("threads: backward operators", 80, len(backward))
    forward = {captured.operators[o["forward"]]["index"] for o in backward if o["forward"] is not None}
    check("threads: each backward operator has its own forward one", 80, len(forward))


def check_profiler(torch, sonde):
    layer = torch.nn.Linear(64, 32).cuda()
    x = torch.ones(4, 64, device="cuda")

    def step():
        layer(x).sum().backward()
        torch.cuda.synchronize()

    step()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    for title in ("inside", "outside"):
        profile = torch.profiler.profile(activities=activities)
        captured = sonde.capture()
        managers = (captured, profile) if title == "inside" else (profile, captured)
        with managers[0]:
            with managers[1]:
                step()
        theirs, ours = collections.Counter(), collections.Counter(o["name"] for o in captured.operators)
        kernels = 0
        for event in profile.profiler.kineto_results.events():
            if "CUDA" in str(event.device_type()):
                kernels += 1
            elif "::" in event.name() or "Backward" in event.name():
                theirs[event.name()] += 1
        # PyTorch's own reading of the profiler's state makes operators too.
        ours = collections.Counter({k: v for k, v in ours.items() if "::" in k or "Backward" in k})
        check(f"torch.profiler {title}: same operators", dict(sorted(theirs.items())), dict(sorted(ours.items())))
        check(f"torch.profiler {title}: it still sees kernels", True, kernels > 0)


def check_tensors(torch, sonde):
    earlier = torch.empty(1 << 20, device="cuda", dtype=torch.uint8)
    torch.cuda.synchronize()
    history = torch.cuda.memory._record_memory_history
    history(enabled="all", context=None, stacks="python", max_entries=100000)
    model = torch.nn.Linear(256, 256).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    torch.cuda.synchronize()
    skip = len(torch.cuda.memory._snapshot()["device_traces"][0])
    with sonde.capture(torch={"tensors": "cuda"}) as captured:
        for _ in range(3):
            model(torch.randn(32, 256, device="cuda")).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        kept = torch.empty(3 << 20, device="cuda", dtype=torch.uint8)
        other = torch.cuda.Stream()
        with torch.cuda.stream(other):
            on_stream = torch.empty(777, device="cuda", dtype=torch.uint8)
        torch.cuda.synchronize()
        statistics = torch.cuda.memory_stats()
    trace = torch.cuda.memory._snapshot()["device_traces"][0][skip:]
    history(enabled=None)
    theirs = [(entry["action"], entry["addr"], entry["size"]) for entry in trace
              if entry["action"] in ("alloc", "free_requested")]
    words = {"tensor_allocate": "alloc", "tensor_free": "free_requested"}
    changes = [r for r in captured.of("sonde.framework", "tensor_allocate", "tensor_free")
               if "earlier" not in (r["flags"] or ())]
    changes.sort(key=lambda r: r["stamp"])
    ours = [(words[r["type"]], r["address"], r["bytes"]) for r in changes]
    differing = [pair for pair in zip(theirs, ours) if pair[0] != pair[1]][:3]
    check("tensors: the allocator's own trace, event by event", [len(theirs), []], [len(ours), differing])
    check("tensors: something was compared", True, len(theirs) > 50)
    check("tensors: allocated after the last event", statistics["requested_bytes.all.current"],
          changes[-1]["allocated"])
    check("tensors: reserved after the last event", statistics["reserved_bytes.all.current"],
          changes[-1]["reserved_bytes"])
    alive = [t for t in captured.tensors if t["end_ns"] is None]
    check("tensors: what lives, earlier blocks included", statistics["requested_bytes.all.current"],
          sum(t["bytes"] for t in alive))
    check("tensors: earlier blocks are marked", True,
          any(t["earlier"] and t["address"] == earlier.data_ptr() for t in alive))
    check("tensors: the operator of a block", "aten::empty", next(
        captured.operators[t["operator"]]["name"] for t in alive if t["address"] == kept.data_ptr()))
    check("tensors: the stream of a block", other.cuda_stream,
          next(t["stream"] for t in alive if t["address"] == on_stream.data_ptr()))
    del kept, on_stream

    with sonde.capture(torch={"tensors": "both"}) as captured:
        on_host = torch.empty(11)
        on_device = torch.empty(22, device="cuda")
    check("tensors: of both allocators", [["cpu", None, 44], ["cuda", 0, 88]],
          [[t["allocator"], t["device"], t["bytes"]] for t in captured.tensors if not t["earlier"]])
    with sonde.capture() as captured:
        del on_host, on_device
        on_host = torch.empty(11)
    check("tensors: CUDA alone unless the host's are asked for", [], [t for t in captured.tensors if not t["earlier"]])

    with sonde.capture(torch={"tensors": "cuda"}) as captured:
        pool = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(pool):
            pooled = torch.empty(12345, device="cuda", dtype=torch.uint8)
        graph = torch.cuda.CUDAGraph()
        x = torch.ones(1000, device="cuda")
        with torch.cuda.graph(graph):
            y = x * 2
        plain = torch.empty(54321, device="cuda", dtype=torch.uint8)
    by_address = {t["address"]: t for t in captured.tensors}
    pools = [by_address[t.data_ptr()]["pool"] for t in (pooled, y, plain)]
    check("tensors: pools of a MemPool, a graph and the common one", [True, True, False], [p != 0 for p in pools])
    check("tensors: two pools are two", True, pools[0] != pools[1])


class Range(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("address", ctypes.c_uint64),
                ("bytes", ctypes.c_uint64), ("ordinal", ctypes.c_uint64), ("device", ctypes.c_uint32),
                ("name", ctypes.c_uint32)]


def check_ranges(torch, sonde):
    """Watches sonde.ranges/1 through the C table, as a collector does."""
    from sonde import _sonde

    class Host(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_uint32), ("abi", ctypes.c_uint32), ("get_service", ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_char_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_void_p)))]

    changed_type = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Range), ctypes.c_uint32)

    class Ranges(ctypes.Structure):
        _fields_ = [("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32), ("announce", ctypes.c_void_p),
                    ("retire", ctypes.c_void_p),
                    ("watch", ctypes.CFUNCTYPE(ctypes.c_int32, changed_type, ctypes.c_void_p, ctypes.c_void_p,
                                               ctypes.POINTER(ctypes.c_uint64))),
                    ("unwatch", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64))]

    host = Host.from_address(_sonde.host_address())
    table = ctypes.c_void_p()
    check("ranges: service", 0, host.get_service(b"sonde.ranges/1", 40, ctypes.byref(table)))
    ranges = Ranges.from_address(table.value)
    seen = []

    def on_change(_, entry, live):
        seen.append((entry[0].kind, entry[0].address, entry[0].bytes, live))

    callback = changed_type(on_change)
    number = ctypes.c_uint64()
    torch.cuda.empty_cache()
    earlier = torch.empty(4096, device="cuda", dtype=torch.uint8)
    check("ranges: watch", 0, ranges.watch(callback, None, None, ctypes.byref(number)))
    with sonde.capture(torch={"tensors": "cuda"}):
        block = torch.empty(100 << 20, device="cuda", dtype=torch.uint8)
        address = block.data_ptr()
        del block
        torch.cuda.empty_cache()
    ranges.unwatch(number.value)
    tensor, pool = 1, 2
    check("ranges: an earlier tensor is announced", True, (tensor, earlier.data_ptr(), 4096, 1) in seen)
    mine = [(kind, bytes, live) for kind, at, bytes, live in seen if at == address]
    size = 100 << 20
    check("ranges: segment, tensor, and both ends", [[pool, size, 1], [tensor, size, 1], [tensor, size, 0],
                                                     [pool, size, 0]], [list(entry) for entry in mine])


class Raw(logging.Handler):
    """The compiler's trace as it is, for those who look at a failed check."""

    def __init__(self, path):
        super().__init__(logging.DEBUG)
        self.stream = open(path, "w", encoding="utf-8")

    def emit(self, record):
        metadata = getattr(record, "metadata", None)
        if isinstance(metadata, dict) and "chromium_event" not in metadata:
            self.stream.write(json.dumps(metadata, default=str)[:20000] + "\n")
            payload = getattr(record, "payload", None)
            if payload:
                self.stream.write("\t" + str(payload)[:20000].replace("\n", "\n\t") + "\n")
            self.stream.flush()


def branching(x):
    x = x * 2
    if x.sum() > 0:  # the data decide: the graph breaks here
        return x + 1
    return x - 1


def fused(x, y):
    z = torch_function(x) * y  # fused line 1
    return z + 3.0  # fused line 2


def torch_function(x):
    return x.sin()


def line_of(text):
    with open(__file__, encoding="utf-8") as source:
        return next(i for i, line in enumerate(source, 1) if line.rstrip().endswith(text))


def source_lines(kernels):
    return sorted({int(source.split(":")[1]) for kernel in kernels for source in kernel["sources"]
                   if source.startswith(__file__ + ":")})


def check_compiles(torch, sonde, folder):
    raw = Raw(os.path.join(folder, "compile-trace.txt"))
    log = logging.getLogger("torch.__trace")
    log.setLevel(logging.DEBUG)
    log.addHandler(raw)
    x = torch.randn(64, 64, device="cuda")
    with sonde.capture() as captured:
        torch.compile(branching)(x)
    breaks = [c for c in captured.compilations if c["kind"] == "graph_break"]
    check("compile: the graph break's line", [line_of("# the data decide: the graph breaks here")],
          sorted({c["line"] for c in breaks}))
    check("compile: the graph break's file and function", [[__file__, "branching"]],
          [[c["file"], c["name"]] for c in breaks])
    check("compile: the graph break's reason", True, all("branching" in c["reason"].lower() for c in breaks))
    # The function up to the break, and what is left of it after the branch.
    check("compile: the frames", 2, len([c for c in captured.compilations if c["kind"] == "compile"]))

    compiled = torch.compile(fused, dynamic=False)
    with sonde.capture() as captured:
        compiled(x, x)
        compiled(x[:32], x[:32])
        torch.cuda.synchronize()
    recompiles = [c for c in captured.compilations if c["kind"] == "recompile"]
    check("compile: one recompilation", ["fused"], [c["name"] for c in recompiles])
    check("compile: the guard that failed", True, bool(recompiles) and "size" in recompiles[0]["reason"])
    check("compile: first compilation", [["fused", "compile"]],
          [[c["name"], c["kind"]] for c in captured.compilations if c["kind"] == "compile"])
    check("compile: took time", True, all(c["end"] > c["time_ns"] for c in captured.compilations
                                          if c["kind"] in ("compile", "recompile")))
    kernels = captured.compiled_kernels
    check("compile: kernels of two compilations", True, len({k["id"] for k in kernels}) == 2)
    check("compile: operators of the kernel", ["aten.add", "aten.mul", "aten.sin"],
          sorted(kernels[0]["operators"]) if kernels else None)
    lines = sorted({line_of("# fused line 1"), line_of("# fused line 2"), line_of("return x.sin()")})
    check("compile: source lines of the kernel", lines, source_lines(kernels[:1]))
    profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
    with profile:
        compiled(x, x)
        torch.cuda.synchronize()
    ran = {event.name() for event in profile.profiler.kineto_results.events()}
    check("compile: the name of the kernel is that of the one that runs", True,
          bool(kernels) and kernels[0]["name"] in ran)

    torch._dynamo.reset()
    with sonde.capture() as captured:
        torch.compile(fused, dynamic=False)(x, x)
    check("compile: source lines of a kernel from the cache", lines, source_lines(captured.compiled_kernels))
    check_compiled_modules(torch, sonde, x)
    log.removeHandler(raw)
    raw.stream.close()


def make_network(torch, width):
    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList([torch.nn.Linear(64, width), torch.nn.Linear(width, 64)])

        def forward(self, x):
            for layer in self.layers:
                x = torch.nn.functional.gelu(layer(x))
            return x

    return Network().cuda()


def graphs(torch):
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def check_compiled_modules(torch, sonde, x):
    # Of two widths: the second must not come from the compiler's caches.
    first, second = make_network(torch, 64), make_network(torch, 48)
    earlier = torch.compile(first)
    earlier(x).sum().backward()
    before = graphs(torch)
    with sonde.capture() as captured:
        earlier(x).sum().backward()
        torch.cuda.synchronize()
    check("compiled module: a capture compiles nothing again", [0, []], [graphs(torch) - before, captured.compilations])
    check("compiled module: scopes of what runs eagerly", [["OptimizedModule", 0], ["Network", 1]],
          [[s["category"], s["depth"]] for s in captured.scopes if s["domain"] == "torch.nn"])

    torch._dynamo.reset()
    later = torch.compile(second)
    before = graphs(torch)
    with sonde.capture() as captured:
        later(x).sum().backward()
        torch.cuda.synchronize()
    check("compiled module: no graph break while scopes are on", [],
          [c["reason"] for c in captured.compilations if c["kind"] == "graph_break"])
    check("compiled module: one graph, of its own forward", [1, [["forward", __file__]]],
          [graphs(torch) - before, [[c["name"], c["file"]] for c in captured.compilations
                                    if c["kind"] in ("compile", "recompile") and c["name"] != "backward"]])
    check("compiled module: the backward pass is compiled too", 1,
          len([c for c in captured.compilations if c["name"] == "backward"]))
    check("compiled module: its kernels lead to its lines", True,
          line_of("x = torch.nn.functional.gelu(layer(x))") in source_lines(captured.compiled_kernels))
    later(x).sum().backward()
    check("compiled module: nothing is compiled again after the capture", 1, graphs(torch) - before)

    check("compile: no event was unreadable", [],
          [n["text"] for n in captured.notes if "could not be read" in n["text"]])

    def scoped(y):
        with sonde.scope("within"):
            y = y * 2
            sonde.metric("within", 1)
        return y + 1

    try:
        with sonde.capture() as captured:
            torch.compile(scoped)(x)
        seen = [c["reason"] for c in captured.compilations if c["kind"] == "graph_break"]
    except Exception as failure:
        seen = str(failure)[:300]
    check("compile: graph breaks of a scope within a compiled function", "reported", seen, True)


def check_life(torch, sonde):
    x = torch.ones(64, device="cuda")

    def once():
        with sonde.capture() as captured:
            (x * 2).sum().item()
        return len(captured.operators)

    for _ in range(20):
        count = once()
    def resident():
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    before = resident()
    counts = {once() for _ in range(200)}
    check("life: 200 captures count the same", [count], sorted(counts))
    grown = resident() - before
    check("life: resident memory grows by less than 20 MiB", "< 20 MiB", grown, grown < 20 << 20)

    def loop(n=20000):
        begin = time.perf_counter()
        for _ in range(n):
            x.add_(1)
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / n * 1e9

    loop()
    plain = min(loop() for _ in range(3))
    with sonde.capture(records={"sonde.session": None, "sonde.framework": ["operator_begin", "operator_end"]},
                       records_limit=1):
        with_operators = min(loop() for _ in range(3))
    check("cost: ns for each add_, plain and with operators captured", "reported", [round(plain), round(with_operators)],
          True)


def warm_up(torch):
    """What takes its time at the first use, beside the building of the native part."""
    torch.ones(1, device="cuda").neg()
    import torch._dynamo
    import torch._inductor.compile_fx


def write_table(folder):
    with open(os.path.join(folder, "pytorch-checks.json"), "w", encoding="utf-8") as out:
        json.dump(checks, out, indent=1)
        out.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--package", required=True)
    parser.add_argument("--output", default=os.environ.get("OUT") or tempfile.mkdtemp(prefix="sonde-pytorch-"))
    arguments = parser.parse_args()
    os.makedirs(arguments.output, exist_ok=True)
    sys.path.insert(0, os.path.join(arguments.package, "lib", "sonde", "python"))
    with tempfile.TemporaryDirectory(prefix="sonde-pytorch-") as cold:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(cold, "inductor"))
        os.environ.setdefault("SONDE_CACHE", os.path.join(cold, "native"))
        began = time.monotonic()
        import torch

        imported = time.monotonic() - began
        import sonde

        check("versions", "reported", [sonde.version(), torch.__version__, sys.version.split()[0]], True)
        try:
            began = time.monotonic()
            warm = threading.Thread(target=warm_up, args=(torch,))
            warm.start()
            native = sonde.torch.load()
            check("native part: built and loaded", "reported", f"{time.monotonic() - began:.1f} s", True)
            warm.join()
            torch.cuda.init()
            check("native part: watches the CUDA allocator", "", native.attach_cuda())
        except sonde.torch.Unavailable as missing:
            check("native part: built and loaded", "no failure", str(missing))
        parts = [(check_operators, ()), (check_tensors, ()), (check_compiles, (arguments.output,)), (check_modules, ()),
                 (check_threads, ()), (check_profiler, ()), (check_ranges, ()), (check_life, ())]
        for part, more in parts:
            began = time.monotonic()
            try:
                part(torch, sonde, *more)
            except Exception:
                check(f"{part.__name__}: runs to its end", "no exception", traceback.format_exc()[-1500:])
            print(f"{part.__name__}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
            write_table(arguments.output)
    print(f"import torch: {imported:.1f} s", file=sys.stderr)
    print(json.dumps(checks, indent=1))
    failed = sum(not entry["ok"] for entry in checks)
    print(f"{len(checks) - failed} passed, {failed} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
