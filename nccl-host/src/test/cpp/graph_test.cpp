// graph_test.cpp: captures, and launches of graphs.

#include "schedule/graph.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "connected.h"

namespace host {
namespace {

/** Two ranks of one thread, with a stream each and one more. */
class GraphTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ncclSuccess, ncclCommInitAll(comms, kRanks, nullptr));
    for (cudaStream_t& stream : streams) ASSERT_EQ(ncclSuccess, nccl4jHostStreamCreate(&stream));
    for (nccl4jHostEvent_t& event : events) ASSERT_EQ(ncclSuccess, nccl4jHostEventCreate(&event));
  }
  void TearDown() override {
    for (nccl4jHostGraph_t graph : graphs) EXPECT_EQ(ncclSuccess, nccl4jHostGraphDestroy(graph));
    for (nccl4jHostEvent_t event : events) EXPECT_EQ(ncclSuccess, nccl4jHostEventDestroy(event));
    for (cudaStream_t stream : streams) EXPECT_EQ(ncclSuccess, nccl4jHostStreamDestroy(stream));
    for (ncclComm_t comm : comms) {
      if (comm == nullptr) continue;
      EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
    }
  }

  void begin(int stream) { ASSERT_EQ(ncclSuccess, nccl4jHostStreamBeginCapture(streams[stream])); }
  nccl4jHostGraph_t end(int stream) {
    nccl4jHostGraph_t graph = nullptr;
    EXPECT_EQ(ncclSuccess, nccl4jHostStreamEndCapture(streams[stream], &graph)) << ncclGetLastError(nullptr);
    if (graph != nullptr) graphs.push_back(graph);
    return graph;
  }
  /** The result of an end that fails, and its text. */
  std::string failedEnd(int stream) {
    nccl4jHostGraph_t graph = nullptr;
    EXPECT_EQ(ncclInvalidUsage, nccl4jHostStreamEndCapture(streams[stream], &graph));
    EXPECT_EQ(nullptr, graph);
    return ncclGetLastError(nullptr);
  }
  int capturing(int stream) {
    int is = -1;
    EXPECT_EQ(ncclSuccess, nccl4jHostStreamIsCapturing(streams[stream], &is));
    return is;
  }
  void record(int event, int stream) { EXPECT_EQ(ncclSuccess, nccl4jHostEventRecord(events[event], streams[stream])); }
  void await(int stream, int event) { EXPECT_EQ(ncclSuccess, nccl4jHostStreamWaitEvent(streams[stream], events[event])); }
  void copy(int& to, const int& from, int stream) {
    EXPECT_EQ(ncclSuccess, nccl4jHostMemcpyAsync(&to, &from, sizeof to, streams[stream]));
  }
  void synchronize() {
    for (cudaStream_t stream : streams) EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(stream));
  }

  static constexpr int kRanks = 2;
  ncclComm_t comms[kRanks] = {};
  cudaStream_t streams[kRanks + 1] = {};
  nccl4jHostEvent_t events[2] = {};
  std::vector<nccl4jHostGraph_t> graphs;
};

TEST_F(GraphTest, ALaunchRunsCopiesAndOperationsInTheirOrder) {
  int in[kRanks], between[kRanks], out[kRanks] = {};
  nccl4jHostGraph_t made[kRanks];
  for (int rank = 0; rank < kRanks; rank++) {
    begin(rank);
    EXPECT_EQ(1, capturing(rank));
    copy(between[rank], in[rank], rank);
    EXPECT_EQ(
        ncclSuccess,
        ncclAllReduce(&between[rank], &between[rank], 1, ncclInt32, ncclSum, comms[rank], streams[rank]));
    copy(out[rank], between[rank], rank);
    made[rank] = end(rank);
    EXPECT_EQ(0, capturing(rank));
  }
  synchronize();
  EXPECT_EQ(0, out[0]) << "captured, not run";
  for (int step = 1; step < 4; step++) {
    for (int rank = 0; rank < kRanks; rank++) {
      in[rank] = 10 * step + rank;
      EXPECT_EQ(ncclSuccess, nccl4jHostGraphLaunch(made[rank], streams[step % 2 == 0 ? rank : 1 - rank]));
    }
    synchronize();
    for (int sum : out) EXPECT_EQ(20 * step + 1, sum);
  }
  int sums[kRanks];
  ncclGroupStart();
  for (int rank = 0; rank < kRanks; rank++) {
    ncclAllReduce(&in[rank], &sums[rank], 1, ncclInt32, ncclSum, comms[rank], streams[rank]);
  }
  ASSERT_EQ(ncclSuccess, ncclGroupEnd());
  synchronize();
  EXPECT_EQ(61, sums[1]) << "without a graph";
}

