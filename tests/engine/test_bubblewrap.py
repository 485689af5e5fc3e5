"""A course that itself lies in the temporary folder stays visible, read only, inside a sandbox that covers that folder."""

import asyncio

import pytest

from autograder import bubblewrap, sandbox
from autograder.running import start_warm_kernel
from autograder.warm import Zygote

from .attacks import execute


def test_what_is_shown_below_a_covered_place_comes_after_the_cover(monkeypatch):
    monkeypatch.setattr(bubblewrap, "program", lambda: "bwrap")
    command = bubblewrap.command("python", ("/usr", "/tmp/course/.venv"), (), ())
    cover = next(i for i, word in enumerate(command) if word == "/tmp" and command[i - 1] == "--tmpfs")
    assert command.index("/tmp/course/.venv") > cover > command.index("/usr")


@pytest.mark.skipif(not sandbox.level().plan.root, reason="this machine has no sandbox with a root of its own")
def test_a_kernel_reads_it_and_cannot_change_it(monkeypatch, tmp_path_factory):
    folder = tmp_path_factory.mktemp("course")
    (folder / "lesson.txt").write_text("visible", encoding="utf-8")
    for above in (folder, *folder.parents):
        if str(above).startswith("/tmp/"):
            above.chmod(0o755)
    real = bubblewrap.visible
    monkeypatch.setattr(bubblewrap, "visible", lambda hides=(): (*real(hides), str(folder)))

    async def ask():
        code = f"print(open({str(folder / 'lesson.txt')!r}).read())\ntry:\n    open({str(folder / 'new')!r}, 'w')\nexcept OSError as e: print('refused')"
        with Zygote.start(sandbox.level().plan, modules=()) as zygote:
            async with start_warm_kernel(zygote) as kernel:
                return (await execute(kernel, code, 60)).text.split()

    assert asyncio.run(ask()) == ["visible", "refused"]
