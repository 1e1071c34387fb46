// collectives.cpp: times collectives of floats between processes, through the C API of NCCL or, with -DWITH_MPI, through MPI.
//
//     collectives RANKS CALL BYTES,BYTES,... ROUNDS [stream|default] [processes|threads|NAMESPACE,NAMESPACE,...]
//     collectives RANKS CALL BYTES,BYTES,... ROUNDS [single|multiple]   with MPI
//
// prints "BYTES MEDIAN LEAST" for each size: microseconds of a call at the slowest rank, the median and the least of the
// rounds. BYTES is the larger of a rank's two buffers, as in nccl-tests. An MPI launcher starts the ranks of MPI, this
// program all others. With "multiple", MPI permits calls of several threads at a time, as NCCL does with a communicator for each.
// With network namespaces, the processes are distributed over them in blocks, as over hosts, each with its share of the processors.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#ifdef WITH_MPI
#include <mpi.h>
#else
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "nccl.h"

extern "C" {
ncclResult_t nccl4jHostStreamCreate(cudaStream_t* stream);
ncclResult_t nccl4jHostStreamSynchronize(cudaStream_t stream);
ncclResult_t nccl4jHostStreamDestroy(cudaStream_t stream);
}
#endif

namespace {

enum class Call { AllReduce, AllGather, ReduceScatter, Broadcast, AllToAll, SendRecv };

const char* const kNames[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall", "sendrecv"};
constexpr int kCalls = 6;

/**
 * The least time of the rounds before the measured ones, and of the measured ones, in microseconds. The system may start
 * several ranks on one processor and takes up to 50 ms to spread them; with more ranks than processors it keeps moving them.
 */
constexpr double kWarmUp = 200e3;
constexpr double kMeasured = 100e3;

struct Plan {
  int ranks = 0;
  Call call = Call::AllReduce;
  std::vector<size_t> sizes;
  int rounds = 0;
  bool stream = false;
  bool threads = false;
  std::vector<std::string> namespaces;
};

[[noreturn]] void giveUp(const char* what) {
  fprintf(stderr, "collectives: %s\n", what);
  _Exit(1);
}

double microseconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

/**
 * Calls of a round of at most about 200 us, the same number at every rank. Rounds are short, so that on a machine with other
 * load some of them are undisturbed; but not so short that the ranks' different times of entry count.
 */
int callsOf(size_t bytes, int ranks) {
  double estimate = 0.1 * ranks + static_cast<double>(bytes) * ranks / 8e3;
  return std::max(1, std::min(100, static_cast<int>(200 / estimate)));
}

#ifdef WITH_MPI

class Rank {
 public:
  explicit Rank(const Plan& plan) : plan_(plan) { MPI_Comm_rank(MPI_COMM_WORLD, &rank_); }

  int rank() const { return rank_; }

  void call(const float* send, float* recv, size_t count) {
    int n = plan_.ranks;
    int part = static_cast<int>(count) / n;
    int all = static_cast<int>(count);
    MPI_Comm world = MPI_COMM_WORLD;
    switch (plan_.call) {
      case Call::AllReduce: MPI_Allreduce(send, recv, all, MPI_FLOAT, MPI_SUM, world); break;
      case Call::AllGather: MPI_Allgather(send, part, MPI_FLOAT, recv, part, MPI_FLOAT, world); break;
      case Call::ReduceScatter: MPI_Reduce_scatter_block(send, recv, part, MPI_FLOAT, MPI_SUM, world); break;
      case Call::Broadcast: MPI_Bcast(recv, all, MPI_FLOAT, 0, world); break;
      case Call::AllToAll: MPI_Alltoall(send, part, MPI_FLOAT, recv, part, MPI_FLOAT, world); break;
      case Call::SendRecv:
        MPI_Sendrecv(
            send, all, MPI_FLOAT, (rank_ + 1) % n, 0, recv, all, MPI_FLOAT, (rank_ + n - 1) % n, 0, world,
            MPI_STATUS_IGNORE);
        break;
    }
  }

  void together() { MPI_Barrier(MPI_COMM_WORLD); }

  double slowest(double time) {
    double most = 0;
    MPI_Allreduce(&time, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
  }

 private:
  const Plan& plan_;
  int rank_ = 0;
};

#else

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  fprintf(stderr, "collectives: %s: %s\n", what, ncclGetLastError(nullptr));
  _Exit(1);
}

class Rank {
 public:
  Rank(const Plan& plan, const ncclUniqueId& id, int rank) : plan_(plan), rank_(rank) {
    check(ncclCommInitRank(&comm_, plan.ranks, id, rank), "ncclCommInitRank");
    if (plan.stream) check(nccl4jHostStreamCreate(&stream_), "nccl4jHostStreamCreate");
  }
  Rank(const Rank&) = delete;

  ~Rank() {
    if (stream_ != nullptr) check(nccl4jHostStreamDestroy(stream_), "nccl4jHostStreamDestroy");
    check(ncclCommDestroy(comm_), "ncclCommDestroy");
  }

  int rank() const { return rank_; }

  void call(const float* send, float* recv, size_t count) {
    int n = plan_.ranks;
    size_t part = count / static_cast<size_t>(n);
    ncclResult_t result = ncclSuccess;
    switch (plan_.call) {
      case Call::AllReduce: result = ncclAllReduce(send, recv, count, ncclFloat, ncclSum, comm_, stream_); break;
      case Call::AllGather: result = ncclAllGather(send, recv, part, ncclFloat, comm_, stream_); break;
      case Call::ReduceScatter:
        result = ncclReduceScatter(send, recv, part, ncclFloat, ncclSum, comm_, stream_);
        break;
      case Call::Broadcast: result = ncclBroadcast(recv, recv, count, ncclFloat, 0, comm_, stream_); break;
      case Call::AllToAll: result = ncclAlltoAll(send, recv, part, ncclFloat, comm_, stream_); break;
      case Call::SendRecv:
        ncclGroupStart();
        ncclSend(send, count, ncclFloat, (rank_ + 1) % n, comm_, stream_);
        ncclRecv(recv, count, ncclFloat, (rank_ + n - 1) % n, comm_, stream_);
        result = ncclGroupEnd();
        break;
    }
    check(result, kNames[static_cast<int>(plan_.call)]);
    if (stream_ != nullptr) check(nccl4jHostStreamSynchronize(stream_), "nccl4jHostStreamSynchronize");
  }

  void together() { slowest(0); }

  double slowest(double time) {
    double most = 0;
    check(ncclAllReduce(&time, &most, 1, ncclDouble, ncclMax, comm_, nullptr), "ncclAllReduce");
    return most;
  }

 private:
  const Plan& plan_;
  const int rank_;
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

#endif

void checkResult(const Plan& plan, int rank, const float* recv, size_t count) {
  int n = plan.ranks;
  size_t part = count / static_cast<size_t>(n);
  size_t end = plan.call == Call::ReduceScatter ? part
               : plan.call == Call::AllGather || plan.call == Call::AllToAll
                   ? part * static_cast<size_t>(n)
                   : count;
  for (size_t i = 0; i < end; i += 1 + count / 97) {
    float expected = 1;
    switch (plan.call) {
      case Call::AllReduce:
      case Call::ReduceScatter: expected = static_cast<float>(n * (n + 1) / 2); break;
      case Call::Broadcast: break;
      case Call::AllGather:
      case Call::AllToAll: expected = static_cast<float>(i / part + 1); break;
      case Call::SendRecv: expected = static_cast<float>((rank + n - 1) % n + 1); break;
    }
    if (recv[i] != expected) giveUp("a result is wrong");
  }
}

void measure(const Plan& plan, Rank& rank) {
  for (size_t bytes : plan.sizes) {
    size_t count = bytes / sizeof(float);
    std::vector<float> send(count, static_cast<float>(rank.rank() + 1));
    std::vector<float> recv(count, static_cast<float>(rank.rank() + 1));
    int calls = callsOf(bytes, plan.ranks);
    // All ranks agree on the time of the slowest one, and so on the number of rounds.
    auto round = [&] {
      rank.together();
      double start = microseconds();
      for (int i = 0; i < calls; i++) rank.call(send.data(), recv.data(), count);
      return rank.slowest((microseconds() - start) / calls);
    };
    for (double spent = 0; spent < kWarmUp;) spent += calls * round();
    std::vector<double> times;
    for (double spent = 0; spent < kMeasured || times.size() < static_cast<size_t>(plan.rounds);) {
      times.push_back(round());
      spent += calls * times.back();
    }
    checkResult(plan, rank.rank(), recv.data(), count);
    std::sort(times.begin(), times.end());
    if (rank.rank() == 0) printf("%zu %.3f %.3f\n", bytes, times[times.size() / 2], times.front());
    fflush(stdout);
  }
}

Plan planOf(int argc, char** argv) {
  if (argc < 5) giveUp("expected RANKS CALL BYTES,... ROUNDS [stream|default] [processes|threads|NAMESPACE,...]");
  Plan plan;
  plan.ranks = atoi(argv[1]);
  int call = 0;
  while (call < kCalls && strcmp(kNames[call], argv[2]) != 0) call++;
  if (call == kCalls) giveUp("no such call");
  plan.call = static_cast<Call>(call);
  for (char* at = argv[3]; *at != '\0'; at += *at == ',') {
    char* end = at;
    plan.sizes.push_back(strtoull(at, &end, 10));
    if (end == at) giveUp("the sizes must be numbers");
    at = end;
  }
  plan.rounds = std::max(1, atoi(argv[4]));
  plan.stream = argc > 5 && strcmp(argv[5], "stream") == 0;
  plan.threads = argc > 6 && strcmp(argv[6], "threads") == 0;
  if (argc > 6 && !plan.threads && strcmp(argv[6], "processes") != 0) {
    for (char* name = strtok(argv[6], ","); name != nullptr; name = strtok(nullptr, ",")) plan.namespaces.push_back(name);
  }
  return plan;
}

#ifndef WITH_MPI
/** Moves this process to the network namespace of its rank, and to the processors of that host if there are enough. */
void enterHost(const Plan& plan, int rank) {
  size_t hosts = plan.namespaces.size();
  if (hosts == 0) return;
  size_t host = static_cast<size_t>(rank) * hosts / static_cast<size_t>(plan.ranks);
  int file = open(("/run/netns/" + plan.namespaces[host]).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || setns(file, CLONE_NEWNET) != 0) giveUp("cannot enter a network namespace");
  close(file);
  size_t processors = static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN)) / hosts;
  cpu_set_t own;
  CPU_ZERO(&own);
  for (size_t i = 0; i < processors; i++) CPU_SET(host * processors + i, &own);
  if (processors > 0 && sched_setaffinity(0, sizeof own, &own) != 0) giveUp("cannot use the processors of a host");
}
#endif

}  // namespace

