"""The TensorBoard lab of a notebook: logs the graph of a model, and reads runs back as plain data.

The only place that knows `torch.jit.trace`, which `SummaryWriter.add_graph` is made of and which is deprecated.
"""

import re
import warnings
from pathlib import Path

import torch
from torch.utils.tensorboard import SummaryWriter

from lecture_pictures import Picture, grad_fn_graph, graph_picture

from . import events
from . import tensorboard_beside as beside
from .check import RUNS
from .errors import UsageError

_DEPRECATED = r"`torch\.jit\.\w+` is deprecated"


def fresh_run(name: str) -> Path:
    """A folder for a run that has not been logged to: runs/<name>-1, or the next number that is free.

    TensorBoard takes a folder for one run: a second graph in it hides the first one.
    """
    number = 1
    while (Path(RUNS) / f"{name}-{number}").exists():
        number += 1
    return Path(RUNS) / f"{name}-{number}"


def log_graph(model: torch.nn.Module, inputs: torch.Tensor, folder: str | Path) -> Picture:
    """Log the graph of `model` at work on `inputs` as the run in `folder`, and return a drawing of what was logged.

    Where torch cannot trace the model (any more), nothing is logged, and the drawing shows what autograd recorded.

    Raises:
        UsageError: `model` is no torch.nn.Module.
    """
    if isinstance(model, type) and issubclass(model, torch.nn.Module):
        raise UsageError(f"model is the class {model.__name__}; an object of it can be logged: {model.__name__}()")
    if not isinstance(model, torch.nn.Module):
        given = type(model).__name__
        raise UsageError(f"model is a {given}; only a torch.nn.Module can be logged: write one around your function")
    try:
        with warnings.catch_warnings(), SummaryWriter(str(folder)) as writer:
            warnings.filterwarnings("ignore", _DEPRECATED, DeprecationWarning)
            writer.add_graph(model, inputs)
    except (AttributeError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0][:80] or type(error).__name__
    else:
        reason = ""
    if reason:  # outside of the handler: an error of the model itself is shown without the one of the tracer
        return _recorded(model, inputs, reason)
    lines = read_runs(folder)["."]["graphs"][-1]
    return drawing(lines, f"{type(model).__name__}, as logged for TensorBoard")


def _recorded(model, inputs, reason):
    result = model(inputs.detach().clone().requires_grad_(inputs.is_floating_point()))
    return grad_fn_graph(result, title=f"{type(model).__name__}, as autograd recorded it (not logged: {reason})")


def read_runs(folder: str | Path) -> dict[str, dict]:
    """What every run below `folder` holds (see events.run), by its folder relative to it.

    Raises:
        UsageError: an event file is damaged.
    """
    found = {}
    logged_in_order = lambda path: (len(path.name), path)  # names end in a count: 10 comes after 9
    for path in sorted(Path(folder).rglob("*tfevents*"), key=logged_in_order):
        found.setdefault(path.parent.relative_to(folder).as_posix(), []).append(path)
    try:
        return {name: events.run([path.read_bytes() for path in paths]) for name, paths in found.items()}
    except events.Damaged as error:
        raise UsageError(f"an event file below {folder} cannot be read: {error}") from error


def drawing(lines: list[str], title: str) -> Picture:
    """A graph of events.graph_lines as a picture."""
    labels, edges, kinds = {}, [], {}
    for number, line in enumerate(lines, start=1):
        operation, _, takes = line.removesuffix(")").partition("(")
        constants = [part for part in takes.split(", ") if part and not part.startswith("#")]
        labels[number] = " ".join([operation, *constants]) if not line.startswith("input") else line
        edges += [(int(source), number) for source in re.findall(r"#(\d+)", takes)]
        kinds[number] = {"input": "input", "output": "output"}.get(operation.split(" ")[0], "operation")
    return graph_picture(labels, edges, kinds, title)


def load_ipython_extension(shell) -> None:
    """Called by `%load_ext autograder.tensorboard`: the notebook gets the magic `%tensorboard`."""
    shell.register_magic_function(beside.open_tensorboard, "line", "tensorboard")
