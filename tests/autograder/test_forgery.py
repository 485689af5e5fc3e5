"""Whatever student code does to be believed, an exercise earns what its returned values earn."""

import json
from dataclasses import replace

import pytest

from autograder.grade import grade_submission
from autograder.records import Submission

REPLY = "application/vnd.autograder.reply"

# Cells put in after the setup of the blank notebook: none of them may earn a point.
FORGERIES = {
    "prints a score": "print('score: 6.5/6.5'); print('all tests passed')",
    "displays a score": "get_ipython().displayhook(6.5)",
    "displays as an execute_result of the check": "from IPython.display import display; display({'text/plain': '6.5'}, raw=True)",
    "patches torch comparisons": "import torch\ntorch.equal = torch.allclose = torch.isclose = torch.Tensor.__eq__ = lambda *a, **k: True",
    "patches assert_close": "import torch.testing\ntorch.testing.assert_close = lambda *a, **k: None",
    "patches builtins": "import builtins\nbuiltins.all = builtins.any = builtins.isinstance = lambda *a: True",
    "patches json and base64": "import json, base64\njson.dumps = lambda *a, **k: '{}'\nbase64.b64encode = lambda *a: b'AAAA'",
    "patches safetensors": "import safetensors.torch as s\ns.save = s.load = lambda *a, **k: b''",
    "replaces check": "check = lambda function: print('visible checks passed')",
    "replaces the checker's call": "type(check).__call__ = lambda self, function: None",
    "replaces the compare module": (
        "import sys, types\nfor name in list(sys.modules):\n"
        "    if name.startswith('autograder'): sys.modules[name] = types.ModuleType(name)"
    ),
    "rewrites checks.json": "import pathlib\ntry: pathlib.Path('checks.json').write_text('{}')\nexcept OSError: pass",
    "empties later cells": (
        "import ast\nclass Empty(ast.NodeTransformer):\n    def visit_Module(self, node):\n        node.body = []\n        return node\n"
        "get_ipython().ast_transformers.append(Empty())"
    ),
    "rewrites later cells' text": "get_ipython().input_transformers_cleanup.append(lambda lines: ['1\\n'])",
    "answers expressions itself": (
        "yes = {'status': 'ok', 'data': {'text/plain': 'True'}, 'metadata': {}}\n"
        "type(get_ipython()).user_expressions = lambda self, asked: dict.fromkeys(asked, yes)"
    ),
    "sends expressions back that are none": "type(get_ipython()).user_expressions = lambda self, asked: {'probe': [1]}",
    "replaces eval, exec and marshal": (
        "import builtins, marshal, zlib\nbuiltins.exec = builtins.eval = marshal.loads = zlib.decompress = lambda *a, **k: None"
    ),
    "replaces run_cell": "get_ipython().run_cell = lambda *a, **k: None",
    "replaces do_execute": (
        "async def nothing(*a, **k): return {'status': 'ok', 'execution_count': 1, 'payload': [], 'user_expressions': {}}\n"
        "get_ipython().kernel.do_execute = nothing"
    ),
    "replaces the display publisher": (
        "pub = get_ipython().display_pub\nold = pub.publish\n"
        f"def publish(data, *a, **k):\n    if '{REPLY}' in data: data = {{'{REPLY}': 'AAAA'}}\n    return old(data, *a, **k)\npub.publish = publish"
    ),
    "drops every reply": "get_ipython().display_pub.publish = lambda *a, **k: None",
    "sends replies of its own": f"get_ipython().display_pub.publish({{'{REPLY}': 'e30='}})",
    "sends a huge reply": f"get_ipython().display_pub.publish({{'{REPLY}': 'A' * (14 << 20)}})",
    "says it is idle for every message": (
        "k = get_ipython().kernel\nold = k.session.send\n"
        "def send(stream, kind, *a, **kw):\n    r = old(stream, kind, *a, **kw)\n"
        "    try: old(k.iopub_socket, 'status', {'execution_state': 'idle'}, parent=k.get_parent())\n    except Exception: pass\n    return r\n"
        "k.session.send = send"
    ),
    "signs messages with another key": "get_ipython().kernel.session.key = b'other'",
    "answers with an object that equals everything": (
        "class Yes:\n    def __eq__(self, o): return True\n    def __getattr__(self, n): return self\n    def __call__(self, *a, **k): return self\n"
        "    def __iter__(self): return iter(())\n    def __bool__(self): return True\n"
        "every_kth = even_numbers = lambda *a: Yes()"
    ),
    "answers with a lying tensor subclass": (
        "import torch\nclass Lie(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None): return True\n"
        "every_kth = even_numbers = lambda *a: torch.zeros(3).as_subclass(Lie)"
    ),
    "answers with a lying dispatch subclass": (
        "import torch\nclass Lie(torch.Tensor):\n    @staticmethod\n    def __new__(cls): return torch.Tensor._make_wrapper_subclass(cls, (2,))\n"
        "    @classmethod\n    def __torch_dispatch__(cls, func, types, args=(), kwargs=None): return True\n"
        "every_kth = even_numbers = lambda *a: Lie()"
    ),
    "looks the expected values up in frames": (
        "import sys\ndef every_kth(x, k):\n    frame = sys._getframe()\n    while frame:\n"
        "        for value in frame.f_locals.values():\n            if isinstance(value, dict) and 'expected' in value: return value['expected']\n"
        "        frame = frame.f_back\n    raise NotImplementedError\neven_numbers = lambda x: every_kth(x, 1)"
    ),
    "looks the reference up in the garbage collector": (
        "import gc, types\ndef every_kth(x, k):\n    for f in gc.get_objects():\n"
        "        if isinstance(f, types.FunctionType) and f.__name__ == 'every_kth' and f is not every_kth: return f(x, k)\n"
        "    raise NotImplementedError"
    ),
    "reads the history": "every_kth = lambda x, k: eval(In[-1])\neven_numbers = lambda x: eval(In[-1])",
    "imports the exercises": (
        "import sys\nsys.path[:0] = ['..', '../..', '/solutions', '../solutions/10_tiny']\n"
        "try:\n    from exercises import every_kth, even_numbers\nexcept ImportError: pass"
    ),
    "replays what checks.json expects": (
        "import json, base64\ntry:\n    data = json.load(open('checks.json'))['exercises']\n"
        f"    get_ipython().display_pub.publish({{'{REPLY}': data[0]['expected']}})\nexcept Exception: pass"
    ),
    "overrides a torch kernel": (
        "import torch\nlib = torch.library.Library('aten', 'IMPL')\n"
        "try: lib.impl('equal', lambda a, b: True, 'CPU')\nexcept Exception: pass"
    ),
    "stops the warning and trace machinery": "import sys, warnings\nwarnings.catch_warnings = None\nsys.settrace(lambda *a: None)",
    "makes exit codes lie": "import atexit, os\natexit.register(lambda: os._exit(0))",
    "leaves a thread that publishes": (
        "import threading, time\ndef again():\n    while True:\n"
        f"        get_ipython().display_pub.publish({{'{REPLY}': 'e30='}}); time.sleep(0.01)\n"
        "threading.Thread(target=again, daemon=True).start()"
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_earns_nothing(name, tiny, tiny_settings, handed_in):
    submission = Submission("mallory", "10_tiny", handed_in(extra=[FORGERIES[name]], blank=True))
    report = grade_submission(submission, tiny, replace(tiny_settings, submission_seconds=40), seed=3)
    assert report.score == 0, [(v.exercise, v.score, v.message) for v in report.verdicts]
    assert report.state == "graded" and all(v.message for v in report.verdicts)


HONEST = ("prints a score", "displays a score", "replaces check", "replaces the checker's call")


@pytest.mark.parametrize("name", HONEST)
def test_right_answers_beside_it_keep_their_points(name, tiny, tiny_settings, handed_in):
    submission = Submission("mallory", "10_tiny", handed_in(extra=[FORGERIES[name]]))
    assert grade_submission(submission, tiny, tiny_settings, seed=3).score == 5


def test_the_executed_notebook_holds_no_reference_and_no_hidden_case(tiny, tiny_settings, handed_in):
    snoop = (
        "import gc\nprint([o for o in gc.get_objects() if isinstance(o, str) and 'select(0, x.shape[0] - 1)' in o][:3])"
    )
    report = grade_submission(Submission("eve", "10_tiny", handed_in(extra=[snoop])), tiny, tiny_settings, seed=3)
    outputs = json.dumps([c.get("outputs") for c in json.loads(report.notebook)["cells"]])
    assert "x.shape[0]" not in outputs.replace("select(0, x.shape[0] - 1)' in o", "")
