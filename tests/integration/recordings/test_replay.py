"""What replaying the recordings must give: valid JSON of a stated shape, the same bytes twice, no loss, true sums."""

import json
import pathlib
import subprocess
import sys
import unittest

SONDE, DATA, SCRIPT = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
RECORDINGS = ("pytorch_train", "pytorch_graph", "cuda_streams", "triton_kernels", "fork_exec")


def sonde(*arguments):
    result = subprocess.run([SONDE, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{arguments}: {result.returncode}\n{result.stderr}"
    return result.stdout


def rows(report, name):
    table = report["tables"][name]
    names = [column["name"] for column in table["columns"]]
    return [dict(zip(names, row)) for row in table["rows"]]


class Replay(unittest.TestCase):
    def test_json_has_its_shape_and_repeats_to_the_byte(self):
        for name in RECORDINGS:
            with self.subTest(name):
                arguments = ("replay", DATA / name, "-p", "workload", "-s", SCRIPT, "--format", "json")
                first = sonde(*arguments)
                self.assertEqual(first, sonde(*arguments))
                report = json.loads(first)
                self.assertIsInstance(report["tables"], dict)
                self.assertIsInstance(report["findings"], list)
                self.assertIsInstance(report["losses"], dict)
                self.assertEqual(report["losses"]["records"], 0)

    def test_kernels_add_up(self):
        for name, kernels in (("pytorch_train", 3262), ("pytorch_graph", 4085), ("triton_kernels", 181)):
            with self.subTest(name):
                report = json.loads(sonde("replay", DATA / name, "-p", "workload", "--format", "json"))
                table = rows(report, "workload.kernels")
                self.assertEqual(sum(row["count"] for row in table), kernels)
                for row in table:
                    self.assertLessEqual(row["min"], row["p50"])
                    self.assertLessEqual(row["p50"], row["p99"])
                    self.assertLessEqual(row["p99"], row["max"])
                    self.assertAlmostEqual(row["mean"] * row["count"], row["total"], delta=row["count"])

    def test_the_report_agrees_with_the_records(self):
        records = [json.loads(line) for line in sonde("dump", DATA / "cuda_streams", "--format", "json").splitlines()]
        copies = [record for record in records if record["space"] == "sonde.device" and record["type"] == "copy"]
        report = json.loads(sonde("replay", DATA / "cuda_streams", "-p", "workload", "--format", "json"))
        table = rows(report, "workload.copies")
        self.assertEqual(sum(row["count"] for row in table), len(copies))
        self.assertEqual(sum(row["bytes"] for row in table), sum(record["fields"]["bytes"] for record in copies))

    def test_graph_nodes_carry_their_graph(self):
        records = [json.loads(line) for line in sonde("dump", DATA / "cuda_streams", "--format", "json").splitlines()]
        nodes = {}
        for record in records:
            fields = record["fields"]
            if record["space"] == "sonde.device" and fields.get("graph_exec"):
                nodes.setdefault((fields["graph_exec"], fields["graph_node"]), []).append(fields["correlation"])
        self.assertGreater(len(nodes), 0)
        for launches in nodes.values():
            self.assertEqual(len(launches), 20, "each node once for each of 20 launches")
            self.assertEqual(len(set(launches)), 20)

    def test_doctor_calls_them_complete(self):
        for name in RECORDINGS:
            with self.subTest(name):
                result = subprocess.run([SONDE, "doctor", str(DATA / name), "--format", "json"], capture_output=True, text=True, check=False)
                report = json.loads(result.stdout)
                self.assertTrue(all(source["complete"] for source in report["sources"]))

    def test_other_formats(self):
        sarif = json.loads(sonde("replay", DATA / "pytorch_train", "-p", "workload", "--format", "sarif"))
        self.assertEqual(sarif["version"], "2.1.0")
        csv = sonde("replay", DATA / "pytorch_train", "-p", "workload", "--format", "csv")
        self.assertIn("# workload.kernels", csv)
        text = sonde("replay", DATA / "pytorch_train", "-p", "workload")
        self.assertIn("Losses", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
