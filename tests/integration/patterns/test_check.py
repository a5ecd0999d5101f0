"""The comparison of tests/gpu/patterns/check.py itself: it must see what is missed, wrong, or of another object."""

import contextlib
import io
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(sys.argv[1])))
sys.dont_write_bytecode = True

import check  # noqa: E402  (found through the line above)

RULES = ["memory.leak", "memory.dead_write"]


def finding(rule, verdict="violation", **evidence):
    return {"rule": rule, "verdict": verdict, "message": "", "reason": "why",
            "evidence": [{"name": name, "value": value} for name, value in evidence.items()]}


def compared(wanted, *findings, printed=(("a", 512, 0),), allocations=((512, 8),)):
    names = check.Names({"objects": [{"name": name, "address": address, "life": life}
                                     for name, address, life in printed]}, list(allocations))
    result = check.compare([{"rule": rule, **({"object": name} if name else {})} for rule, name in wanted], RULES,
                           {"findings": list(findings)}, names)
    return {kind: [(entry["rule"], entry.get("object")) for entry in entries] for kind, entries in result.items()
            if entries}


class Compare(unittest.TestCase):
    def test_a_finding_of_the_expected_rule_and_object_is_right(self):
        self.assertEqual(compared([("memory.leak", "a")], finding("memory.leak", object=1, address=512)),
                         {"right": [("memory.leak", "a")]})

    def test_what_is_not_found_is_missed(self):
        self.assertEqual(compared([("memory.leak", "a")]), {"missed": [("memory.leak", "a")]})

    def test_what_is_not_expected_is_wrong(self):
        self.assertEqual(compared([], finding("memory.leak", object=1)), {"wrong": [("memory.leak", "a")]})

    def test_the_same_finding_twice_is_right_once(self):
        twice = [finding("memory.leak", object=1)] * 2
        self.assertEqual(compared([("memory.leak", "a")], *twice),
                         {"right": [("memory.leak", "a")], "wrong": [("memory.leak", "a")]})

    def test_another_rule_or_object_is_both_missed_and_wrong(self):
        self.assertEqual(compared([("memory.leak", "a")], finding("memory.dead_write", object=1)),
                         {"missed": [("memory.leak", "a")], "wrong": [("memory.dead_write", "a")]})

    def test_the_second_life_of_an_address_is_another_object(self):
        printed, allocations = (("a", 512, 0), ("b", 512, 1)), ((512, 8), (512, 8))
        self.assertEqual(compared([("memory.leak", "b")], finding("memory.leak", object=2), printed=printed,
                                  allocations=allocations), {"right": [("memory.leak", "b")]})
        self.assertEqual(compared([("memory.leak", "b")], finding("memory.leak", object=1), printed=printed,
                                  allocations=allocations),
                         {"missed": [("memory.leak", "b")], "wrong": [("memory.leak", "a")]})

    def test_a_life_before_the_program_is_the_runtimes(self):
        self.assertEqual(compared([], finding("memory.leak", object=1), allocations=((512, 8), (512, 8))),
                         {"foreign": [("memory.leak", "")]})
        self.assertEqual(compared([("memory.leak", "a")], finding("memory.leak", object=2),
                                  allocations=((512, 8), (512, 8))), {"right": [("memory.leak", "a")]})

    def test_an_object_of_an_unknown_address_is_not_the_programs(self):
        self.assertEqual(compared([], finding("memory.leak", object=1, address=1024)),
                         {"foreign": [("memory.leak", "")]})

    def test_where_an_address_had_several_lives_the_number_must_be_that_of_its_allocation(self):
        with self.assertRaises(check.Failed):
            compared([], finding("memory.leak", object=3, address=512), allocations=((512, 8), (512, 8), (1024, 8)))

    def test_a_rule_that_could_not_look_is_blind(self):
        self.assertEqual(compared([("memory.leak", "a")], finding("memory.leak", "unsupported")),
                         {"missed": [("memory.leak", "a")], "blind": [("memory.leak", None)]})

    def test_findings_of_other_rules_count_neither_way(self):
        self.assertEqual(compared([], finding("memory.peak")), {"others": [("memory.peak", None)]})

    def test_a_finding_that_is_ok_is_none(self):
        self.assertEqual(compared([], finding("memory.leak", "ok")), {})


class Rates(unittest.TestCase):
    def test_three_right_one_missed_two_wrong(self):
        rule = {"rule": "memory.leak"}
        rows = check.rates([{"right": [rule] * 3, "missed": [rule], "wrong": [rule, rule]}])
        self.assertEqual([row["rule"] for row in rows], ["memory.leak", "all"])
        for row in rows:
            self.assertEqual((row["expected"], row["found"]), (4, 5))
            self.assertEqual((row["precision"], row["recall"]), (3 / 5, 3 / 4))

    def test_nothing_found_has_no_precision(self):
        rows = check.rates([{"right": [], "missed": [{"rule": "memory.leak"}], "wrong": []}])
        self.assertEqual((rows[0]["precision"], rows[0]["recall"]), (None, 0))


class Captures(unittest.TestCase):
    def test_a_folder_without_captures_fails(self):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            sys.argv[1:] = ["--sonde", "sonde", "--captures", "no-such-folder", "--only", "leak"]
            code = check.main()
        self.assertEqual(code, 1)
        self.assertIn("0 of 2 captures as expected", out.getvalue())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
