"""The transcripts in docs/teaching are what the checks answer today."""

import re
from pathlib import Path

import pytest

from .transcripts import transcript

TEACHING = Path(__file__).parents[2] / "docs" / "teaching"
PAGES = sorted(TEACHING.glob("*.md"))
TYPED = [
    (page.stem, code, shown)
    for page in PAGES
    for code, shown in re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
]


NAMES = [f"{page}-{n}" for n, (page, _, _) in enumerate(TYPED)]


@pytest.mark.parametrize(("lecture", "code", "shown"), TYPED, ids=NAMES)
def test_a_transcript_is_what_the_check_answers(lecture, code, shown):
    assert transcript(lecture, code) == shown.rstrip("\n")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_six_mistakes_and_each_is_caught(page):
    answers = [shown for lecture, _, shown in TYPED if lecture == page.stem]
    assert len(answers) >= 6
    assert all(answer.startswith("✗") for answer in answers)
