"""The level of a machine is what was tried there; what it rests on is tested piece by piece."""

import errno
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autograder import bubblewrap, cgroup, folders, landlock, leftovers, sandbox, seccomp, selftest, warm
from autograder.errors import EngineError
from autograder.limits import Limits
from autograder.plans import PLANS
from autograder.warm import Ended

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sandboxes are a matter of Linux")
THREATS = Path(__file__).parents[2] / "docs" / "threats.md"


@pytest.fixture
def fresh_level():
    """Finds the level anew, and forgets it afterwards."""
    sandbox.level.cache_clear()
    yield sandbox.level
    sandbox.level.cache_clear()


@linux
def test_a_fork_without_walls_gets_past_all_of_them():
    """Else the self-test could not tell a wall from none."""
    held = sandbox.try_out(PLANS["none"])
    assert set(held) == set(selftest.TRIALS)
    assert [name for name, holds in held.items() if holds] in (
        [],
        ["signals"],
    )  # the grader is process 1 of a container


@linux
def test_the_level_is_the_best_that_holds(fresh_level):
    found = fresh_level()
    assert sandbox.reason_against(found.plan) is None or found.name == "none"
    names = list(PLANS)
    assert list(found.why) == names[: names.index(found.name)]
    assert found is fresh_level()


@linux
def test_this_machine_reaches_what_its_system_offers():
    """Else a broken wall would only lower the level, and the attacks on it would be skipped."""
    bwrap = bubblewrap.program() or "none"
    nested = [bwrap, "--bind", "/", "/", "--dev", "/dev", "--unshare-all", "unshare", "--map-root-user", "true"]
    if shutil.which(bwrap) and subprocess.run(nested, capture_output=True).returncode == 0:
        assert sandbox.level().name in ("strict", "watchdog"), sandbox.level().why
    if landlock.abi() and os.geteuid() != 0:
        assert sandbox.reason_against(PLANS["landlock"]) is None


@linux
def test_without_bubblewrap_the_level_is_lower_and_says_why(fresh_level, monkeypatch):
    monkeypatch.setattr(bubblewrap, "program", lambda: None)
    found = fresh_level()
    assert found.name in ("landlock", "none")
    assert found.why["watchdog"] == "bubblewrap is not installed"


@linux
def test_without_landlock_a_root_file_system_is_still_a_wall(fresh_level, monkeypatch):
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    found = fresh_level()
    assert found.name == "none" or any("no Landlock" in sentence for sentence in found.missing)


@linux
def test_another_checkout_than_the_installed_one_reaches_the_same_level(tmp_path):
    """It is found by PYTHONPATH; its zygotes, whose environment is clean, import the same package."""
    root = Path(__file__).parents[2]
    for package in bubblewrap.PACKAGES:
        shutil.copytree(root / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "autograder" / "only_here.py").write_text("")
    zygote = tmp_path / "autograder" / "fork.py"
    zygote.write_text(f"import autograder.only_here\n{zygote.read_text()}")
    code = "import autograder; from autograder import sandbox; print(autograder.__file__, sandbox.level().name)"
    told = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert told.stdout.split() == [str(tmp_path / "autograder" / "__init__.py"), sandbox.level().name], told.stderr


@linux
def test_a_zygote_that_does_not_start_is_not_taken_for_a_missing_wall(fresh_level, monkeypatch, tmp_path):
    (tmp_path / "autograder").mkdir()
    (tmp_path / "autograder" / "__init__.py").write_text("raise ImportError('half an installation')")
    monkeypatch.setattr(sandbox, "reason_against", lambda plan: "the zygote ended while it started")
    monkeypatch.setattr(warm, "our_place", lambda: {"PYTHONPATH": str(tmp_path)})
    for trusted in (False, True):
        with pytest.raises(EngineError, match=r"does not start \(ImportError: half an installation\).*would not help"):
            sandbox.at_least(trust_code=trusted)


@pytest.mark.parametrize(("system", "name"), [("darwin", "darwin"), ("win32", "win32")])
def test_other_systems_have_no_level_and_say_so(fresh_level, monkeypatch, system, name):
    monkeypatch.setattr(sys, "platform", system)
    found = fresh_level()
    assert found.name == "none" and found.missing == sandbox.NOTHING
    assert found.why["landlock"] == f"it needs Linux, this is {name}"


def test_every_plan_says_what_it_does_not_isolate_in_sentences():
    assert set(sandbox.MISSING) == set(PLANS)
    for sentences in sandbox.MISSING.values():
        assert all(re.fullmatch(r"[A-Z].*\.", sentence) for sentence in sentences)


