// lifecycle_test.cpp: the states of a communicator, by themselves and as calls of the C API see them.

#include "protocol/lifecycle.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "connected.h"
#include "testthread.h"

namespace host {
namespace {

constexpr State kStates[] = {State::Creating, State::Ready,   State::Failed,   State::Finalized,
                             State::Revoked,  State::Aborted, State::Destroyed};

/** Leads a new lifecycle to the state. */
void lead(Lifecycle& lifecycle, State to) {
  if (to == State::Creating) return;
  lifecycle.created();
  if (to == State::Failed) {
    lifecycle.setError(ncclRemoteError, "lost");
  } else if (to != State::Ready) {
    ASSERT_TRUE(lifecycle.enter(to));
  }
}

class Transition : public testing::TestWithParam<std::tuple<State, State>> {};

TEST_P(Transition, IsLegalOrChangesNothing) {
  const std::map<State, std::set<State>> legal{
      {State::Creating, {State::Ready, State::Failed, State::Aborted}},
      {State::Ready, {State::Failed, State::Finalized, State::Revoked, State::Aborted, State::Destroyed}},
      {State::Failed, {State::Revoked, State::Aborted, State::Destroyed}},
      {State::Finalized, {State::Aborted, State::Destroyed}},
      {State::Revoked, {State::Aborted, State::Destroyed}},
      {State::Aborted, {}},
      {State::Destroyed, {}},
  };
  auto [from, to] = GetParam();
  Lifecycle lifecycle;
  lead(lifecycle, from);
  ASSERT_EQ(from, lifecycle.state());
  bool expected = legal.at(from).count(to) > 0;
  EXPECT_EQ(expected, lifecycle.enter(to));
  EXPECT_EQ(expected ? to : from, lifecycle.state());
}

std::string nameOf(const testing::TestParamInfo<std::tuple<State, State>>& info) {
  const char* names[] = {"Creating", "Ready", "Failed", "Finalized", "Revoked", "Aborted", "Destroyed"};
  auto name = [&](State state) { return std::string(names[static_cast<size_t>(state)]); };
  return name(std::get<0>(info.param)) + "To" + name(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    All, Transition, testing::Combine(testing::ValuesIn(kStates), testing::ValuesIn(kStates)), nameOf);

TEST(Lifecycle, AnErrorDuringTheCreationFailsTheCommunicatorAtItsEnd) {
  Lifecycle lifecycle;
  lifecycle.setError(ncclSystemError, "no socket");
  EXPECT_TRUE(lifecycle.is(State::Creating));
  lifecycle.created();
  EXPECT_TRUE(lifecycle.is(State::Failed));
  EXPECT_EQ(
      format("%d: no socket", static_cast<int>(ncclSystemError)), failureOf([&] { lifecycle.throwIfFailed(); }));
}

TEST(Lifecycle, AnAbortDuringTheCreationIsFinal) {
  Lifecycle lifecycle;
  EXPECT_TRUE(lifecycle.enter(State::Aborted));
  lifecycle.created();
  EXPECT_TRUE(lifecycle.is(State::Aborted));
  EXPECT_TRUE(lifecycle.ended());
}

TEST(Lifecycle, TheFirstErrorStays) {
  Lifecycle lifecycle;
  lead(lifecycle, State::Ready);
  lifecycle.setError(ncclSuccess, "none");
  EXPECT_TRUE(lifecycle.is(State::Ready));
  lifecycle.setError(ncclRemoteError, "first");
  lifecycle.setError(ncclTimeout, "second");
  EXPECT_TRUE(lifecycle.is(State::Failed));
  EXPECT_EQ(ncclRemoteError, lifecycle.error());
  EXPECT_EQ("first", lifecycle.errorText());
}

TEST(Lifecycle, FinalizedAndAbortedCommunicatorsKeepAnErrorAndTheirState) {
  for (State state : {State::Finalized, State::Aborted}) {
    Lifecycle lifecycle;
    lead(lifecycle, state);
    lifecycle.setError(ncclTimeout, "late");
    EXPECT_EQ(state, lifecycle.state());
    EXPECT_EQ(ncclTimeout, lifecycle.error());
  }
}

TEST(Lifecycle, ARevokedCommunicatorHasNoError) {
  Lifecycle lifecycle;
  lead(lifecycle, State::Failed);
  EXPECT_TRUE(lifecycle.enter(State::Revoked));
  lifecycle.setError(ncclRemoteError, "after");
  EXPECT_EQ(ncclSuccess, lifecycle.error());
  EXPECT_EQ("", lifecycle.errorText());
  lifecycle.throwIfFailed();
}

TEST(Lifecycle, OneOfTwoThreadsEntersAState) {
  for (int round = 0; round < 200; round++) {
    Lifecycle lifecycle;
    lead(lifecycle, State::Ready);
    std::atomic<int> entered{0};
    std::vector<TestThread> threads;
    for (State next : {State::Finalized, State::Revoked}) {
      threads.emplace_back([&, next] { entered += lifecycle.enter(next); });
    }
    for (TestThread& thread : threads) thread.join();
    ASSERT_EQ(1, entered);
  }
}

/** The states of a communicator as the C API shows them. */
class StateOfComm : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(ncclSuccess, ncclCommInitAll(&handle, 1, nullptr));
    comm = findComm(handle);
  }
  void TearDown() override {
    if (findComm(handle)) ncclCommAbort(handle);
  }
  ncclResult_t allReduce() {
    int in = 1, out = 0;
    return ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, handle, nullptr);
  }
  ncclResult_t asyncError() {
    ncclResult_t error = ncclNumResults;
    EXPECT_EQ(ncclSuccess, ncclCommGetAsyncError(handle, &error));
    return error;
  }

