/* Loops of calls from C, for Loops.java. The functions ignore the arguments that JNI passes, so that jni.h is not needed. */
#include <nccl.h>
#include <stdint.h>

/* Some releases lack these functions; the caller checks this first. */
#pragma weak ncclAllReduceConfig
#pragma weak ncclAlltoAll
#pragma weak ncclGather
#pragma weak ncclScatter

namespace {

template <class Call>
int32_t repeat(int32_t calls, Call call) {
  int32_t results = 0;
  for (int32_t i = 0; i < calls; i++) results |= (int32_t)call();
  return results;
}

/* One statement for each call: the compiler chooses the order of operands of one expression. */
int32_t exchange(const void* send, int32_t to, void* recv, int32_t from, int64_t count, ncclComm_t comm,
                 cudaStream_t stream) {
  int32_t results = ncclGroupStart();
  results |= ncclSend(send, count, ncclFloat, to, comm, stream);
  results |= ncclRecv(recv, count, ncclFloat, from, comm, stream);
  results |= ncclGroupEnd();
  return results;
}

}  // namespace

extern "C" int32_t Java_io_github_nccl4j_benchmarks_Loops_callFromC(void*, void*, int32_t operation, int32_t calls,
                                                                       int64_t sendAddress, int64_t recvAddress,
                                                                       int64_t count, int64_t commHandle,
                                                                       int64_t streamHandle) {
  void* send = (void*)sendAddress;
  void* recv = (void*)recvAddress;
  ncclComm_t comm = (ncclComm_t)commHandle;
  cudaStream_t stream = (cudaStream_t)streamHandle;
  int rank = 0, size = 1;
  ncclResult_t known = ncclCommUserRank(comm, &rank);
  if (known == ncclSuccess) known = ncclCommCount(comm, &size);
  if (known != ncclSuccess) return known;
  int32_t next = (rank + 1) % size;
  int32_t previous = (rank + size - 1) % size;
  int64_t bytes = count * (int64_t)sizeof(float);
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
      return repeat(calls, [=] { return ncclAlltoAll(send, recv, count, ncclFloat, comm, stream); });
    case 6:
      return repeat(calls, [=] { return ncclGather(send, recv, count, ncclFloat, 0, comm, stream); });
    case 7:
      return repeat(calls, [=] { return ncclScatter(send, recv, count, ncclFloat, 0, comm, stream); });
    case 8:
      return repeat(calls, [=] { return exchange(send, next, recv, previous, count, comm, stream); });
    case 9:
      return repeat(calls, [=] {
        int32_t results = ncclGroupStart();
        for (int32_t peer = 0; peer < size; peer++) {
          results |= ncclSend((char*)send + peer * bytes, count, ncclFloat, peer, comm, stream);
          results |= ncclRecv((char*)recv + peer * bytes, count, ncclFloat, peer, comm, stream);
        }
        results |= ncclGroupEnd();
        return results;
      });
    case 10:
      return repeat(calls, [=] {
        int32_t results = 0;
        for (int32_t distance = 1; distance < size; distance *= 2) {
          int32_t mine = rank & -distance;
          char* from = (char*)recv + mine * bytes;
          char* to = (char*)recv + (mine ^ distance) * bytes;
          results |= exchange(from, rank ^ distance, to, rank ^ distance, count * distance, comm, stream);
        }
        return results;
      });
    default:
      return -1;
  }
}

/* With a configuration that changes nothing, as HighlevelLoops.asConfigured. */
extern "C" int32_t Java_io_github_nccl4j_benchmarks_Loops_callConfiguredFromC(void*, void*, int32_t calls,
                                                                                 int64_t sendAddress, int64_t recvAddress,
                                                                                 int64_t count, int64_t commHandle,
                                                                                 int64_t streamHandle) {
  void* send = (void*)sendAddress;
  void* recv = (void*)recvAddress;
  ncclComm_t comm = (ncclComm_t)commHandle;
  cudaStream_t stream = (cudaStream_t)streamHandle;
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.userProfilerTag = 1;
  return repeat(calls, [=, &config] {
    return ncclAllReduceConfig(send, recv, count, ncclFloat, ncclSum, comm, stream, &config);
  });
}

extern "C" int32_t Java_io_github_nccl4j_benchmarks_Loops_callGroupsFromC(void*, void*, int32_t groupSize, int32_t calls,
                                                                             int64_t sendAddress, int64_t recvAddress,
                                                                             int64_t count, int64_t commHandle,
                                                                             int64_t streamHandle) {
  void* send = (void*)sendAddress;
  void* recv = (void*)recvAddress;
  ncclComm_t comm = (ncclComm_t)commHandle;
  cudaStream_t stream = (cudaStream_t)streamHandle;
  return repeat(calls / groupSize, [=] {
    int32_t results = ncclGroupStart();
    results |= repeat(groupSize, [=] { return ncclAllReduce(send, recv, count, ncclFloat, ncclSum, comm, stream); });
    results |= ncclGroupEnd();
    return results;
  });
}
