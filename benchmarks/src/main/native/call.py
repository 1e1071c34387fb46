"""The call from Python by ctypes.

call.py real|stub LIBRARY CALLS WARM-UPS SECONDS ITERATIONS SECONDS: prints the nanoseconds of a call, a line for each
iteration; with CALLS above 0, so many of them in a group.
"""

import ctypes
import sys
import time

real = sys.argv[1] == "real"
pointer = ctypes.c_void_p
nccl = ctypes.CDLL(sys.argv[2])
all_reduce = nccl.ncclAllReduce
all_reduce.argtypes = [pointer, pointer, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, pointer, pointer]
all_reduce.restype = ctypes.c_int


def check(result, expected=0):
    if result != expected:
        sys.exit("call.py: result %d, expected %d" % (result, expected))


def cudart():
    for name in ("libcudart.so.13", "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            pass
    sys.exit("call.py: no libcudart")


if real:
    cuda = cudart()
    cells = [pointer() for _ in range(3)]
    check(cuda.cudaMalloc(ctypes.byref(cells[0]), ctypes.c_size_t(4)))
    check(cuda.cudaStreamCreateWithFlags(ctypes.byref(cells[1]), 1))
    check(nccl.ncclCommInitAll(ctypes.byref(cells[2]), 1, None))
    send, stream, comm = (cell.value for cell in cells)
    receive = send
    check(all_reduce(send, receive, 1, 7, 4, comm, stream))
else:
    send = ctypes.addressof(ctypes.create_string_buffer(8))
    receive = comm = stream = send
    check(all_reduce(send, receive, 1, 7, 4, comm, stream), 4)


def nanoseconds_of_call(grouped, seconds, send=send, receive=receive, comm=comm, stream=stream):
    call = all_reduce
    group_start = nccl.ncclGroupStart
    group_end = nccl.ncclGroupEnd
    in_group = range(grouped)
    batch = range(1 + 1000 // grouped if grouped else 1000)
    calls = 0
    start = time.perf_counter()
    while True:
        if grouped:
            for _ in batch:
                group_start()
                for _ in in_group:
                    call(send, receive, 1, 7, 0, comm, stream)
                group_end()
        else:
            for _ in batch:
                call(send, receive, 1, 7, 0, comm, stream)
        calls += len(batch) * (grouped or 1)
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return elapsed * 1e9 / calls


calls = int(sys.argv[3])
for _ in range(int(sys.argv[4])):
    nanoseconds_of_call(calls, float(sys.argv[5]))
for _ in range(int(sys.argv[6])):
    print("%.4f" % nanoseconds_of_call(calls, float(sys.argv[7])))