def verdict(program, machine, number, *arguments, arch=None):
    """What a filter says about a system call: run as the kernel runs it, by cBPF's rules."""
    words = {seccomp.NUMBER: number, seccomp.ARCH: arch or seccomp.AUDIT_ARCH[machine]}
    words |= {seccomp.FIRST + 8 * i: value & 0xFFFFFFFF for i, value in enumerate(arguments)}
    accumulator, position = 0, 0
    while True:
        code, true, false, value = program[position]
        position += 1
        if code == seccomp.LOAD:
            accumulator = words.get(value, 0)
        elif code == seccomp.AND:
            accumulator &= value
        elif code == seccomp.RETURN:
            return value
        else:
            holds = {
                seccomp.EQUAL: accumulator == value,
                seccomp.AT_LEAST: accumulator >= value,
                seccomp.ANY_BIT: accumulator & value != 0,
            }[code]
            position += true if holds else false


def error(number):
    return 0x00050000 | number


MACHINES = pytest.mark.parametrize("machine", seccomp.AUDIT_ARCH)
NETWORKS = pytest.mark.parametrize("network", [True, False])


@MACHINES
@NETWORKS
def test_the_filter_refuses_what_it_lists_and_nothing_else(machine, network):
    program = seccomp.program(machine, network, memory_files=True)
    column = list(seccomp.AUDIT_ARCH).index(machine) + 1
    refused = {row[column] for row in seccomp.REFUSED} - {None}
    special = {seccomp.CLONE3, seccomp.CLONE[machine], seccomp.CONNECT[machine], *seccomp.SOCKETS[machine]}
    assert len(program) < 4096 and not refused & special
    for number in range(500):
        if number not in special:
            assert verdict(program, machine, number) == (error(errno.EPERM) if number in refused else seccomp.ALLOW)
    assert verdict(program, machine, seccomp.CLONE3) == error(errno.ENOSYS)
    assert verdict(program, machine, seccomp.CLONE[machine], 0x10000000) == error(errno.EPERM)
    assert verdict(program, machine, seccomp.CLONE[machine], 0x1200011) == seccomp.ALLOW  # fork
    assert verdict(program, machine, 39, arch=0x40000003) == seccomp.KILL  # i386


@MACHINES
def test_the_filter_leaves_no_socket_that_can_send_to_an_address_of_the_host(machine):
    program, inside = (seccomp.program(machine, network, True) for network in (False, True))
    socket, pair = seccomp.SOCKETS[machine]
    stream, datagram, sequence, nonblocking = 1, 2, 5, 0o4000
    for number in (socket, pair):
        assert verdict(program, machine, number, seccomp.AF_UNIX, stream | nonblocking) == seccomp.ALLOW
        assert verdict(program, machine, number, seccomp.AF_UNIX, sequence) == seccomp.ALLOW
        assert verdict(program, machine, number, seccomp.AF_UNIX, datagram | nonblocking) == error(errno.EACCES)
        for family in (seccomp.AF_INET, seccomp.AF_INET6, seccomp.AF_NETLINK, 17, 38, 40):
            assert verdict(program, machine, number, family, stream) == error(errno.EACCES)
    assert verdict(program, machine, seccomp.CONNECT[machine]) == error(errno.EACCES)
    assert verdict(inside, machine, seccomp.CONNECT[machine]) == seccomp.ALLOW
    assert verdict(inside, machine, socket, seccomp.AF_INET, stream) == seccomp.ALLOW
    assert verdict(inside, machine, socket, 17, stream) == error(errno.EACCES)


@MACHINES
def test_the_filter_refuses_memory_files_but_for_a_gpu(machine):
    number = seccomp.MEMFD_CREATE[machine]
    assert verdict(seccomp.program(machine, True, memory_files=False), machine, number) == error(errno.EPERM)
    assert verdict(seccomp.program(machine, True, memory_files=True), machine, number) == seccomp.ALLOW


@pytest.mark.parametrize("version", cgroup.FILES)
def test_a_control_group_allows_so_much_beyond_the_warm_process(tmp_path, version):
    files = {name: tmp_path / file for name, file in cgroup.FILES[version].items()}
    for path, text in ((files["use"], "1000"), (files["kills"], "low 0\noom_kill 2"), (tmp_path / "pids.current", "7")):
        path.write_text(text)
    group = cgroup.Group(str(tmp_path), str(tmp_path), version)
    group.settle()
    group.allow(Limits(memory_mib=2, processes=5))
    assert files["limit"].read_text() == str(1000 + (2 << 20)) and (tmp_path / "pids.max").read_text() == "12"
    files["peak"].write_text(str(1000 + (3 << 20)))
    assert group.explain(Ended(-9)) == Ended(-9, peak_mib=3)
    files["kills"].write_text("low 0\noom_kill 3")
    assert group.explain(Ended(-9)).stopped_by == "memory"


