"""Student code reaches nothing but its own scratch folder, and ends with all that it started."""

import asyncio
import contextlib
import os
import resource
import sys

import pytest

from autograder import preload, sandbox, stem, watchdog
from autograder.plans import PLANS
from autograder.running import start_warm_kernel
from autograder.warm import Zygote

from . import attacks

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sandboxes are a matter of Linux")

BEST = sandbox.level().name
FROM_A_STEM = "from a stem"  # the best plan, its zygote forked as those of local workers are
UNDER_ATTACK = [
    *dict.fromkeys((BEST, "landlock")),
    *([FROM_A_STEM] if PLANS[BEST].namespaces else ()),
    pytest.param("contained", marks=pytest.mark.slow),
]
CLIENT_MIB = 300  # what a flood may add to the grader's memory


@pytest.fixture(scope="module", params=UNDER_ATTACK)
def param(request):
    return request.param


@pytest.fixture(scope="module")
def plan(param):
    """A plan whose walls hold here. Nothing hostile runs before that is known."""
    plan = PLANS[BEST if param == FROM_A_STEM else param]
    if not plan.locks:
        pytest.skip(f"no sandbox on this machine: {sandbox.level().why}")
    if reason := sandbox.reason_against(plan):
        pytest.skip(f"{plan.name}: {reason}")
    return plan


@pytest.fixture(scope="module")
def options(plan, param):
    """Of Zygote.start."""
    hides = ("maskedtensor_ref",)
    if param != FROM_A_STEM:
        yield {"hides": hides}
        return
    grown = stem.Stem(plan, preload.COURSE, "cpu", hides)
    yield {"hides": hides, "stem": grown}
    grown.stop()


@pytest.fixture(scope="module")
def zygotes(plan, options):
    """A function that returns the zygote of this module, started anew where the last one has ended."""
    os.environ["GRADER_TOKEN"] = attacks.MARK + "-held-by-the-grader"
    with contextlib.ExitStack() as stack:
        started = []

        def living():
            if not (started and started[-1].alive()):
                started.append(stack.enter_context(Zygote.start(plan, **options)))
                assert not started[-1].failed
            return started[-1]

        yield living
    del os.environ["GRADER_TOKEN"]


@pytest.fixture
def zygote(zygotes):
    return zygotes()


@pytest.fixture
def own_files(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "own.txt").write_text("own")
    return folder


@pytest.mark.parametrize("snippet", attacks.SNIPPETS, ids=lambda snippet: snippet.name)
def test_an_attack_fails(zygote, snippet, tmp_path, own_files):
    if zygote.plan.name in snippet.without:
        pytest.skip(f"the sentences of {zygote.plan.name} say so: {sandbox.MISSING[zygote.plan.name]}")
    before, memory = set(watchdog.descendants([zygote.process.pid])), peak_mib()
    with attacks.world(tmp_path / "world") as targets:
        outcome, answers, ended = asyncio.run(attacks.attack(zygote, snippet, targets, own_files))
    assert "ESCAPED" not in outcome.text, outcome.text
    check_end(snippet.ends, outcome, answers, ended)
    if zygote.alive() or not may_take_its_zygote_along(zygote, snippet):
        assert zygote.alive()
        assert set(watchdog.descendants([zygote.process.pid])) == before, "something outlived its kernel"
    else:
        assert not any(os.path.exists(f"/proc/{pid}") for pid in before), "something outlived its zygote"
    assert peak_mib() - memory < CLIENT_MIB


@pytest.mark.parametrize(("messages", "mib", "most"), [(300, 3, CLIENT_MIB), (60, 20, 90)])
def test_a_client_that_does_not_read_is_not_flooded(zygote, messages, mib, most):
    flood = (
        "from IPython.display import HTML, display\n"
        f"for n in range({messages}):\n    display(HTML('x' * ({mib} << 20)))"
    )

    async def run():
        async with start_warm_kernel(zygote, limits=attacks.LIMITS) as kernel:
            kernel.client.execute(flood)
            await asyncio.sleep(4)

    memory = peak_mib()
    asyncio.run(run())
    assert peak_mib() - memory < most


def may_take_its_zygote_along(zygote, snippet):
    """docs/threats.md: memory that a dying kernel shared with others is given back late; then the system kills once more."""
    return zygote.plan.cgroup and snippet.ends == "memory"


def check_end(ends, outcome, answers, ended):
    """Whether the kernel ended as the snippet's header says."""
    if ends == "alive":
        assert answers, (outcome, ended)
    elif ends == "dead":
        assert outcome.status == "dead" and ended.stopped_by is None
    elif ends == "silent":
        assert outcome.status == "silent" and ended.code == -9
    elif ends == "interrupted":
        assert outcome.error == "KeyboardInterrupt" and answers
    elif ends == "scratch":
        assert ended.stopped_by == "scratch" or (outcome.error == "OSError" and answers), (outcome, ended)
    elif ends in ("memory", "cpu"):
        assert ended.stopped_by == ends, (outcome, ended)


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
