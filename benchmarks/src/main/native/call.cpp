/*
 * The call from C, linked against the benchmark's libnccl, or with REAL against an installed one.
 * call CALLS WARM-UPS SECONDS ITERATIONS SECONDS: prints the nanoseconds of a call, a line for each iteration; if CALLS is
 * above 0, the calls are in groups of this number.
 */
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

#include <chrono>
#ifdef REAL
#include <dlfcn.h>
#endif

namespace {

float* sendMemory;
float* receiveMemory;
ncclComm_t comm;
cudaStream_t stream;

void check(int result, int expected) {
  if (result != expected) {
    fprintf(stderr, "call: result %d, expected %d\n", result, expected);
    exit(1);
  }
}

#ifdef REAL
void* cudaFunction(const char* name) {
  static const char* const libraries[] = {"libcudart.so.13", "libcudart.so.12", "/usr/local/cuda/lib64/libcudart.so"};
  static void* library = nullptr;
  for (const char* candidate : libraries) {
    if (!library) library = dlopen(candidate, RTLD_NOW);
  }
  void* function = library ? dlsym(library, name) : nullptr;
  if (!function) {
    fprintf(stderr, "call: %s\n", dlerror());
    exit(1);
  }
  return function;
}

/* Creates a communicator of one rank, and an element that is reduced in place. */
void setUp() {
  check(((int (*)(void**, size_t))cudaFunction("cudaMalloc"))((void**)&sendMemory, sizeof(float)), 0);
  check(((int (*)(void*, int, size_t))cudaFunction("cudaMemset"))(sendMemory, 0, sizeof(float)), 0);
  check(((int (*)(cudaStream_t*, unsigned))cudaFunction("cudaStreamCreateWithFlags"))(&stream, 1), 0);
  check(ncclCommInitAll(&comm, 1, NULL), ncclSuccess);
  receiveMemory = sendMemory;
  check(ncclAllReduce(sendMemory, receiveMemory, 1, ncclFloat, ncclAvg, comm, stream), ncclSuccess);
}
#else
void setUp() {
  static float memory[2];
  sendMemory = memory;
  receiveMemory = memory + 1;
  comm = (ncclComm_t)memory;
  stream = (cudaStream_t)memory;
  check(ncclAllReduce(sendMemory, receiveMemory, 1, ncclFloat, ncclAvg, comm, stream), ncclAvg);
}
#endif

int callOnce() { return ncclAllReduce(sendMemory, receiveMemory, 1, ncclFloat, ncclSum, comm, stream); }

int callInGroup(long calls) {
  int results = ncclGroupStart();
  for (long i = 0; i < calls; i++) results |= callOnce();
  return results | ncclGroupEnd();
}

double nanosecondsOfCall(long grouped, double seconds) {
  typedef std::chrono::steady_clock Clock;
  const long batch = grouped ? 1 + 10000 / grouped : 100000;  // large, so that reading the clock costs nothing
  long calls = 0;
  double elapsed = 0;
  int results = 0;
  auto start = Clock::now();
  do {
    if (grouped) {
      for (long i = 0; i < batch; i++) results |= callInGroup(grouped);
    } else {
      for (long i = 0; i < batch; i++) results |= callOnce();
    }
    calls += batch * (grouped ? grouped : 1);
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  } while (elapsed < seconds);
  check(results, ncclSuccess);
  return elapsed * 1e9 / (double)calls;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  setUp();
  long grouped = atol(argv[1]);
  for (int i = 0; i < atoi(argv[2]); i++) nanosecondsOfCall(grouped, atof(argv[3]));
  for (int i = 0; i < atoi(argv[4]); i++) printf("%.4f\n", nanosecondsOfCall(grouped, atof(argv[5])));
}
