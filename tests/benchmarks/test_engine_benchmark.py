"""The page of the engine's benchmark says what was measured."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "engine.py"


@pytest.fixture(scope="module")
def engine():
    pytest.importorskip("psutil", reason="psutil measures the memory of the benchmark")
    spec = importlib.util.spec_from_file_location("engine_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_compares_classes_of_equal_size_and_the_growth_with_the_floors(engine):
    rows = [
        engine.Row(engine.OURS, 24, wall=10, cpu=20, memory=1000),
        engine.Row(engine.NBGRADER, 24, wall=120, cpu=110, memory=400),
        engine.Row(engine.OURS, 124, wall=30, cpu=60, memory=1001),
    ]
    page = engine.page(rows, {"cells": 0.1, "judged": 0.25}, "90_engine")
    assert "At 24 submissions nbgrader takes 12.0 times as long." in page and "At 124" not in page
    assert "takes 0.20 s and 0.40 CPU s: 4.0 times the first floor, 1.6 times the second." in page
    assert "| 124 | autograder grade | 30.0 | 0.24 | 0.48 | 1001 |" in page


def test_the_plot_has_a_line_for_each_grader(engine, tmp_path):
    rows = [engine.Row(grader, size, 1.0, 1.0, 1.0) for grader in (engine.OURS, engine.NBGRADER) for size in (24, 100)]
    engine.plot(rows, tmp_path / "engine.svg")
    text = (tmp_path / "engine.svg").read_text(encoding="utf-8")
    assert "<svg" in text and text.count('id="line2d') >= 2
