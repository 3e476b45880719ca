"""What the benchmark makes of its measurements: means, promises, comparisons, files, pictures."""

import csv
import dataclasses
import io
import itertools
import json
import math
import sys

import pytest

from convcore.bench import measuring, progress, promises, records, results, tables
from convcore.bench.layers import FORMATS, PASSES, parse_layer
from convcore.bench.page import as_page
from convcore.bench.promises import EXPECTED, MARGIN
from convcore.bench.results import Cell, Outcome, Request
from convcore.bench.suites import SUITES, SWEEPS

DENSE, OTHER = "1,2,5,5,3,3", "1,4,5,5,4,3"
GROUPED = "1,4,5,5,4,3,1,1,1,4"
LONG, GROWING = "1d:1,2,9,3,3", "1d transposed:1,2,9,3,3"
MACHINE = {"cpu": "some", "date": "2020-02-02"}


def request(*specs, **changes):
    axes = {"layers": tuple(parse_layer(s) for s in specs or (DENSE,)), "passes": PASSES}
    rest = {"formats": FORMATS, "threads": (1,), "peers": ("torch",), "rounds": 3}
    return Request(**{**axes, **rest, **changes})


def timed(ours, theirs, spec=DENSE, peer="torch", **axes):
    """A cell whose three rounds took the same time each, or the times given."""
    axes = {"pass_name": "forward", "format": "contiguous", "threads": 1, **axes}
    layer = axes.pop("layer", None) or parse_layer(spec)
    seconds = {
        name: list(times) if isinstance(times, tuple) else [times] * 3
        for name, times in {"convcore": ours, peer: theirs}.items()
        if times
    }
    errors = dict.fromkeys(seconds, 0.5)
    return Cell(layer, **axes, errors=errors, seconds=seconds, algorithm="im2col")


def test_real_layers_are_compared_by_kind_and_the_slowest_are_listed():
    cells = [timed(1.0, 4.0, LONG), timed(2.0, 1.0, GROWING), timed(1.0, 3.0)]
    asked = request(LONG, GROWING, DENSE, suites=("real",))
    by_kind = {m.kind: m.value for m in results.means(Outcome(cells), asked)}
    assert [by_kind[kind] for kind in ("1-d", "transposed", "2-d")] == pytest.approx([4, 0.5, 3])
    _, rows = tables.slowest_cells(Outcome(cells), asked)
    assert [row[2] for row in rows] == ["0.50", "3.00", "4.00"]
    assert GROWING in rows[0][1]
    assert rows[0][4] == "im2col"
    assert "1-d" not in {m.kind for m in results.means(Outcome(cells), request(LONG, DENSE))}


# --- record ---------------------------------------------------------------------------------------


def test_means_are_of_all_cells_and_by_kind():
    dense, slow = timed(1.0, 8.0), timed(2.0, 1.0, OTHER)
    grouped = timed(1.0, 4.0, GROUPED)
    outcome = Outcome([dense, slow, grouped])
    by_kind = {m.kind: m for m in results.means(outcome, request(DENSE, OTHER, GROUPED))}
    assert by_kind["all cells"].value == pytest.approx(16 ** (1 / 3))
    assert by_kind["all cells"].cells == 3
    assert by_kind["dense layers"].value == pytest.approx(2.0)
    assert by_kind["grouped and depthwise"].value == pytest.approx(4.0)
    assert by_kind["all cells"].share == pytest.approx(2 / 3)
    assert "channels_last" not in by_kind  # nothing was measured there
    assert by_kind["all cells"].worst == 0.5
    assert by_kind["all cells"].worst_cell == slow.name


def test_better_formats_are_paired_by_round():
    # The machine is ten times slower in the second round; each side has another better format.
    contiguous = timed((4.0, 40.0, 4.0), (6.0, 60.0, 6.0))
    last = timed((2.0, 20.0, 2.0), (7.0, 70.0, 7.0), format="channels_last")
    (ratio,) = results.better_ratios(Outcome([contiguous, last]), "torch")
    assert (ratio.ours, ratio.theirs) == (last, contiguous)
    assert ratio.quartiles == measuring.Quartiles(3.0, 3.0, 3.0)


