/* Loops of calls from C, for Loops.java. What JNI would pass is of no use here, so that jni.h is not needed. */
#include <nccl.h>
#include <stdint.h>

namespace {

template <class Call>
int32_t repeat(int32_t calls, Call call) {
  int32_t results = 0;
  for (int32_t i = 0; i < calls; i++) results |= (int32_t)call();
  return results;
}

}  // namespace

extern "C" int32_t Java_io_github_nccl4j_benchmarks_Loops_callFromC(void*, void*, int32_t operation, int32_t calls,
                                                                       int64_t sendAddress, int64_t recvAddress,
                                                                       int64_t count, int32_t next, int32_t previous,
                                                                       int64_t commHandle, int64_t streamHandle) {
  void* send = (void*)sendAddress;
  void* recv = (void*)recvAddress;
  ncclComm_t comm = (ncclComm_t)commHandle;
  cudaStream_t stream = (cudaStream_t)streamHandle;
  switch (operation) {
    case 0:
      return repeat(calls, [=] { return ncclAllReduce(send, recv, count, ncclFloat, ncclSum, comm, stream); });
    case 1:
      return repeat(calls, [=] { return ncclAllGather(send, recv, count, ncclFloat, comm, stream); });
    case 2:
      return repeat(calls, [=] { return ncclReduceScatter(send, recv, count, ncclFloat, ncclSum, comm, stream); });
    case 3:
      return repeat(calls, [=] { return ncclBroadcast(send, recv, count, ncclFloat, 0, comm, stream); });
    case 4:
      return repeat(calls, [=] { return ncclReduce(send, recv, count, ncclFloat, ncclSum, 0, comm, stream); });
    case 5:
      return repeat(calls, [=] {
        return ncclGroupStart() | ncclSend(send, count, ncclFloat, next, comm, stream) |
               ncclRecv(recv, count, ncclFloat, previous, comm, stream) | ncclGroupEnd();
      });
    default:
      return -1;
  }
}
