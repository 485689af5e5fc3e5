"""Which file names would take the place of a library when Python runs in the folder that holds them."""

import sys
import sysconfig
from functools import cache
from importlib.machinery import PathFinder

# Run or obeyed by Python, IPython or nbgrader when they start in a folder that holds them.
OBEYED = {"sitecustomize", "usercustomize", "ipython_config", "ipython_kernel_config", "nbgrader_config", "conftest"}
# The course's own packages, which an editable installation hides from the search below.
OURS = {"autograder", "maskedtensor_ref", "lecture_pictures"}
CODE = (".py", ".pyc", ".pyw", ".so", ".pyd")


def shadowed(path: str) -> str:
    """What the file at this relative POSIX path would take the place of, as words for a sentence; "" when nothing.

    >>> shadowed("torch.py"), shadowed("random/__init__.py"), shadowed("helper.py"), shadowed("data/random.csv")
    ('the library torch', 'the library random', '', '')
    """
    first, _, rest = path.partition("/")
    if first.lower().endswith(".pth"):
        return "Python's own search path"
    if not rest and not first.lower().endswith(CODE):
        return ""
    if rest and not rest.lower().endswith(CODE):
        return ""
    name = first.partition(".")[0]
    for spelling in (name, name.lower()):
        if spelling in OBEYED:
            return f"the start-up file {spelling}"
        if spelling in OURS or spelling in sys.stdlib_module_names or _installed(spelling):
            return f"the library {spelling}"
    return ""


@cache
def _installed(name: str) -> bool:
    """Whether a package or module of that name is installed here; nothing is imported to find out."""
    spec = PathFinder.find_spec(name, [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    return spec is not None and spec.loader is not None
