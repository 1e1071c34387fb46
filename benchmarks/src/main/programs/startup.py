#!/usr/bin/env python3
"""Time from the start of the processes to the first finished all-reduce: nccl4j, a C program, and PyTorch.

startup.py [-n RANKS] [--rounds N] [--nccl4j COMMAND] [--json FILE]

Run in a bundle or a checkout, on a machine with a GPU for each rank, nvcc, NCCL and its header. All ways run once in each
round, so that a machine that changes its pace changes it for all. PyTorch is left out where it is not installed.
"""

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_SECONDS = 120


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def seconds_to_last(ranks, start, outputs):
    times = [int(time) for text in outputs for time in re.findall(r"FIRST (\d+)", text)]
    if len(times) != ranks:
        raise SystemExit(f"expected {ranks} lines with FIRST, got {len(times)}:\n" + "\n".join(outputs))
    return (max(times) - start) / 1e9


def run(ranks, command):
    start = time.time_ns()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=LIMIT_SECONDS)
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return seconds_to_last(ranks, start, [done.stdout])


def run_plain(ranks, command):
    """Starts one process for each rank, as a launcher without an agent does."""
    port = str(free_port())
    start = time.time_ns()
    processes = []
    for rank in range(ranks):
        environment = dict(
            os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
            MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
        processes.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    outputs = [process.communicate(timeout=LIMIT_SECONDS)[0] for process in processes]
    return seconds_to_last(ranks, start, outputs)


def find_nccl4j():
    for folder in (HERE, *HERE.parents):
        if os.access(folder / "nccl4j", os.X_OK) and (folder / "nccl4j").is_file():
            return str(folder / "nccl4j")
    raise SystemExit("no nccl4j here: name it with --nccl4j")


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nccl4j", help="the command, if it is not beside this script")
    parser.add_argument("--json", help="write all times there")
    options = parser.parse_args()
    n = options.ranks
    nccl4j = options.nccl4j or find_nccl4j()

    with tempfile.TemporaryDirectory() as folder:
        ways = {
            "nccl4j, its launcher": lambda: run(n, [nccl4j, "startup", "-n", str(n), "--engine", "nccl"]),
            "nccl4j, plain processes": lambda: run_plain(n, [nccl4j, "startup", "--engine", "nccl"]),
        }
        if shutil.which("nvcc"):
            program = os.path.join(folder, "startup")
            subprocess.run(["nvcc", "-O2", "-o", program, str(HERE / "startup.cu"), "-lnccl"], check=True)
            ways["C"] = lambda: run(n, [program, str(n)])
        else:
            print("C is omitted: nvcc is not installed")
        if has_torch():
            script = str(HERE / "startup_torch.py")
            ways["PyTorch, plain processes"] = lambda: run_plain(n, [sys.executable, script])
            ways["PyTorch, torchrun"] = lambda: run(
                n, [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(n),
                    "--master-port", str(free_port()), script])
        else:
            print("PyTorch is omitted: it is not installed")

        times = {way: [] for way in ways}
        # A round to warm up: files are read into memory, and a bundle archives its classes.
        for round_number in range(options.rounds + 1):
            for way, measure in ways.items():
                seconds = measure()
                # Printed at once, for users that interrupt the program.
                print(f"round {round_number}: {way} {seconds:.2f}", flush=True)
                if round_number:
                    times[way].append(seconds)

    print(f"{n} ranks, seconds from the start to the first finished all-reduce at the last rank; {options.rounds} rounds")
    base = statistics.median(times["C"]) if "C" in times else None
    for way, seconds in times.items():
        median = statistics.median(seconds)
        against = f"   C {median - base:+.2f} s" if base else ""
        print(f"{way:26} {median:6.2f}   {min(seconds):.2f}..{max(seconds):.2f}{against}")
    if options.json:
        Path(options.json).write_text(json.dumps({"ranks": n, "seconds": times}, indent=1) + "\n")


if __name__ == "__main__":
    main()
