// ras_test.cpp: the status service: commands of clients, messages between processes, and reports.

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>

#include "connected.h"
#include "protocol/bootstrap.h"
#include "status/rasclient.h"

namespace host {
namespace {

/** The kind of a command, and its values: "Timeout 5". An error is its response. */
std::string parsed(const std::string& line) {
  RasCommand command = parseRasCommand(line);
  switch (command.kind) {
    case RasCommand::Kind::Protocol: return "Protocol";
    case RasCommand::Kind::Timeout: return format("Timeout %g", command.timeout);
    case RasCommand::Kind::Format: return command.json ? "json" : "text";
    case RasCommand::Kind::Status: return command.verbose ? "verbose" : "Status";
    case RasCommand::Kind::Monitor: return format("Monitor %u", command.events);
    case RasCommand::Kind::Error: return command.reason;
  }
  return "";
}

TEST(RasCommandTest, LinesOfTheProtocol) {
  const std::pair<std::string, const char*> lines[] = {
      {"CLIENT PROTOCOL 2", "Protocol"},
      {"client protocol x", "Protocol"},
      {"TIMEOUT 5", "Timeout 5"},
      {"timeout 0", "Timeout 3600"},
      {"TIMEOUT 99999999999999999999", "Timeout 3600"},
      {"TIMEOUT -1", "ERROR: Invalid timeout value -1"},
      {"TIMEOUT 1e3", "ERROR: Invalid timeout value 1e3"},
      {"TIMEOUT ", "ERROR: Invalid timeout value "},
      {std::string("TIMEOUT 1\0", 10), "ERROR: Invalid timeout value 1?"},
      {"SET FORMAT json", "json"},
      {"set format TEXT", "text"},
      {"SET FORMAT xml", "ERROR: Invalid format xml"},
      {"STATUS", "Status"},
      {"Verbose Status", "verbose"},
      {"VERBOSE  STATUS", "ERROR: Unknown command VERBOSE  STATUS"},
      {"MONITOR", "Monitor 1"},
      {"MONITOR  trace", "Monitor 2"},
      {"MONITOR lifecycle,TRACE", "Monitor 3"},
      {"MONITOR all", "Monitor 3"},
      {"MONITOR all,", "Monitor 3"},
      {"MONITOR ,all", "ERROR: Invalid event group ''"},
      {"MONITOR all,x", "ERROR: Invalid event group 'x'"},
      {"MONITORS", "ERROR: Unknown command MONITORS"},
      {"", "ERROR: Unknown command "},
      {"\x1b[31m\xff", "ERROR: Unknown command ?[31m?"},
  };
  for (const auto& [line, expected] : lines) EXPECT_EQ(expected, parsed(line)) << line;
}

/** A process of this host, or of another one. */
Member memberOf(uint64_t process, int pid, uint64_t host = hostNumber()) {
  Member member;
  member.process = process;
  member.pid = pid;
  member.host = host;
  std::string name = nodeName();
  memcpy(member.hostName, name.data(), std::min(name.size(), sizeof member.hostName - 1));
  return member;
}

constexpr uint64_t kProcess = 100;

/** A rank of a communicator in which each rank has a process: 100, 101, ..., with these numbers as process ids. */
RankReport reportOf(int rank, int ranks, uint64_t hash = 0xabc) {
  RankReport report;
  report.status.hash = hash;
  report.status.rank = rank;
  report.status.ranks = ranks;
  for (int i = 0; i < ranks; i++) report.members.push_back(memberOf(kProcess + static_cast<uint64_t>(i), static_cast<int>(kProcess) + i));
  return report;
}

void answer(Job& job, const RankReport& report) {
  int pid = static_cast<int>(kProcess) + report.status.rank;
  job.add(static_cast<uint64_t>(pid), pid, {report});
}

TEST(RasMessageTest, ArrivesAsItWasSent) {
  RankReport first = reportOf(1, 3);
  first.status.launched[static_cast<size_t>(Call::AllGather)] = 7;
  std::string message = encode({first, reportOf(0, 2, 0xdef)});
  std::vector<RankReport> read;
  ASSERT_EQ(Decoded::Complete, decode(message, read));
  ASSERT_EQ(2u, read.size());
  EXPECT_EQ(7u, read[0].status.launched[static_cast<size_t>(Call::AllGather)]);
  EXPECT_EQ(0xdefu, read[1].status.hash);
  EXPECT_EQ(102, read[0].members[2].pid);
  for (size_t size = 0; size < message.size(); size++) {
    EXPECT_EQ(Decoded::Incomplete, decode(message.substr(0, size), read)) << size;
  }
  EXPECT_EQ(Decoded::Invalid, decode(message + "x", read));
  EXPECT_EQ(Decoded::Complete, decode(encode({}), read));
}

TEST(RasMessageTest, ImplausibleNumbersAreRefused) {
  std::vector<std::function<void(RankReport&)>> changes{
      [](RankReport& report) { report.status.rank = -1; },
      [](RankReport& report) { report.status.rank = 3; },
      [](RankReport& report) { report.status.ranks = 0; },
      [](RankReport& report) { report.status.ranks = 4; },
      [](RankReport& report) { report.status.ranks = INT_MAX; },
      [](RankReport& report) { report.status.device = -1; },
      [](RankReport& report) { report.status.initState = ncclNumResults; },
      [](RankReport& report) { report.status.asyncError = -1; },
      [](RankReport& report) { report.status.aborted = 2; },
      [](RankReport& report) { report.members[1].pid = 0; },
      [](RankReport& report) { report.members.pop_back(); },
  };
  for (size_t i = 0; i < changes.size(); i++) {
    RankReport report = reportOf(1, 3);
    changes[i](report);
    std::vector<RankReport> read;
    EXPECT_EQ(Decoded::Invalid, decode(encode({report}), read)) << i;
  }
}

/** Whatever the bytes are, a report follows: sanitizers see the rest. */
TEST(RasMessageTest, GarbledMessagesDoNoHarm) {
  std::mt19937 random(1);
  std::string message = encode({reportOf(0, 3), reportOf(2, 3, 0xdef)});
  int complete = 0;
  for (int round = 0; round < 20'000; round++) {
    std::string garbled = message;
    for (unsigned changes = 1 + random() % 3; changes > 0; changes--) {
      garbled[random() % garbled.size()] = static_cast<char>(random() % 3 == 0 ? random() : random() % 4);
    }
    std::vector<RankReport> read;
    if (decode(garbled, read) != Decoded::Complete) continue;
    complete++;
    Job job;
    answer(job, reportOf(1, 3));
    job.add(kProcess, 100, read);
    EXPECT_LT(0u, round % 20 == 0 ? textReport(job, true).size() + jsonReport(job).size() : 1);
  }
  EXPECT_LT(100, complete);
}

TEST(RasJobTest, ContradictionsAreIgnored) {
  Job job;
  answer(job, reportOf(0, 2));
  job.add(101, 101, {reportOf(1, 3), reportOf(0, 2), reportOf(1, 2), reportOf(1, 2), reportOf(0, 2, 0xdef)});
  EXPECT_EQ(1u, job.processes[101].ranks.size());
  EXPECT_EQ(1u, job.communicators.size());
  EXPECT_EQ(2u, job.processes.size());
}

std::string textOf(const Job& job, bool verbose = false) {
  std::string text = textReport(job, verbose);
  std::string node = "node " + nodeName();
  for (size_t at; (at = text.find(node)) != std::string::npos;) text.replace(at, node.size(), "node X");
  return text.substr(text.find("Job summary"));
}

std::string after(const std::string& heading, const std::string& text) {
  size_t at = text.find(heading);
  return at == std::string::npos ? text : text.substr(at);
}

TEST(RasReportTest, AJobThatIsWell) {
  Job job;
  for (int rank = 0; rank < 2; rank++) answer(job, reportOf(rank, 2));
  job.seconds = 0.25;
  EXPECT_EQ(
      "Job summary\n===========\n\n"
      "  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per node  per process    (total)  (total)\n"
      "      1          2            1          2        2\n"
      "\nCommunicators... (0.250s)\n=============\n\n"
      "Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
      "    #  in group  per comm  per node  per comm  in group\n"
      "    0         1         1         2         2         2   RUNNING      OK\n"
      "\nErrors\n======\n\nWarnings\n========\n\n",
      textOf(job));
}

TEST(RasReportTest, ProcessesWithDifferentDevices) {
  Job job;
  RankReport two = reportOf(0, 2), other = reportOf(0, 2, 0xdef);
  other.status.device = 3;
  job.add(kProcess, 100, {two, other});
  answer(job, reportOf(1, 2));
  EXPECT_NE(std::string::npos, textOf(job).find("(total)\n      1          2          1-2          2        3\n")) << textOf(job);
  EXPECT_EQ(format("Process 100 on node %s managing GPUs 0,3", nodeName().c_str()), describe(job.processes[kProcess]));
}

TEST(RasReportTest, CountsThatDiffer) {
  Job job;
  for (int rank = 0; rank < 4; rank++) {
    RankReport report = reportOf(rank, 4);
    report.status.launched[static_cast<size_t>(Call::AllReduce)] = rank == 2 ? 0 : 5;
    report.status.launched[static_cast<size_t>(Call::AlltoAll)] = 3;
    answer(job, report);
  }
  EXPECT_NE(std::string::npos, textOf(job).find("RUNNING  MISMATCH\n"));
  EXPECT_EQ(
      "Warnings\n========\n\n#0-0 (0000000000000abc) MISMATCH\n"
      "  The number of AllReduce operations differs between ranks\n"
      "  3 ranks have launched 5\n"
      "  Rank 2 has launched 0 -- GPU 0 managed by process 102 on node X\n\n",
      after("Warnings", textOf(job)));
}

TEST(RasReportTest, RanksThatAreMissing) {
  Job job;
  answer(job, reportOf(0, 4));
  job.processes[102].response = Response::Dead;
  job.processes[103].response = Response::NoService;
  std::string text = textOf(job);
  EXPECT_NE(std::string::npos, text.find("RUNNING  INCOMPLETE,MISMATCH\n")) << text;
  EXPECT_EQ(
      "Errors\n======\n\n"
      "INCOMPLETE\n  1 process of the job gave no answer within the timeout\n"
      "  Process 101 on node X managing GPU 0\n\n"
      "DEAD\n  1 process of the job ended without notice\n  Process 102 on node X managing GPU 0\n\n"
      "#0-0 (0000000000000abc) INCOMPLETE\n  No data of 2 ranks\n"
      "  Rank 1 -- GPU 0 managed by process 101 on node X\n"
      "  Rank 2 -- GPU 0 managed by process 102 on node X\n\n"
      "Warnings\n========\n\n"
      "#0-0 (0000000000000abc) MISMATCH\n  The status differs between ranks\n"
      "  Rank 3 has status NOCOMM -- GPU 0 managed by process 103 on node X\n"
      "  Rank 0 has status RUNNING -- GPU 0 managed by process 100 on node X\n\n",
      after("Errors\n==", text));
}

TEST(RasReportTest, Errors) {
  Job job;
  for (int rank = 0; rank < 3; rank++) {
    RankReport report = reportOf(rank, 3);
    if (rank == 0) report.status.initState = ncclInProgress;
    if (rank > 0) report.status.asyncError = ncclRemoteError;
    answer(job, report);
  }
  const char* error = ncclGetErrorString(ncclRemoteError);
  EXPECT_EQ(
      format(
          "#0-0 (0000000000000abc) ERROR\n  Asynchronous errors on 2 ranks\n  2 ranks reported \"%s\"\n"
          "  Rank 1 -- GPU 0 managed by process 101 on node X\n"
          "  Rank 2 -- GPU 0 managed by process 102 on node X\n\n"
          "Warnings\n========\n\n"
          "#0-0 (0000000000000abc) MISMATCH\n  The status differs between ranks\n  2 ranks have status RUNNING\n"
          "  Rank 0 has status INIT -- GPU 0 managed by process 100 on node X\n\n",
          error),
      after("#0-0", textOf(job)));
}

TEST(RasReportTest, LargeCommunicatorsComeFirst) {
  Job job;
  job.add(kProcess, 100, {reportOf(0, 1, 1), reportOf(0, 3, 2), reportOf(0, 1, 3)});
  for (int rank = 1; rank < 3; rank++) answer(job, reportOf(rank, 3, 2));
  EXPECT_NE(
      std::string::npos, textOf(job).find("    0         1         1         3         3         3   RUNNING      OK\n"
                                          "    1         2         1         1         1         1   RUNNING      OK\n"))
      << textOf(job);
}

/** A client of this process's service, at the other end of a stream. */
class RasClientTest : public testing::Test {
 protected:
  RasClientTest() {
    auto [mine, theirs] = newStream();
    socket = std::move(mine);
    client = std::make_unique<RasClient>(std::move(theirs), [this] { return ranks; });
  }

