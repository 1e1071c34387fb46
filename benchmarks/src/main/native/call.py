"""The call from Python by ctypes.

call.py LIBRARY WARM-UPS SECONDS ITERATIONS SECONDS: prints the nanoseconds of a call, a line for each iteration.
"""

import ctypes
import sys
import time

pointer = ctypes.c_void_p
all_reduce = ctypes.CDLL(sys.argv[1]).ncclAllReduce
all_reduce.argtypes = [pointer, pointer, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, pointer, pointer]
all_reduce.restype = ctypes.c_int


def nanoseconds_of_call(seconds, address=ctypes.addressof(ctypes.create_string_buffer(8))):
    call = all_reduce
    if call(address, address, 1, 7, 4, address, address) != 4:
        sys.exit(1)
    batch = range(1000)
    calls = 0
    start = time.perf_counter()
    while True:
        for _ in batch:
            call(address, address, 1, 7, 0, address, address)
        calls += len(batch)
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return elapsed * 1e9 / calls


for _ in range(int(sys.argv[2])):
    nanoseconds_of_call(float(sys.argv[3]))
for _ in range(int(sys.argv[4])):
    print("%.4f" % nanoseconds_of_call(float(sys.argv[5])))
