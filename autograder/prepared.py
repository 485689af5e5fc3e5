"""An IPython kernel and its shell, built in the zygote and taken over by a fork.

Building them takes a third of a kernel's start, and the result depends on little: this module builds them with the usual
options and puts them away, as if nothing had been built, and makes them the fork's own where its options are the same.
"""

import atexit
import contextlib
import copy
import os
import sys
import uuid
from pathlib import Path

from IPython.core import interactiveshell
from IPython.core.profiledir import ProfileDir
from IPython.utils.path import get_home_dir

SESSION = "JPY_SESSION_NAME"  # what IPythonKernel reads from the environment when it is built
INLINE = "matplotlib_inline.backend_inline"


class Prepared:
    """What was built: a kernel with its shell, and what else knows of them."""

    def __init__(self, kernel_class, app):
        self.config = copy.deepcopy(app.config)
        before = {place: value_at(*place) for place in places()}
        with _no_folder():
            self.kernel = kernel_class.instance(parent=app, profile_dir=ProfileDir(), user_ns=None)
            self.singles = [self.kernel, self.kernel.shell, show_figures()]
        self.known = {place: value_at(*place) for place in before}
        atexit.unregister(self.kernel.shell.atexit_operations)  # a zygote has none, a fork ends without
        self.kernel.shell.restore_sys_module_state()
        for single in filter(None, self.singles):
            single.clear_instance()
        remember(before)

    def fits(self, app):
        """Whether an app would build the same."""
        return app.config == self.config and app.user_ns is None and SESSION not in os.environ

    def adopt(self, profile_dir, **keywords):
        """Make it this process's own; takes the arguments of IPKernelApp.init_kernel for a kernel that it builds."""
        kernel, shell = self.kernel, self.kernel.shell
        for single in filter(None, self.singles):
            for kind in single._walk_mro():
                kind._instance = single
        remember(self.known)
        keywords["parent"].config.merge(shell.config)  # upstream they are one, to which the shell adds
        for name, value in keywords.items():
            setattr(kernel, name, value)
        kernel.ident, kernel._stdout, kernel._stderr = str(uuid.uuid4()), sys.stdout, sys.stderr
        kernel.profile_dir = shell.profile_dir = profile_dir
        shell.ipython_dir, shell.home_dir, shell.starting_dir = (
            interactiveshell.get_ipython_dir(),
            get_home_dir(),
            os.getcwd(),
        )
        shell.history_manager.hist_file = Path(profile_dir.location) / "history.sqlite"
        shell.history_manager.dir_hist[:] = [Path.cwd()]
        shell.init_environment()
        shell.save_sys_module_state()
        shell.init_sys_modules()
        for publisher in (shell.displayhook, shell.display_pub):
            publisher.session, publisher.pub_socket = kernel.session, kernel.iopub_socket
        shell.displayhook.topic = kernel._topic("execute_result")


def places():
    """Where matplotlib remembers, outside the shell, that it shows figures in one: (object, name)."""
    if INLINE not in sys.modules:
        return []
    return [
        (sys.modules["matplotlib.pyplot"], "_REPL_DISPLAYHOOK"),
        (sys.modules[INLINE].configure_inline_support, "current_backend"),
    ]


def value_at(holder, name):
    return getattr(holder, name, None)


def remember(known):
    """Set each place to its value."""
    for (holder, name), value in known.items():
        setattr(holder, name, value)


def show_figures():
    """Have the shell show figures, as the import of matplotlib's backend would have done had there been a shell.

    Returns:
        The shell's InlineBackend, or None where matplotlib shows nothing in a shell.
    """
    if INLINE not in sys.modules:
        return None
    inline = sys.modules[INLINE]
    if not inline.InlineBackend.initialized():
        inline._enable_matplotlib_integration()
    return inline.InlineBackend.instance() if inline.InlineBackend.initialized() else None


@contextlib.contextmanager
def _no_folder():
    """IPython makes no folder in the zygote's HOME, which is not a kernel's."""
    folder = interactiveshell.get_ipython_dir
    interactiveshell.get_ipython_dir = str
    try:
        yield
    finally:
        interactiveshell.get_ipython_dir = folder
