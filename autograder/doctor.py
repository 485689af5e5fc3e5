"""What is missing or weak on this machine and in its lectures, in plain sentences.

Each cure is a command that runs as it stands: it names this Python by its path, for `python` and `pip` are often those of
another environment, or of none.
"""

import importlib.util
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from .errors import AutograderError, EngineError

MINIMUM_MIB = 4096
MINIMUM_DISK_MIB = 2048
STUDENT = ("jupyterlab", "ipykernel", "ipywidgets", "matplotlib", "tensorboard")
GRADING = ("nbgrader", "nbclient", "jupyter_client", "jupytext", "distributed", "jinja2")


@dataclass(frozen=True)
class Finding:
    """One sentence about this machine.

    Attributes:
        level: "ok", "weak" (works, with a loss that the sentence names) or "missing".
    """

    level: str
    text: str


def command(arguments: str) -> str:
    """`python -m ARGUMENTS` for this very Python, as one types it into a terminal."""
    python = f'"{sys.executable}"' if os.name == "nt" else shlex.quote(sys.executable)
    return f"{python} -m {arguments}"


def examine_machine() -> Iterator[Finding]:
    """Every finding about this machine, in the order of importance."""
    yield _python()
    yield from _torch()
    yield from _packages("student", STUDENT, "working through the lectures")
    yield from _packages("grade", GRADING, "grading")
    yield from _kernel_spec()
    yield from _sandbox()
    yield _memory()
    yield _disk()


def _python():
    text = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info < (3, 11):  # noqa: UP036  (someone may run it on an old Python to find out)
        return Finding(
            "missing", f"{text}: version 3.11 or newer is needed. Install it, then make a new environment with it."
        )
    return Finding("ok", f"{text}.")


def _torch():
    try:
        import torch
    except Exception as error:  # a broken binary raises anything
        yield Finding(
            "missing",
            f"torch cannot be imported ({type(error).__name__}: {error}). "
            + command('pip install "torch>=2.13,<2.14"'),
        )
        return
    if not torch.__version__.startswith("2.13."):
        yield Finding(
            "weak",
            f"torch {torch.__version__}: the lectures were written and measured on 2.13; some outputs will differ.",
        )
    else:
        yield Finding("ok", f"torch {torch.__version__}.")
    if torch.cuda.is_available():
        yield Finding("ok", f"CUDA: {torch.cuda.get_device_name(0)}.")
    else:
        yield Finding("ok", "No CUDA GPU: everything runs on the CPU; only grade --device cuda needs one.")


def _packages(extra, names, purpose):
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        yield Finding(
            "missing",
            f"For {purpose}: {', '.join(missing)} not installed. " + command(f'pip install "torch-lectures[{extra}]"'),
        )
    else:
        yield Finding("ok", f"For {purpose}: {', '.join(f'{name} {_version(name)}' for name in names)}.")


def _version(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return "(no version)"


# what jupyter_client replaces by the Python that it runs in, whatever PATH says
THIS_PYTHON = ("python", f"python{sys.version_info.major}", f"python{sys.version_info.major}.{sys.version_info.minor}")


def _kernel_spec():
    if importlib.util.find_spec("jupyter_client") is None:
        return
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    try:
        argv = KernelSpecManager().get_kernel_spec("python3").argv
    except NoSuchKernel:
        yield Finding("missing", f"There is no kernel named python3. {command('ipykernel install --sys-prefix')}")
        return
    here, there = Path(sys.executable).absolute(), shutil.which(argv[0]) or argv[0]
    if Path(there).absolute().parent != here.parent and argv[0] not in THIS_PYTHON:
        yield Finding(
            "weak",
            f"The kernel python3 runs {there}, not this environment's {here}: notebooks may not find torch. "
            + command("ipykernel install --sys-prefix"),
        )
    else:
        yield Finding("ok", "The kernel python3 runs in this environment.")


def _sandbox():
    if importlib.util.find_spec("autograder.sandbox") is None:
        yield Finding(
            "weak", "No sandbox: student code runs with limits on time and memory, and can read what you can read."
        )
        return
    from . import sandbox

    level = sandbox.level()
    gaps = f" Not isolated: {' '.join(level.missing)}" if level.missing else ""
    try:
        sandbox.at_least()
    except EngineError as error:
        yield Finding("missing", str(error))
        return
    except sandbox.Refused:
        yield Finding("weak", f"Sandbox: {level.name}; grading needs --trust-code.{gaps}")
    else:
        yield Finding("weak" if gaps else "ok", f"Sandbox: {level.name}.{gaps}")


def examine_lectures(root: Path) -> Iterator[Finding]:
    """Whether the lectures of the course at `root` can be opened; nothing where there is none.

    Where the sources are at hand, too, a damaged lecture can be built anew.
    """
    try:
        from . import checks, draft
        from .settings import load_settings

        settings = load_settings(root)
    except AutograderError as error:
        yield Finding("missing", str(error))
        return
    except Exception:  # torch or traitlets is missing or broken, and that was said
        return
    course, solutions = settings.course, settings.solutions
    sources = {path.parent.name for path in solutions.glob("*/exercises.py")}
    there = {path.parent.name for pattern in ("*/*.ipynb", f"*/{checks.FILE}") for path in course.glob(pattern)}
    fine = []
    for name in sorted(sources | there):
        fault = _fault_of(name, course / name, checks, draft) if name in there else f"it is not in {course}."
        if not fault:
            fine.append(name)
            continue
        cure = f" Or build it anew: {command(f'autograder release {name}')}" if name in sources else ""
        yield Finding("missing" if name in there else "weak", f"Lecture {name}: {fault}{cure}")
    if fine:
        yield Finding("ok", f"Lectures in {course}: {', '.join(fine)}.")


def _fault_of(name, folder, checks, draft):
    """Why a lecture cannot be worked on, in a sentence; "" where it can."""
    notebook = folder / f"{name}.ipynb"
    if not notebook.is_file():
        return f"{notebook.name} is not in {folder}: fetch the folder of lecture {name} again."
    if reason := draft.draft(notebook.read_bytes()).reason:
        return f"{notebook}: {reason}"
    try:
        checks.load(folder / checks.FILE, name)
    except AutograderError as error:
        return str(error)
    return ""


def _memory():
    try:
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // (1 << 20)
    except (AttributeError, ValueError, OSError):
        return Finding("ok", "Memory: unknown on this system.")
    if pages < MINIMUM_MIB:
        return Finding("weak", f"{pages} MiB of memory: use --workers 1; {MINIMUM_MIB} MiB or more is comfortable.")
    return Finding("ok", f"{pages} MiB of memory, {os.cpu_count()} cores.")


def _disk():
    free = shutil.disk_usage(Path.cwd()).free // (1 << 20)
    if free < MINIMUM_DISK_MIB:
        return Finding(
            "weak",
            f"Only {free} MiB free in this folder: a class needs about 1 MiB a submission, and more while it runs.",
        )
    return Finding("ok", f"{free} MiB free in this folder.")
