"""The Python package end to end: emit, analyse, record, replay, read tables, call functions, and its errors."""

import asyncio
import gc
import json
import os
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

import sonde
from sonde import _sonde


def resident_kib():
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Package(unittest.TestCase):
    def test_version_is_the_librarys(self):
        self.assertRegex(sonde.version(), r"^\d+\.\d+\.\d+$")

    def test_emitting_without_a_session_does_nothing(self):
        self.assertFalse(sonde.mark("nobody listens"))
        with sonde.scope("nobody listens"):
            self.assertFalse(sonde.metric("loss", 1.0))

    def test_scopes_and_kernels_reach_the_workload_analysis(self):
        with sonde.Run(analyses={"workload": {}}) as run:
            for _ in range(3):
                with sonde.scope("step", domain="training"):
                    begin = sonde.stamp()
                    self.assertTrue(sonde.kernel("axpy", begin, begin + 1000))
            sonde.kernel("gemm", begin, begin + 5000)
        kernels = {row["name"]: row for row in run.results.table("workload", "kernels")}
        self.assertEqual(kernels["axpy"]["count"], 3)
        self.assertEqual(kernels["gemm"]["count"], 1)
        scopes = {row["scope"]: row for row in run.results.table("workload", "scopes")}
        self.assertEqual(scopes["step"]["count"], 3)
        self.assertEqual([loss for loss in run.results.losses if loss["records"]], [])

    def test_addresses_of_64_bits_survive(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run")
            with sonde.Run(analyses={"workload": {}}, record=path):
                self.assertTrue(sonde.allocate(0xFFFF800012345678, 2**53 + 1, name="high"))
                self.assertTrue(sonde.free(0xFFFF800012345678))
            results = sonde.open(path).analyse("workload")
            memory = results.table("workload", "memory")
            self.assertEqual([row["peak"] for row in memory], [2**53 + 1])

    def test_a_capture_replays_to_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run")
            with sonde.Run(record=path):
                for i in range(1000):
                    begin = sonde.stamp()
                    sonde.kernel(f"kernel{i % 7}", begin, begin + 100 + i)
            first = sonde.open(path).analyse("workload").report("json")
            second = sonde.open(path).analyse("workload").report("json")
            self.assertEqual(first, second)
            tables = json.loads(first)["tables"]
            self.assertIn("workload.kernels", tables)
            counts = [row["count"] for row in sonde.open(path).analyse("workload").table("workload", "kernels")]
            self.assertEqual(sum(counts), 1000)

    def test_scopes_of_threads_and_exceptions_close(self):
        def work():
            for _ in range(50):
                try:
                    with sonde.scope("risky"):
                        raise ValueError
                except ValueError:
                    pass

        with sonde.Run(analyses={"workload": {}}) as run:
            threads = [threading.Thread(target=work) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        scopes = {row["scope"]: row for row in run.results.table("workload", "scopes")}
        self.assertEqual(scopes["risky"]["count"], 100)

    def test_a_scope_decorates(self):
        @sonde.scope("decorated")
        def function(depth):
            return 1 if depth == 0 else 1 + function(depth - 1)

        with sonde.Run(analyses={"workload": {}}) as run:
            self.assertEqual(function(3), 4)
        scopes = {row["scope"]: row for row in run.results.table("workload", "scopes")}
        self.assertEqual(scopes["decorated"]["count"], 4)

    def test_published_functions_are_methods(self):
        run = sonde.Run(analyses={"workload": {}}).start()
        begin = sonde.stamp()
        sonde.kernel("k", begin, begin + 10)
        _sonde.flush(run.session)
        workload = sonde.plugin("workload")
        self.assertEqual(workload.kernel_count(run.session), 1)
        with self.assertRaises(TypeError):
            workload.kernel_count()
        with self.assertRaises(AttributeError):
            workload.no_such_function
        run.finish()

    def test_errors_say_what_is_wrong(self):
        with self.assertRaises(FileNotFoundError):
            sonde.open("/no/such/capture")
        with self.assertRaisesRegex(sonde.Error, "nonsense"):
            sonde.Run({"nonsense": 1})
        with self.assertRaisesRegex(sonde.Error, "no_such_plugin"):
            sonde.plugin("no_such_plugin")
        with sonde.Run(analyses={"workload": {}}) as run:
            session = run.session
        with self.assertRaisesRegex(sonde.Error, "closed"):
            _sonde.flush(session)
        with self.assertRaisesRegex(KeyError, "workload.kernels"):
            run.results.table("workload", "nothing")

    def test_many_runs_leave_nothing_open(self):
        for _ in range(40):
            sonde.Run(analyses={"workload": {}})
            gc.collect()


class Capture(unittest.TestCase):
    def test_it_gives_scopes_metrics_and_marks_as_dicts(self):
        with sonde.capture() as captured:
            with sonde.scope("outer"):
                with sonde.scope("inner", domain="mine"):
                    sonde.metric("loss", 0.25, unit="1", rule="property")
                sonde.mark("here")
        self.assertEqual([(s["name"], s["domain"], s["depth"], s["parent"]) for s in captured.scopes],
                         [("outer", "python", 0, None), ("inner", "mine", 1, 0)])
        outer, inner = captured.scopes
        self.assertLessEqual(outer["begin_ns"], inner["begin_ns"])
        self.assertLessEqual(inner["end_ns"], outer["end_ns"])
        self.assertEqual([(m["name"], m["value"], m["unit"], m["rule"]) for m in captured.metrics],
                         [("loss", 0.25, "1", "property")])
        self.assertEqual([m["name"] for m in captured.marks], ["here"])
        self.assertIsNone(captured.session)

    def test_an_operator_of_a_writer_that_knows_less_reads_as_such(self):
        # sonde.operator emits the record as it was before it had links and inputs.
        with sonde.capture() as captured:
            with sonde.operator("load"):
                with sonde.operator("decode", domain="mine"):
                    pass
        record = captured.of("sonde.framework", "operator_begin")[0]
        self.assertEqual([record[key] for key in ("link", "sequence", "call_path", "input_types", "input_shapes")],
                         ["none", None, None, None, None])
        self.assertEqual([(o["name"], o["parent"], o["link"], o["sequence"], o["inputs"], o["call_path"], o["module"])
                          for o in captured.operators],
                         [("load", None, "none", None, None, None, None), ("decode", 0, "none", None, None, None, None)])

    def test_times_are_those_of_the_wall_clock(self):
        before = time.time_ns()
        with sonde.capture() as captured:
            with sonde.scope("now"):
                pass
        after = time.time_ns()
        self.assertLess(before - 10_000_000, captured.scopes[0]["begin_ns"])
        self.assertLess(captured.scopes[0]["end_ns"], after + 10_000_000)

    def test_it_decorates_and_keeps_the_last(self):
        seen = []

        @sonde.capture(done=seen.append)
        def function(depth):
            """Says something."""
            with sonde.scope(f"depth{depth}"):
                return depth

        self.assertEqual([function(1), function(2)], [1, 2])
        self.assertEqual([[s["name"] for s in one.scopes] for one in seen], [["depth1"], ["depth2"]])
        self.assertIs(function.captured, seen[1])
        self.assertEqual((function.__name__, function.__doc__), ("function", "Says something."))

    def test_a_decorated_function_that_fails_has_its_capture(self):
        @sonde.capture()
        def fails():
            with sonde.scope("inside"):
                raise ValueError("mine")

        with self.assertRaises(ValueError):
            fails()
        self.assertEqual([s["name"] for s in fails.captured.scopes], ["inside"])
        self.assertIsNone(_sonde.current_session())

    def test_it_decorates_coroutines(self):
        @sonde.capture()
        async def work():
            with sonde.scope("awaiting"):
                await asyncio.sleep(0)
            return 7

        self.assertEqual(asyncio.run(work()), 7)
        self.assertEqual([s["name"] for s in work.captured.scopes], ["awaiting"])

    def test_a_capture_within_one_hands_the_session_back(self):
        with sonde.capture() as outer:
            with sonde.scope("before"):
                with sonde.capture() as inner:
                    with sonde.scope("within"):
                        pass
            with sonde.scope("after"):
                pass
        self.assertEqual([s["name"] for s in outer.scopes], ["before", "after"])
        self.assertEqual([s["name"] for s in inner.scopes], ["within"])
        with self.assertRaises(RuntimeError), sonde.capture() as one:
            with one:
                pass

    def test_it_analyses_records_and_can_be_opened_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run")
            with sonde.capture(path, analyses={"workload": {}}) as captured:
                with sonde.scope("step"):
                    begin = sonde.stamp()
                    sonde.kernel("axpy", begin, begin + 1000)
            self.assertEqual(captured.results.table("workload", "kernels")[0]["name"], "axpy")
            self.assertIn("axpy", captured.report())
            events = sonde.open(path).events({"sonde.framework": None, "sonde.device": ["kernel"]})
        self.assertEqual([s["name"] for s in events.scopes], ["step"])
        kernel = events.of("sonde.device", "kernel")[0]
        self.assertEqual((kernel["name"], kernel["device"]), ("axpy", 0))
        self.assertGreater(kernel["end"], kernel["time_ns"])

    def test_records_can_be_left_out(self):
        with sonde.capture(records=False, analyses={"workload": {}}) as captured:
            with sonde.scope("step"):
                pass
        self.assertEqual((captured.records, captured.scopes), ([], []))
        self.assertEqual(captured.results.table("workload", "scopes")[0]["scope"], "step")

    def test_a_wrong_configuration_leaves_nothing_behind(self):
        for wrong, error in (({"analyses": {"no_such_plugin": {}}}, sonde.Error),
                             ({"records": {"sonde.nothing": None}}, sonde.Error),
                             ({"records": {"sonde.device": ["nothing"]}}, KeyError)):
            for _ in range(20):  # 16 sessions can be open
                with self.assertRaises(error):
                    with sonde.capture(**wrong):
                        self.fail("it must not begin")
        self.assertIsNone(_sonde.current_session())
        with self.assertRaisesRegex(RuntimeError, "before it has ended"):
            sonde.capture().report()

    def test_what_has_no_end_stays_open(self):
        with sonde.capture() as captured:
            session = _sonde.current_session()
            _sonde.emit_begin(session, 3, "never closed", "python", 0)
            _sonde.emit_end(session, 2, "python", 99)
        self.assertEqual([(s["name"], s["end_ns"]) for s in captured.scopes], [("never closed", None)])
        self.assertEqual(captured.unmatched, 1)

    def test_frames_where_pandas_is(self):
        with sonde.capture(analyses={"workload": {}}) as captured:
            for number in range(3):
                with sonde.scope(f"step{number}"):
                    pass
        with unittest.mock.patch.dict(sys.modules, {"pandas": None}):
            with self.assertRaisesRegex(ImportError, "frames need pandas"):
                captured.frame("scopes")
        with self.assertRaisesRegex(KeyError, "operators, scopes"):
            captured.frame("nothing")
        try:
            import pandas
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = captured.frame("scopes")
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual(list(frame["name"]), ["step0", "step1", "step2"])
        self.assertTrue((frame["duration_ns"] == frame["end_ns"] - frame["begin_ns"]).all())
        self.assertEqual(len(captured.results.frame("workload", "scopes")), 3)

    def test_nothing_is_left_after_200(self):
        def once():
            with sonde.capture() as captured:
                with sonde.scope("step"):
                    pass
            self.assertEqual(len(captured.scopes), 1)

        for _ in range(20):
            once()
        gc.collect()
        before = resident_kib()
        for _ in range(200):
            once()
        gc.collect()
        self.assertLess(resident_kib() - before, 10 * 1024)  # a ring that stays with each would be 200 MiB

    def test_compilations_and_kernels_of_a_framework_come_back_whole(self):
        # What the PyTorch adapter emits, here without a PyTorch that compiles.
        with sonde.capture() as captured:
            session = captured_session = _sonde.current_session()
            end = sonde.stamp()
            begin = _sonde.stamp_before(session, end, 5_000_000)
            _sonde.emit_compile(session, 2, "forward", "data-dependent jump", "model.py", 12, "0/1", 1, begin, end)
            _sonde.emit_compiled_kernel(captured_session, "triton_poi_fused_add_0", "0/1", ["aten.add", "aten.mul", "x"],
                                        ["model.py:13: y = x + 1"])
        record = captured.compilations[0]
        self.assertEqual([record[key] for key in ("kind", "name", "reason", "file", "line", "id", "attempt")],
                         ["graph_break", "forward", "data-dependent jump", "model.py", 12, "0/1", 1])
        self.assertAlmostEqual((record["end"] - record["time_ns"]) / 5_000_000, 1, delta=0.01)
        kernel = captured.compiled_kernels[0]
        self.assertEqual([kernel[key] for key in ("name", "id", "operators", "sources")],
                         ["triton_poi_fused_add_0", "0/1", ["aten.add", "aten.mul", "x"], ["model.py:13: y = x + 1"]])


if __name__ == "__main__":
    unittest.main(verbosity=1)
