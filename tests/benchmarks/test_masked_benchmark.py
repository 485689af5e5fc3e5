"""The benchmark of maskedtensor_ref runs, and its page and plot say what it measured. No time is asserted."""

import importlib.util
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "masked.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("masked_benchmark", SCRIPT)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def timings(benchmark):
    return benchmark.measure(benchmark.Run((1, 16), (0.5,), stored=40, table=(100, 4), turns=2, block=1e-5))


def test_every_contender_of_every_row_is_timed_in_every_turn(benchmark, timings):
    assert {t.row.name for t in timings} >= {op.name for op in benchmark.OPERATIONS} | {"Adagrad step"}
    assert {t.row.where for t in timings} == {"strided", "COO", "CSR", "rows"}
    for t in timings:
        assert t.seconds.keys() == t.row.contenders.keys(), benchmark.label(t.row)
        assert all(len(turns) == 2 for turns in t.seconds.values())


def test_the_page_has_every_aim_and_every_row(benchmark, timings, tmp_path):
    benchmark.write(timings, tmp_path, "the command")
    page = (tmp_path / "masked.md").read_text(encoding="utf-8")
    assert "`the command`" in page
    assert all(benchmark.line(t) in page for t in timings)
    aims = list(benchmark.aims(timings))
    assert len(aims) == 6  # all but that of a million elements
    assert all(a.text in page and a.found in page for a in aims)
    assert "](masked.svg)" in page
    assert ElementTree.parse(tmp_path / "masked.svg").getroot().tag.endswith("svg")


def test_an_aim_that_is_missed_names_its_rows(benchmark):
    row = benchmark.Row("add", "sparse", "COO", 100, 0.1, {})
    slow = benchmark.Timing(row, {benchmark.OURS: [4.0], benchmark.PEER: [2.0], benchmark.LIMIT: [1.0]})
    page = benchmark.page([slow], "the command")
    assert "missed" in page
    assert "add, COO, 100 elements, 10% specified: 2.00" in page
    assert "add, COO, 100 elements, 10% specified: 4.0 times its time" in page


@pytest.mark.parametrize("size", [16, 1 << 15])
@pytest.mark.parametrize("value", [0, 1, float("inf"), float("-inf")])
def test_the_limit_reads_past_what_is_missing(benchmark, size, value):
    x = torch.arange(size, dtype=torch.float32)
    mask = x % 2 == 0
    x[~mask] = float("nan")
    assert torch.equal(benchmark.missing_as(x, mask, value), torch.where(mask, x, value))


def test_the_adagrad_steps_move_the_same_elements(benchmark):
    first, second, *_ = benchmark.adagrad_rows(100, 4)
    for row in (first, second):
        moved = {}
        for name in (benchmark.OURS, benchmark.LIMIT):
            call = row.contenders[name]
            call()
            moved[name] = call.args[0]
        torch.testing.assert_close(moved[benchmark.OURS], moved[benchmark.LIMIT])
