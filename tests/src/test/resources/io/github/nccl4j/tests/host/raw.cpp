// raw.cpp: what callers of the C API can run into where the system refuses something, where others disturb, or where several
// threads do one thing at once. raw SCENARIO prints what came of it, and is ended by SIGALRM if it hangs.
//
// The system calls that are defined here are those that the engine calls: the symbols of a program come before those of the
// C library. So each scenario can have the system refuse what it would refuse only to others, or only seldom.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <nccl.h>
#include <nccl4j_host.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checks.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr unsigned kMostSeconds = 40;
constexpr size_t kPage = 4096;
/** Bytes of a message of the control stream. */
constexpr size_t kControl = 512;

/** The rank that this thread is, for refusals to one rank only. */
thread_local int ownRank = -1;

/** The errno of a send to be refused, or 0. */
std::function<int(size_t bytes, bool withDescriptor)> refuseSend;
std::function<bool()> refuseEvent;
std::function<bool()> refuseAccept;
std::atomic<bool> refuseThreads{false};
bool ignoreSeals = false;
bool othersAreForeign = false;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void tell(const std::string& line) {
  printf("%s\n", line.c_str());
  fflush(stdout);
}

/** "rank 1: 2 the text" */
void tellResult(int rank, ncclResult_t result, ncclComm_t comm) {
  tell("rank " + std::to_string(rank) + ": " + std::to_string(result) + " " +
       (result == ncclSuccess ? "" : ncclGetLastError(comm)));
}