int main(int argc, char** argv) {
  Plan plan = planOf(argc, argv);
#ifdef WITH_MPI
  int wanted = argc > 5 && strcmp(argv[5], "multiple") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE;
  int provided = 0;
  MPI_Init_thread(&argc, &argv, wanted, &provided);
  if (provided < wanted) giveUp("this MPI takes calls of one thread only");
  MPI_Comm_size(MPI_COMM_WORLD, &plan.ranks);
  Rank rank(plan);
  measure(plan, rank);
  MPI_Finalize();
  return 0;
#else
  void* memory = mmap(nullptr, sizeof(ncclUniqueId), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) giveUp("cannot map memory");
  ncclUniqueId& id = *static_cast<ncclUniqueId*>(memory);
  auto body = [&](int number) {
    Rank rank(plan, id, number);
    measure(plan, rank);
  };
  if (plan.threads) {
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    std::vector<std::thread> ranks;
    for (int number = 0; number < plan.ranks; number++) ranks.emplace_back(body, number);
    for (std::thread& rank : ranks) rank.join();
    return 0;
  }
  // The process of rank 0 creates the id, since it serves the rendezvous.
  int ready[2];
  if (pipe(ready) != 0) giveUp("cannot create a pipe");
  std::vector<pid_t> ranks;
  for (int number = 0; number < plan.ranks; number++) {
    pid_t child = fork();
    if (child < 0) giveUp("cannot start a process");
    if (child == 0) {
      enterHost(plan, number);
      if (number == 0) {
        check(ncclGetUniqueId(&id), "ncclGetUniqueId");
        std::string tokens(static_cast<size_t>(plan.ranks), 'x');
        if (write(ready[1], tokens.data(), tokens.size()) < 0) giveUp("cannot write to a pipe");
      }
      char token = 0;
      if (read(ready[0], &token, 1) != 1) giveUp("cannot read from a pipe");
      body(number);
      _exit(0);
    }
    ranks.push_back(child);
  }
  int failed = 0;
  for (pid_t rank : ranks) {
    int status = 0;
    if (waitpid(rank, &status, 0) < 0 || status != 0) failed = 1;
  }
  return failed;
#endif
}
