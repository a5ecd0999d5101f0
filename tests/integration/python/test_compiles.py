"""Reading the compiler's trace, on texts in the form that PyTorch 2.11 writes; no PyTorch is needed.

Each event is a log record of "torch.__trace" with `metadata` and, for some, `payload`.
"""

import importlib
import json
import logging
import sys
import types
import unittest

import sonde

GRAPH_BREAK = """Graph break in user code at /home/u/model.py:12
Graph Break Reason: Data-dependent branching
  Explanation: Detected data-dependent branching.

  Developer debug context: attempted to jump with TensorVariable()

User code traceback:
  File "/home/u/train.py", line 40, in <module>
    step(x)
  File "/home/u/model.py", line 12, in step
    if x.sum() > 0:

NoneType: None
"""

GRAPH = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[64, 64][64, 1]cuda:0"):
        # File: /home/u/model.py:20 in helper, code: return x.sin()
        sin: "f32[64, 64][64, 1]cuda:0" = torch.ops.aten.sin.default(arg0_1)

        # File: /home/u/model.py:22 in fused, code: z = helper(x) * y  # a = b
        mul: "f32[64, 64][64, 1]cuda:0" = torch.ops.aten.mul.Tensor(sin, arg0_1);  sin = arg0_1 = None

        # No stacktrace found for following nodes
        add: "f32[64, 64][64, 1]cuda:0" = torch.ops.aten.add.Tensor(mul, 3.0);  mul = None
        return (add,)
"""

TRACE = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[64, 64][64, 1]cuda:0"):
        l_x_ = L_x_

        # File: /home/u/model.py:20 in helper, code: return x.sin()
        sin: "f32[64, 64][64, 1]cuda:0" = l_x_.sin()

        # File: /home/u/model.py:22 in fused, code: z = helper(x) * y
        z: "f32[64, 64][64, 1]cuda:0" = sin * l_x_;  sin = None
        return (z,)
"""

CODE = """import torch

# kernel path: /tmp/x.py
# Topologically Sorted Source Nodes: [sin, z], Original ATen: [aten.sin, aten.mul]
# Source node to ATen node mapping:
#   z => mul
# Graph fragment:
#   %arg0_1 : Tensor "f32[64, 64][64, 1]cuda:0" = PlaceHolder[target=arg0_1]
#   %sin : Tensor "f32[64, 64]"[num_users=1] = call_function[target=torch.ops.aten.sin.default](args = (%arg0_1,))
#   %mul : Tensor "f32[64, 64]"[num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%sin, %arg0_1))
#   return %mul
triton_poi_fused_mul_sin_0 = async_compile.triton('triton_poi_fused_mul_sin_0', '''
import triton
# a comment in the kernel
def triton_poi_fused_mul_sin_0(in_ptr0):
    pass
''', device_str='cuda')

def call(args):
    buf0 = empty_strided_cuda((64, 64), (64, 1), torch.float32)
    # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.t, aten.addmm]
    extern_kernels.addmm(a, b, out=buf0)
    extern_kernels.mm(a, b, out=buf0)
    triton_poi_fused_mul_sin_0.run(buf0)
"""


