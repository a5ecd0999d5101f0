"""The Python package end to end: emit, analyse, record, replay, read tables, call functions, and its errors."""

import gc
import json
import os
import tempfile
import threading
import unittest

import sonde
from sonde import _sonde


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


if __name__ == "__main__":
    unittest.main(verbosity=1)
