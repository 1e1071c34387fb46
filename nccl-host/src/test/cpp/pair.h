// pair.h: a rank whose peer is the test itself.
#pragma once

#include <gtest/gtest.h>
#include <string.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "connected.h"

namespace host {

/** How operations of few elements run: Eager, as in the engine, or in a task, with or without shared memory. */
enum class Path { Eager, Task, Socket };

/** Rank 0 and the other end of its connection to rank 1. */
class Pair {
 public:
  explicit Pair(Path pathOfOperations) : rank(2, pathOfOperations != Path::Socket), path(pathOfOperations) {
    theirs = openChannel(std::move(rank.ends[1].data), rank.ends[1].memory, kTestRing, false);
  }

  Operation operation(Call call) {
    Operation operation;
    operation.call = call;
    operation.send = reinterpret_cast<const char*>(&in);
    operation.recv = reinterpret_cast<char*>(&out);
    operation.count = 1;
    operation.type = ncclInt32;
    operation.root = isPointToPoint(call) ? 1 : 0;
    return operation;
  }

  /** A call of which rank 0 compares the peer's frame at a later call. */
  Operation reduceToPeer() {
    Operation reduce = operation(Call::Reduce);
    reduce.root = 1;
    return reduce;
  }

  /** The announcement of the peer's call. */
  Frame post(Call call) {
    Frame frame = operation(call).frame();
    frame.kind = FrameKind::Post;
    frame.root = 0;
    if (call == Call::Send) frame.add(&in, sizeof in);
    return frame;
  }

  /** Sends a frame. It has the number of the peer's collective, or of the last one. */
  void send(Frame frame) {
    if (frame.kind == FrameKind::Collective) collectives++;
    frame.sequence = static_cast<uint16_t>(collectives);
    if (theirs->has(Capability::Polling)) {
      const char elements[kMaxInlined] = {};
      ASSERT_TRUE(theirs->sendFrame(frame, elements));
      return;
    }
    frame.number = nextFrame++;
    send(&frame, sizeof frame);
  }

  void send(const void* data, size_t size) {
    iovec part{const_cast<void*>(data), size};
    ASSERT_EQ(static_cast<long>(size), theirs->send(&part, 1));
  }

  void sendControl(ControlKind kind, int code, const char* text) {
    Control message;
    message.kind = kind;
    message.code = code;
    strncpy(message.text, text, sizeof message.text - 1);
    sendSome(rank.ends[1].control.get(), &message, sizeof message);
    theirs->announceMessage();
  }

  std::string collective(Call call) {
    return run(operation(call));
  }

  std::string run(Operation collective) {
    return failureOf([&] {
      Begun begun;
      if (path == Path::Eager && runEagerly(*rank.comm, &collective, 1, begun)) return;
      runCollective(*rank.comm, std::move(collective), std::move(begun));
    });
  }

  /** Runs the messages of a group. */
  std::string run(std::vector<Operation>& group) {
    return failureOf([&] {
      Begun begun;
      if (path == Path::Eager && runEagerly(*rank.comm, group.data(), group.size(), begun)) return;
      runPointToPoint(*rank.comm, group.data(), group.size(), std::move(begun));
    });
  }

  std::string messages(std::initializer_list<Call> calls) {
    std::vector<Operation> operations;
    for (Call call : calls) operations.push_back(operation(call));
    return run(operations);
  }

  Connected rank;
  const Path path;
  std::unique_ptr<Channel> theirs;
  uint32_t nextFrame = kFirstFrame;
  int collectives = 0;  // of the peer; its short Broadcasts send no frame
  int32_t in = 5;
  int32_t out = 0;
};

}  // namespace host
