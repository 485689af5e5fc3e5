"""The transcripts in docs/teaching are what the checks answer today."""

import json
import re

import pytest

from .transcripts import PAGES, ROOT, TYPED, transcript

CASES = [(page.stem, code, shown) for page in PAGES for code, shown in TYPED.findall(page.read_text(encoding="utf-8"))]
NAMES = [f"{page}-{n}" for n, (page, _, _) in enumerate(CASES)]


@pytest.mark.parametrize(("lecture", "code", "shown"), CASES, ids=NAMES)
def test_a_transcript_is_what_the_check_answers(lecture, code, shown):
    assert transcript(lecture, code) == shown, "python tests/course/transcripts.py writes them anew"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_six_mistakes_and_each_is_caught(page):
    answers = [shown for lecture, _, shown in CASES if lecture == page.stem]
    assert len(answers) >= 6
    assert all(answer.startswith("✗") for answer in answers)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_demonstration_measures_for_long(page):
    """A cell that shows a measurement runs in every submission that is graded."""
    notebook = json.loads((ROOT / "course" / page.stem / f"{page.stem}.ipynb").read_text(encoding="utf-8"))
    text = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    assert all(float(seconds) <= 0.1 for seconds in re.findall(r"min_run_time=([0-9.]+)", text))
    assert "blocked_autorange()" not in text and "adaptive_autorange()" not in text  # 0.2 s, the default