  void say(const std::string& text) { sendSome(socket.get(), text.data(), text.size()); }

  /** What the client was sent after this. Runs until there is nothing to do at once. */
  std::string response() {
    client->advance();
    return received();
  }

  std::string received() {
    char buffer[1 << 16];
    long got = receiveSome(socket.get(), buffer, sizeof buffer);
    return got <= 0 ? "" : std::string(buffer, static_cast<size_t>(got));
  }

  /** A rank in this process; the other members are what a test makes of them. */
  RankReport ownReport(std::vector<Member> others) {
    RankReport report;
    report.status.ranks = static_cast<int>(others.size()) + 1;
    report.status.hash = 0x123;
    others.insert(others.begin(), memberOf(processToken(), getpid()));
    report.members = std::move(others);
    return report;
  }

  std::vector<RankReport> ranks{ownReport({})};
  Fd socket;
  std::unique_ptr<RasClient> client;
};

TEST_F(RasClientTest, CommandsAreAnsweredInOrder) {
  say("CLIENT PROTOCOL 2\r\nTIMEOUT 1\nnonsense\nSET FOR");
  EXPECT_EQ("SERVER PROTOCOL 2\nOK\nERROR: Unknown command nonsense\n", response());
  say("MAT json\n");
  EXPECT_EQ("OK\n", response());
  say("STATUS\nSTATUS\n");
  std::string report = response();
  EXPECT_EQ(0u, report.find("{\n  \"nccl_version\": ")) << report;
  EXPECT_NE(std::string::npos, report.find(format("\"pid\": %d,", getpid()))) << report;
  EXPECT_TRUE(client->ended());
}

TEST_F(RasClientTest, AHalfClosedConnectionGetsItsReport) {
  say("STATUS\n");
  shutdown(socket.get(), SHUT_WR);
  EXPECT_EQ(0u, response().find("NCCL version "));
  EXPECT_TRUE(client->ended());
}

TEST_F(RasClientTest, AConnectionWithoutACommandEnds) {
  say("STAT");
  shutdown(socket.get(), SHUT_WR);
  EXPECT_EQ("", response());
  EXPECT_TRUE(client->ended());
}

TEST_F(RasClientTest, AClosedConnectionEnds) {
  say("MONITOR\n");
  socket.reset();
  client->advance();
  EXPECT_TRUE(client->ended());
}

TEST_F(RasClientTest, ALineWithoutEndIsRefused) {
  say(std::string(1000, '\xff'));
  EXPECT_EQ("", response());
  EXPECT_FALSE(client->ended());
  say(std::string(1000, '\0'));
  EXPECT_EQ("", response());
  EXPECT_TRUE(client->ended());
}

TEST_F(RasClientTest, AClientThatReadsNothingIsGivenUp) {
  constexpr size_t kMuch = 8 << 20;
  say("MONITOR\n");
  client->advance();
  // Its response has as many bytes, and waits as events do.
  const std::string unknown = std::string(1000, 'x') + "\n";
  size_t asked = 0;
  for (; asked < kMuch && !client->ended(); asked += unknown.size()) {
    say(unknown);
    client->advance();
  }
  EXPECT_LT(asked, kMuch);
  EXPECT_GT(asked, size_t{1} << 20) << "it may be slow";
}

/** The token of another process. Another run of the tests has other ones. */
uint64_t other(uint64_t number) { return processToken() + number; }

TEST_F(RasClientTest, EventsTellOfChanges) {
  say("MONITOR all\n");
  EXPECT_EQ("OK\n", response());
  EXPECT_GT(client->deadline(), now() + 0.5);
  Fd listener = listenAt(rasSocketName(other(1)));
  ranks = {ownReport({memberOf(other(1), getpid())})};
  // The next collection waits for the process, until its deadline.
  say("TIMEOUT 1\n");
  EXPECT_EQ("OK\n", response());
  std::string events;
  for (double end = now() + 10; now() < end && events.find("UNRESPONSIVE") == std::string::npos;) {
    client->advance();
    events += received();
    std::vector<pollfd> polled;
    client->addDescriptors(polled);
    pollAll(polled, 20);
  }
  EXPECT_NE(std::string::npos, events.find(format("] PEER_NEW: Process %d on node ", getpid()))) << events;
  EXPECT_NE(std::string::npos, events.find(format("] PEER_UNRESPONSIVE: Process %d on node ", getpid()))) << events;
  // The next collection finds no change.
  std::string repeated;
  for (double end = now() + 3; now() < end;) {
    client->advance();
    repeated += received();
    std::vector<pollfd> polled;
    client->addDescriptors(polled);
    pollAll(polled, 20);
  }
  EXPECT_EQ("", repeated);
  listener.reset();
  for (double end = now() + 10; now() < end && events.find("PEER_DEAD") == std::string::npos;) {
    client->advance();
    events += received();
    pollAll(*std::make_unique<std::vector<pollfd>>(), 20);
  }
  EXPECT_NE(std::string::npos, events.find("] PEER_DEAD: ")) << events;
}

/** Another process of the job: a listener in the hands of a test. */
struct OtherProcess {
  uint64_t process;
  Fd listener = listenAt(rasSocketName(process));
  Fd asker = Fd();

