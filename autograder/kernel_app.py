"""An IPython kernel that starts inside a forked process, on sockets that were bound for it.

The client's side binds five Unix sockets and listens on them before the fork; the kernel inherits them. So the sandbox
needs no folder in which host and kernel can both write, nobody else can connect, and a client may connect before the
kernel is there.
"""

import codecs
import contextlib
import logging
import os
import re
import subprocess
import sys
import types


class _NoDebugger:
    """Stands in for ipykernel.debugger, whose import takes 200 ms and starts threads and a helper process."""


if "ipykernel.debugger" not in sys.modules:
    sys.modules["ipykernel.debugger"] = types.ModuleType("ipykernel.debugger")
    sys.modules["ipykernel.debugger"].__dict__.update(_is_debugpy_available=False, Debugger=_NoDebugger)

import zmq  # noqa: E402
from ipykernel import ipkernel, zmqshell  # noqa: E402
from ipykernel.heartbeat import Heartbeat  # noqa: E402
from ipykernel.iostream import IOPubThread, OutStream  # noqa: E402
from ipykernel.kernelapp import IPKernelApp  # noqa: E402
from IPython.core import shellapp  # noqa: E402
from traitlets import DottedObjectName, Float, List, Type  # noqa: E402
from traitlets.config.loader import Config, DeferredConfigString  # noqa: E402

from autograder import prepared  # noqa: E402

MOST_PIPED = 8 << 20  # bytes that are forwarded of what libraries and children write to a descriptor
PIECE = 1 << 16
OPTION = re.compile(r"--([A-Z]\w*)\.(\w+)=(.*)", re.S)  # --Class.trait=value
MODULES: set[str] = set()  # their names when the zygote was warm
PREPARED: list[prepared.Prepared] = []  # at most one
CHANNELS = ("shell", "iopub", "stdin", "control", "hb")  # the order in which listening descriptors are passed


