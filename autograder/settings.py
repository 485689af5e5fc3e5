"""The settings of grading: declared once as traitlets, read once at the edge, passed down as a frozen record.

They stand in `nbgrader_config.py` beside nbgrader's own (`c.Grading.cell_seconds = 30`); the command line overrides them.
"""

import math
import os
from dataclasses import dataclass, fields
from pathlib import Path

from traitlets import Bool, Float, Int, Unicode
from traitlets.config import Configurable, PyFileConfigLoader

from .errors import UsageError

CONFIG_FILE = "nbgrader_config.py"


class Grading(Configurable):
    """How submissions are run and judged."""

    solutions = Unicode("solutions", help="Folder of the lectures' sources.").tag(config=True)
    course = Unicode("course", help="Folder of the released notebooks.").tag(config=True)
    out = Unicode("grading", help="Folder that a class is graded into.").tag(config=True)
    workers = Int(0, help="Worker processes; 0 for one a core.").tag(config=True)
    scheduler = Unicode("", help="Address of a Dask scheduler; empty for a cluster on this machine.").tag(config=True)
    device = Unicode("cpu", help="Where the cases' tensors live.").tag(config=True)
    seed = Int(
        0, help="Private seed of the hidden cases; 0 draws one for each run and stores it with the results."
    ).tag(config=True)
    cell_seconds = Float(30.0, help="Wall seconds that one cell, or one exercise's hidden cases, may take.").tag(
        config=True
    )
    submission_seconds = Float(300.0, help="Wall seconds that a whole submission may take.").tag(config=True)
    start_seconds = Float(60.0, help="Wall seconds that a kernel may take to start.").tag(config=True)
    memory_mib = Int(4096, help="Memory that a submission may use, in MiB.").tag(config=True)
    output_mib = Float(2.0, help="Output kept of one submission, in MiB; more is cut.").tag(config=True)
    submission_mib = Float(20.0, help="Largest submission that is read, in MiB, all its files together.").tag(
        config=True
    )
    trust_code = Bool(False, help="Grade even where there is no sandbox.").tag(config=True)
    db_url = Unicode("", help="Gradebook's SQLAlchemy URL; empty for OUT/gradebook.db.").tag(config=True)


DEVICES = ("cpu", "cuda")
LIMITS = (  # setting, least, most: a system takes no number that is larger, and nothing works with less
    ("cell_seconds", 0.01, 1_000_000),
    ("submission_seconds", 0.01, 1_000_000),
    ("start_seconds", 0.01, 1_000_000),
    ("memory_mib", 64, 1 << 24),
    ("output_mib", 0.001, 1024),
    ("submission_mib", 0.001, 1024),
)


@dataclass(frozen=True)
class Settings:
    """The values of Grading, checked; paths are absolute."""

    solutions: Path
    course: Path
    out: Path
    workers: int
    scheduler: str
    device: str
    seed: int
    cell_seconds: float
    submission_seconds: float
    start_seconds: float
    memory_mib: int
    output_mib: float
    submission_mib: float
    trust_code: bool
    db_url: str


def load_settings(root: Path | str = ".", **overrides) -> Settings:
    """The settings of the course at `root`, each of `overrides` that is not None winning over its configuration file.

    Raises:
        UsageError: a value is of the wrong kind or out of range, or the configuration file cannot be run.
    """
    root = Path(root).resolve()
    try:
        config = (
            PyFileConfigLoader(CONFIG_FILE, path=str(root)).load_config() if (root / CONFIG_FILE).exists() else None
        )
        grading = Grading(config=config)
        for name, value in overrides.items():
            if value is not None:
                setattr(grading, name, str(value) if isinstance(value, Path) else value)
    except Exception as error:  # the file is Python: anything can go wrong in it
        raise UsageError(f"settings: {error}; look at {CONFIG_FILE} and the options given") from error
    values = {field.name: getattr(grading, field.name) for field in fields(Settings)}
    for name, least, most in LIMITS:
        if not (math.isfinite(values[name]) and values[name] > 0):
            raise UsageError(f"{name} is {values[name]}; give a number above 0")
        if not least <= values[name] <= most:
            raise UsageError(f"{name} is {values[name]}; give {least:,} to {most:,}")
    for name, most in (("workers", 1024), ("seed", 1 << 62)):
        if not 0 <= values[name] <= most:
            raise UsageError(f"{name} is {values[name]}; give 0 to {most}")
    if values["device"] not in DEVICES:
        raise UsageError(f"device is {values['device']!r}; give {' or '.join(DEVICES)}")
    for name in ("solutions", "course", "out"):
        if not values[name].strip():
            raise UsageError(f"{name} is empty; give a folder")
        values[name] = (root / values[name]).resolve()
    values["workers"] = (
        values["workers"] or len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else values["workers"] or os.cpu_count()
    )
    values["db_url"] = values["db_url"] or f"sqlite:///{values['out'] / 'gradebook.db'}"
    return Settings(**values)
