"""PyTorch's TCPStore: ranks in threads meet, set a key each and get an id. Prints the seconds of each round."""

import sys
import threading
import time
from datetime import timedelta

try:
    from torch.distributed import TCPStore
except ImportError:
    print("no PyTorch")
    sys.exit(0)


def meet(world):
    start = threading.Barrier(world + 1)
    end = threading.Barrier(world + 1)
    stores = [None] * world
    port = [0]
    listening = threading.Event()

    def run(rank):
        start.wait()
        options = dict(timeout=timedelta(seconds=120), wait_for_workers=False)
        if rank == 0:
            store = TCPStore("127.0.0.1", 0, world, True, **options)
            port[0] = store.port
            listening.set()
        else:
            listening.wait()
            store = TCPStore("127.0.0.1", port[0], world, False, **options)
        stores[rank] = store
        store.set("rank-%d" % rank, bytes(4).decode())
        if rank == 0:
            store.set("id", bytes(128).decode())
        assert len(store.get("id")) == 128
        end.wait()

    threading.stack_size(1 << 18)
    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(world)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.monotonic()
    end.wait()
    seconds = time.monotonic() - began
    for thread in threads:
        thread.join()
    return seconds


for _ in range(int(sys.argv[2])):
    print("%.4f" % meet(int(sys.argv[1])), flush=True)
