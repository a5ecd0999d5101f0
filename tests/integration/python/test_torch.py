"""The PyTorch adapter on the CPU: operators, links, modules, tensors, threads, beside torch.profiler, and its faults.

Expected operators come from PyTorch's definition of the calls (linear is t and addmm with a bias), sequence numbers from
autograd's counter; counts of many operators are compared with torch.profiler's.
"""

import collections
import gc
import os
import subprocess
import sys
import threading
import unittest

import sonde
import torch
from sonde import _sonde


def names(operators, depth=0):
    return [operator["name"] for operator in operators if operator["depth"] == depth]


def resident_kib():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.ModuleList([torch.nn.Linear(8, 4), torch.nn.Linear(4, 2)])

    def forward(self, x):
        for layer in self.inner:
            x = layer(x)
        return x


class Operators(unittest.TestCase):
    def setUp(self):
        self.assertIsNotNone(sonde.torch.load())

    def test_a_forward_and_backward_pass_gives_exactly_its_operators(self):
        a = torch.ones(2, 3, requires_grad=True)
        b = torch.ones(3, 4)
        with sonde.capture() as captured:
            torch.mm(a, b).sum().backward()
        forward = [o for o in captured.operators if o["link"] == "forward" and o["depth"] == 0]
        self.assertEqual([o["name"] for o in forward], ["aten::mm", "aten::sum"])
        backward = [o for o in captured.operators if o["link"] == "backward"]
        self.assertEqual([o["name"] for o in backward], ["SumBackward0", "MmBackward0"])
        self.assertEqual(captured.unmatched, 0)
        self.assertEqual(captured.results.losses, [])
        self.assertTrue(all(o["duration_ns"] > 0 for o in captured.operators))

    def test_a_backward_operator_leads_to_the_forward_one_that_made_its_node(self):
        x = torch.ones(3, requires_grad=True)
        with sonde.capture() as captured:
            y = x * 2
            z = y.exp()
            z.sum().backward()
        operators = captured.operators
        made = {}
        for operator in operators:
            if operator["link"] == "backward":
                forward = operators[operator["forward"]]
                self.assertEqual(forward["sequence"], operator["sequence"])
                made[operator["name"]] = forward["name"]
        self.assertEqual(made, {"MulBackward0": "aten::mul", "ExpBackward0": "aten::exp", "SumBackward0": "aten::sum"})

    def test_the_innermost_of_nested_forward_operators_is_linked(self):
        layer = torch.nn.Linear(8, 4)
        with sonde.capture() as captured:
            layer(torch.ones(2, 8)).sum().backward()
        operators = captured.operators
        linked = {o["name"]: operators[o["forward"]] for o in operators if o["link"] == "backward"}
        addmm = linked["AddmmBackward0"]
        self.assertEqual(addmm["name"], "aten::addmm")
        self.assertEqual(operators[addmm["parent"]]["name"], "aten::linear")

    def test_inputs_have_types_and_shapes_when_asked(self):
        with sonde.capture(torch={"shapes": True}) as captured:
            torch.addmm(torch.ones(4), torch.ones(2, 8), torch.ones(8, 4))
            torch.cat([torch.ones(1, 2), torch.ones(3, 2, dtype=torch.float64)])
            torch.ones(5, dtype=torch.int64)[torch.tensor([True, False, True, False, True])]
        by_name = {o["name"]: o for o in captured.operators if o["depth"] == 0}
        self.assertEqual(by_name["aten::addmm"]["inputs"], [
            {"argument": 0, "type": "float32", "shape": [4]},
            {"argument": 1, "type": "float32", "shape": [2, 8]},
            {"argument": 2, "type": "float32", "shape": [8, 4]},
            {"argument": 3, "type": "int", "shape": None},   # beta
            {"argument": 4, "type": "int", "shape": None},   # alpha
        ])
        self.assertEqual(by_name["aten::cat"]["inputs"], [
            {"argument": 0, "type": "tensor[]", "shape": None},
            {"argument": 0, "type": "float32", "shape": [1, 2]},
            {"argument": 0, "type": "float64", "shape": [3, 2]},
            {"argument": 1, "type": "int", "shape": None},   # dim
        ])
        self.assertEqual(by_name["aten::index"]["inputs"], [
            {"argument": 0, "type": "int64", "shape": [5]},
            {"argument": 1, "type": "list", "shape": None},
            {"argument": 1, "type": "bool", "shape": [5]},
        ])

    def test_inputs_are_absent_when_not_asked(self):
        with sonde.capture() as captured:
            torch.ones(2) + 1
        self.assertTrue(captured.operators)
        self.assertTrue(all(o["inputs"] is None and o["call_path"] is None for o in captured.operators))

    def test_a_scalar_tensor_has_an_empty_shape(self):
        scalar = torch.tensor(1.5)
        with sonde.capture(torch={"shapes": True}) as captured:
            scalar.neg()
        self.assertEqual(captured.operators[0]["inputs"], [{"argument": 0, "type": "float32", "shape": []}])

    def test_call_paths_lead_to_the_line(self):
        def caller(x):
            return x.neg()  # this line

        with open(__file__, encoding="utf-8") as source:
            line = next(i for i, text in enumerate(source, 1) if text.strip().endswith("# this line"))
        with sonde.capture(torch={"stacks": True}) as captured:
            caller(torch.ones(1))
        neg = next(o for o in captured.operators if o["name"] == "aten::neg")
        self.assertEqual(neg["call_path"][0], f"{__file__}:{line}@caller")
        self.assertTrue(neg["call_path"][1].endswith("@test_call_paths_lead_to_the_line"))

    def test_call_paths_leave_this_package_out(self):
        with sonde.capture(torch={"stacks": True}) as captured:
            Block()(torch.ones(1, 8))
        linear = next(o for o in captured.operators if o["name"] == "aten::linear")
        self.assertTrue(any(frame.endswith("@forward") and __file__ in frame for frame in linear["call_path"]))
        for frame in linear["call_path"]:
            self.assertNotIn("/sonde/", frame)
            self.assertNotIn("@_sonde_", frame)

    def test_operators_of_all_threads_are_seen_and_nest_in_their_own_scopes(self):
        def work(number):
            with sonde.scope(f"thread{number}"):
                for _ in range(20):
                    x = torch.ones(2, requires_grad=True)
                    (x * number).sum().backward()

        with sonde.capture() as captured:
            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        count = collections.Counter((o["scopes"][0], o["name"]) for o in captured.operators
                                    if o["name"] in ("MulBackward0", "SumBackward0"))
        expected = {(f"thread{number}", name): 20 for number in range(4) for name in ("MulBackward0", "SumBackward0")}
        self.assertEqual(count, expected)
        for operator in captured.operators:
            if operator["link"] == "backward":
                self.assertEqual(captured.operators[operator["forward"]]["thread"], operator["forward_thread"])

    def test_a_backward_pass_on_another_thread_finds_the_forward_one(self):
        x = torch.ones(3, requires_grad=True)
        with sonde.capture() as captured:
            y = (x * 3).sum()
            thread = threading.Thread(target=y.backward)
            thread.start()
            thread.join()
        mul = next(o for o in captured.operators if o["name"] == "MulBackward0")
        forward = captured.operators[mul["forward"]]
        self.assertEqual(forward["name"], "aten::mul")
        self.assertNotEqual(forward["thread"], mul["thread"])

    def test_record_function_is_a_scope(self):
        with sonde.capture() as captured:
            with torch.autograd.profiler.record_function("load"):
                torch.ones(1).neg()
        scope = next(s for s in captured.scopes if s["name"] == "load")
        self.assertEqual(scope["domain"], "torch.record_function")
        neg = next(o for o in captured.operators if o["name"] == "aten::neg")
        self.assertEqual(neg["scopes"], ["load"])

    def test_torch_profiler_sees_the_same_beside_it(self):
        layer = torch.nn.Linear(8, 4)

        def step():
            layer(torch.ones(2, 8)).sum().backward()

        step()
        for order in ("profiler inside", "profiler outside"):
            profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU])
            captured = sonde.capture()
            managers = (captured, profile) if order == "profiler inside" else (profile, captured)
            with managers[0]:
                with managers[1]:
                    step()
            # The raw events: events() leaves out an operator inside one of the same name.
            theirs = collections.Counter(event.name() for event in profile.profiler.kineto_results.events())
            ours = collections.Counter(o["name"] for o in captured.operators)
            # PyTorch's own profiler announces itself by a scope or an operator of its own.
            for counts in (theirs, ours):
                for name in [name for name in counts if "rofiler" in name]:
                    del counts[name]
            self.assertEqual(ours, theirs, order)

    def test_two_captures_at_once_see_what_falls_into_each(self):
        first, second = sonde.capture(), sonde.capture(torch={"shapes": True})
        x = torch.ones(2)
        first.__enter__()
        x.neg()
        second.__enter__()
        x.exp()
        first.__exit__(None, None, None)
        x.sin()
        second.__exit__(None, None, None)
        self.assertEqual(names(first.operators), ["aten::neg", "aten::exp"])
        self.assertEqual(names(second.operators), ["aten::exp", "aten::sin"])
        self.assertTrue(all(o["inputs"] is None for o in first.operators))
        self.assertTrue(all(o["inputs"] is not None for o in second.operators))
        self.assertIsNone(_sonde.current_session())

    def test_more_captures_than_sinks_say_so(self):
        captures = [sonde.capture() for _ in range(5)]
        for one in captures:
            one.__enter__()
        torch.ones(1).neg()
        for one in reversed(captures):
            one.__exit__(None, None, None)
        self.assertEqual([len([o for o in one.operators if o["name"] == "aten::neg"]) for one in captures],
                         [1, 1, 1, 1, 0])
        self.assertTrue(any("could not start" in note["text"] for note in captures[4].notes))

    def test_an_exception_inside_an_operator_closes_it(self):
        with sonde.capture() as captured:
            with self.assertRaises(RuntimeError):
                torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        mm = next(o for o in captured.operators if o["name"] == "aten::mm")
        self.assertIsNotNone(mm["end_ns"])

    def test_an_exception_in_the_body_passes_and_leaves_the_results(self):
        captured = sonde.capture()
        with self.assertRaises(KeyError):
            with captured:
                torch.ones(1).neg()
                raise KeyError("mine")
        self.assertIn("aten::neg", names(captured.operators))
        with sonde.capture() as again:
            torch.ones(1).exp()
        self.assertEqual([name for name in names(again.operators) if name in ("aten::neg", "aten::exp")], ["aten::exp"])

    def test_nothing_is_left_after_200_captures(self):
        x = torch.ones(4, requires_grad=True)
        layer = torch.nn.Linear(4, 4)

        def once():
            with sonde.capture(torch={"shapes": True}) as captured:
                layer(x).sum().backward()
            return len(captured.operators)

        for _ in range(40):
            count = once()  # the first one makes the gradients, later ones add to them
        gc.collect()
        before = resident_kib()
        for _ in range(200):
            self.assertEqual(once(), count)
        gc.collect()
        # A ring is 1 MiB: one that stays with each capture would be 200 MiB, a callback that stays would double counts.
        self.assertLess(resident_kib() - before, 20 * 1024)
        self.assertIs(torch.nn.Module.__call__, ORIGINAL_CALL)
        self.assertIs(torch.nn.Module.__call__.__code__, ORIGINAL_CODE)

    def test_a_forked_child_captures_nothing_and_can_begin_its_own(self):
        with sonde.capture() as captured:
            child = os.fork()
            if child == 0:
                torch.ones(1).neg()
                with sonde.capture() as inner:
                    torch.ones(1).exp()
                os._exit(0 if names(inner.operators)[-1] == "aten::exp" else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            torch.ones(1).sin()
        self.assertIn("aten::sin", names(captured.operators))
        self.assertNotIn("aten::neg", names(captured.operators))

    def test_workers_of_a_data_loader_work_on(self):
        data = torch.utils.data.TensorDataset(torch.arange(64.0))
        with sonde.capture() as captured:
            loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
            total = sum(float(batch.sum()) for batch, in loader)
        self.assertEqual(total, 64 * 63 / 2)
        self.assertEqual(len([o for o in captured.operators if o["name"] == "aten::sum" and o["depth"] == 0]), 8)

    def test_a_session_of_its_own_can_be_attached(self):
        run = sonde.Run(records=True).start()
        with sonde.torch.attach(modules=False, tensors=False):
            torch.ones(1).neg()
        torch.ones(1).exp()
        run.finish()
        self.assertEqual(names(sonde.Events(run.records).operators)[-1], "aten::neg")
        with self.assertRaisesRegex(sonde.Error, "no session"):
            sonde.torch.attach()

    def test_a_recorded_run_answers_the_same(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run")
            with sonde.capture(path, torch={"shapes": True, "stacks": True}) as captured:
                torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
            replayed = sonde.open(path).events()
        keep = ("name", "depth", "link", "sequence", "forward", "inputs", "module", "call_path", "duration_ns")
        self.assertEqual([[o[key] for key in keep] for o in replayed.operators],
                         [[o[key] for key in keep] for o in captured.operators])
        self.assertEqual(len(replayed.tensors), len(captured.tensors))

    def test_operators_and_blocks_are_frames_where_pandas_is(self):
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        with sonde.capture(torch={"shapes": True}) as captured:
            for _ in range(3):
                torch.ones(4).neg()
        frame = captured.frame("operators")
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(frame.groupby("name").size()["aten::neg"], 3)
        self.assertEqual(captured.frame("tensors")["bytes"].sum(), 3 * 2 * 16)

    def test_what_is_too_much_to_keep_is_counted(self):
        with sonde.capture(records_limit=4096) as captured:
            for _ in range(200):
                torch.ones(1)
        self.assertGreater(captured.left_out, 0)
        self.assertLess(len(captured.records), 200)


class Modules(unittest.TestCase):
    def test_scopes_nest_as_the_modules_do_and_are_named_by_their_path(self):
        model = torch.nn.Sequential(Block(), torch.nn.ReLU())
        with sonde.capture() as captured:
            model(torch.ones(1, 8))
        scopes = [s for s in captured.scopes if s["domain"] == "torch.nn"]
        self.assertEqual([(s["name"], s["category"], s["depth"]) for s in scopes], [
            ("Sequential", "Sequential", 0), ("0", "Block", 1), ("0.inner.0", "Linear", 2), ("0.inner.1", "Linear", 2),
            ("1", "ReLU", 1),
        ])
        self.assertTrue(all(s["end_ns"] is not None for s in scopes))

    def test_operators_carry_their_module_backward_ones_too(self):
        model = Block()
        with sonde.capture() as captured:
            model(torch.ones(1, 8)).sum().backward()
        linear = [o["module"] for o in captured.operators if o["name"] == "aten::linear"]
        self.assertEqual(linear, ["inner.0", "inner.1"])
        backward = [o["module"] for o in captured.operators if o["name"] == "AddmmBackward0"]
        self.assertEqual(backward, ["inner.1", "inner.0"])

    def test_a_module_that_fails_is_closed(self):
        class Fails(torch.nn.Module):
            def forward(self):
                raise ValueError("mine")

        with sonde.capture() as captured:
            with self.assertRaises(ValueError):
                Fails()()
            torch.nn.ReLU()(torch.ones(1))
        self.assertEqual([(s["name"], s["depth"], s["end_ns"] is not None) for s in captured.scopes],
                         [("Fails", 0, True), ("ReLU", 0, True)])

    def test_the_same_module_twice_gives_two_scopes(self):
        relu = torch.nn.ReLU()
        with sonde.capture() as captured:
            relu(relu(torch.ones(1)))
        self.assertEqual([s["name"] for s in captured.scopes], ["ReLU", "ReLU"])

    def test_paths_follow_a_module_that_is_exchanged(self):
        model = torch.nn.Sequential(torch.nn.ReLU())
        for number in range(20):
            model[0] = torch.nn.Sigmoid() if number % 2 else torch.nn.ReLU()
            stranger = torch.nn.Tanh()
            with sonde.capture() as captured:
                model(torch.ones(1))
                stranger(torch.ones(1))
            self.assertEqual([s["name"] for s in captured.scopes], ["Sequential", "0", "Tanh"])

    def test_a_module_called_by_another_that_does_not_own_it_has_its_class_for_a_name(self):
        guest = torch.nn.ReLU()

        class Host(torch.nn.Module):
            def forward(self, x):
                return guest(x)

        with sonde.capture() as captured:
            Host()(torch.ones(1))
        self.assertEqual([s["name"] for s in captured.scopes], ["Host", "ReLU"])

    def test_the_function_stays_the_one_that_torch_compile_knows(self):
        with sonde.capture():
            self.assertIs(torch.nn.Module.__call__, ORIGINAL_CALL)
            self.assertIsNot(torch.nn.Module.__call__.__code__, ORIGINAL_CODE)

    def test_a_program_that_replaced_the_call_is_told(self):
        def replaced(self, *arguments):
            return ORIGINAL_CALL(self, *arguments) if arguments else None

        closure = (lambda call: lambda self, *arguments: call(self, *arguments))(replaced)
        torch.nn.Module.__call__ = closure
        try:
            with sonde.capture() as captured:
                torch.nn.ReLU()(torch.ones(1))
        finally:
            torch.nn.Module.__call__ = ORIGINAL_CALL
        self.assertEqual(captured.scopes, [])
        self.assertIn("no data on modules because the program replaced torch.nn.Module.__call__",
                      [note["text"] for note in captured.notes])
        self.assertIn("aten::relu", names(captured.operators))

    def test_they_can_be_left_out(self):
        with sonde.capture(torch={"modules": False}) as captured:
            torch.nn.ReLU()(torch.ones(1))
        self.assertEqual(captured.scopes, [])
        self.assertIn("aten::relu", names(captured.operators))


class Tensors(unittest.TestCase):
    def test_blocks_have_their_size_life_and_operator(self):
        with sonde.capture() as captured:
            first = torch.empty(1000, dtype=torch.float64)   # 8000 bytes
            second = torch.empty(10, 10, dtype=torch.int32)  # 400 bytes
            del first
        blocks = [(t["bytes"], t["end_ns"] is None) for t in captured.tensors]
        self.assertEqual(blocks, [(8000, False), (400, True)])
        for block in captured.tensors:
            self.assertEqual(captured.operators[block["operator"]]["name"], "aten::empty")
            self.assertEqual((block["allocator"], block["device"]), ("cpu", None))
        self.assertEqual(second.numel(), 100)

    def test_the_total_is_what_lives(self):
        with sonde.capture() as captured:
            kept = [torch.empty(100, dtype=torch.uint8) for _ in range(3)]
            kept.pop()
            gc.collect()
        totals = [r["allocated"] for r in captured.of("sonde.framework", "tensor_allocate", "tensor_free")]
        self.assertEqual([total - totals[0] for total in totals], [0, 100, 200, 100])

    def test_a_block_that_dies_after_the_capture_is_freed_all_the_same(self):
        with sonde.capture():
            kept = torch.arange(1 << 20)
        total = int(kept.sum())
        del kept
        self.assertEqual(total, (1 << 20) * ((1 << 20) - 1) // 2)
        with sonde.capture() as captured:
            torch.ones(1)
        self.assertEqual(captured.unmatched, 0)

    def test_memory_is_given_back(self):
        with sonde.capture():
            for _ in range(50):
                torch.zeros(1 << 20)
        gc.collect()
        before = resident_kib()
        for _ in range(100):
            with sonde.capture():
                torch.zeros(1 << 20)  # 4 MiB
        gc.collect()
        self.assertLess(resident_kib() - before, 40 * 1024)

    def test_they_can_be_left_out(self):
        with sonde.capture(torch={"tensors": False}) as captured:
            torch.empty(1000)
        self.assertEqual(captured.tensors, [])
        with sonde.capture(torch={"tensors": "cuda"}) as captured:
            torch.empty(1000)
        self.assertEqual(captured.tensors, [])
        if not torch.cuda.is_available():
            self.assertIn("no data on CUDA tensors because this PyTorch sees no CUDA device",
                          [note["text"] for note in captured.notes])
        with self.assertRaises(ValueError):
            sonde.capture(torch={"tensors": "gpu"}).__enter__()
        self.assertIsNone(_sonde.current_session())


class Compilations(unittest.TestCase):
    def test_what_this_pytorch_cannot_tell_is_said(self):
        with sonde.capture() as captured:
            torch.ones(1)
        texts = [note["text"] for note in captured.notes if note["severity"] == "no_data"]
        if hasattr(torch, "_dynamo") or torch.__version__ >= "2":
            self.skipTest("this PyTorch compiles")
        self.assertEqual(texts, ["no data on compilations because this PyTorch has no torch._dynamo"])
        self.assertEqual(captured.compilations, [])


class WithoutCompiler(unittest.TestCase):
    """In processes of their own, because a native part stays loaded."""

    def run_python(self, program, **environment):
        done = subprocess.run([sys.executable, "-c", program], env={**os.environ, **environment}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    PROGRAM = """
import sonde, torch
a = torch.ones(2, 3, requires_grad=True)
with sonde.capture(torch={"shapes": True}) as captured:
    torch.mm(a, torch.ones(3, 4)).sum().backward()
print([o["name"] for o in captured.operators])
for note in captured.notes: print(note["severity"], note["text"])
with sonde.capture() as after: pass
print(torch.ones(1).neg())
"""

    def test_operators_come_from_a_dispatch_mode_and_the_rest_is_said(self):
        out = self.run_python(self.PROGRAM, SONDE_CACHE="/dev/null/cache", CXX="", PATH="/nowhere")
        first, *rest = out.splitlines()
        self.assertIn("'aten::mm'", first)
        self.assertIn("'aten::sum'", first)
        self.assertIn("no C++ compiler", rest[0])
        self.assertTrue(rest[0].startswith("warning operators come from a dispatch mode"))
        self.assertTrue(any(line.startswith("no_data no data on inputs and call paths") for line in rest))
        self.assertTrue(any(line.startswith("no_data no data on tensors") for line in rest))

    def test_a_compiler_that_fails_is_quoted(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            out = self.run_python(self.PROGRAM, SONDE_CACHE=folder, CXX="false")
        self.assertIn("did not compile with false", out)

    def test_building_can_be_forbidden(self):
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            out = self.run_python(self.PROGRAM, SONDE_CACHE=folder, SONDE_TORCH_BUILD="0")
        self.assertIn("SONDE_TORCH_BUILD=0", out)

    def test_a_cuda_part_that_does_not_compile_leaves_the_operators(self):
        import tempfile

        # A PyTorch that says it has CUDA, with headers that no compiler takes.
        program = """
import sonde, torch
from sonde.torch import build
defines = build._Plan._defines
def with_broken_cuda(self, with_cuda):
    found = defines(self, with_cuda)
    self.cuda = build.pathlib.Path("/nowhere") if with_cuda else None
    return found + (["SONDE_TORCH_CUDA"] if with_cuda else [])
build._Plan._defines = with_broken_cuda
native = build.load()
print(native.attach_cuda())
print(native.attach_cpu())
with sonde.capture() as captured:
    torch.ones(1).neg()
print([o["name"] for o in captured.operators if o["depth"] == 0])
"""
        with tempfile.TemporaryDirectory() as folder:
            problem, cpu, operators = self.run_python(program, SONDE_CACHE=folder).splitlines()
        self.assertTrue(problem.startswith("the native part did not compile"), problem)
        self.assertEqual(cpu, "")
        self.assertEqual(operators, "['aten::ones', 'aten::neg']")

    def test_the_package_itself_imports_no_torch(self):
        out = self.run_python("import sys, sonde\nwith sonde.capture() as c: pass\nprint('torch' in sys.modules)")
        self.assertEqual(out.strip(), "False")


ORIGINAL_CALL = torch.nn.Module.__call__
ORIGINAL_CODE = ORIGINAL_CALL.__code__

if __name__ == "__main__":
    unittest.main(verbosity=1)
