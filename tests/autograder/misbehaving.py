"""Code cells that do to their kernel what no cell should, by accident or not; each text stands alone.

SILENCING: the kernel lives on (or seems to), and what runs in it is no longer heard, all or in part.
DISTURBING: nothing is lost but what the cell itself asks for.
"""

SILENCING = {
    "closes what it prints to": "import os, sys\nos.close(1); os.close(2)\nsys.stdout = sys.stderr = None",
    "closes the socket of what it displays": (
        "import gc, zmq\n"
        "for thing in gc.get_objects():\n"
        "    if isinstance(thing, zmq.Socket) and not thing.closed and thing.type == zmq.XPUB: thing.close(linger=0)"
    ),
    "drops what is displayed": "get_ipython().display_pub.publish = lambda *a, **k: None",
    "fails at what is displayed": "get_ipython().display_pub = None",
    "displays something else": (
        "publisher = get_ipython().display_pub\nold = publisher.publish\n"
        "publisher.publish = lambda data, *a, **k: old({'text/plain': 'mine'})"
    ),
    "empties sys.modules": "import sys\nsys.modules.clear()",
    "replaces sys.modules": "import sys\nsys.modules = {}",
    "replaces open, exec and import": "import builtins\nbuiltins.exec = builtins.__import__ = builtins.open = None",
    "runs no cell any more": (
        "async def nothing(*a, **k): return {'status': 'ok', 'execution_count': 1, 'payload': [], 'user_expressions': {}}\n"
        "get_ipython().kernel.do_execute = nothing"
    ),
    "evaluates no expression": "type(get_ipython()).user_expressions = lambda self, asked: {}",
    "replies to no request": (
        "session = get_ipython().kernel.session\nold = session.send\n"
        "def send(stream, kind, *a, **k):\n"
        "    return {'content': {'status': 'ok'}} if kind == 'execute_reply' else old(stream, kind, *a, **k)\n"
        "session.send = send"
    ),
    "signs with another key": "get_ipython().kernel.session.key = b'other'",
    "holds the interpreter's lock": (
        "import re, threading\nthreading.Thread(target=re.match, args=('(a+)+$', 'a' * 99 + 'b'), daemon=True).start()"
    ),
    "stops itself": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "closes every descriptor": "import os\nos.closerange(0, 512)",
}

DISTURBING = {
    "replaces print and display": "import builtins\nbuiltins.print = print = display = None",
    "replaces standard output": "import io, sys\nsys.stdout = sys.stderr = io.StringIO()",
    "leaves threads behind": (
        "import threading, time\n"
        "for _ in range(3): threading.Thread(target=lambda: [time.sleep(0.01) or print('on') for _ in range(10**6)]).start()"
    ),
    "asks for input": "name = input('Your name: ')",
    "asks for a password": "import getpass\ngetpass.getpass()",
    "prints without end of line": "print('x' * (30 << 20), end='')",
    "a child prints for ever": "import subprocess\nchild = subprocess.Popen('yes', shell=True)",
    "displays very much": "from IPython.display import display, HTML\nfor _ in range(300): display(HTML('x' * 100_000))",
    "returns a giant value": "list(range(3_000_000))",
    "clears its output for ever": (
        "from IPython.display import clear_output\nfor _ in range(2000): clear_output(); print('*' * 1000)"
    ),
    "asks the kernel to end": "exit()",
    "raises SystemExit": "raise SystemExit(3)",
    "interrupts itself": "raise KeyboardInterrupt",
    "deletes its own folder": "import os, shutil\nshutil.rmtree(os.getcwd())",
    "changes to another folder": "import os\nos.chdir('/')",
    "recurses without end": "def f(): return f()\nf()",
    "recurses until it crashes": "import sys\nsys.setrecursionlimit(10**9)\ndef f(): return f()\nf()",
    "forks without end": "import os\nwhile True:\n    try: os.fork()\n    except OSError: break",
    "leaves a child that keeps the sockets": "import os, time\nif os.fork() == 0:\n    time.sleep(1000)",
    "a child runs on as the kernel": "import os\nos.fork()",
    "its kernel ends, a child runs on": "import os\nif os.fork(): os._exit(0)",
    "forgets all names": "%reset -f -s",
    "kills its process group": "import os, signal\nos.killpg(0, signal.SIGTERM)",
    "ignores signals": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGTERM, signal.SIG_IGN)",
    "is no text for a terminal": "print('\\x1b[2J\\x00\\ud800'.encode('utf-8', 'replace').decode())",
    "uses up its memory": "x = []\nwhile True: x.append(bytearray(50 << 20))",
}
