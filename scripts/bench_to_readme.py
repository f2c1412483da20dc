#!/usr/bin/env python3
"""Writes the benchmark section of the README from a run of offload-bench.

    offload-bench --models small,medium,large --json benchmarks/results/h200.json \\
                  --pictures benchmarks/results
    scripts/bench_to_readme.py

The section lies between two comments, <!-- benchmark:begin --> and <!-- benchmark:end -->; all
else is left as it is. Pictures are those that the same run drew: each carries the run's date, and
one of another run is an error. --check changes nothing and fails where the README differs.
"""

import argparse
import json
import os
import re
import sys
from pathlib import Path

BEGIN = "<!-- benchmark:begin -->"
END = "<!-- benchmark:end -->"

PICTURES = [
    ("step_time", "Time of one step by mode, with the limit marked"),
    ("vram", "GPU memory over weights and gradients by mode"),
    ("timeline", "One streamed step: copies up, optimizer, copies down"),
]

COLUMNS = ["model", "state", "optimizer", "mode", "first step", "step", "step / limit",
           "VRAM allocated / reserved", "pinned / state", "host share"]


class ReadmeError(Exception):
    """What is wrong and what to do, for the user."""


def number(value, decimals, unit="", scale=1.0):
    """A figure that the run has, else a dash."""
    if value is None:
        return "–"
    return f"{value * scale:,.{decimals}f}{unit}"


def memory(row):
    if row["vram_allocated_mib"] is None:
        return "–"
    return f"{row['vram_allocated_mib']:,.0f} / {row['vram_reserved_mib']:,.0f} MiB"


def cells(row):
    return [
        row["model"],
        number(row["state_mib"], 0, " MiB"),
        row["optimizer"],
        row["mode"],
        number(row["first_step_s"], 2, " s"),
        number(row["step_s"], 1, " ms", 1e3),
        number(row["step_over_limit"], 3),
        memory(row),
        number(row["pinned_over_state"], 4),
        number(row["host_share"], 1, " %", 100),
    ]


def table(rows):
    lines = [COLUMNS, ["---"] * 4 + ["---:"] * (len(COLUMNS) - 4)]
    lines += [cells(row) for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def extras(rows):
    """What only some rows were asked for."""
    lines = []
    for row in rows:
        what = f"{row['model']}, {row['optimizer']}, {row['mode']}"
        soak = row.get("soak")
        if soak:
            lines.append(
                f"- {what}: over {soak['steps']:,} steps reserved VRAM went from "
                f"{soak['vram_reserved_before_mib']:,.1f} to {soak['vram_reserved_after_mib']:,.1f}"
                f" MiB, host memory from {soak['host_before_mib']:,.1f} to "
                f"{soak['host_after_mib']:,.1f} MiB.")
        if row.get("save_extra_vram_mib") is not None:
            lines.append(f"- {what}: `save()` took {row['save_extra_vram_mib']:,.1f} MiB of VRAM.")
    return "\n".join(lines)


def run_of_picture(path):
    match = re.search(r"<metadata>run ([^<]*)</metadata>", path.read_text(encoding="utf-8"))
    return match.group(1) if match else None


def pictures(run_file, run, readme):
    """Links to the pictures beside the run, as seen from the README."""
    lines = []
    date = run["environment"]["date"]
    for name, caption in PICTURES:
        path = run_file.with_name(f"{run_file.stem}_{name}.svg")
        if not path.exists():
            raise ReadmeError(f"{path} is missing; run offload-bench with --pictures "
                              f"{run_file.parent} as well as --json")
        if run_of_picture(path) != date:
            raise ReadmeError(f"{path} is of the run {run_of_picture(path)}, and {run_file} of "
                              f"{date}; take both from one run")
        link = os.path.relpath(path, readme.parent).replace(os.sep, "/")
        lines.append(f"![{caption}]({link})")
    trace = run_file.with_name(f"{run_file.stem}_trace.json")
    if trace.exists():
        link = os.path.relpath(trace, readme.parent).replace(os.sep, "/")
        lines.append(f"The same step as a trace for [Perfetto](https://ui.perfetto.dev): "
                     f"[{trace.name}]({link}).")
    return "\n\n".join(lines)


def section(run_file, run, readme):
    env = run["environment"]
    settings = run["settings"]
    link = run["link"]
    if env.get("simulated", False):
        raise ReadmeError(f"{run_file} is of a simulated run, whose times mean nothing; run "
                          "offload-bench on a CUDA machine")
    if not run["rows"]:
        raise ReadmeError(f"{run_file} has no rows; run offload-bench again")
    head = (f"{env['gpu']}, driver {env['driver']}, LibTorch {env['torch']}, {env['date'][:10]}. "
            f"The link in the same run: {number(link['h2d_gb_per_s'], 1)} GB/s up alone, "
            f"{number(link['d2h_gb_per_s'], 1)} GB/s down alone, "
            f"{number(link['both_gb_per_s_each_way'], 1)} GB/s each way at once. "
            f"Pieces of {settings['piece_mib']} MiB, {settings['slots']} slots; medians of "
            f"{settings['steps']} steps.")
    foot = ("*step / limit*: streamed against the link with the same bytes both ways at once; "
            "all-at-once and sequential against copying up alone, the plain step, and copying "
            "down alone. *VRAM*: peak over weights and gradients, first step included.")
    parts = [head, table(run["rows"]), foot, extras(run["rows"]), pictures(run_file, run, readme)]
    return "\n\n".join(part for part in parts if part)


def replace_section(text, body, readme):
    for mark in (BEGIN, END):
        if text.count(mark) != 1:
            raise ReadmeError(f"{readme} has {text.count(mark)} times {mark}; it needs one")
    head, rest = text.split(BEGIN)
    if END not in rest:
        raise ReadmeError(f"{readme} has {END} before {BEGIN}; swap them")
    tail = rest.split(END)[1]
    return f"{head}{BEGIN}\n\n{body}\n\n{END}{tail}"


def main(argv=None):
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", nargs="?", type=Path,
                        default=root / "benchmarks" / "results" / "h200.json")
    parser.add_argument("--readme", type=Path, default=root / "README.md")
    parser.add_argument("--check", action="store_true", help="change nothing; fail on a difference")
    args = parser.parse_args(argv)
    try:
        run = json.loads(args.run.read_text(encoding="utf-8"))
        text = args.readme.read_text(encoding="utf-8")
        new = replace_section(text, section(args.run, run, args.readme), args.readme)
    except (OSError, ValueError, KeyError, ReadmeError) as error:
        what = f"{args.run} lacks {error}" if isinstance(error, KeyError) else error
        print(f"bench_to_readme: {what}", file=sys.stderr)
        return 1
    if args.check:
        if new != text:
            print(f"bench_to_readme: {args.readme} does not say what {args.run} says; "
                  "run scripts/bench_to_readme.py", file=sys.stderr)
            return 1
        return 0
    args.readme.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
