# SPDX-License-Identifier: GPL-2.0-only
"""scripts/bench-picture: the bars and the tables show what bench.json says."""

import json
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
PAGES = ("#ffffff", "#0d1117")  # of GitHub, light and dark
MACHINE = {"cpu": "Some <CPU>", "cores": 2, "l2_kb": 1024, "kernel": "6.18", "date": "2026-11-22T22:00:00Z", "rounds": 4,
           "loads": 3, "load_before": "0.50 1 1", "load_after": "1.25 1 1"}
DOCUMENT = "".join(f"before {name}\n<!-- {name} -->\nold\n<!-- end of {name} -->\n" for name in ("machine", "rows", "goals"))


def entry(name, least, **more):
    program = name.partition("/")[2] or "weir"
    return {"id": name, "what": "some & hosts", "program": program, "net_ns_min": least, "net_ns_median": 2 * least,
            **more}


def rows(own, reached):
    goal = {"goal": "<= 0.5 kernel-hash", "minima": own / 80, "medians": own / 70, "reached": reached}
    return [entry("hosts-1m", own, goals=[goal]),
            entry("hosts-1m/kernel-hash", 80, ratio_to_peer=own / 80, ratio_to_peer_median=own / 70),
            entry("hosts-1m/floor-filter", 10, ratio_to_peer=own / 10, ratio_to_peer_median=own / 9),
            {"id": "overlay-1m", "what": "many", "program": "weir", "refused": "no room for 'X'",
             "goals": [{"goal": "<= 1 kernel-hash", "reached": None}]}]


@pytest.fixture(name="drawn")
def drawn_of_runs(tmp_path):
    """drawn(ROWS, …) gives picture and document of such runs."""

    def drawn(*runs):
        (tmp_path / "benchmarks.md").write_text(DOCUMENT)
        for i, run in enumerate(runs):
            (tmp_path / f"{i}.json").write_text(json.dumps({"machine": MACHINE, "rows": run}))
        subprocess.run([ROOT / "scripts/bench-picture", "-o", tmp_path, *(tmp_path / f"{i}.json" for i in range(len(runs)))],
                       check=True, timeout=60)
        return (tmp_path / "benchmarks.svg").read_text(), (tmp_path / "benchmarks.md").read_text()

    return drawn


def test_bars_have_the_lengths_of_the_times(drawn):
    svg, _ = drawn(rows(40, True))
    bars = [float(rect.get("width")) for rect in xml.etree.ElementTree.fromstring(svg).iter(f"{SVG}rect")]
    assert bars == [bars[1] / 2, bars[1], bars[1] / 8]
    words = [text.text for text in xml.etree.ElementTree.fromstring(svg).iter(f"{SVG}text")]
    assert "80 ns, 2.00 × Weir" in words and "hosts-1m: some & hosts" in words


@pytest.mark.parametrize("name", ["hosts-1m", "overlay-100k"])
def test_a_row_without_a_peer_to_compare_has_no_bar(drawn, name):
    svg, _ = drawn([entry(name, 40), entry(f"{name}/linear", 80, ratio_to_peer=0.5, ratio_to_peer_median=0.5)])
    assert "<rect" not in svg


def test_the_same_input_gives_the_same_bytes(drawn):
    assert drawn(rows(40, True)) == drawn(rows(40, True)) != drawn(rows(41, True))


def light(colour):
    channels = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_are_legible_on_light_and_dark_pages(drawn):
    svg, _ = drawn(rows(40, True))
    colours = set(re.findall(r'fill="(#[0-9a-f]{6})"', svg))
    assert len(colours) == 4
    for colour in colours:
        for page in PAGES:  # WCAG 2.1, 1.4.11
            low, high = sorted((light(colour), light(page)))
            assert (high + 0.05) / (low + 0.05) >= 3, (colour, page)


def test_nothing_is_loaded_from_elsewhere(drawn):
    svg, _ = drawn(rows(40, True))
    assert re.findall(r"https?://[^\"]*", svg) == ["http://www.w3.org/2000/svg"]
    assert "font-face" not in svg and "href" not in svg


def test_tables_have_ratios_goals_and_refusals(drawn):
    _, document = drawn(rows(40, False))
    assert "| `hosts-1m`: some & hosts | 40.0 / 80.0 | kernel-hash 0.50 / 0.57, floor-filter 4.00 / 4.44 | 0 of 1 |" in document
    assert "| `hosts-1m` | ≤ 0.5 kernel-hash | 0.5 | 0.571 |" in document
    assert "| `overlay-1m`: many | refused: no room for 'X' | | 0 of 1 |" in document
    assert "| `overlay-1m` | ≤ 1 kernel-hash | not measured | not measured |" in document
    assert "Some <CPU>, 2 CPUs, 1024 kB L2, Linux 6.18, 2026-11-22; 1 run, 3 loads of 4 rounds each" in document
    assert "old" not in document and document.startswith("before machine\n")


def test_a_goal_that_is_reached_is_not_listed_as_missed(drawn):
    _, document = drawn(rows(40, True))
    assert "| `hosts-1m` | ≤" not in document and "| 1 of 1 |" in document


def test_of_several_runs_the_median_counts_and_each_must_reach_the_goal(drawn):
    _, document = drawn(rows(40, True), rows(50, False), rows(90, False))
    assert "| 50.0 / 100.0 |" in document
    assert "| `hosts-1m` | ≤ 0.5 kernel-hash | 0.625 | 0.714 | 1 |" in document
    assert "3 runs" in document


def test_a_document_without_markers_is_refused(tmp_path):
    (tmp_path / "benchmarks.md").write_text("nothing\n")
    (tmp_path / "b.json").write_text(json.dumps({"machine": MACHINE, "rows": rows(1, True)}))
    done = subprocess.run([ROOT / "scripts/bench-picture", "-o", tmp_path, tmp_path / "b.json"], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 1 and "<!-- machine -->" in done.stderr
