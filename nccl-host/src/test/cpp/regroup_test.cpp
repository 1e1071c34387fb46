// regroup_test.cpp: the messages of a peer for new communicators.

#include "protocol/regroup.h"

#include <gtest/gtest.h>
#include <string.h>

#include <vector>

#include "connected.h"
#include "status/rasreport.h"

namespace host {
namespace {

class RegroupTest : public testing::Test {
 protected:
  RegroupTest() : rank(2), child(0, 2, 0, {}) {}

  void send(ControlKind kind, const void* body = nullptr, size_t size = 0) {
    Control message;
    message.kind = kind;
    if (size > 0) memcpy(message.text, body, size);
    ASSERT_EQ(static_cast<long>(sizeof message), sendSome(rank.ends[1].control.get(), &message, sizeof message));
    rank.comm->readControl(rank.peer(1), "now");
  }
  void sendNote(uint64_t attempt, uint64_t completed) {
    RegroupNote note;
    note.attempt = attempt;
    note.completed = completed;
    send(ControlKind::Regroup, &note, sizeof note);
  }

  std::vector<uint64_t> attempts() {
    std::vector<uint64_t> all;
    for (size_t i = 0; i < rank.peer(1).control.regroups.size(); i++) all.push_back(rank.peer(1).control.regroups[i].attempt);
    return all;
  }

  Connected rank;
  Comm child;
};

TEST_F(RegroupTest, ANoteReplacesThoseOfAbandonedAttempts) {
  sendNote(1, 0);
  sendNote(1, 0);
  EXPECT_EQ((std::vector<uint64_t>{1, 1}), attempts());
  // The peer has completed the first attempt, and gives up the second and the third.
  for (uint64_t attempt : {2, 3, 4}) sendNote(attempt, 1);
  EXPECT_EQ((std::vector<uint64_t>{1, 1, 4}), attempts());
  sendNote(5, 0);
  EXPECT_EQ((std::vector<uint64_t>{5}), attempts());
}

TEST_F(RegroupTest, APeerThatSendsNotesWithoutEndTakesNoMemory) {
  for (int i = 0; i < 1000; i++) sendNote(1, 0);
  EXPECT_EQ(8u, attempts().size());
  ASSERT_NE(nullptr, rank.comm->peerFailure());
  EXPECT_EQ("rank 1 sent more than 8 notes for new communicators", rank.comm->peerFailure()->text());
}

TEST_F(RegroupTest, TheLastIdOfAPeerIsTheOneToGrowWith) {
  ncclUniqueId id{};
  for (char first : {'a', 'b', 'c'}) {
    id.internal[0] = first;
    send(ControlKind::GrowId, &id, sizeof id);
  }
  EXPECT_EQ(1u, rank.peer(1).control.messagesForNew());
  EXPECT_EQ('c', Regrouping(*rank.comm, child, Call::CommGrow).takeGrowId().internal[0]);
  EXPECT_EQ(0u, rank.peer(1).control.messagesForNew());
}

TEST_F(RegroupTest, TheIdOfAPeerThatEndsIsNotAwaited) {
  Variable timeout("NCCL4J_HOST_INIT_TIMEOUT", "1");
  send(ControlKind::Abort);
  EXPECT_EQ(
      "6: rank 1 (pid 0) aborted its communicator while rank 0 was in CommGrow",
      failureOf([&] { Regrouping(*rank.comm, child, Call::CommGrow).takeGrowId(); }));
}

TEST_F(RegroupTest, AMemberThatEndsWillNotJoin) {
  Members members(*rank.comm, Call::CommGrow, {0, 1});
  EXPECT_EQ("", failureOf([&] { members.check(); }));
  std::vector<pollfd> polled;
  members.addDescriptors(polled);
  EXPECT_EQ(2u, polled.size());
  send(ControlKind::Close);
  EXPECT_EQ(
      "6: rank 1 (pid 0 on " + nodeName() +
          ") closed its communicator while rank 0 was in CommGrow; its program may have failed: see its log",
      failureOf([&] { members.check(); }));
  send(ControlKind::Abort);
  EXPECT_EQ("6: rank 1 (pid 0) aborted its communicator while rank 0 was in CommGrow", failureOf([&] { members.check(); }));
}

TEST_F(RegroupTest, AMemberThatDiesOrFailsWillNotJoin) {
  Members members(*rank.comm, Call::CommGrow, {0, 1});
  send(ControlKind::Fault, "reason", 7);
  EXPECT_EQ("6: reason", failureOf([&] { members.check(); }));
  // All ranks of a communicator that failed have said so.
  rank.comm->breakDown({ncclRemoteError, "reason"});
  EXPECT_EQ("", failureOf([&] { members.check(); }));
  rank.ends[1].control.reset();
  EXPECT_EQ("6: rank 1 (pid 0) went away while rank 0 was in CommGrow", failureOf([&] { members.check(); }));
}

TEST_F(RegroupTest, AnAbortEndsTheWaitForMembers) {
  Members members(*rank.comm, Call::CommGrow, {0, 1});
  rank.comm->requestAbort();
  EXPECT_EQ("3: CommGrow of rank 0 was ended by an abort or revoke", failureOf([&] { members.check(); }));
}

}  // namespace
}  // namespace host
