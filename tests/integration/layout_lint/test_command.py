"""`sonde layout lint` from outside: formats, counts, exit statuses, and the example configuration."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SONDE = SOURCE = None


def run(*arguments, cwd=None):
    return subprocess.run([SONDE, *arguments], capture_output=True, text=True, timeout=60, cwd=cwd)


def sample(name):
    return os.path.join(SOURCE, "tests", "data", "layouts", "ttgir", name)


def rows(report, table):
    names = [column["name"] for column in report["tables"][table]["columns"]]
    return [dict(zip(names, row)) for row in report["tables"][table]["rows"]]


# One warp stores rows of 32 words, all in the same banks; memory_test.cpp has the calculation: 224 wavefronts lost.
CONFLICTS = """#rows = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [32, 1], warpsPerCTA = [1, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 1 : i32, ttg.target = "cuda:90"} {
  tt.func public @rows(%v: tensor<32x32xf32, #rows>) {
    %m = ttg.local_alloc %v : (tensor<32x32xf32, #rows>) -> !ttg.memdesc<32x32xf32, #shared, #smem> loc("rows.py":7:4)
    tt.return
  }
}
"""


class Lint(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.conflicts = os.path.join(self.folder, "conflicts.ttgir")
        with open(self.conflicts, "w") as file:
            file.write(CONFLICTS)

    def test_json_begins_with_the_counts(self):
        done = run("layout", "lint", "--format", "json", sample("matmul_hopper.ttgir"))
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual(list(report)[:2], ["sites", "unparsed"])
        # 2 loads, 2 local_alloc with a value, 1 product, 1 conversion, 1 store: counted in the file.
        self.assertEqual(report["sites"], 7)
        self.assertEqual(report["unparsed"], 0)
        self.assertEqual(len(rows(report, "layout.sites")), 7)
        self.assertEqual(rows(report, "layout.summary")[0]["sites"], 7)

    def test_findings_have_their_source_line_in_sarif(self):
        done = run("layout", "lint", "--format", "sarif", self.conflicts)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)["runs"][0]["results"]
        found = [result for result in results if result["ruleId"] == "layout.bank_conflicts"]
        self.assertEqual(len(found), 1)
        place = found[0]["locations"][0]["physicalLocation"]
        self.assertTrue(place["artifactLocation"]["uri"].endswith("rows.py"))
        self.assertEqual(place["region"]["startLine"], 7)

    def test_conflicts_fail_when_asked_to(self):
        self.assertEqual(run("layout", "lint", "--fail-on", "warning", self.conflicts).returncode, 1)
        tolerant = run("layout", "lint", "--fail-on", "warning", "--set", "least_conflicts=225", self.conflicts)
        self.assertEqual(tolerant.returncode, 0, tolerant.stderr)

    def test_folders_are_searched_and_what_is_no_module_is_counted(self):
        with open(os.path.join(self.folder, "broken.ttgir"), "w") as file:
            file.write("module {\n  tt.func @f( {\n")
        done = run("layout", "lint", "--format", "json", self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["sites"], report["unparsed"]), (1, 1))
        refused = [finding for finding in report["findings"] if finding["rule"] == "layout.readable"]
        self.assertEqual(refused[0]["verdict"], "unsupported")
        self.assertIn("broken.ttgir:", refused[0]["reason"])

    def test_text_and_csv_name_the_site(self):
        for form in ("text", "csv"):
            done = run("layout", "lint", "--format", form, self.conflicts)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("ttg.local_alloc", done.stdout)

    def test_wrong_command_lines_say_so(self):
        missing = run("layout", "lint", os.path.join(self.folder, "none.ttgir"))
        self.assertEqual(missing.returncode, 3)
        self.assertIn("no such file", missing.stderr)
        self.assertEqual(run("layout", "lint").returncode, 2)
        wrong = run("layout", "lint", "--set", "least_vector_bit=1", self.conflicts)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("least_vector_bit", wrong.stderr)

    def test_everything_of_the_samples_has_a_plan(self):
        done = run("layout", "lint", "--format", "json", os.path.dirname(sample("x")))
        report = json.loads(done.stdout)
        self.assertEqual((report["unparsed"], report["unsupported"]), (0, 0))
        conversions = [row for row in rows(report, "layout.sites") if row["operation"] == "ttg.convert_layout"]
        self.assertTrue(conversions)
        self.assertTrue(all(row["plan"] for row in conversions))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sonde", required=True)
    parser.add_argument("--source", required=True)
    options, rest = parser.parse_known_args()
    SONDE, SOURCE = options.sonde, options.source
    unittest.main(argv=[sys.argv[0], *rest])