def _system(command):
    """Stands in for IPython.utils.process.system (`!command`), which needs a terminal: behind the walls there are none.

    Returns:
        The exit status of /bin/sh, or -signal. What the command prints is printed while it runs.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, shell=True, **streams) as process:
        try:
            while piece := process.stdout.read1():
                print(decoder.decode(piece), end="", flush=True)
        except KeyboardInterrupt:  # as upstream: the command ends, the cell goes on
            process.kill()
    return process.returncode


zmqshell.system = _system


class BoundHeartbeat(Heartbeat):
    """A heartbeat on a socket that already listens."""

    def __init__(self, *arguments, descriptor, **keywords):
        super().__init__(*arguments, **keywords)
        self.descriptor = descriptor

    def _bind_socket(self):
        self.socket.setsockopt(zmq.USE_FD, self.descriptor)
        super()._bind_socket()


class WarmStream(OutStream):
    """An output stream whose flush costs nothing where nothing was written; upstream wakes a thread and waits for it."""

    def flush(self):
        """Called four times around each cell."""
        if self._buffers:
            super().flush()

    def _watch_pipe_fd(self):
        """OutStream: forward what comes through the descriptor. A child that floods it would drown all other messages."""
        left = MOST_PIPED
        with contextlib.suppress(Exception), open(os.devnull, "wb", buffering=0) as nowhere:
            while left > 0 and (piece := os.read(self._fid, min(left, PIECE))) and self._should_watch:
                self.write(piece.decode(errors="replace"))
                left -= len(piece)
            while os.splice(self._fid, nowhere.fileno(), PIECE) and self._should_watch:
                pass


@contextlib.contextmanager
def _sees_no_modules(library):
    """To that library no module is loaded: to look at each of them copies a third of all the pages that a kernel copies."""
    library.sys = types.SimpleNamespace(**{**vars(sys), "modules": {}})
    try:
        yield
    finally:
        library.sys = sys


class WarmKernel(ipkernel.IPythonKernel):
    """An IPython kernel that says when a client may come."""

    # upstream each cell sleeps 0.5 ms so that its output comes before its reply: here it does
    _execute_sleep = Float(0)

    @classmethod
    def instance(cls, **keywords):
        """IPKernelApp.init_kernel calls this: the kernel that was built before the fork, if it fits, else a new one."""
        if PREPARED and not cls.initialized() and PREPARED[0].fits(keywords["parent"]):
            PREPARED.pop().adopt(**keywords)
        return super().instance(**keywords)

    def __init__(self, **keywords):
        with _sees_no_modules(ipkernel):  # it would list the files of all for the debugger that is not there
            super().__init__(**keywords)

    def start(self):
        """IPKernelApp.start: read messages. A client that subscribes while something is published may not be greeted:

        the socket tells of its coming once, and who publishes takes notice for the one who greets. So ready is said when all
        that is published at the start has been.
        """
        super().start()
        self.iopub_thread.schedule(self.parent.ready)


class WarmKernelApp(IPKernelApp):
    """IPKernelApp without connection file, parent poller and debugger, on inherited sockets."""

    default_extensions = List()  # no %store: it would open a database in HOME
    kernel_class = Type(WarmKernel, klass=ipkernel.IPythonKernel)
    outstream_class = DottedObjectName(f"{__name__}.WarmStream")

    def serve(self, connection, listeners, own_network, ready):
        """Where clients come from, and what to call once they may come; to be told before `initialize`."""
        self.connection = connection
        self.ready = ready
        self.listeners = dict(zip(CHANNELS, listeners, strict=True))
        self.own_network = own_network

    def parse_command_line(self, argv=None):
        """Application.initialize: options alone need no parser, which would be built of every option of every class."""
        options = [OPTION.fullmatch(argument) for argument in argv or ()]
        if not all(options):
            return super().parse_command_line(argv)
        self.argv, self.cli_config, self.extra_args = list(argv or ()), Config(), []
        for option in options:
            section, name, value = option.groups()
            self.cli_config[section][name] = DeferredConfigString(value)
        self.update_config(self.cli_config)

    def _configure_logging(self):
        """Application calls this: nobody reads the log of a kernel, and upstream touches every logger there is."""
        log = logging.getLogger(type(self).__name__)
        log.handlers, log.propagate = [logging.NullHandler()], False
        log.level = logging.WARNING  # setLevel() would empty the caches of all loggers
        self._logging_configured = True

    def init_connection_file(self):
        """IPKernelApp.initialize calls this first: take ports, key and transport from the request."""
        self.load_connection_info(self.connection)

    def write_connection_file(self, **keywords):
        """IPKernelApp.initialize calls this last: the client wrote it."""

    def init_poller(self):
        """IPKernelApp.initialize: a kernel ends with its zygote, nobody need watch a parent."""

    def log_connection_info(self):
        """IPKernelApp.initialize: remember the ports, print nothing."""
        self._ports = {channel: getattr(self, f"{channel}_port") for channel in CHANNELS}

    def init_code(self):
        """IPKernelApp.initialize: what runs before the first cell, and the names of modules that `%reset -s` spares."""
        with _sees_no_modules(shellapp):
            super().init_code()
        self.shell._sys_modules_keys = MODULES

    def _bind_socket(self, socket, port):
        channel = next(name for name in CHANNELS if getattr(self, f"{name}_port") == port)
        socket.setsockopt(zmq.USE_FD, self.listeners[channel])
        return super()._bind_socket(socket, port)

    def init_control(self, context):
        """IPKernelApp.init_sockets: without the debugger's connection to the shell, which would retry for ever."""
        super().init_control(context)
        self.debug_shell_socket.disconnect(self.shell_socket.getsockopt(zmq.LAST_ENDPOINT))

    def init_iopub(self, context):
        """IPKernelApp.init_sockets: forked children send what they print through loopback TCP, if the kernel may.

        libzmq ends the process when it may not; then children of the kernel print to nowhere.
        """
        if self.own_network:
            return super().init_iopub(context)
        self.iopub_socket = context.socket(zmq.XPUB)
        self.iopub_socket.linger = 1000
        self._apply_curve_server_options(self.iopub_socket)
        self.iopub_port = self._bind_socket(self.iopub_socket, self.iopub_port)
        self.configure_tornado_logger()
        self.iopub_thread = IOPubThread(self.iopub_socket, pipe=False, session=self.session)
        self.iopub_thread.start()
        self.iopub_socket = self.iopub_thread.background_socket
        os.register_at_fork(after_in_child=_mute)

    def init_heartbeat(self):
        """IPKernelApp.initialize: own context, for the heartbeat must not wait for the interpreter's lock."""
        address = (self.transport, self.ip, self.hb_port)
        self.heartbeat = BoundHeartbeat(
            zmq.Context(),
            address,
            descriptor=self.listeners["hb"],
            curve_publickey=self.curve_publickey,
            curve_secretkey=self.curve_secretkey,
        )
        self.heartbeat.start()


def _mute():
    sys.stdout = sys.stderr = open(os.devnull, "w")


def run(request, listeners, ready, own_network):
    """Run a kernel until it ends; `ready()` is called once it reads messages.

    request: a dict with "connection" (see jupyter_client.connect) and "arguments" (of IPKernelApp).
    """
    app = WarmKernelApp.instance()
    app.serve(request["connection"], listeners, own_network, ready)
    app.initialize(request["arguments"])
    prepared.show_figures()
    app.start()


def prepare(arguments):
    """Build a kernel before the fork, for those that are asked for with these arguments."""
    app = WarmKernelApp()
    app.parse_command_line(arguments)
    app.init_pdb()
    PREPARED.append(prepared.Prepared(WarmKernel, app))
    MODULES.update(sys.modules)
