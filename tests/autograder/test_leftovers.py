"""Temporary folders go with their process, also with one that was killed; nobody else's are touched."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autograder import leftovers

pytestmark = pytest.mark.skipif(leftovers.fcntl is None, reason="there are no such locks on Windows")
LIVES_UNTIL_KILLED = """
import os, tempfile, time
from autograder import leftovers
with leftovers.temporary_place() as place:
    os.makedirs(tempfile.mkdtemp() + "/a/b/c")
    print(place, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def above(tmp_path, monkeypatch):
    """The place of all temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_place_holds_all_temporary_files_and_is_gone_afterwards(above):
    with leftovers.temporary_place() as place:
        assert Path(tempfile.mkdtemp()).parent == Path(place) and Path(place).parent == above
        assert os.stat(place).st_mode & 0o777 == 0o711
    assert list(above.iterdir()) == [] and tempfile.gettempdir() == str(above)


def test_the_place_of_a_process_is_kept_while_it_lives_and_removed_when_it_was_killed(above):
    environment = {**os.environ, "TMPDIR": str(above)}
    with subprocess.Popen([sys.executable, "-c", LIVES_UNTIL_KILLED], stdout=-1, text=True, env=environment) as process:
        place = Path(process.stdout.readline().strip())
        leftovers.forget_killed()
        kept = place.exists()
        process.kill()
    assert kept and place.exists()
    with leftovers.temporary_place():
        assert not place.exists()


def test_what_only_looks_like_ours_is_left_alone(above):
    for name in ("autograder-notes", "autograder-0123456789abcdef.txt", "another"):
        (above / name).mkdir()
    (above / "autograder-0123456789abcdef").symlink_to(above / "another")
    leftovers.forget_killed()
    assert len(list(above.iterdir())) == 4


def test_a_folder_that_vanishes_before_it_is_ours_is_made_again(above):
    made = []

    def make():
        made.append(above / str(len(made)))
        made[-1].mkdir()
        if len(made) < 3:
            made[-1].rmdir()
        return [str(made[-1])]

    (folder,), held = leftovers.claimed(make)
    assert folder == str(above / "2") and len(held) == 1
    leftovers.release(held)
