"""PyTorch's Gloo: times collectives of floats between processes. Prints as collectives.cpp does; see there for the arguments."""

import ctypes
import os
import socket
import sys
import time
from datetime import timedelta

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
except ImportError:
    print("no PyTorch")
    sys.exit(0)

WARM_UP = 200e3  # microseconds, as in collectives.cpp
NEW_NETWORK = 0x40000000  # CLONE_NEWNET of setns


def calls_of(size, ranks):
    return max(2, min(200, int(10e3 / (100.0 * ranks + size * ranks / 2e3))))


def call_of(name, rank, ranks, send, recv):
    following, previous = (rank + 1) % ranks, (rank - 1) % ranks
    part = send.numel() // ranks
    if name == "all_reduce":
        return lambda: dist.all_reduce(recv)
    if name == "all_gather":
        return lambda: dist.all_gather_into_tensor(recv[: part * ranks], send[:part])
    if name == "reduce_scatter":
        return lambda: dist.reduce_scatter_tensor(recv[:part], send[: part * ranks])
    if name == "broadcast":
        return lambda: dist.broadcast(recv, 0)
    if name == "alltoall":
        return lambda: dist.all_to_all_single(recv[: part * ranks], send[: part * ranks])

    def exchange():
        for request in dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, send, following), dist.P2POp(dist.irecv, recv, previous)]
        ):
            request.wait()

    return exchange


def enter(host, namespaces):
    """As in collectives.cpp."""
    processors = os.cpu_count() // len(namespaces)
    if processors > 0:
        os.sched_setaffinity(0, range(host * processors, (host + 1) * processors))
    with open(f"/run/netns/{namespaces[host]}", "rb") as file:
        if ctypes.CDLL(None).setns(file.fileno(), NEW_NETWORK) != 0:
            raise OSError("cannot enter a network namespace")


def run(rank, ranks, address, name, sizes, rounds, namespaces):
    torch.set_num_threads(1)
    if namespaces:
        enter(rank * len(namespaces) // ranks, namespaces)
    dist.init_process_group(
        "gloo", init_method=f"tcp://{address}", rank=rank, world_size=ranks, timeout=timedelta(seconds=60)
    )
    for size in sizes:
        send = torch.ones(size // 4)
        recv = torch.zeros(size // 4)
        call = call_of(name, rank, ranks, send, recv)
        calls = calls_of(size, ranks)
        times = []
        spent = 0.0
        while len(times) < rounds:
            dist.barrier()
            start = time.perf_counter()
            for _ in range(calls):
                call()
            slowest = torch.tensor([(time.perf_counter() - start) / calls * 1e6], dtype=torch.float64)
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            if spent >= WARM_UP:
                times.append(slowest.item())
            spent += slowest.item() * calls
        if rank == 0:
            print(size, f"{sorted(times)[len(times) // 2]:.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    world, operation, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[4])
    hosts = sys.argv[5].split(",") if len(sys.argv) > 5 else []
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "eth0" if hosts else "lo")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = f"{'10.77.0.1' if hosts else '127.0.0.1'}:{free.getsockname()[1]}"
    arguments = (world, meeting, operation, [int(size) for size in sys.argv[3].split(",")], count, hosts)
    mp.spawn(run, arguments, nprocs=world)
