"""What a kernel costs: warm behind each level of walls that this machine has, and cold.

    python benchmarks/kernels.py [KERNELS]

Start is from the request to a client whose first message can be sent; memory is what the kernel shares with nobody
(dirty pages) after a small notebook; CPU is of the kernel's processes over its whole life. All kinds take turns, so
that a busy machine is unfair to none; ratios within one run are to be trusted, seconds are not.
"""

import asyncio
import contextlib
import statistics
import sys
import time

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
            reply = await kernel.client.execute_interactive(source, output_hook=lambda message: None, timeout=120)
            assert reply["content"]["status"] == "ok", reply["content"]
        done = time.perf_counter()
        private, cpu = [await printed(kernel.client, source) for source in (PRIVATE, CPU)]
        ended = await kernel.kill()
    return (ready - began) * 1e3, (done - ready) * 1e3, max(ended.cpu_seconds, cpu) * 1e3, private


async def printed(client, source):
    """The number that the code prints."""
    shown = []
    await client.execute_interactive(source, output_hook=shown.append, timeout=120)
    return float("".join(message["content"]["text"] for message in shown if message["msg_type"] == "stream"))


def kinds(stack):
    """Each kind of kernel by name: a function that starts one."""
    for plan in PLANS.values():
        if plan.name == "none" or sandbox.reason_against(plan) is None:
            began = time.perf_counter()
            zygote = stack.enter_context(Zygote.start(plan))
            print(f"zygote {plan.name}: warm after {time.perf_counter() - began:.1f} s", file=sys.stderr)
            yield f"warm, {plan.name}", lambda zygote=zygote: start_warm_kernel(zygote)
    yield "cold", lambda: start_cold_kernel(sys.executable)


def main(kernels):
    """Print the medians as a table."""
    with contextlib.ExitStack() as stack:
        starts = dict(kinds(stack))
        rows = {name: [] for name in starts}
        for turn in range(kernels):
            for name, start in starts.items():
                if name != "cold" or turn < max(1, kernels // 5):
                    rows[name].append(asyncio.run(measure(start)))
    print(f"| {'kernel':<16} | {' | '.join(COLUMNS)} |\n| --- |{' ---: |' * len(COLUMNS)}")
    for name, measured in rows.items():
        medians = [statistics.median(column) for column in zip(*measured, strict=True)]
        cells = [f"{median:{len(title)}.0f}" for title, median in zip(COLUMNS, medians, strict=True)]
        print(f"| {name:<16} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