  /** Answers a collection, which this continues. */
  void answer(Collection& collection, const std::string& bytes) {
    while (!acceptFrom(listener, asker)) {
    }
    Proof proof = rasProof(process);
    while (proof.accept(asker) == Proof::Step::Waiting) collection.advance();
    sendSome(asker.get(), bytes.data(), bytes.size());
  }
};

TEST_F(RasClientTest, AProcessTellsItsRanksOnlyToOneThatKnowsItsToken) {
  for (bool knows : {true, false}) {
    auto [mine, theirs] = newStream();
    RasClient service(std::move(theirs), rasProof(other(1)), [] { return std::string("ranks"); });
    Proof proof = knows ? rasProof(other(1)) : Proof(Digest(), rasSocketName(other(1)));
    Proof::Step step;
    while ((step = proof.connect(mine)) == Proof::Step::Waiting) {
      service.advance();
      std::vector<pollfd> polled;
      service.addDescriptors(polled);
      ASSERT_EQ(POLLIN, polled.at(0).events) << "no loop while it waits";
    }
    service.advance();
    char got[8];
    long size = receiveSome(mine.get(), got, sizeof got);
    EXPECT_EQ(knows ? "ranks" : "", std::string(got, static_cast<size_t>(std::max(0L, size))));
    mine.reset();
    service.advance();
    EXPECT_TRUE(service.ended());
  }
}

/** A process that has ended, and whose parent has not asked for its exit code. */
struct Zombie {
  Zombie() : pid(fork()) {
    if (pid == 0) _exit(0);
    siginfo_t unused;
    EXPECT_EQ(0, waitid(P_PID, static_cast<id_t>(pid), &unused, WEXITED | WNOWAIT));
  }
  ~Zombie() { waitpid(pid, nullptr, 0); }
  const pid_t pid;
};

TEST_F(RasClientTest, EachProcessHasItsResponse) {
  OtherProcess answers{other(1)}, silent{other(2)}, garbled{other(3)}, ends{other(4)};
  Zombie zombie;
  ranks = {ownReport(
      {memberOf(other(1), 11),
       memberOf(other(2), 12),
       memberOf(other(3), 13),
       memberOf(other(4), INT_MAX),
       memberOf(other(5), getpid()),
       memberOf(other(6), INT_MAX),
       memberOf(other(8), zombie.pid)})};
  Collection collection([this] { return ranks; }, 0.2);
  RankReport peer = ranks[0];
  peer.status.rank = 1;
  // A process that only this one knows.
  RankReport elsewhere;
  elsewhere.status.hash = 0x456;
  elsewhere.status.ranks = 2;
  elsewhere.members = {memberOf(other(1), 11), memberOf(other(7), INT_MAX)};
  answers.answer(collection, encode({peer, elsewhere}));
  garbled.answer(collection, "HTTP/1.1 400 Bad Request\r\n");
  ends.answer(collection, "NJHR");
  ends.asker.reset();
  while (!collection.complete()) collection.advance();
  const std::pair<uint64_t, Response> expected[] = {
      {processToken(), Response::Answered}, {other(1), Response::Answered}, {other(2), Response::Silent},
      {other(3), Response::Silent},         {other(4), Response::Dead},     {other(5), Response::NoService},
      {other(6), Response::Dead},           {other(7), Response::Dead},     {other(8), Response::Dead}};
  EXPECT_EQ(std::size(expected), collection.job().processes.size());
  for (const auto& [process, response] : expected) {
    EXPECT_EQ(response, collection.job().processes.at(process).response) << process - processToken();
  }
  EXPECT_LE(0.2, collection.job().seconds);
}

TEST_F(RasClientTest, ProcessesOfOtherHostsAreAskedByTcp) {
  Interface lo;
  for (const Interface& one : runningInterfaces(AF_INET)) {
    if (one.name == "lo") lo = one;
  }
  if (!lo.address.valid()) GTEST_SKIP() << "needs the loopback interface";
  auto at = [&](uint64_t process, uint64_t host, const NetworkAddress& address) {
    Member member = memberOf(process, INT_MAX, host);
    member.address = address;
    return member;
  };
  NetworkAddress nobody = lo.address, somebody = lo.address;
  listenAt(lo, nobody);  // and ends
  Fd listener = listenAt(lo, somebody);
  uint64_t there = hostNumber() + 1, elsewhere = hostNumber() + 2;
  ranks = {ownReport(
      {at(other(1), there, somebody), at(other(2), there, nobody), at(other(3), there, nobody), at(other(4), there, {}),
       at(other(5), elsewhere, nobody)})};
  for (bool answers : {false, true}) {
    Collection collection([this] { return ranks; }, 0.5);
    Fd asker;
    while (!acceptFromNetwork(listener, asker) || !asker.valid()) collection.advance();
    Proof proof = rasProof(other(answers ? 1 : 9), Link::Network);
    for (Proof::Step step = Proof::Step::Waiting; step == Proof::Step::Waiting && !collection.complete(); step = proof.accept(asker)) {
      collection.advance();
    }
    if (answers) {
      RankReport peer = ranks[0];
      peer.status.rank = 1;
      peer.members[2].ended = 1;
      std::string message = encode({peer});
      sendSome(asker.get(), message.data(), message.size());
    } else {
      asker.reset();
    }
    while (!collection.complete()) collection.advance();
    const std::pair<uint64_t, Response> expected[] = {
        {other(1), answers ? Response::Answered : Response::Silent},
        {other(2), answers ? Response::Dead : Response::Silent},
        {other(3), answers ? Response::NoService : Response::Silent},
        {other(4), answers ? Response::NoService : Response::Silent},
        {other(5), Response::Silent}};
    for (const auto& [process, response] : expected) {
      EXPECT_EQ(response, collection.job().processes.at(process).response) << process - processToken() << answers;
    }
  }
}

TEST_F(RasClientTest, HostsAreCountedAndNamed) {
  Member far = memberOf(other(1), 7, hostNumber() + 1);
  strcpy(far.hostName, "far\x1b\"away");
  std::vector<RankReport> received;
  ASSERT_EQ(Decoded::Complete, decode(encode({ownReport({far})}), received));
  Job job;
  job.add(processToken(), getpid(), received);
  received[0].status.rank = 1;
  job.add(other(1), 7, received);
  std::string text = textReport(job, false);
  EXPECT_NE(std::string::npos, text.find("      2          1            1          2        2\n")) << text;
  EXPECT_NE(std::string::npos, text.find("    0         1         2         1         2         2   RUNNING")) << text;
  EXPECT_EQ("Process 7 on node far?\"away managing GPU 0", describe(job.processes[other(1)]));
  EXPECT_NE(std::string::npos, jsonReport(job).find("\"host\": \"far??away\"")) << jsonReport(job);
}

std::set<pid_t> threadsOfProcess() {
  std::set<pid_t> threads;
  std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/task"), closedir);
  while (const dirent* entry = readdir(folder.get())) {
    if (pid_t thread = atoi(entry->d_name)) threads.insert(thread);
  }
  return threads;
}

std::string readFromStart(const Fd& file) {
  char text[512];
  return std::string(text, static_cast<size_t>(std::max<ssize_t>(0, pread(file.get(), text, sizeof text, 0))));
}

TEST(RasServiceTest, SleepsBetweenItsAttemptsWithoutDescriptors) {
  // Of no machine: only other processes can ask.
  Variable address("NCCL_RAS_ADDR", "192.0.2.1:1");
  std::set<pid_t> others = threadsOfProcess();
  ncclComm_t comm;
  ASSERT_EQ(ncclSuccess, ncclCommInitAll(&comm, 1, nullptr));
  Fd socket;
  ASSERT_EQ(Connect::Done, connectTo(rasSocketName(processToken()), socket));
  pid_t service = 0;
  for (pid_t thread : threadsOfProcess()) service = others.count(thread) == 0 ? thread : service;
  Fd state(open(format("/proc/self/task/%d/stat", service).c_str(), O_RDONLY));
  Fd ran(open(format("/proc/self/task/%d/schedstat", service).c_str(), O_RDONLY));
  ASSERT_TRUE(state.valid() && ran.valid());
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  rlimit none{0, limit.rlim_max};
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
  std::string before = readFromStart(ran);
  sendSome(socket.get(), "x", 1);
  const double end = now() + 10;
  while (readFromStart(ran) == before && now() < end) std::this_thread::yield();
  bool sleeps = false;
  while (!sleeps && now() < end) sleeps = readFromStart(state).find(") S ") != std::string::npos;
  setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_TRUE(sleeps);
  EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
}

}  // namespace
}  // namespace host
