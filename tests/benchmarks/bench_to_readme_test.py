"""Tests of scripts/bench_to_readme.py; takes the script's folder as its argument."""

import contextlib
import copy
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, sys.argv.pop(1))
import bench_to_readme  # noqa: E402

DATE = "2030-01-02T03:04:05Z"

ROW = {
    "model": "small", "optimizer": "AdamW", "mode": "streamed", "state_mib": 1383.2,
    "first_step_s": 0.5, "step_s": 0.0321, "step_over_limit": 1.0456, "vram_allocated_mib": 192.0,
    "vram_reserved_mib": 194.0, "pinned_over_state": 1.0012, "host_share": 0.123, "soak": None,
    "save_extra_vram_mib": None,
}

RUN = {
    "environment": {"gpu": "A GPU", "driver": "1.2", "torch": "2.11.0", "date": DATE,
                    "simulated": False},
    "settings": {"piece_mib": 64, "slots": 3, "steps": 10},
    "link": {"h2d_gb_per_s": 55.0, "d2h_gb_per_s": 54.0, "both_gb_per_s_each_way": 49.9},
    "rows": [ROW],
}


class BenchToReadme(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "results").mkdir()
        self.readme = self.root / "README.md"
        self.readme.write_text(f"before\n{bench_to_readme.BEGIN}\nold\n{bench_to_readme.END}\nafter\n",
                               encoding="utf-8")
        self.run_file = self.root / "results" / "h200.json"
        self.write_run(RUN)
        for name, _ in bench_to_readme.PICTURES:
            self.write_picture(name, DATE)

    def write_run(self, run):
        self.run_file.write_text(json.dumps(run), encoding="utf-8")

    def write_picture(self, name, date):
        path = self.root / "results" / f"h200_{name}.svg"
        path.write_text(f"<svg><metadata>run {date}</metadata></svg>", encoding="utf-8")

    def call(self, *extra):
        self.errors = io.StringIO()
        with contextlib.redirect_stderr(self.errors):
            return bench_to_readme.main([str(self.run_file), "--readme", str(self.readme), *extra])

    def test_writes_only_its_section(self):
        self.assertEqual(self.call(), 0)
        text = self.readme.read_text(encoding="utf-8")
        self.assertTrue(text.startswith("before\n"))
        self.assertTrue(text.endswith("after\n"))
        self.assertNotIn("old", text)
        self.assertIn("| small | 1,383 MiB | AdamW | streamed | 0.50 s | 32.1 ms | 1.046 | "
                      "192 / 194 MiB | 1.0012 | 12.3 % |", text)
        self.assertIn("](results/h200_timeline.svg)", text)

    def test_again_changes_nothing_and_check_agrees(self):
        self.assertEqual(self.call("--check"), 1)
        self.call()
        first = self.readme.read_text(encoding="utf-8")
        self.assertEqual(self.call("--check"), 0)
        self.call()
        self.assertEqual(self.readme.read_text(encoding="utf-8"), first)

    def test_absent_figures_are_dashes(self):
        run = copy.deepcopy(RUN)
        run["rows"][0].update(step_over_limit=None, vram_allocated_mib=None, host_share=None)
        self.write_run(run)
        self.assertEqual(self.call(), 0)
        self.assertIn("| 32.1 ms | – | – | 1.0012 | – |", self.readme.read_text(encoding="utf-8"))

    def assert_refused(self, words):
        before = self.readme.read_text(encoding="utf-8")
        self.assertEqual(self.call(), 1)
        self.assertIn(words, self.errors.getvalue())
        self.assertEqual(self.readme.read_text(encoding="utf-8"), before)

    def test_refuses_simulated_runs(self):
        run = copy.deepcopy(RUN)
        run["environment"]["simulated"] = True
        self.write_run(run)
        self.assert_refused("simulated")

    def test_refuses_pictures_of_another_run(self):
        self.write_picture("vram", "2029-01-01T00:00:00Z")
        self.assert_refused("h200_vram.svg is of the run 2029")

    def test_refuses_missing_pictures(self):
        (self.root / "results" / "h200_timeline.svg").unlink()
        self.assert_refused("h200_timeline.svg is missing")

    def test_refuses_a_readme_without_the_section(self):
        self.readme.write_text("nothing\n", encoding="utf-8")
        self.assert_refused("benchmark:begin")

    def test_refuses_a_run_that_lacks_a_figure(self):
        run = copy.deepcopy(RUN)
        del run["rows"][0]["step_s"]
        self.write_run(run)
        self.assert_refused("step_s")


if __name__ == "__main__":
    unittest.main()
