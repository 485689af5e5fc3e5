"""All pictures together: legible, without meaning in colour alone, the same in every process."""

import subprocess
import sys
from itertools import combinations

import pytest

import lecture_pictures
from lecture_pictures import adagrad, cells, conventions, indexing, masks, policies, ruler, sparsity
from lecture_pictures.__main__ import main
from lecture_pictures.gallery import examples, page

PICTURES = [picture for pictures in examples().values() for picture in pictures]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.title)
def test_every_example_is_legible(picture, legible):
    legible(picture)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda p: p.title)
def test_a_picture_reaches_the_page_with_its_title_and_words(picture):
    bundle = picture._repr_mimebundle_()
    assert bundle["text/plain"] == picture.text == repr(picture)
    assert bundle["image/svg+xml"] == picture.svg
    assert 'role="img"' in bundle["text/html"] and "<summary>The same in words</summary>" in bundle["text/html"]


def test_no_key_tells_two_things_apart_by_colour_alone(monkeypatch):
    keys = []

    def noted(drawing, x, y, entries, *rest):
        keys.append([look for look, _ in entries])
        return cells.legend(drawing, x, y, entries, *rest)

    for module in (
        adagrad,
        conventions,
        indexing,
        masks,
        policies,
        ruler,
        sparsity,
        sys.modules["lecture_pictures.broadcast"],
    ):
        monkeypatch.setattr(module, "legend", noted)
    examples()
    assert len(keys) > 20
    for looks in keys:
        for one, other in combinations(looks, 2):
            assert without_colour(one) != without_colour(other)


def without_colour(look):
    return look.weight, look.dashed, bool(look.hatch), look.star


def test_taken_elements_stand_out_from_the_others_without_colour():
    looks = {without_colour(look) for look in (cells.PLAIN, cells.USED, cells.COPIED, cells.CHANGED)}
    assert len(looks) == 4


def test_another_process_writes_the_same_gallery(tmp_path):
    out = tmp_path / "gallery.html"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "lecture_pictures", str(out)], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert out.read_text(encoding="utf-8") == page()


def test_the_gallery_needs_nothing_from_elsewhere():
    text = page().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "http" not in text and "<script" not in text and "url(" not in text


@pytest.mark.parametrize("arguments", [[], ["a", "b"], ["--help"]])
def test_wrong_use_is_answered_with_the_usage(arguments, capsys):
    assert main(arguments) == 2
    assert "usage: python -m lecture_pictures OUT.html" in capsys.readouterr().err


def test_every_public_name_is_there_and_documented():
    for name in lecture_pictures.__all__:
        assert getattr(lecture_pictures, name).__doc__