  ncclComm_t handle = nullptr;
  std::shared_ptr<Comm> comm;
};

TEST_F(StateOfComm, IsReadyAfterItsCreation) {
  EXPECT_TRUE(comm->lifecycle.is(State::Ready));
  EXPECT_EQ(ncclSuccess, allReduce());
}

TEST_F(StateOfComm, FinalizedTakesNoOperationAndNoRevoke) {
  EXPECT_EQ(ncclSuccess, ncclCommFinalize(handle));
  EXPECT_EQ(ncclInvalidUsage, allReduce());
  EXPECT_EQ(ncclInvalidUsage, ncclCommFinalize(handle));
  EXPECT_EQ(ncclInvalidArgument, ncclCommRevoke(handle, NCCL_REVOKE_DEFAULT));
  EXPECT_EQ(ncclSuccess, ncclCommDestroy(handle));
  EXPECT_TRUE(comm->lifecycle.is(State::Destroyed));
}

TEST_F(StateOfComm, FailedRefusesOperationsWithItsErrorUntilItIsRevoked) {
  comm->lifecycle.setError(ncclRemoteError, "rank 1 went away");
  EXPECT_EQ(ncclRemoteError, allReduce());
  EXPECT_EQ(ncclRemoteError, asyncError());
  EXPECT_TRUE(comm->failureStands());
  EXPECT_EQ(ncclSuccess, ncclCommRevoke(handle, NCCL_REVOKE_DEFAULT));
  EXPECT_FALSE(comm->failureStands());
  EXPECT_EQ(ncclSuccess, asyncError());
  EXPECT_EQ(ncclInvalidUsage, allReduce());
  EXPECT_EQ(ncclInvalidArgument, ncclCommRevoke(handle, NCCL_REVOKE_DEFAULT));
}

TEST_F(StateOfComm, AnInterruptHandlesTheFailureAndLeavesTheState) {
  comm->lifecycle.setError(ncclRemoteError, "rank 1 went away");
  comm->interrupt("a test");
  EXPECT_FALSE(comm->failureStands());
  EXPECT_TRUE(comm->lifecycle.is(State::Failed));
}

TEST_F(StateOfComm, ARevokedOneMayBeSuspended) {
  EXPECT_EQ(ncclSuccess, ncclCommRevoke(handle, NCCL_REVOKE_DEFAULT));
  EXPECT_EQ(ncclSuccess, ncclCommSuspend(handle, NCCL_SUSPEND_MEM));
  EXPECT_EQ(ncclSuccess, ncclCommResume(handle));
}

TEST_F(StateOfComm, AbortedIsInProgressAndRefusesCalls) {
  comm->requestAbort();
  EXPECT_EQ(ncclInProgress, asyncError());
  EXPECT_EQ(ncclInvalidArgument, allReduce());
  EXPECT_EQ(ncclInvalidArgument, ncclCommRevoke(handle, NCCL_REVOKE_DEFAULT));
}

}  // namespace
}  // namespace host