TEST_F(GraphTest, AGroupIsCapturedAsOne) {
  int in[kRanks] = {1, 2}, out[kRanks] = {};
  // A group joins the streams of a communicator, and not those of two.
  for (bool joined : {false, true}) {
    begin(0);
    record(0, 0);
    await(1, 0);
    ncclGroupStart();
    for (int rank = 0; rank < kRanks; rank++) {
      ncclSend(&in[rank], 1, ncclInt32, 1 - rank, comms[rank], streams[rank]);
      ncclRecv(&out[rank], 1, ncclInt32, 1 - rank, comms[rank], streams[rank]);
    }
    ASSERT_EQ(ncclSuccess, ncclGroupEnd());
    if (!joined) {
      EXPECT_NE(std::string::npos, failedEnd(0).find("does not wait for it"));
      continue;
    }
    record(1, 1);
    await(0, 1);
    nccl4jHostGraph_t graph = end(0);
    in[0] = 7;
    EXPECT_EQ(ncclSuccess, nccl4jHostGraphLaunch(graph, streams[2]));
    synchronize();
    EXPECT_EQ(2, out[0]);
    EXPECT_EQ(7, out[1]);
  }
}

TEST_F(GraphTest, TheStreamsOfACommunicatorAreJoinedByAGroup) {
  int in = 3, out = 0;
  begin(0);
  record(0, 0);
  await(2, 0);
  ncclGroupStart();
  ncclSend(&in, 1, ncclInt32, 0, comms[0], streams[0]);
  ncclRecv(&out, 1, ncclInt32, 0, comms[0], streams[2]);
  ASSERT_EQ(ncclSuccess, ncclGroupEnd());
  nccl4jHostGraph_t graph = end(0);
  EXPECT_EQ(ncclSuccess, nccl4jHostGraphLaunch(graph, streams[0]));
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(streams[0]));
  EXPECT_EQ(3, out);
}

TEST_F(GraphTest, AnotherStreamJoinsByAnEvent) {
  int source = 5, between = 0, target = 0;
  begin(0);
  copy(between, source, 0);
  record(0, 0);
  await(1, 0);
  EXPECT_EQ(1, capturing(1));
  copy(target, between, 1);
  record(1, 1);
  await(0, 1);
  nccl4jHostGraph_t graph = end(0);
  EXPECT_EQ(0, capturing(1));
  // A launch in the default stream is done when all its streams are.
  EXPECT_EQ(ncclSuccess, nccl4jHostGraphLaunch(graph, nullptr));
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(nullptr));
  EXPECT_EQ(5, target);
}

TEST_F(GraphTest, AStreamThatJoinedMustBeAwaited) {
  int source = 5, target = 0;
  begin(0);
  record(0, 0);
  await(1, 0);
  copy(target, source, 1);
  record(1, 1);
  await(0, 1);
  copy(target, source, 1);
  EXPECT_NE(std::string::npos, failedEnd(0).find("does not wait for it"));
  EXPECT_EQ(0, capturing(0) + capturing(1));
  copy(target, source, 1);
  synchronize();
  EXPECT_EQ(5, target) << "the streams can be used";
}

TEST_F(GraphTest, WhatWaitsForACapturedStreamIsRefusedAndEndsItsUse) {
  std::vector<std::pair<const char*, ncclResult_t (*)(cudaStream_t)>> calls = {
      {"HostStreamQuery", nccl4jHostStreamQuery}, {"HostStreamSynchronize", nccl4jHostStreamSynchronize}};
  for (auto [name, call] : calls) {
    begin(0);
    EXPECT_EQ(ncclInvalidUsage, call(streams[0]));
    EXPECT_NE(std::string::npos, std::string(ncclGetLastError(nullptr)).find(name));
    EXPECT_NE(std::string::npos, failedEnd(0).find("does no work"));
    EXPECT_EQ(ncclSuccess, call(streams[0]));
  }
  record(0, 1);
  begin(0);
  EXPECT_EQ(ncclInvalidUsage, nccl4jHostStreamWaitEvent(streams[0], events[0]));
  EXPECT_NE(std::string::npos, failedEnd(0).find("not recorded in the capture"));
  begin(0);
  record(0, 0);
  EXPECT_EQ(ncclInvalidUsage, nccl4jHostEventQuery(events[0]));
  EXPECT_EQ(ncclInvalidUsage, nccl4jHostEventSynchronize(events[0]));
  EXPECT_EQ(ncclInvalidUsage, nccl4jHostStreamWaitEvent(nullptr, events[0]));
  failedEnd(0);
  EXPECT_EQ(ncclInvalidUsage, nccl4jHostStreamWaitEvent(streams[1], events[0])) << "of a capture that has ended";
  EXPECT_EQ(0, capturing(1));
  record(0, 0);
  EXPECT_EQ(ncclSuccess, nccl4jHostEventQuery(events[0]));
}

