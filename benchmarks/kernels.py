"""What a kernel costs: warm behind each level of walls that this machine has, and cold.

    python benchmarks/kernels.py [KERNELS] [--out docs/benchmarks]

Start is from the request to a client whose first message can be sent; memory is what the kernel shares with nobody
(dirty pages) after a small notebook; CPU is of the kernel's processes over its whole life. All kinds take turns, so
that a busy machine is unfair to none; ratios within one run are to be trusted, seconds are not.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
import time
from pathlib import Path

import torch

from autograder import sandbox
from autograder.plans import PLANS
from autograder.running import start_cold_kernel, start_warm_kernel
from autograder.warm import Zygote

NOTEBOOK = (
    "import torch, numpy as np\nimport matplotlib.pyplot as plt",
    "x = torch.randn(64, 10)\ny = x @ torch.randn(10, 1)\ntorch.testing.assert_close(x + x, 2 * x)",
    "model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))\n"
    "optimiser = torch.optim.SGD(model.parameters(), lr=0.01)\nlosses = []",
    "for step in range(200):\n    loss = (model(x) - y).square().mean()\n    loss.backward()\n"
    "    optimiser.step(), optimiser.zero_grad()\n    losses.append(loss.item())",
    "plt.plot(losses);",
)
PRIVATE = (
    "print([int(l.split()[1]) for l in open('/proc/self/smaps_rollup') if l.startswith('Private_Dirty:')][0] / 1024)"
)
CPU = "import time\nprint(time.process_time())"
COLUMNS = ("start ms", "notebook ms", "CPU ms", "private MiB")


async def measure(start):
    """Milliseconds to ready, milliseconds of the notebook, CPU milliseconds, private MiB of one kernel."""
    began = time.perf_counter()
    async with start() as kernel:
        ready = time.perf_counter()
        for source in NOTEBOOK:
            said = await published(kernel.client, source)
            assert all(message["msg_type"] != "error" for message in said), said
        done = time.perf_counter()
        private, cpu = [await printed(kernel.client, source) for source in (PRIVATE, CPU)]
        ended = await kernel.kill()
    return (ready - began) * 1e3, (done - ready) * 1e3, max(ended.cpu_seconds, cpu) * 1e3, private


async def published(client, source):
    """All messages that the kernel publishes of an execution."""
    request, said = client.execute(source), []
    while not said or said[-1]["content"].get("execution_state") != "idle":
        message = await client.get_iopub_msg(timeout=120)
        said += [message] if message["parent_header"].get("msg_id") == request else []
    return said


async def printed(client, source):
    """The number that the code prints."""
    said = await published(client, source)
    return float("".join(message["content"]["text"] for message in said if message["msg_type"] == "stream"))


def kinds(stack):
    """Each kind of kernel by name: a function that starts one."""
    for plan in PLANS.values():
        if plan.name == "none" or sandbox.reason_against(plan) is None:
            began = time.perf_counter()
            zygote = stack.enter_context(Zygote.start(plan))
            print(f"zygote {plan.name}: warm after {time.perf_counter() - began:.1f} s", file=sys.stderr)
            yield f"warm, {plan.name}", lambda zygote=zygote: start_warm_kernel(zygote)
    yield "cold", lambda: start_cold_kernel(sys.executable)


def main():
    """Print the medians as a page, and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="?", type=int, default=20, help="of each warm kind; of the cold one a fifth")
    parser.add_argument("--out", type=Path, help="folder for the page")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        starts = dict(kinds(stack))
        rows = {name: [] for name in starts}
        for turn in range(options.kernels):
            for name, start in starts.items():
                if name != "cold" or turn < max(1, options.kernels // 5):
                    rows[name].append(asyncio.run(measure(start)))
    text = page(rows)
    print(text)
    if options.out:
        (options.out / "kernels.md").write_text(text, encoding="utf-8")


def page(rows):
    """The table, with how it was made."""
    lines = [
        "# What a kernel costs",
        "",
        f"`{' '.join(['python', 'benchmarks/kernels.py', *sys.argv[1:]])}` · {len(os.sched_getaffinity(0))} cores, "
        f"Python {sys.version.split()[0]}, torch {torch.__version__}. Medians; all kinds took turns. Start is until the first "
        "message can be sent; private is memory that the kernel shares with nobody after a small notebook that trains and "
        "plots. Seconds are of this machine in this run: compare them with each other only.",
        "",
        f"| {'kernel':<16} | {' | '.join(COLUMNS)} |",
        f"| --- |{' ---: |' * len(COLUMNS)}",
    ]
    for name, measured in rows.items():
        medians = [statistics.median(column) for column in zip(*measured, strict=True)]
        cells = [f"{median:{len(title)}.0f}" for title, median in zip(COLUMNS, medians, strict=True)]
        lines.append(f"| {name:<16} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
