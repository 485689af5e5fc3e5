"""A kernel that was built before the fork is to a student what one built after it is."""

import asyncio
import os
import re
import sys
import textwrap

import pytest

from autograder import sandbox
from autograder.plans import PLANS
from autograder.prepared import SESSION
from autograder.running import ARGUMENTS, start_warm_kernel
from autograder.warm import INHERITABLE, Zygote

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kernels are forked on Linux only")
SECONDS = 60.0
NEVER_THE_SAME = re.compile(r"0x[0-9a-f]+|at [0-9a-f]{8,}|[\d.]+ (ns|µs|us|ms) |/tmp/k\w+|, 'autocall': \w+\('0'\)")
OTHER = (
    *ARGUMENTS,
    "--InteractiveShell.autocall=0",
)  # the default, but not the options with which one was built before
SEEN = {
    "the names": "print(sorted(globals()))",
    "the main module": "import __main__; print(vars(__main__) is globals(), __main__.__doc__, __name__, __builtins__)",
    "%who": "%who",
    "%lsmagic": "%lsmagic",
    "%config": "%config",
    "%alias": "%alias",
    "%pwd": "import os; print(os.getcwd(), _dh, _ih[:1], _oh, In[:1], Out)",
    "the shell's attributes": """
        for name in sorted(dir(get_ipython())):
            try: print(name, type(getattr(get_ipython(), name)))
            except Exception as error: print(name, error)
    """,
    "the shell's state": """
        for name, value in sorted(vars(get_ipython()).items()):
            if isinstance(value, (str, int, float, bool, tuple, type(None))):
                print(name, value)
    """,
    "what is configured": """
        for part in sorted(get_ipython().configurables, key=lambda part: type(part).__name__):
            print(type(part), type(part.parent))
            for name in sorted(part.traits(config=True)):
                print(name, repr(getattr(part, name)))
    """,
    "the configuration": "print(get_ipython().config, get_ipython().parent.config, get_ipython().parent.parent.config)",
    "the kernel": """
        import sys
        kernel = get_ipython().kernel
        for name in sorted(kernel.traits()):
            print(name, type(getattr(kernel, name)))
        print(kernel is type(kernel).instance(), kernel.parent is kernel.parent.instance(), kernel.shell is get_ipython())
        print(kernel.execution_count, kernel.log.name, kernel.profile_dir.location, kernel._recorded_ports)
        print(sorted(kernel.shell_handlers), sorted(kernel.control_handlers), kernel._stdout is sys.stdout)
    """,
    "the one shell": """
        import IPython
        from IPython.core.interactiveshell import InteractiveShell
        print(IPython.get_ipython() is get_ipython() is InteractiveShell.instance())
        print(type(get_ipython().parent), type(get_ipython().parent.parent))
    """,
    "the streams": "import sys; print(type(sys.stdin), sys.stdout, sys.stderr, sys.stdout.encoding, sys.__stdout__)",
    "the hooks": """
        import builtins
        print(sys.displayhook, sys.excepthook, get_ipython().sys_excepthook, sys.ps1, sys.ps2, sys.ps3)
        print(builtins.__IPYTHON__, builtins.display, input)
        state = get_ipython()._orig_sys_module_state
        print(state["stdout"] is sys.stdout, state["stderr"] is sys.stderr, state["excepthook"] == sys.excepthook)
        print(get_ipython()._orig_sys_modules_main_name, get_ipython()._orig_sys_modules_main_mod)
        print(get_ipython()._orig_sys_modules_main_mod is get_ipython().user_module)
        print(vars(get_ipython().hooks))
    """,
    "the events": "print(get_ipython().events.callbacks)",
    "the display": """
        shell = get_ipython()
        print(shell.displayhook.topic == shell.kernel._topic("execute_result"), shell.displayhook.session is shell.kernel.session)
        print(shell.display_pub.session is shell.kernel.session, shell.display_pub.pub_socket is shell.kernel.iopub_socket)
        print(shell.displayhook.pub_socket is shell.kernel.iopub_socket)
        for kind, formatter in sorted(shell.display_formatter.formatters.items()):
            print(kind, formatter.enabled, sorted(map(str, formatter.type_printers)), formatter.deferred_printers)
    """,
    "the paths": """
        print(sys.path, sys.argv, sys.executable)
        print(get_ipython().ipython_dir, get_ipython().profile_dir.location, get_ipython().profile, get_ipython().home_dir)
        print(get_ipython().starting_dir, get_ipython().history_manager.hist_file)
        for folder, folders, files in sorted(os.walk(os.path.expanduser("~"))):
            print(folder, folders, files)
    """,
    "the environment": "print(sorted(os.environ.items()))",
    "the warnings": "import warnings; print(warnings.filters)",
    "the threads": "import threading; print(sorted(thread.name for thread in threading.enumerate()))",
    "the descriptors": "print(len(os.listdir('/proc/self/fd')))",
    "random numbers": "import random, numpy, torch; print(random.random(), numpy.random.rand(), torch.rand(1))",
    "matplotlib": """
        import matplotlib
        print(matplotlib.get_backend(), matplotlib.is_interactive(), sorted(matplotlib.rcParams.items()))
        from matplotlib_inline import backend_inline, config
        inline = config.InlineBackend.instance()
        print(inline.shell is get_ipython(), inline.parent is get_ipython(), inline in get_ipython().configurables)
        print(backend_inline.configure_inline_support.current_backend)
        %config InlineBackend
    """,
    "%matplotlib": "%matplotlib inline\nprint(get_ipython().events.callbacks['post_execute'])",
    "a traceback": "def f(): return 1 / 0\ntry: f()\nexcept ZeroDivisionError: get_ipython().showtraceback()",
    "a mistake in the syntax": "get_ipython().run_cell('f(')",
    "%run": "open('x.py', 'w').write('y = 3; print(__name__, __file__)')\n%run x.py\nprint(y)",
    "%pdb": "%pdb on\n%pdb off",
    "%cd": "%cd -q /\n%cd -\nprint(_dh)",
    "%%capture": "%%capture printed\nprint(1)",
    "%time": "%%timeit -n1 -r1\npass",
    "a magic of one's own": """
        from IPython.core.magic import register_line_magic
        @register_line_magic
        def mine(line): print("mine", line)
        %mine 1
    """,
    "input": "try: input()\nexcept Exception as error: print(type(error), error)",
    "await": "import asyncio\nawait asyncio.sleep(0)\nprint(asyncio.get_running_loop().is_running())",
    "display": "display(1)\nfrom IPython.display import HTML\ndisplay(HTML('<b>x</b>'))",
    "_": "1 + 1",
    "the last result": "print(_, __, _i, _ii)",
    "completion": "print(get_ipython().complete('glob')[1], get_ipython().Completer.namespace is globals())",
    "inspection": "print(get_ipython().object_inspect_text('exit'))",
    "pickle": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
    "%reset": "%reset -f\nprint(sorted(globals()))",
    "extensions": "%load_ext autoreload\nprint(get_ipython().extension_manager.loaded)",
    "after %reset": "import sys; print('torch' in sys.modules)\n%reset -f --aggressive\nimport sys; print(len(sys.modules) > 100)",
}