void inThreads(int count, const std::function<void(int)>& code) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; i++) {
    threads.emplace_back([&code, i] {
      ownRank = i;
      code(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/** Runs the code at each rank of a communicator, and ends that when all are done. */
void inRanks(int count, const std::function<void(int, ncclComm_t)>& code) {
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  std::vector<ncclComm_t> comms(static_cast<size_t>(count));
  inThreads(count, [&](int rank) {
    ncclComm_t& comm = comms[static_cast<size_t>(rank)];
    OK(ncclCommInitRank(&comm, count, id, rank));
    code(rank, comm);
  });
  for (ncclComm_t comm : comms) OK(ncclCommAbort(comm));
}

// A descriptor that the system will not carry.

void registerWindows() {
  inRanks(3, [](int rank, ncclComm_t comm) {
    void* memory = nullptr;
    OK(ncclMemAlloc(&memory, kPage));
    ncclWindow_t window = nullptr;
    ncclResult_t result = ncclCommWindowRegister(comm, memory, kPage, &window, NCCL_WIN_COLL_SYMMETRIC);
    if (result == ncclSuccess) {
      int next = (rank + 1) % 3, previous = (rank + 2) % 3;
      static_cast<char*>(memory)[0] = static_cast<char>(rank + 1);
      OK(ncclPutSignal(memory, 1, ncclInt8, next, window, 1, 0, 0, 0, comm, nullptr));
      ncclWaitSignalDesc_t wait{};
      wait.opCnt = 1;
      wait.peer = previous;
      OK(ncclWaitSignal(1, &wait, comm, nullptr));
      require(static_cast<char*>(memory)[1] == previous + 1, __LINE__, "the byte of the put");
    }
    tellResult(rank, result, comm);
  });
}

void signalRound() {
  inRanks(2, [](int rank, ncclComm_t comm) {
    ncclResult_t result = ncclSignal(1 - rank, 0, 0, 0, comm, nullptr);
    ncclWaitSignalDesc_t wait{};
    wait.opCnt = 1;
    wait.peer = 1 - rank;
    if (result == ncclSuccess) result = ncclWaitSignal(1, &wait, comm, nullptr);
    tellResult(rank, result, comm);
  });
}

void refuseLanes(int times) {
  static std::atomic<int> left;
  left = times;
  refuseSend = [](size_t bytes, bool withDescriptor) {
    return withDescriptor && bytes == kControl && left-- > 0 ? ETOOMANYREFS : 0;
  };
}

void laneIsNotTaken() {
  std::atomic<bool> armed{false};
  refuseEvent = [&armed] { return armed && ownRank == 1; };
  inRanks(3, [&armed](int rank, ncclComm_t comm) {
    if (rank == 1) armed = true;
    while (!armed) std::this_thread::yield();
    void* memory = nullptr;
    OK(ncclMemAlloc(&memory, kPage));
    ncclWindow_t window = nullptr;
    ncclResult_t result = rank == 0 ? ncclCommWindowRegister(comm, memory, kPage, &window, NCCL_WIN_DEFAULT)
                                    : ncclRecv(memory, 1, ncclInt8, 3 - rank, comm, nullptr);
    tellResult(rank, result, comm);
  });
}

// Sends without room in the kernel.

void reductions(int rounds) {
  inRanks(2, [rounds](int rank, ncclComm_t comm) {
    std::vector<float> data(100'000, 1);
    ncclResult_t result = ncclSuccess;
    for (int i = 0; i < rounds && result == ncclSuccess; i++) {
      result = ncclAllReduce(data.data(), data.data(), data.size(), ncclFloat, ncclMax, comm, nullptr);
    }
    tellResult(rank, result, comm);
  });
}

/** Rank 1 fails by NCCL4J_HOST_FAULT, and cannot say so. */
void failWithoutNews() {
  static std::atomic<int> made{0};
  refuseSend = [](size_t bytes, bool) { return made == 2 && bytes == kControl ? ENOBUFS : 0; };
  inRanks(2, [](int rank, ncclComm_t comm) {
    made++;
    while (made < 2) std::this_thread::yield();
    ncclWaitSignalDesc_t wait{};
    wait.opCnt = 1;
    wait.peer = 1;
    ncclResult_t result = rank == 1 ? ncclAllReduce(comm, comm, 0, ncclInt8, ncclSum, comm, nullptr)
                                    : ncclWaitSignal(1, &wait, comm, nullptr);
    tellResult(rank, result, comm);
  });
}

// Memory that the other side can take away.

void unsealedMemory() {
  ignoreSeals = true;
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  inThreads(2, [&id](int rank) {
    ncclComm_t comm = nullptr;
    tellResult(rank, ncclCommInitRank(&comm, 2, id, rank), nullptr);
  });
}

// Several threads that end one communicator.

void abortByMany() {
  for (int round = 0; round < 200; round++) {
    ncclUniqueId id;
    OK(ncclGetUniqueId(&id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    require(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress, __LINE__, "the init goes on");
    std::atomic<int> ready{0};
    inThreads(8, [&](int) {
      ready++;
      while (ready < 8) std::this_thread::yield();
      ncclResult_t result = ncclCommAbort(comm);
      // One that comes when another is done.
      require(result == ncclSuccess || result == ncclInvalidArgument, __LINE__, "ncclCommAbort");
    });
  }
  tell("all aborted");
}

/** Rank 0 aborts children of which rank 1 does not make all. */
void abortSplits(int begun, int joined) {
  std::atomic<bool> done{false};
  inRanks(2, [&](int rank, ncclComm_t comm) {
    std::vector<ncclComm_t> children(static_cast<size_t>(rank == 0 ? begun : joined));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    OK(ncclGroupStart());
    for (ncclComm_t& child : children) {
      require(ncclCommSplit(comm, 0, 0, &child, &config) == ncclInProgress, __LINE__, "the split goes on");
    }
    require(ncclGroupEnd() == (children.empty() ? ncclSuccess : ncclInProgress), __LINE__, "the group goes on");
    // Time to come to the one that does not end.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    for (ncclComm_t child : children) OK(ncclCommAbort(child));
    if (rank == 0) done = true;
    while (!done) std::this_thread::yield();
    if (rank == 0) tellResult(rank, ncclAllReduce(comm, comm, 0, ncclInt8, ncclSum, comm, nullptr), comm);
  });
}

// Others that connect to the server of an id, over and over.

[[noreturn]] void connectForEver(const ncclUniqueId& id) {
  std::string name = "nccl4j-";
  for (int i = 8; i < 24; i++) {
    char digits[3];
    snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(id.internal[i]));
    name += digits;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path + 1, name.data(), name.size());
  socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  for (;;) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), size) != 0) {
      // The server is done.
      if (errno == ECONNREFUSED) _exit(0);
    }
    close(fd);
  }
}

void connectedByOthers() {
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  std::vector<pid_t> others;
  pid_t self = getpid();
  for (int i = 0; i < 4; i++) {
    pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != self) _exit(0);
      connectForEver(id);
    }
    others.push_back(pid);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::vector<ncclComm_t> comms(2);
  std::atomic<bool> done{false};
  // Ends at some time also where these keep the server busy for ever.
  std::thread end([&] {
    for (double until = seconds() + 8; seconds() < until && !done;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    for (pid_t other : others) kill(other, SIGKILL);
    for (pid_t other : others) waitpid(other, nullptr, 0);
  });
  double start = seconds();
  inThreads(2, [&](int rank) { OK(ncclCommInitRank(&comms[static_cast<size_t>(rank)], 2, id, rank)); });
  double took = seconds() - start;
  done = true;
  end.join();
  for (ncclComm_t comm : comms) OK(ncclCommAbort(comm));
  tell(std::to_string(static_cast<int>(took * 1000)) + " ms");
}

// A number of ranks by mistake.

void farTooManyRanks() {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  ncclResult_t result = ncclCommInitRank(&comm, 100'000'000, id, 1);
  getrusage(RUSAGE_SELF, &after);
  tell(std::to_string((after.ru_maxrss - before.ru_maxrss) / 1024) + " MiB, " + std::to_string(result) + " " +
       ncclGetLastError(nullptr));
}

// A limit of descriptors that came too late.

void noPoll() {
  // The limit is the process's: it must not hold while the other rank is created or destroyed.
  std::atomic<int> stage{0};
  inRanks(2, [&stage](int rank, ncclComm_t comm) {
    if (rank == 1) {
      stage = 1;
      while (stage != 2) std::this_thread::yield();
      return;
    }
    while (stage != 1) std::this_thread::yield();
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    rlim_t kept = limit.rlim_cur;
    limit.rlim_cur = 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    char byte = 0;
    tellResult(rank, ncclRecv(&byte, 1, ncclInt8, 1, comm, nullptr), comm);
    limit.rlim_cur = kept;
    setrlimit(RLIMIT_NOFILE, &limit);
    stage = 2;
  });
}

// No descriptors, or no threads.

void refuseAcceptOnce() {
  static std::atomic<int> left{1};
  refuseAccept = [] { return left-- > 0; };
}

void serverWithoutDescriptors() {
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  refuseAcceptOnce();
  inThreads(2, [&id](int rank) {
    ncclComm_t comm = nullptr;
    tellResult(rank, ncclCommInitRank(&comm, 2, id, rank), nullptr);
  });
}

void noThreads() {
  ncclUniqueId id;
  refuseThreads = true;
  tellResult(0, ncclGetUniqueId(&id), nullptr);
  refuseThreads = false;
  OK(ncclGetUniqueId(&id));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  refuseThreads = true;
  ncclComm_t comm = nullptr;
  require(ncclCommInitRankConfig(&comm, 2, id, 0, &config) == ncclInProgress, __LINE__, "the init goes on");
  ncclResult_t result = ncclSuccess;
  OK(ncclCommGetAsyncError(comm, &result));
  tellResult(0, result, comm);
  OK(ncclCommAbort(comm));
}

long entries(const char* folder) {
  auto all = std::filesystem::directory_iterator(folder);
  return std::distance(begin(all), end(all));
}

/** Makes all ranks of a communicator, and tells what a failure leaves behind. */
void initAllThatFails() {
  long descriptors = entries("/proc/self/fd");
  ncclComm_t comms[4];
  tellResult(0, ncclCommInitAll(comms, 4, nullptr), nullptr);
  // The thread of the id ends soon.
  while (entries("/proc/self/task") > 1) usleep(1000);
  tell(std::to_string(entries("/proc/self/fd") - descriptors) + " descriptors more");
}

// The locale of the environment, as a JVM sets it.

void inLocale() {
  setlocale(LC_ALL, "");
  tell(localeconv()->decimal_point);
  char text[16];
  int length = 0;
  ncclParamHandle_t handle = nullptr;
  OK(ncclParamBind(&handle, "NCCL4J_HOST_INIT_TIMEOUT"));
  OK(ncclParamGet(handle, text, sizeof text, &length));
  tell(text);
  ncclParamDumpAll();
  ncclUniqueId id;
  OK(ncclGetUniqueId(&id));
  ncclComm_t comm = nullptr;
  double start = seconds();
  ncclResult_t result = ncclCommInitRank(&comm, 2, id, 0);
  double took = seconds() - start;
  tell(std::to_string(result) + " " + ncclGetLastError(nullptr));
  tell(took < 5 ? "soon" : "late");
  tell(localeconv()->decimal_point);
}

}  // namespace

extern "C" ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (refuseSend) {
    size_t bytes = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++) bytes += message->msg_iov[i].iov_len;
    errno = refuseSend(bytes, message->msg_controllen > 0);
    if (errno != 0) return -1;
  }
  return syscall(SYS_sendmsg, fd, message, flags);
}

