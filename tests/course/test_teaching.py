"""The transcripts in docs/teaching are what the checks answer today."""

import pytest

from .transcripts import PAGES, TYPED, transcript

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