TEST_F(GraphTest, WrongCallsAreRefused) {
  nccl4jHostGraph_t graph = nullptr;
  EXPECT_EQ(ncclInvalidArgument, nccl4jHostStreamBeginCapture(nullptr));
  EXPECT_EQ(ncclInvalidUsage, nccl4jHostStreamEndCapture(streams[0], &graph));
  begin(0);
  EXPECT_EQ(ncclInvalidUsage, nccl4jHostStreamBeginCapture(streams[0]));
  begin(1);
  record(0, 0);
  EXPECT_EQ(ncclInvalidUsage, nccl4jHostStreamWaitEvent(streams[1], events[0])) << "a stream of another capture";
  end(1);
  EXPECT_NE("", failedEnd(0));
  begin(0);
  int numbers[2] = {};
  ncclGroupStart();
  for (int rank = 0; rank < kRanks; rank++) {
    ncclAllReduce(&numbers[rank], &numbers[rank], 1, ncclInt32, ncclSum, comms[rank], streams[rank]);
  }
  EXPECT_EQ(ncclInvalidUsage, ncclGroupEnd()) << "only one stream is captured";
  failedEnd(0);
  begin(0);
  EXPECT_EQ(ncclInvalidUsage, ncclSend(numbers, 1, ncclInt32, 0, comms[0], streams[0])) << "to itself, without a receive";
  record(0, 0);
  await(2, 0);
  EXPECT_EQ(ncclInvalidUsage, nccl4jHostStreamEndCapture(streams[2], &graph)) << "not where it began";
  graph = end(0);
  EXPECT_EQ(ncclSuccess, nccl4jHostGraphLaunch(graph, streams[1]));
  EXPECT_EQ(ncclInvalidArgument, nccl4jHostGraphLaunch(nullptr, streams[1]));
  EXPECT_EQ(ncclInvalidArgument, nccl4jHostGraphDestroy(reinterpret_cast<nccl4jHostGraph_t>(16)));
}

TEST_F(GraphTest, LaunchesOfAGraphDoNotOverlap) {
  int numbers[kRanks] = {1, 2}, source = 3, target = 0;
  begin(0);
  copy(target, source, 0);
  nccl4jHostGraph_t graph = end(0);
  ncclAllReduce(&numbers[0], &numbers[0], 1, ncclInt32, ncclSum, comms[0], streams[0]);
  EXPECT_EQ(ncclSuccess, nccl4jHostGraphLaunch(graph, streams[0]));
  EXPECT_EQ(ncclSuccess, nccl4jHostGraphLaunch(graph, streams[2]));
  EXPECT_EQ(ncclInProgress, nccl4jHostStreamQuery(streams[2]));
  EXPECT_EQ(0, target);
  ncclAllReduce(&numbers[1], &numbers[1], 1, ncclInt32, ncclSum, comms[1], streams[1]);
  synchronize();
  EXPECT_EQ(3, target);
}

TEST_F(GraphTest, AGraphCanContainAnother) {
  int source = 3, target = 0, last = 0;
  begin(0);
  copy(target, source, 0);
  nccl4jHostGraph_t inner = end(0);
  begin(0);
  EXPECT_EQ(ncclSuccess, nccl4jHostGraphLaunch(inner, streams[0]));
  copy(last, target, 0);
  nccl4jHostGraph_t outer = end(0);
  EXPECT_EQ(0, target);
  EXPECT_EQ(ncclSuccess, nccl4jHostGraphLaunch(outer, streams[0]));
  synchronize();
  EXPECT_EQ(3, last);
}

TEST_F(GraphTest, ACommunicatorMustExistAtALaunchAndIsNotKept) {
  int numbers[kRanks] = {};
  nccl4jHostGraph_t made[kRanks];
  for (int rank = 0; rank < kRanks; rank++) {
    begin(rank);
    ncclAllReduce(&numbers[rank], &numbers[rank], 1, ncclInt32, ncclSum, comms[rank], streams[rank]);
    made[rank] = end(rank);
  }
  std::weak_ptr<Comm> first = findComm(comms[0]);
  for (ncclComm_t& comm : comms) {
    EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
    comm = nullptr;
  }
  EXPECT_TRUE(first.expired());
  EXPECT_EQ(ncclInvalidArgument, nccl4jHostGraphLaunch(made[0], streams[0]));
  EXPECT_NE(std::string::npos, std::string(ncclGetLastError(nullptr)).find("was destroyed"));
  EXPECT_EQ(ncclSuccess, nccl4jHostStreamSynchronize(streams[0]));
}

}  // namespace
}  // namespace host