class Trace(unittest.TestCase):
    def setUp(self):
        self.compiles = importlib.import_module("sonde.torch.compiles")
        self.log = logging.getLogger("torch.__trace")

    def capture(self, *events):
        with sonde.capture(torch=False) as captured:
            listener = self.compiles.CompileListener(captured.session)
            for metadata, payload in events:
                self.log.debug("", extra={"metadata": metadata, "payload": payload})
            listener.stop()
        return captured

    def frame(self, number=0, again=0, **more):
        return {"frame_id": number, "frame_compile_id": again, "attempt": 0, **more}

    def test_a_graph_break_has_its_place_and_reason(self):
        captured = self.capture((self.frame(3, 1, artifact={"name": "dynamo_graph_break_reason"}), GRAPH_BREAK))
        record = captured.compilations[0]
        self.assertEqual([record[key] for key in ("kind", "name", "file", "line", "id")],
                         ["graph_break", "step", "/home/u/model.py", 12, "3/1"])
        self.assertTrue(record["reason"].startswith("Data-dependent branching\n"))
        self.assertNotIn("Developer", record["reason"])

    def test_a_recompilation_has_the_guard_that_failed(self):
        metrics = {"compile_id": "2/1", "co_name": "step", "co_filename": "/home/u/model.py", "co_firstlineno": 10,
                   "duration_us": 5000, "fail_reason": None}
        guard = "2/0: tensor 'x' size mismatch at index 0. expected 64, actual 32"
        captured = self.capture(
            (self.frame(2, 0, compilation_metrics={**metrics, "compile_id": "2/0"}), None),
            (self.frame(2, 1, artifact={"name": "recompile_reasons"}), guard),
            (self.frame(2, 1, compilation_metrics=metrics), None))
        first, second = captured.compilations
        self.assertEqual([first[key] for key in ("kind", "name", "line", "id", "reason")],
                         ["compile", "step", 10, "2/0", ""])
        self.assertEqual([second[key] for key in ("kind", "name", "line", "id", "reason")],
                         ["recompile", "step", 10, "2/1", guard])
        self.assertAlmostEqual((second["end"] - second["time_ns"]) / 5_000_000, 1, delta=0.01)

    def test_several_guards_are_lines(self):
        captured = self.capture((self.frame(2, 1, artifact={"name": "recompile_reasons"}), json.dumps(["one", "two"])))
        # Nothing came after it: the compilation was still under way when the capture ended.
        self.assertEqual([(c["kind"], c["reason"]) for c in captured.compilations], [("recompile", "one\ntwo")])

    def test_a_backward_compilation_is_one(self):
        captured = self.capture((self.frame(1, bwd_compilation_metrics={"compile_id": "1/0", "co_name": None}), None))
        self.assertEqual([(c["kind"], c["name"], c["id"]) for c in captured.compilations],
                         [("compile", "backward", "1/0")])

    def test_a_failed_compilation_says_why(self):
        metrics = {"compile_id": "0/0", "co_name": "step", "fail_reason": "out of patience"}
        captured = self.capture((self.frame(compilation_metrics=metrics), None))
        self.assertEqual(captured.compilations[0]["reason"], "failed: out of patience")

    def test_a_kernel_leads_to_its_operators_and_lines(self):
        captured = self.capture((self.frame(artifact={"name": "inductor_post_grad_graph"}), GRAPH),
                                (self.frame(inductor_output_code={"filename": "x.py"}), CODE))
        kernels = {kernel["name"]: kernel for kernel in captured.compiled_kernels}
        self.assertEqual(set(kernels), {"triton_poi_fused_mul_sin_0", "extern_kernels.addmm"})
        fused = kernels["triton_poi_fused_mul_sin_0"]
        self.assertEqual(fused["operators"], ["aten.sin", "aten.mul"])
        self.assertEqual(fused["sources"], ["/home/u/model.py:20: return x.sin()",
                                            "/home/u/model.py:22: z = helper(x) * y  # a = b"])
        self.assertEqual(fused["id"], "0/0")
        self.assertEqual(kernels["extern_kernels.addmm"]["operators"], ["aten.t", "aten.addmm"])

    def test_a_kernel_from_a_cache_leads_to_the_traced_lines(self):
        captured = self.capture((self.frame(dynamo_output_graph={}), TRACE),
                                (self.frame(inductor_output_code={"filename": "x.py"}), CODE))
        fused = captured.compiled_kernels[0]
        self.assertEqual(fused["sources"], ["/home/u/model.py:20: return x.sin()", "/home/u/model.py:22: z = helper(x) * y"])

    def test_stack_traces_of_kernels_add_lines(self):
        stacks = {"triton_poi_fused_mul_sin_0:1": ['File "/home/u/other.py", line 7, in f\n    y = x.sin()\n']}
        captured = self.capture(
            (self.frame(artifact={"name": "inductor_provenance_tracking_kernel_stack_traces"}), json.dumps(stacks)),
            (self.frame(inductor_output_code={"filename": "x.py"}), CODE))
        self.assertEqual(captured.compiled_kernels[0]["sources"], ["/home/u/other.py:7: y = x.sin()"])

    def test_a_node_without_a_source_has_none(self):
        self.assertEqual(sorted(self.compiles.graph_sources(GRAPH)), ["mul", "sin"])

    def test_what_cannot_be_read_is_said_and_harms_nobody(self):
        captured = self.capture((self.frame(compilation_metrics={"duration_us": "long"}), None),
                                (self.frame(4, artifact={"name": "inductor_provenance_tracking_kernel_stack_traces"}), "{"),
                                ({"artifact": 7}, None), (None, None))
        self.assertEqual(captured.compilations, [])
        self.assertEqual([n["severity"] for n in captured.notes], ["warning", "warning"])
        self.assertTrue(all("could not be read" in n["text"] for n in captured.notes))

    def test_the_log_is_left_as_it_was(self):
        before = self.log.level, list(self.log.handlers)
        self.capture()
        self.assertEqual((self.log.level, self.log.handlers), before)

    def test_a_pytorch_that_writes_no_trace_is_said(self):
        old = types.SimpleNamespace(__version__="2.0.1", _dynamo=object())
        with sonde.capture(torch=False) as captured:
            attachment = importlib.import_module("sonde.torch").Attachment(captured.session)
            self.compiles.attach_compiles(attachment, old)
            self.assertEqual(attachment._parts, [])
        self.assertEqual([(n["severity"], n["text"]) for n in captured.notes],
                         [("no_data", "no data on compilations because PyTorch 2.0.1 writes no trace of them")])
        self.assertNotIn("torch", sys.modules)


if __name__ == "__main__":
    unittest.main(verbosity=1)
