"""docs/cluster.md holds: its commands start a cluster whose workers see nothing of the course, and grade a class on it."""

import ast
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
import yaml

from autograder import release
from autograder.settings import load_settings

ROOT = Path(__file__).parents[2]
LECTURE = "10_tiny"
WRONG = {"every_kth": "def every_kth(x, k):\n    return x[-1, list(range(0, x.shape[1], k))]"}
SECONDS = 240  # for one step; a quiet machine needs a tenth

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the machines of the cluster are folders and mount namespaces"),
    pytest.mark.xdist_group("kills"),
]


def blocks(language):
    """The examples of one language in docs/cluster.md."""
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def block(opening):
    """The one example that begins with these words, after its #."""
    (found,) = [text for text in blocks("sh") if text.startswith(f"# {opening}")]
    return found


def can_hide():
    """Whether a process can be started that does not see a folder."""
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0


class Machine:
    """A machine of the cluster: a folder of its own for everything; `hidden` is a folder that it does not have."""

    def __init__(self, above, name, hidden=None):
        self.folder, self.hidden, self.started = above / name, hidden, []
        self.folder.mkdir()
        (self.folder / "tmp").mkdir()

    def command(self, script):
        shell = ["sh", "-c", script]
        if self.hidden is None:
            return shell
        hide = 'mount -t tmpfs none "$0" && exec "$@"'
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c", hide, str(self.hidden), *shell]

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
        path = f"{Path(sys.executable).parent}:{kept['PATH']}"
        return {**kept, "PATH": path, "HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp")}

    def start(self, script):
        """Run a script that does not end."""
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen(
                self.command(script), cwd=self.folder, env=self.environment(), stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self.started.append(process)
        return process

    def run(self, script, cwd=None):
        return subprocess.run(
            self.command(script), cwd=cwd or self.folder, env=self.environment(), capture_output=True, text=True,
            timeout=SECONDS,
        )  # fmt: skip

    def said(self):
        return (self.folder / "log").read_text(errors="replace")

    def stop(self):
        for process in self.started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def wait_for(fact, machines):
    end = time.monotonic() + SECONDS
    while not fact():
        assert time.monotonic() < end, [machine.said() for machine in machines]
        assert all(p.poll() is None for m in machines for p in m.started), [machine.said() for machine in machines]
        time.sleep(0.1)


@pytest.fixture(scope="module")
def course(built_course, tmp_path_factory):
    """The folder of a released course, with a class that handed in and a database of which no worker may hear."""
    root = shutil.copytree(built_course, tmp_path_factory.mktemp("cluster") / "course")
    release.release([LECTURE], load_settings(root))
    return root


@pytest.fixture(scope="module")
def cluster(course):
    """(what to put in place of the document's names, the machine of the coordinator, those of the workers)."""
    above = Path(tempfile.mkdtemp(prefix="cl", dir="/tmp"))  # short: paths of sockets begin with it
    port = free_port()
    names = {
        "0.0.0.0": "127.0.0.1",
        "scheduler.example.org": "127.0.0.1",
        "8786": str(port),
        "--nworkers 4": "--nworkers 1",
        "02_indexing": LECTURE,
        "grading/submitted": "handed",
        "autograder grade": "autograder grade --trust-code",  # the tests' own code, where there is no sandbox
    }
    hidden = course.parent if can_hide() else None
    here = Machine(above, "here")
    there = [Machine(above, name, hidden) for name in ("scheduler", "one", "two")]
    try:
        assert here.run(block("once, anywhere")).returncode == 0
        (here.folder / "tls.sh").write_text(block("tls.sh"))
        for machine in there:
            for name in ("cluster.pem", "tls.sh"):
                shutil.copy(here.folder / name, machine.folder)
        there[0].start(put(names, block("the scheduler")))
        wait_for(lambda: "Scheduler at" in there[0].said(), there)
        for machine in there[1:]:
            machine.start(put(names, block("on each machine that grades")))
        wait_for(lambda: all("Registered to" in machine.said() for machine in there[1:]), there)
        yield names, here, there[1:]
    finally:
        for machine in reversed(there):
            machine.stop()
        shutil.rmtree(above, ignore_errors=True)


def put(names, text):
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def grade(cluster, course, change=lambda command: command):
    """The document's command, changed, called in the course's folder: (exit code, stderr without its line breaks)."""
    names, here, _ = cluster
    for name in ("cluster.pem", "tls.sh"):
        if not (course / name).exists():
            shutil.copy(here.folder / name, course)
    command = put(names, block("where the course and the class are\n. ./tls.sh"))
    done = here.run(change(command), course)
    return done.returncode, " ".join(done.stderr.split())


def test_a_class_is_graded_by_workers_that_do_not_see_the_course(cluster, course, handed_in):
    for student, text in {"ada": handed_in(), "bob": handed_in(WRONG), "cyd": handed_in(), "dan": "{"}.items():
        path = course / "handed" / student / LECTURE / f"{LECTURE}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    code, err = grade(cluster, course)
    assert code == 0, err
    results = json.loads((course / "grading" / "report" / "results.json").read_text(encoding="utf-8"))
    scores = {record["student"]: (record["state"], record["score"]) for record in results["submissions"]}
    assert scores == {"ada": ("graded", 5), "bob": ("graded", 3), "cyd": ("graded", 5), "dan": ("ungradable", 0)}
    levels = {record["provenance"]["sandbox"] for record in results["submissions"]} - {""}
    assert levels == {results["run"]["sandbox"]}
    assert "without TLS" not in err

    _, _, workers = cluster
    for worker in workers:
        everything = [path.name for path in worker.folder.rglob("*")]
        assert not [name for name in everything if name.startswith(("autograder-", "run-", "lecture-", "gradebook"))]
        if worker.hidden:
            seen = f"/proc/{worker.started[0].pid}/root{worker.hidden}"
            assert os.listdir(seen) == [] and os.listdir(worker.hidden) != []


def test_without_a_certificate_nobody_gets_in(cluster, course):
    code, err = grade(cluster, course, lambda command: command.replace(". ./tls.sh", ""))
    assert code == 2 and "tls:// needs a certificate" in err


def test_with_another_certificate_nobody_gets_in(cluster, course, tmp_path):
    cluster[1].run(block("once, anywhere"), tmp_path)
    shutil.copy(tmp_path / "cluster.pem", course / "cluster.pem")
    try:
        code, err = grade(cluster, course)
    finally:
        (course / "cluster.pem").unlink()
    assert code == 2 and "is not one that it trusts" in err


# ---- the examples that no test can run


def test_the_manifests_parse_and_name_what_they_refer_to():
    (text,) = blocks("yaml")
    cluster, policy = yaml.safe_load_all(text)
    assert (cluster["kind"], policy["kind"]) == ("DaskCluster", "NetworkPolicy")
    for part in ("scheduler", "worker"):
        pod = cluster["spec"][part]["spec"]
        (container,) = pod["containers"]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        assert all(isinstance(argument, str) for argument in container["args"])
        program, flags = container["args"][1], [a for a in container["args"] if a.startswith("--")]
        assert set(flags) <= options(program)


def test_the_commands_use_options_that_there_are():
    for text in blocks("sh"):
        for program, rest in re.findall(r"^dask (\w+) (.*)$", text, re.MULTILINE):
            assert set(re.findall(r"--[\w-]+", rest)) <= options(program), rest


def options(program):
    said = subprocess.run([sys.executable, "-m", "dask", program, "--help"], capture_output=True, text=True, check=True)
    return {option for found in re.findall(r"--[\w/-]+", said.stdout) for option in re.split(r"/(?=--)", found)}


def test_the_script_for_slurm_is_python_of_its_length():
    (text,) = blocks("python")
    ast.parse(text)
    assert max(map(len, text.splitlines())) <= 140
