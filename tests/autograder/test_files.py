"""Files are replaced whole or not at all, and any name becomes a file's name."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder import files
from autograder.errors import StorageError


def test_a_file_is_replaced_with_its_folder_made(tmp_path):
    files.write_whole(tmp_path / "a" / "b.txt", "old")
    files.write_whole(tmp_path / "a" / "b.txt", "néw")
    assert (tmp_path / "a" / "b.txt").read_bytes() == "néw".encode()


def test_an_empty_file_is_made_with_its_folder_and_may_be_there(tmp_path):
    for _ in range(2):
        files.make_empty(tmp_path / "a" / "b")
        assert (tmp_path / "a" / "b").read_bytes() == b""
    with pytest.raises(StorageError, match="what is graded is kept"):
        files.make_empty(tmp_path / "a" / "b" / "c")


REFUSALS = [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the disk is full"), (errno.EROFS, "Read-only")]


@pytest.mark.parametrize(("number", "said"), REFUSALS)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_what_cannot_be_written_is_one_sentence_and_the_old_file_stays(tmp_path, monkeypatch, call, number, said):
    files.write_whole(tmp_path / "b.txt", "old")

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, call, refuse)
    with pytest.raises(StorageError, match=said) as caught:
        files.write_whole(tmp_path / "b.txt", "new")
    assert "what is graded is kept" in str(caught.value) and "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"], "half a file is left"
    assert (tmp_path / "b.txt").read_text() == "old"


def test_an_interrupt_leaves_no_half_file(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write_whole(tmp_path / "b.txt", "new")
    assert list(tmp_path.iterdir()) == []


@given(st.text(st.characters(codec=None), max_size=200))
def test_any_text_has_a_name_that_every_file_system_takes(text):
    name = files.safe_name(text)
    assert 0 < len(name) <= 60
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert not name.startswith((".", "-")) and not name.endswith(".")


@pytest.mark.parametrize("name", ["ada", "s001", "a.b_c-d"])
def test_a_plain_name_stays(name):
    assert files.safe_name(name) == name


HOSTILE = [
    "", ".", "..", "../x", "a/b", "a\\b", "ada", "Ada", "ADA", "ada.", "ada ", "con", "CON", "con.txt", "nul", "a\nb",
    "\udcff", "\udcfe", "é", "e\u0301", "x" * 300, "x" * 301, "ada-0123456789ab", "a\0b",
]  # fmt: skip


def test_different_names_never_share_a_file():
    names = [files.safe_name(text) for text in HOSTILE]
    assert len({name.lower() for name in names}) == len(HOSTILE)
    made = files.safe_name("Ada")  # someone whose name is the file name made for another
    assert files.safe_name(made) != made
