"""What a zygote imports and sets up before it forks."""

import ast
import contextlib
import gc
import importlib
import io
import os
import re
import sys
from importlib.abc import MetaPathFinder

# What kernels are started with: no database, and tracebacks in 20 ms instead of 150.
ARGUMENTS = ("--HistoryManager.enabled=False", "--InteractiveShell.xmode=Plain")
# Enough for a kernel.
KERNEL = (
    "autograder.kernel_app", "ipykernel.ipkernel", "ipykernel.zmqshell", "IPython", "tarfile", "pdb", "faulthandler",
    "tornado.platform.asyncio", "zmq.utils.garbage", "IPython.core.debugger", "IPython.core.oinspect",
    "IPython.core.completerlib", "IPython.core.logger",
)  # fmt: skip
COURSE = (*KERNEL, "torch", "numpy", "matplotlib.pyplot", "matplotlib_inline.backend_inline", "torch._dynamo")
NOTEBOOKS = (  # what notebooks of a course import; a course test says what is missing
    *COURSE, "autograder.check", "autograder.tensorboard", "safetensors.torch", "lecture_pictures", "maskedtensor_ref",
    "maskedtensor_ref.differences", "maskedtensor_ref.optim", "torch.testing", "torch.utils.benchmark",
    "torch.utils.tensorboard",
)  # fmt: skip


class Hidden(MetaPathFinder):
    """Import hook: these packages do not exist here."""

    def __init__(self, names):
        self.names = frozenset(names)

    def find_spec(self, fullname, path=None, target=None):
        """The import system calls this for every module that is not loaded yet."""
        if fullname.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def hidden_by(exercises):
    """The packages that a lecture hides, read from its exercises.py without running it; () where that cannot be read.

    What counts is Lecture.without. This is told before anything is imported, for a stem to be started in time.
    """
    try:
        found = re.search(r"^WITHOUT = (\(.*?\))", exercises.read_text(encoding="utf-8"), re.M)
        return ast.literal_eval(found[1]) if found else ()
    except (OSError, ValueError, SyntaxError):
        return ()


@contextlib.contextmanager
def to_stay():
    """What is imported within stays, so the garbage collector does not look at it.

    Meanwhile that takes a quarter of the time; later it would copy all of it in every fork.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def import_all(names):
    """Import the modules; of those that cannot be imported, a dict of name to reason."""
    failed = {}
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # a list may name what is hidden or not installed here
            failed[name] = repr(error)
    return failed


def touch():
    """Run once what libraries import or set up at first use, in one thread and on the CPU."""
    for name, first_use in FIRST_USE.items():
        if name in sys.modules:
            first_use(sys.modules[name])


def _torch(torch):
    torch.set_num_threads(1)  # an OpenMP pool in the parent would deadlock every child
    if torch.version.cuda is not None and os.path.exists("/dev/nvidiactl"):
        return  # a device initialised before the fork is broken after it, and more than an import may initialise it
    torch.manual_seed(0)
    layer = torch.nn.Linear(2, 2)
    for kind in (torch.optim.SGD, torch.optim.Adam):
        optimiser = kind(layer.parameters(), lr=0.1)
        layer(torch.ones(2, 2)).sum().backward()
        optimiser.step()
    torch.nn.Conv2d(1, 2, 3)(torch.ones(1, 1, 8, 8)).sum().backward()
    torch.testing.assert_close(torch.ones(2), torch.ones(2))
    repr(torch.randn(2))


def _figure(figure):
    image = figure.Figure()  # not through pyplot, which would choose a backend
    axes = image.subplots()
    axes.plot([1, 2], label="a")
    axes.set_title("x")
    axes.legend()
    image.savefig(io.BytesIO(), format="png", bbox_inches="tight")


def _kernel(kernel_app):
    kernel_app.prepare(ARGUMENTS)


FIRST_USE = {"torch": _torch, "matplotlib.figure": _figure, "autograder.kernel_app": _kernel}