def test_better_format_of_a_peer_that_has_one():
    contiguous = timed(4.0, 6.0)
    last = timed(2.0, None, format="channels_last")
    (ratio,) = results.better_ratios(Outcome([contiguous, last]), "torch")
    assert ratio.quartiles.median == 3.0
    assert ratio.name.endswith("channels_last, 1 thread beside contiguous")


def test_better_formats_of_an_interrupted_group_are_paired_as_far_as_they_go():
    contiguous = timed((4.0, 4.0), (6.0, 6.0))
    last = timed((2.0,), (7.0,), format="channels_last")
    (ratio,) = results.better_ratios(Outcome([contiguous, last]), "torch")
    assert ratio.quartiles == measuring.Quartiles(3.0, 3.0, 3.0)


def test_small_cells_are_a_table_of_their_own():
    large, small = timed(10e-6, 51e-6), timed(10e-6, 49e-6, OTHER)
    outcome = Outcome([large, small])
    assert (large.small, small.small) == (False, True)
    assert [ratio.ours for ratio in results.ratios(outcome, "torch")] == [large]
    assert [ratio.ours for ratio in results.better_ratios(outcome, "torch")] == [large]
    # Only PyTorch's time says so.
    assert not timed(10e-6, 49e-6, peer="numpy").small


def test_wrong_cell_has_no_ratio():
    cell = timed(1.0, 8.0)
    cell.errors["convcore"] = 50.0
    assert cell.ratio("torch") is None
    assert results.ratios(Outcome([cell]), "torch") == []


def test_speed_is_by_the_definition_and_beside_the_peak():
    cell = timed(1e-6, 1e-3)
    flops = 2 * 1 * 3 * 3 * 3 * 2 * 9
    assert cell.gflops == pytest.approx(flops / 1e3)
    outcome = Outcome([cell], peaks={1: {"float32": 2 * cell.gflops}})
    assert outcome.percent_of_peak(cell) == pytest.approx(50.0)
    assert math.isnan(Outcome([cell]).percent_of_peak(cell))


def test_verdict_is_plain():
    right, wrong = timed(1.0, 8.0), timed(1.0, 8.0)
    wrong.errors["convcore"] = math.inf
    assert results.verdict(Outcome([right])).startswith("All 2 results agree")
    assert results.verdict(Outcome([right, wrong])) == "WRONG: 1 of 2 cells have a wrong result."
    assert results.verdict(Outcome()) == "No result was checked."


def test_record_is_json_even_of_infinite_errors():
    cell = timed(1.0, 8.0)
    cell.errors["convcore"] = math.inf
    text = json.dumps(records.as_data(Outcome([cell]), request(), MACHINE), allow_nan=False)
    assert json.loads(text)["cells"][0]["error_in_eps"] == {"convcore": None, "torch": 0.5}


# --- promises -------------------------------------------------------------------------------------


def of_table(ratio, **axes):
    """All cells of the suite table, both formats and passes, each with one ratio to PyTorch."""
    return [
        timed(1e-3, 1e-3 * ratio, layer=layer, pass_name=name, format=form, **axes)
        for layer, name, form in itertools.product(SUITES["table"], PASSES, FORMATS)
    ]


def judged(cells, **changes):
    asked = request(suites=("table",), **changes)
    found = promises.promises(Outcome(cells), asked)
    return {promise.text: promise for promise in found}


def broken(found):
    return [text for text, promise in found.items() if not promise.kept]


def test_promises_on_the_table_are_kept_at_their_limits():
    found = judged(of_table(1.61))
    assert broken(found) == []
    assert sum("geometric mean" in text for text in found) == 2
    assert sum("3x3, stride 1" in text for text in found) == 3
    assert broken(judged(of_table(1.59))) == [
        text for text in found if text.startswith("PyTorch, forward of 3x3")
    ]
    assert len(broken(judged(of_table(1.45)))) == 3
    assert len(broken(judged(of_table(0.89)))) == 6


def test_promise_on_every_cell_allows_for_noise():
    cells = of_table(2.0)
    cells[0].seconds["torch"] = [0.5e-3, 0.8e-3, 1.2e-3]
    assert cells[0].ratio("torch").median < 0.9 < cells[0].ratio("torch").high
    assert broken(judged(cells)) == []
    cells[0].seconds["torch"] = [0.5e-3, 0.8e-3, 0.9e-3]
    (text,) = broken(judged(cells))
    assert text == f"PyTorch, every cell: cells below, of {len(cells)}"


