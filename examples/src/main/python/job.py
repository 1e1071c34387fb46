"""What all examples share before and after their job, as Setup and Figures in Java do.

Run with: torchrun --nproc-per-node 2 NAME.py [OPTION VALUE]...
"""

import os
import sys
import time

import torch
import torch.distributed as dist

MIB = 1 << 20


def begin():
    """Connects the ranks, and returns this rank's device: gloo on the CPU, NCCL on GPUs."""
    # As in Java: the ranks of one machine share its processors, and products of floats have all their bits.
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        dist.init_process_group("gloo")
    return device


def options(defaults):
    """Reads options: names and values in turn, after the default of each."""
    values = dict(zip(defaults.split()[::2], map(int, defaults.split()[1::2])))
    for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
        if name not in values:
            sys.exit(f"no such option: {name}")
        values[name] = int(value)
    return values


def learning_rate(width):
    """A learning rate in proportion to the first weights, as in Java."""
    return 0.3 / width


def finish(device):
    """Waits until this rank's work is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def barrier(device):
    """Waits until all ranks are here, and this rank's work is done."""
    dist.all_reduce(torch.zeros(1, device=device))
    finish(device)


def require_close(name, actual, expected, bound):
    """Compares a result with that of one rank; the error is relative to the largest value."""
    error = ((actual - expected).abs().max() / expected.abs().max()).item()
    # Not "error > bound", which a NaN is not.
    if not error <= bound:
        raise ValueError(f"{name} must be those of one rank within {bound} of the largest: error {error}")
    return f"error {error:.1e}, bound {bound:.0e}"


def start():
    """When the job was started, in seconds since the epoch: the launcher may say it, or else when this process was."""
    if "EXAMPLE_START" in os.environ:
        return float(os.environ["EXAMPLE_START"])
    with open("/proc/self/stat") as stat, open("/proc/uptime") as uptime:
        ticks = int(stat.read().rpartition(")")[2].split()[19])
        return time.time() - float(uptime.read().split()[0]) + ticks / os.sysconf("SC_CLK_TCK")


def peak_memory(device):
    """On a GPU that of tensors, and all that is in use, for example by NCCL; else that of the process."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        tensors = torch.cuda.max_memory_allocated(device)
        return f"{tensors / MIB:.0f} MiB of tensors, {(total - free) / MIB:.0f} MiB of the GPU"
    with open("/proc/self/status") as status:
        peak = next(line for line in status if line.startswith("VmHWM:"))
    return f"{int(peak.split()[1]) / 1024:.0f} MiB"


class Figures:
    """Times the steps of a job."""

    def __init__(self, device, warm_up):
        self.device = device
        self.warm_up = warm_up
        self.done = 0

    def step(self):
        """Counts a step that has just been called. Collective when the warm-up is over."""
        self.done += 1
        if self.done == 1:
            finish(self.device)
            self.first_step = time.time() - start()
        if self.done == self.warm_up:
            self.begin()

    def begin(self):
        """Times the steps from here on. Collective."""
        barrier(self.device)
        self.untimed = self.done
        self.began = time.perf_counter()

    def end(self, work, unit):
        """Ends the time, and returns the figures as text. Collective.

        work: what all ranks do in a step
        """
        barrier(self.device)
        seconds = time.perf_counter() - self.began
        timed = self.done - self.untimed
        backend = dist.get_backend()
        if backend == "nccl":
            backend += " " + ".".join(map(str, torch.cuda.nccl.version()))
        return (
            f"{work * timed / seconds:.0f} {unit}/s\n"
            f"{seconds * 1e3 / timed:.3f} ms a step of {timed}, first step {self.first_step:.2f} s after the start,"
            f" peak memory {peak_memory(self.device)}\n"
            f"with PyTorch {torch.__version__}, {backend}, Python {sys.version.split()[0]}"
        )
