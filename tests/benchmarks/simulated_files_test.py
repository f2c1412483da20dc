"""Looks at what a simulated run of offload-bench wrote; takes its JSON file as the argument."""

import json
import sys
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

RUN_FILE = Path(sys.argv.pop(1))
KEYS = ["model", "mode", "optimizer", "first_step_s", "step_s", "step_over_limit",
        "vram_allocated_mib", "vram_reserved_mib", "pinned_over_state", "host_share"]


def beside(name):
    return RUN_FILE.with_name(f"{RUN_FILE.stem}_{name}")


class SimulatedFiles(unittest.TestCase):
    def setUp(self):
        self.run_ = json.loads(RUN_FILE.read_text(encoding="utf-8"))

    def test_every_mode_of_every_optimizer_has_a_row(self):
        rows = {(row["optimizer"], row["mode"]) for row in self.run_["rows"]}
        self.assertEqual(rows, {(optimizer, mode)
                                for optimizer in ("AdamW", "FusedAdamW", "SGD", "Muon")
                                for mode in ("resident", "all-at-once", "sequential", "streamed")})
        for row in self.run_["rows"]:
            for key in KEYS:
                self.assertIn(key, row)
            self.assertGreater(row["step_s"], 0)

    def test_offloaded_rows_say_what_they_moved(self):
        for row in self.run_["rows"]:
            if row["mode"] == "resident":
                self.assertIsNone(row["pinned_over_state"])
                continue
            self.assertGreaterEqual(row["pinned_over_state"], 1)
            self.assertGreater(row["h2d_gb_per_s"], 0)
            self.assertEqual(row["soak"]["host_before_mib"], row["soak"]["host_after_mib"])
            if row["mode"] != "all-at-once":
                self.assertGreater(row["pieces"], 1)

    def test_all_is_marked_simulated(self):
        self.assertTrue(self.run_["environment"]["simulated"])
        self.assertEqual(self.run_["environment"]["gpu"], "SIMULATED")
        for name in ("step_time.svg", "vram.svg", "timeline.svg"):
            self.assertIn("SIMULATED", beside(name).read_text(encoding="utf-8"), name)

    def test_pictures_are_xml(self):
        for name in ("step_time.svg", "vram.svg", "timeline.svg"):
            self.assertTrue(xml.parse(beside(name)).getroot().tag.endswith("svg"), name)

    def test_trace_has_the_lanes_of_a_step(self):
        trace = json.loads(beside("trace.json").read_text(encoding="utf-8"))
        lanes = {event["cat"] for event in trace["traceEvents"] if event["ph"] == "X"}
        self.assertEqual(lanes, {"H2D", "step", "D2H"})


if __name__ == "__main__":
    unittest.main()