@pytest.mark.parametrize(
    ("held", "ratio", "kept"),
    [
        ({"isa": "avx2"}, 1.21, True),
        ({"isa": "avx2"}, 1.19, False),
        ({"strict": True}, 0.91, True),
        ({"strict": True}, 0.89, False),
    ],
)
def test_promises_are_lower_where_convcore_is_held(held, ratio, kept):
    found = judged(of_table(ratio), **held)
    assert len(broken(found)) == (0 if kept else 2)
    assert all("geometric mean" in text for text in broken(found))


def test_promises_beside_inference_libraries_are_of_better_formats():
    found = judged(of_table(1.19), peers=("onnxruntime",))
    assert broken(found) == []  # PyTorch's ratios, and nobody asked for PyTorch
    cells = [
        timed(
            t, 1.21e-3 if form == "contiguous" else None, layer=layer, peer="openvino", format=form
        )
        for layer in SUITES["table"]
        for form, t in (("contiguous", 2e-3), ("channels_last", 1e-3))
    ]
    assert broken(judged(cells, peers=("openvino",))) == []
    cells[1].seconds["convcore"] = [9e-3] * 3
    assert len(broken(judged(cells, peers=("openvino",)))) == 1


def test_promise_on_small_cells_is_a_multiple_of_pytorch():
    def small(times, name):
        asked = request(suites=())
        cell = timed(times * 20e-6, 20e-6, pass_name=name)
        return [p.kept for p in promises.promises(Outcome([cell]), asked) if "small" in p.text]

    assert small(1.9, "forward") == small(2.4, "weight_grad") == [True]
    assert small(2.1, "forward") == small(2.6, "input_grad") == [False]


def test_promises_on_errors_are_by_algorithm():
    cells = [timed(1.0, 8.0), timed(1.0, 8.0, OTHER)]
    cells[0].errors["convcore"], cells[0].algorithm = 5.0, "winograd"
    found = promises.promises(Outcome(cells), request())
    assert [(p.value, p.limit, p.kept) for p in found] == [
        ("5.00", "12", True),
        ("0.50", "4", True),
    ]
    cells[1].errors["convcore"] = 5.0
    assert [p.kept for p in promises.promises(Outcome(cells), request())] == [True, False]


def test_promise_on_memory_is_pytorch_s():
    outcome = Outcome(of_table(2.0))
    outcome.workers = {"convcore@1": {"peak_bytes": 3 << 20}, "torch@1": {"peak_bytes": 4 << 20}}
    asked = request(suites=("table",))
    (kept,) = (p for p in promises.promises(outcome, asked) if "memory" in p.text)
    assert (kept.value, kept.limit, kept.kept) == ("3", "4", True)
    outcome.workers["convcore@1"]["peak_bytes"] = 5 << 20
    (kept,) = (p for p in promises.promises(outcome, asked) if "memory" in p.text)
    assert not kept.kept


def test_promise_beside_numpy_has_a_margin_of_two():
    assert set(EXPECTED) == {layer.name for layer in SUITES["quick"]}
    assert MARGIN == 2.0

    def kept(factor):
        cells = [
            timed(
                1.0,
                times * EXPECTED[layer.name],
                layer=layer,
                pass_name=name,
                peer="numpy",
                threads=t,
            )
            for layer, name in itertools.product(SUITES["quick"], PASSES)
            # What more threads give is not judged.
            for t, times in ((1, factor), (2, 0.01))
        ]
        found = promises.promises(Outcome(cells), request(peers=("numpy",)))
        return {p.kept for p in found if p.text.startswith("NumPy")}

    assert kept(0.51) == {True}
    assert kept(0.49) == {False}


# --- compare --------------------------------------------------------------------------------------


def run_of(*ratios, **changes):
    cell = timed(1.0, tuple(ratios))
    return records.as_data(Outcome([cell]), request(**changes), MACHINE)


