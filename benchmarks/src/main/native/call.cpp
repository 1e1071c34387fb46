/*
 * The call from C, linked against the benchmark's libnccl as any program is.
 * call WARM-UPS SECONDS ITERATIONS SECONDS: prints the nanoseconds of a call, a line for each iteration.
 */
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

#include <chrono>

namespace {

double nanosecondsOfCall(double seconds) {
  typedef std::chrono::steady_clock Clock;
  static float send, receive;
  ncclComm_t comm = (ncclComm_t)&send;
  cudaStream_t stream = (cudaStream_t)&receive;
  if (ncclAllReduce(&send, &receive, 1, ncclFloat, ncclAvg, comm, stream) != (ncclResult_t)ncclAvg) exit(1);
  const long batch = 100000;  // so many that the clock costs nothing
  long calls = 0;
  double elapsed = 0;
  int results = 0;
  auto start = Clock::now();
  do {
    for (long i = 0; i < batch; i++) results |= ncclAllReduce(&send, &receive, 1, ncclFloat, ncclSum, comm, stream);
    calls += batch;
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  } while (elapsed < seconds);
  if (results != ncclSuccess) exit(1);
  return elapsed * 1e9 / (double)calls;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  for (int i = 0; i < atoi(argv[1]); i++) nanosecondsOfCall(atof(argv[2]));
  for (int i = 0; i < atoi(argv[3]); i++) printf("%.4f\n", nanosecondsOfCall(atof(argv[4])));
}