extern "C" int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (refuseAccept && refuseAccept()) {
    errno = EMFILE;
    return -1;
  }
  return static_cast<int>(syscall(SYS_accept4, fd, address, size, flags));
}

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*code)(void*), void* argument) noexcept {
  if (refuseThreads) return EAGAIN;
  static auto* real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return real(thread, attributes, code, argument);
}

extern "C" int eventfd(unsigned int count, int flags) noexcept {
  if (refuseEvent && refuseEvent()) {
    errno = EMFILE;
    return -1;
  }
  return static_cast<int>(syscall(SYS_eventfd2, count, flags));
}

// The rank that makes the memory says nothing of it; the other is to look.
extern "C" int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  long argument = va_arg(arguments, long);
  va_end(arguments);
  if (ignoreSeals && command == F_ADD_SEALS) return 0;
  if (ignoreSeals && command == F_GET_SEALS && ownRank == 1) return F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  return static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
}

extern "C" int getsockopt(int fd, int level, int name, void* value, socklen_t* size) noexcept {
  int result = static_cast<int>(syscall(SYS_getsockopt, fd, level, name, value, size));
  if (othersAreForeign && result == 0 && level == SOL_SOCKET && name == SO_PEERCRED) {
    auto* credentials = static_cast<ucred*>(value);
    if (credentials->pid != getpid()) credentials->uid++;
  }
  return result;
}

