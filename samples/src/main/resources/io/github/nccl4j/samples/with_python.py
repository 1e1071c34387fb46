"""The Python rank of 10-with-python: calls NCCL's C functions with ctypes, and needs no packages.

Arguments: the path of the library, the rank, the number of ranks, the number of elements, and a CUDA device or "host".
Standard input carries the bytes of the unique id. The parent process keeps it open; this process exits at end-of-file.
"""

import ctypes
import os
import platform
import sys
import threading
from ctypes import byref, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p

NCCL_INT64 = 4
NCCL_SUM = 0
ID_BYTES = 128


class UniqueId(ctypes.Structure):
    """ncclUniqueId; passed by value."""

    _fields_ = [("internal", ctypes.c_byte * ID_BYTES)]


class Host:
    """Host memory, for the host engine. On the NULL stream its calls return when their work is complete."""

    stream = None

    def __init__(self, numbers):
        self.address = ctypes.addressof(numbers)

    def write(self):
        pass

    def read(self):
        pass


class Gpu:
    """GPU memory of the same size, through CUDA's driver API: unlike the runtime, its library has one name everywhere."""

    FUNCTIONS = {
        "cuInit": [c_uint],
        "cuDeviceGet": [c_void_p, c_int],
        "cuDevicePrimaryCtxRetain": [c_void_p, c_int],
        "cuCtxSetCurrent": [c_void_p],
        "cuStreamCreate": [c_void_p, c_uint],
        "cuStreamSynchronize": [c_void_p],
        "cuMemAlloc_v2": [c_void_p, c_size_t],
        "cuMemcpyHtoD_v2": [c_uint64, c_void_p, c_size_t],
        "cuMemcpyDtoH_v2": [c_void_p, c_uint64, c_size_t],
    }

    def __init__(self, numbers, index):
        self.numbers = numbers
        self.driver = declare(ctypes.CDLL("libcuda.so.1"), self.FUNCTIONS)
        device = c_int()
        context = c_void_p()
        stream = c_void_p()
        address = c_uint64()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", byref(device), index)
        # NCCL uses the current context: make it the primary one, which CUDA's runtime uses, too.
        self.call("cuDevicePrimaryCtxRetain", byref(context), device)
        self.call("cuCtxSetCurrent", context)
        # A blocking stream: its work waits for the copies, which are on the default stream.
        self.call("cuStreamCreate", byref(stream), 0)
        self.call("cuMemAlloc_v2", byref(address), ctypes.sizeof(numbers))
        self.stream = stream
        self.address = address.value

    def write(self):
        self.call("cuMemcpyHtoD_v2", self.address, self.numbers, ctypes.sizeof(self.numbers))

    def read(self):
        self.call("cuStreamSynchronize", self.stream)
        self.call("cuMemcpyDtoH_v2", self.numbers, self.address, ctypes.sizeof(self.numbers))

    def call(self, name, *arguments):
        result = getattr(self.driver, name)(*arguments)
        if result != 0:
            raise RuntimeError("%s: CUDA error %d" % (name, result))


class Nccl:
    """A library that exports NCCL's C functions."""

    FUNCTIONS = {
        "ncclCommInitRank": [c_void_p, c_int, UniqueId, c_int],
        "ncclAllReduce": [c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p],
        "ncclSend": [c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p],
        "ncclRecv": [c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p],
        "ncclCommDestroy": [c_void_p],
        "ncclGetErrorString": [c_int],
        "ncclGetLastError": [c_void_p],
    }

    def __init__(self, path):
        self.library = declare(ctypes.CDLL(path), self.FUNCTIONS)
        self.library.ncclGetErrorString.restype = ctypes.c_char_p
        self.library.ncclGetLastError.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            texts = [self.library.ncclGetErrorString(result), self.library.ncclGetLastError(None)]
            raise RuntimeError(name + ": " + ": ".join(text.decode(errors="replace") for text in texts if text))


def declare(library, functions):
    """Declares argument types: without them ctypes passes addresses as 32-bit integers."""
    for name, types in functions.items():
        getattr(library, name).argtypes = types
    return library


def check(numbers, expected, what):
    wrong = [i for i, number in enumerate(numbers) if number != expected(i)]
    if wrong:
        i = wrong[0]
        raise RuntimeError(
            "%s: element %d is wrong: expected %d, got %d (%d wrong in all)"
            % (what, i, expected(i), numbers[i], len(wrong))
        )


def end_with_parent():
    """Exits when the parent ends: the kernel closes its end of standard input then."""
    while os.read(0, 1):
        pass
    os._exit(143)


def run(path, rank, ranks, count, device):
    identity = sys.stdin.buffer.read(ID_BYTES)
    if len(identity) != ID_BYTES:
        raise RuntimeError("a unique id must have %d bytes: %d" % (ID_BYTES, len(identity)))
    threading.Thread(target=end_with_parent, daemon=True).start()

    numbers = (c_int64 * count)(*((rank + 1) * (i + 1) for i in range(count)))
    memory = Host(numbers) if device == "host" else Gpu(numbers, int(device))
    nccl = Nccl(path)
    communicator = c_void_p()
    nccl.call("ncclCommInitRank", byref(communicator), ranks, UniqueId.from_buffer_copy(identity), rank)

    memory.write()
    here = memory.address
    nccl.call("ncclAllReduce", here, here, count, NCCL_INT64, NCCL_SUM, communicator, memory.stream)
    memory.read()
    factor = ranks * (ranks + 1) // 2
    check(numbers, lambda i: factor * (i + 1), "all-reduce")

    nccl.call("ncclRecv", here, count, NCCL_INT64, 0, communicator, memory.stream)
    memory.read()
    check(numbers, lambda i: i * i, "receive from rank 0")
    numbers[:] = [-number for number in numbers]
    memory.write()
    nccl.call("ncclSend", here, count, NCCL_INT64, 0, communicator, memory.stream)
    memory.read()

    nccl.call("ncclCommDestroy", communicator)
    print(
        "rank %d in Python %s: summed %d elements with %s in Java, received as many from rank 0 and sent them negated; "
        "every element checked" % (rank, platform.python_version(), count, "a rank" if ranks == 2 else "ranks")
    )


try:
    run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
except (RuntimeError, OSError) as failure:
    sys.exit("rank %s in Python: %s" % (sys.argv[2], failure))