@linux
def test_groups_of_killed_workers_are_forgotten_and_those_of_the_living_are_not(tmp_path):
    for name in ("autograder-killed", "another"):
        (tmp_path / name).mkdir()
    (living,), held = leftovers.claimed(lambda: cgroup.new_groups([str(tmp_path)]))
    cgroup.forget_killed(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", os.path.basename(living)]
    leftovers.release(held)
    cgroup.forget_killed(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["another"]


def test_a_control_group_that_is_not_to_be_had_is_an_error(monkeypatch):
    monkeypatch.setattr(cgroup, "hierarchies", lambda: iter(()))
    with pytest.raises(OSError, match="no control groups"):
        cgroup.Group.create()


@linux
def test_folders_are_emptied_however_deep_and_locked(tmp_path):
    top = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):  # deeper than Python's stack, and than a path may be long
        os.mkdir("d" * 10, dir_fd=top)
        below = os.open("d" * 10, os.O_RDONLY, dir_fd=top)
        os.close(top)
        top = below
    os.close(os.open("file", os.O_CREAT, dir_fd=top))
    os.close(top)
    (tmp_path / "locked/in").mkdir(parents=True)
    (tmp_path / "locked/in/file").touch()
    (tmp_path / "locked/in").chmod(0)
    (tmp_path / "locked").chmod(0)
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "kept").touch()
    (tmp_path / "link").symlink_to(outside)
    assert folders.tally(tmp_path, 10_000)[0] == float("inf")
    folders.empty(tmp_path)
    assert list(tmp_path.iterdir()) == [] and (outside / "kept").exists()


def test_folders_are_counted(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_bytes(b"x" * 5000)
    (tmp_path / "link").symlink_to("/")
    count, size = folders.tally(tmp_path, 100)
    assert count == 4 and size >= 5000
    assert folders.tally(tmp_path, 1)[0] > 1


@linux
def test_a_kernel_sees_the_packages_and_not_the_course(tmp_path):
    paths = bubblewrap.visible()
    repository = str(Path(__file__).parents[2])
    assert any(path == f"{repository}/autograder" for path in paths) or "site-packages" in sandbox.__file__
    assert not any(repository == path or repository.startswith(f"{path}/") for path in paths)
    assert not any(path.startswith(f"{repository}/solutions") for path in paths)
    assert not any("maskedtensor_ref" in path for path in bubblewrap.visible(hides=("maskedtensor_ref",)))


UNPRIVILEGED = """
mkdir {folder}/python && mount --bind {home} {folder}/python &&
mount -t tmpfs -o mode=755 tmpfs {root} && mkdir -p {home} &&
mount --bind {folder}/python {home} && exec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME={folder}/home \\
{python} -m pytest -q -x -p no:cacheprovider --basetemp={folder}/home/tmp {tests} -k {chosen}
"""


@linux
@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="becomes an unprivileged user, so it needs root"
)
def test_the_attacks_fail_without_root_too():
    """In private mounts, where that user can pass through the home folder below which Python may lie."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.mkdir(f"{folder}/home")
        os.chmod(folder, 0o755), os.chmod(f"{folder}/home", 0o777)
        done = subprocess.run(as_nobody(folder), capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 100


def as_nobody(folder):
    """The command that runs the corpus as an unprivileged user."""
    prefix = Path(sys.base_prefix)
    root = Path(*prefix.parts[:2])  # such as /root
    script = UNPRIVILEGED.format(
        folder=folder, home=prefix, root=root, python=sys.executable, tests=Path(__file__).with_name("test_sandbox.py"),
        chosen="'landlock or (watchdog and resources)'",
    )  # fmt: skip
    if os.stat(root).st_mode & 0o001:  # Python lies where everyone can reach it
        script = script[script.index("exec setpriv") :]
    return ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "sh", "-ec", script]


def test_each_promise_names_a_test_that_exists():
    """docs/threats.md: wherever it names one, `file: name`."""
    named = re.findall(r"`(test_\w+\.py): ([\w-]+)`", THREATS.read_text())
    assert len(named) > 20
    sources = {path.name: path.read_text() for path in Path(__file__).parents[1].rglob("*.py")}
    cells = re.findall(r"(?m)^# %% (\w+)", "".join(sources.values()))
    for file, name in named:
        assert f"def {name}(" in sources[file] or name.partition("-")[2] in cells, f"{file}: {name}"