int main(int, char** arguments) {
  alarm(kMostSeconds);
  std::string scenario = arguments[1];
  if (scenario == "lanes-refused-for-ever") {
    refuseLanes(INT32_MAX);
    registerWindows();
  } else if (scenario == "lanes-refused-for-a-while") {
    refuseLanes(20);
    registerWindows();
  } else if (scenario == "signal-lanes-refused-for-a-while") {
    refuseLanes(20);
    signalRound();
  } else if (scenario == "lane-not-taken") {
    laneIsNotTaken();
  } else if (scenario == "bells-refused-once") {
    refuseSend = [](size_t bytes, bool) {
      thread_local int count = 0;
      return bytes == 1 && ++count % 2 == 1 ? ENOBUFS : 0;
    };
    reductions(200);
  } else if (scenario == "bells-refused-for-ever") {
    refuseSend = [](size_t bytes, bool) { return bytes == 1 ? ENOBUFS : 0; };
    reductions(INT32_MAX);
  } else if (scenario == "news-refused") {
    failWithoutNews();
  } else if (scenario == "unsealed-memory") {
    unsealedMemory();
  } else if (scenario == "abort-by-many") {
    abortByMany();
  } else if (scenario == "abort-a-split") {
    abortSplits(1, 0);
  } else if (scenario == "abort-one-split-of-two") {
    abortSplits(2, 1);
  } else if (scenario == "connected-by-this-user") {
    connectedByOthers();
  } else if (scenario == "connected-by-other-users") {
    othersAreForeign = true;
    connectedByOthers();
  } else if (scenario == "far-too-many-ranks") {
    farTooManyRanks();
  } else if (scenario == "no-poll") {
    noPoll();
  } else if (scenario == "server-without-descriptors") {
    serverWithoutDescriptors();
  } else if (scenario == "no-threads") {
    noThreads();
  } else if (scenario == "init-all-without-descriptors") {
    static std::atomic<int> events{0};
    refuseEvent = [] { return ++events == 3; };
    initAllThatFails();
  } else if (scenario == "init-all-without-connections") {
    refuseAcceptOnce();
    initAllThatFails();
  } else if (scenario == "in-locale") {
    inLocale();
  } else {
    tell("no scenario " + scenario);
    return 2;
  }
  return 0;
}