MISTAKES = ("a traceback", "a mistake in the syntax")


@pytest.fixture(scope="module")
def zygote():
    with Zygote.start(sandbox.level().plan) as zygote:
        yield zygote


@pytest.fixture(scope="module")
def both(zygote):
    """What each of the cells shows in a kernel built before the fork, and in one built after it."""
    return [dict(zip(SEEN, asyncio.run(seen(zygote, arguments)), strict=True)) for arguments in (ARGUMENTS, OTHER)]


async def seen(zygote, arguments):
    async with start_warm_kernel(zygote, arguments=arguments, seed=3) as kernel:
        built_before = await shown(
            kernel, "from autograder import kernel_app; print(not kernel_app.PREPARED); del kernel_app"
        )
        assert str(arguments == ARGUMENTS) in built_before
        return [await shown(kernel, textwrap.dedent(source)) for source in SEEN.values()]


async def shown(kernel, source):
    """All that a cell shows, without what is never the same: addresses, times, names of sockets, the option that differs."""
    request, messages = kernel.client.execute(source), []
    while not messages or messages[-1]["content"].get("execution_state") != "idle":
        message = await kernel.client.get_iopub_msg(timeout=SECONDS)
        messages += [message] if message["parent_header"].get("msg_id") == request else []
    printed = "".join(message["content"]["text"] for message in messages if message["msg_type"] == "stream")
    others = [str(message["content"]) for message in messages if message["msg_type"] != "stream"]
    return NEVER_THE_SAME.sub("", "\n".join((printed, *others)))


@pytest.mark.parametrize("what", SEEN)
def test_a_student_sees_the_same_in_a_kernel_built_before_the_fork(both, what):
    before, after = both
    assert before[what] == after[what]
    assert ("'ename': " in before[what]) == (what in MISTAKES), before[what]


def test_a_kernel_of_a_session_knows_its_name(zygote):
    assert "lecture.ipynb" in asyncio.run(first_shown(zygote, "print(__session__)", env={SESSION: "lecture.ipynb"}))


def test_no_two_kernels_have_one_name(zygote):
    source = "print(get_ipython().kernel.ident)"
    assert asyncio.run(first_shown(zygote, source)) != asyncio.run(first_shown(zygote, source))


def test_a_zygote_makes_no_folder_of_ipython(tmp_path):
    with Zygote.start(PLANS["none"], env={**os.environ, **INHERITABLE, "HOME": str(tmp_path)}):
        assert list(tmp_path.glob(".ipython")) == []


def test_a_kernel_heeds_a_configuration_file(zygote, tmp_path):
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_config.py").write_text(
        "c.InteractiveShell.ast_node_interactivity = 'all'\nc.IPCompleter.debug = True"
    )
    source = "print(get_ipython().ast_node_interactivity, get_ipython().Completer.debug)"
    assert "all True" in asyncio.run(first_shown(zygote, source, files=tmp_path, env={"IPYTHONDIR": "ipython"}))


async def first_shown(zygote, source, **options):
    async with start_warm_kernel(zygote, **options) as kernel:
        return await shown(kernel, source)