@pytest.mark.parametrize(
    ("before", "after", "regressed", "improved"),
    [
        ((2.0, 2.0, 2.0), (1.7, 1.7, 1.7), True, False),
        ((2.0, 2.0, 2.0), (1.85, 1.85, 1.85), False, False),  # less than the tolerance
        ((1.5, 2.0, 2.5), (1.4, 1.7, 2.4), False, False),  # ranges overlap
        ((1.7, 1.7, 1.7), (2.0, 2.0, 2.0), False, True),
        ((2.0, 2.0, 2.0), (2.0, 2.0, 2.0), False, False),
    ],
)
def test_regression_is_beyond_noise_and_tolerance(before, after, regressed, improved):
    comparison = records.compare(run_of(*before), run_of(*after))
    assert bool(comparison.regressions) == regressed
    assert bool(comparison.improvements) == improved
    assert comparison.mean == pytest.approx(sorted(after)[1] / sorted(before)[1])
    assert comparison.warnings == []


def test_comparison_says_what_else_differs():
    before, after = run_of(2.0), run_of(2.0, isa="avx2")
    before["workers"] = {"torch@1": {"loaded": {"PyTorch": "2.0", "kernel": "AVX2"}}}
    after["workers"] = {"torch@1": {"loaded": {"PyTorch": "2.1", "kernel": "AVX2"}}}
    warnings = records.compare(before, after).warnings
    assert warnings == ["isa was native and is avx2", "torch@1: PyTorch was 2.0 and is 2.1"]


def test_cells_of_one_run_only_are_not_compared():
    other = records.as_data(Outcome([timed(1.0, 1.0, OTHER)]), request(), MACHINE)
    assert records.compare(run_of(2.0), other).changes == []


@pytest.mark.parametrize("data", [[], {}, {"cells": [], "version": 1}, {"cells": []}])
def test_file_of_another_kind_is_refused(data):
    with pytest.raises(ValueError, match=r"no file that|has version"):
        records.check_readable(data)


# --- scaling --------------------------------------------------------------------------------------


def swept(power):
    """A run of one sweep whose time is a power of its size."""
    sweep, specs = next(iter(SWEEPS.items()))
    # In any order: another sweep may have had some of the layers before.
    layers = [parse_layer(spec) for spec in (*specs[3:], *specs[:3])]
    times = [1e-3 * (layer.n * layer.geometry.pixels / 1000) ** power for layer in layers]
    cells = [timed(t, 2 * t, layer=layer) for t, layer in zip(times, layers, strict=True)]
    return sweep, Outcome(cells), request(*specs, suites=("scaling",))


@pytest.mark.parametrize("power", [1.0, 1.5])
def test_growth_is_the_power_of_size(power):
    sweep, outcome, _ = swept(power)
    (growth,) = (g for g in results.growths(outcome) if g.sweep == sweep)
    assert growth.exponent == pytest.approx(power)
    assert len(growth.sizes) == len(SWEEPS[sweep])
    assert growth.sizes == tuple(sorted(growth.sizes))


def test_growth_is_not_read_off_what_a_call_costs():
    sizes = (1, 10, 100, 1000)
    assert results.exponent(sizes, (5e-5, 5e-5, 1e-3, 1e-2)) == pytest.approx(1.0)
    assert math.isnan(results.exponent(sizes, (1e-6, 1e-6, 1e-6, 1e-3)))


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture
def outcome():
    cells = [
        timed(1e-3, 2e-3, spec, pass_name=name, format=form)
        for spec, name, form in itertools.product((DENSE, OTHER), PASSES, FORMATS)
    ]
    small = timed(1e-6, 2e-6, GROUPED)
    about = {
        "threads": 1,
        "loaded": {"kernel": "K"},
        "variables": {"A": "b"},
        "peak_bytes": 1 << 20,
    }
    return Outcome([*cells, small], {"convcore@1": about}, {1: {"float32": 100.0}}, True)


def test_rows_have_every_cell(outcome, tmp_path):
    files = records.Files(csv=tmp_path / "x.csv")
    said = list(records.save(files, outcome, request(DENSE, OTHER, GROUPED), MACHINE, ""))
    assert said == [f"Saved to {files.csv}"]
    with files.csv.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(outcome.cells)
    assert float(rows[0]["torch_ratio"]) == pytest.approx(2.0)
    assert rows[0]["algorithm"] == "im2col"


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_chart_is_drawn(outcome, tmp_path, ending):
    pytest.importorskip("matplotlib")
    files = records.Files(plot=tmp_path / f"x.{ending}")
    list(records.save(files, outcome, request(DENSE, OTHER, GROUPED), MACHINE, ""))
    picture = files.plot.read_bytes()
    assert picture.startswith({"svg": b"<?xml", "png": b"\x89PNG"}[ending])
    if ending == "svg":
        assert OTHER.encode() in picture
        assert GROUPED.encode() not in picture  # all of its cells are small


