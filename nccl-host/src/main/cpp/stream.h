// stream.h: streams as queues, and in which order their work runs.
//
// Work is a chain of items. An item runs when all items that it follows are done: those that were before it in its streams,
// and the operations that its communicators were given before, since the ranks of a communicator must run them in one
// order. Everything that an item follows was there before it, so nothing can wait in a circle.
//
// Each stream that was created has a thread, which runs its items. The default stream (0, and CUDA's other handles for it)
// has none: operations of blocking communicators run in the call itself, so that programs without CUDA, which have nothing
// to wait for a stream with, find their results there when the call returns. Every thread has a default stream of its own,
// and it waits for no other stream unless it is told to. (On GPUs each rank has a default stream, that of its device; ranks
// that are threads would wait for each other for ever if they shared one.)
//
// When an operation fails, the items behind it go on; a stream or an event behind it reports the failure as long as nobody
// has done something about it, that is, aborted, destroyed, revoked, or shrunk with NCCL_SHRINK_ABORT, its communicator. On
// a GPU the stream would stand still as long.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "condition.h"
#include "error.h"

namespace host {

class Comm;
struct Item;
using ItemRef = std::shared_ptr<Item>;
using CommRef = std::shared_ptr<Comm>;

/** A queue. All but the handle is guarded by the lock of stream.cpp. */
struct Stream {
  explicit Stream(uintptr_t number) : handle(number) {}
  const uintptr_t handle;  // 0: the default stream of a thread
  ItemRef tail;
  std::deque<ItemRef> queue;  // for the thread
  Condition wake;
  std::thread thread;
  bool closed = false;

  bool isDefault() const { return handle == 0; }
};
using StreamRef = std::shared_ptr<Stream>;

/** The stream of a call; throws when there is none with this handle. */
StreamRef requireStream(cudaStream_t handle, const char* call);

/** Throws when there is no event with this handle. */
void checkEvent(cudaEvent_t handle, const char* call);

/** Records an event, if it still exists, behind all that is in the streams and that the communicators were given. */
void recordLaunch(cudaEvent_t handle, const std::vector<StreamRef>& streams, const std::vector<CommRef>& comms);

/** What an item does; the communicators that failed are those that streams behind it report. */
using Body = std::function<std::vector<CommRef>()>;

enum class RunBy {
  Stream,  // the thread of the first stream
  Thread,  // one of its own
  Caller,  // who calls runHere
};

/** Adds an item behind all that is in the streams now and all that the communicators were given. */
ItemRef enqueue(
    const std::vector<StreamRef>& streams, const std::vector<CommRef>& comms, RunBy by, Body body);

/** Waits until an item can run, and runs it; at once if an abort, a revoke or a shrink cuts off one of its communicators. */
void runHere(const ItemRef& item);

/** Waits until a communicator has done all that it was given, or was cut off. */
void awaitOperations(Comm& comm);
bool hasOperations(Comm& comm);

/** Makes callers that wait in runHere and awaitOperations look whether their communicators were cut off. */
void wakeCallers();

/** Runs something short when all that is in any stream now is done, maybe at once. */
void whenAllDone(std::function<void()> action);

}  // namespace host