def test_chart_of_a_sweep_shows_the_power(tmp_path):
    pytest.importorskip("matplotlib")
    _, outcome, asked = swept(1.25)
    files = records.Files(plot=tmp_path / "x.svg")
    list(records.save(files, outcome, asked, MACHINE, ""))
    assert "size^1.25" in files.plot.read_text()


def test_nothing_to_draw_is_said(tmp_path):
    pytest.importorskip("matplotlib")
    files = records.Files(plot=tmp_path / "x.svg")
    said = list(records.save(files, Outcome(), request(), MACHINE, ""))
    assert said == ["No chart: no ratio to any peer was measured"]
    assert not files.plot.exists()


def test_page_shows_command_figures_and_every_cell(outcome, tmp_path):
    pytest.importorskip("matplotlib")
    files = records.Files(page=tmp_path / "x.md")
    asked = request(DENSE, OTHER, GROUPED, suites=("table",))
    list(records.save(files, outcome, asked, MACHINE, "convcore bench --some"))
    page = files.page.read_text()
    assert "    convcore bench --some\n" in page
    assert "some, 2020-02-02. " in page
    assert "](x.svg)" in page
    assert (tmp_path / "x.svg").exists()
    rows = [line for line in page.splitlines() if line.startswith((f"| {DENSE} |", f"| {OTHER} |"))]
    assert len(rows) == 2 * len(PASSES)
    assert "2.00 (2.00-2.00)" in rows[0]
    assert f"| {GROUPED}, forward, contiguous, 1 thread | im2col | 1.0 | 2.0 | 0.50 |" in page
    assert "1 MiB" in page


def test_page_of_an_interrupted_run_says_so(outcome):
    outcome = dataclasses.replace(outcome, finished=False)
    page = as_page(outcome, request(DENSE, OTHER), MACHINE, "", "")
    assert "cells are missing" in page and "may get above 100 % of the peak" in page


# --- narrow terminals ---------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 50, 60, 80, 200])
def test_tables_break_no_word(width, outcome):
    pytest.importorskip("rich")
    from rich.console import Console

    from convcore.bench import report

    def words(width):
        console = Console(width=width, file=io.StringIO(), color_system=None)
        asked = request(DENSE, OTHER)
        report.print_workers(console, outcome, "CPU")
        report.print_cells(console, outcome, asked)
        report.print_summary(console, outcome, asked)
        lines = console.file.getvalue().splitlines()
        assert max(map(len, lines)) <= width
        return {word for line in lines for word in line.split() if word[0].isalnum()}

    assert words(400) == words(width)


def test_a_brief_report_fits_a_screen_and_ends_in_the_verdict(outcome):
    pytest.importorskip("rich")
    from rich.console import Console

    from convcore.bench import report

    console = Console(width=100, file=io.StringIO(), color_system=None)
    report.print_brief(console, outcome, request(DENSE, OTHER), "CPU", [])
    lines = console.file.getvalue().splitlines()
    assert len(lines) < 40 and any("--details" in line for line in lines)
    assert lines[-1].strip() and "oracle" in " ".join(lines[-3:])


# --- progress -------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_outside_a_terminal_or_without_rich_is_a_line_now_and_then(
    is_terminal, monkeypatch, capsys
):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    monkeypatch.setitem(sys.modules, "rich", None)
    clock = itertools.count(step=3.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    step = progress.Step
    progress.follow([step("a", 0.1), step("b", 0.5, 75.0), step("c", 0.9, 15.0)])
    lines = capsys.readouterr().err.splitlines()
    assert lines == [" 50% 1:15 left b"]


def test_guessed_durations_are_in_round_words():
    words = {3: "a few seconds", 12: "about 10 seconds", 47: "about 50 seconds"}
    words |= {70: "about a minute", 130: "about 2 minutes", 5400: "about 1.5 hours"}
    assert {seconds: progress.about(seconds) for seconds in words} == words
