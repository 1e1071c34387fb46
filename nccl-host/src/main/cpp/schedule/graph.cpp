// graph.cpp: launches of graphs, and the exported functions for graphs.

#include "schedule/graph.h"

#include <map>
#include <mutex>

#include "schedule/capture.h"

namespace host {
namespace {

using Lock = std::unique_lock<std::mutex>;

CommRef requireLive(const std::weak_ptr<Comm>& comm) {
  CommRef live = comm.lock();
  if (!live) fail(ncclInvalidArgument, "HostGraphLaunch : a communicator of the graph was destroyed");
  return requireReadyComm(live->handle(), "HostGraphLaunch");
}

/** The operations of one call or group. */
struct Captured {
  struct Part {
    std::weak_ptr<Comm> comm;
    size_t lane;
  };
  std::vector<Operation> operations;
  std::vector<Part> parts;  // one for each operation

  void launchIn(const Replay& replay) const {
    Queue queue;
    for (size_t i = 0; i < operations.size(); i++) {
      CommRef comm = requireLive(parts[i].comm);
      Operation copy = operations[i];
      if (comm->faults) copy.addExtras().faults = comm->faults->at(copy.call);
      queue.add(comm, replay.streams[parts[i].lane], std::move(copy));
    }
    launch(queue);
  }
};

class Graph {
 public:
  Graph(std::vector<Node> nodes, size_t lanes, size_t marks) : nodes_(std::move(nodes)), marks_(marks) {
    while (sideStreams_.size() + 1 < lanes) sideStreams_.push_back(createStream());
  }
  ~Graph() {
    for (const StreamRef& stream : sideStreams_) destroyStream(stream);
  }
  Graph(const Graph&) = delete;

  /** Launches never overlap: each waits for the one before. */
  void launchIn(const StreamRef& stream) {
    Lock lock(mutex_);
    // Before the first part begins.
    for (const Node& node : nodes_) {
      for (const std::weak_ptr<Comm>& comm : node.comms) requireLive(comm);
    }
    Replay replay;
    replay.marks.resize(marks_);
    replay.streams.push_back(stream);
    replay.streams.insert(replay.streams.end(), sideStreams_.begin(), sideStreams_.end());
    if (end_) delay(stream, end_);
    for (const Node& node : nodes_) node.launch(replay);
    end_ = endOf(stream);
  }

 private:
  std::mutex mutex_;
  const std::vector<Node> nodes_;
  const size_t marks_;
  std::vector<StreamRef> sideStreams_;  // of all lanes but the first
  ItemRef end_;                         // of the last launch
};
using GraphRef = std::shared_ptr<Graph>;

/** The lock of the streams guards it. Never destroyed: threads continue while the process ends. */
struct Graphs {
  std::map<uintptr_t, GraphRef> known;
  uintptr_t next = 0x6e63636700000000u;
};
Graphs& graphs() {
  static Graphs* all = new Graphs;
  return *all;
}

GraphRef requireGraph(nccl4jHostGraph_t handle, const char* call) {
  Lock lock(lockOfStreams());
  auto found = graphs().known.find(reinterpret_cast<uintptr_t>(handle));
  if (found == graphs().known.end()) {
    fail(ncclInvalidArgument, "%s : %p is not a graph of the host engine", call, static_cast<void*>(handle));
  }
  return found->second;
}

const StreamRef& requireCreated(cudaStream_t handle, const char* call) {
  const StreamRef& stream = requireStream(handle, call);
  if (stream->isDefault()) fail(ncclInvalidArgument, "%s : the default stream cannot be captured", call);
  return stream;
}

}  // namespace

void captureOperations(Queue& queue, const std::vector<std::vector<StreamRef>>& joined) {
  Lock lock(lockOfStreams());
  std::shared_ptr<Capture> capture;
  bool allCaptured = true;
  for (const std::vector<StreamRef>& streams : joined) {
    for (const StreamRef& stream : streams) {
      if (!capture) capture = stream->capture;
      allCaptured &= stream->capture && stream->capture == capture;
    }
  }
  // It has ended meanwhile.
  if (!capture) return;
  if (!allCaptured) capture->refuse("GroupEnd", "a group has operations in streams that are captured and in others");
  auto captured = std::make_shared<Captured>();
  Node node;
  Queue registrations;
  queue.each([&](const Target& target, Operation& operation) {
    if (!target.stream) {
      registrations.add(target.comm, nullptr, std::move(operation));
      return;
    }
    captured->parts.push_back({target.comm, target.stream->lane});
    captured->operations.push_back(std::move(operation));
    node.comms.push_back(target.comm);
  });
  node.launch = [captured](Replay& replay) { captured->launchIn(replay); };
  capture->add(joined, std::move(node));
  queue = std::move(registrations);
}

}  // namespace host

using namespace host;

extern "C" ncclResult_t nccl4jHostStreamBeginCapture(cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    const char* call = "HostStreamBeginCapture";
    const StreamRef& known = requireCreated(stream, call);
    Lock lock(lockOfStreams());
    if (known->capture) fail(ncclInvalidUsage, "%s : the stream is being captured already", call);
    Capture::begin(known);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostStreamIsCapturing(cudaStream_t stream, int* capturing) {
  return guarded([&]() -> ncclResult_t {
    const char* call = "HostStreamIsCapturing";
    if (capturing == nullptr) fail(ncclInvalidArgument, "%s : capturing argument is NULL", call);
    *capturing = requireStream(stream, call)->isCapturing;
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostStreamEndCapture(cudaStream_t stream, nccl4jHostGraph_t* graph) {
  return guarded([&]() -> ncclResult_t {
    const char* call = "HostStreamEndCapture";
    if (graph == nullptr) fail(ncclInvalidArgument, "%s : graph argument is NULL", call);
    const StreamRef& known = requireCreated(stream, call);
    Lock lock(lockOfStreams());
    std::shared_ptr<Capture> capture = known->capture;
    if (!capture) fail(ncclInvalidUsage, "%s : the stream is not being captured", call);
    if (!capture->isOrigin(known)) fail(ncclInvalidUsage, "%s : the capture began in another stream", call);
    std::vector<Node> nodes = capture->end(call);
    lock.unlock();
    auto made = std::make_shared<Graph>(std::move(nodes), capture->lanes(), capture->marks());
    lock.lock();
    uintptr_t handle = graphs().next += 16;
    graphs().known[handle] = std::move(made);
    *graph = reinterpret_cast<nccl4jHostGraph_t>(handle);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostGraphLaunch(nccl4jHostGraph_t graph, cudaStream_t stream) {
  return guarded([&]() -> ncclResult_t {
    const char* call = "HostGraphLaunch";
    GraphRef known = requireGraph(graph, call);
    StreamRef target = requireStream(stream, call);
    {
      Lock lock(lockOfStreams());
      if (std::shared_ptr<Capture> outer = target->capture) {
        size_t lane = target->lane;
        outer->add({{target}}, {[=](Replay& replay) { known->launchIn(replay.streams[lane]); }, {}});
        return ncclSuccess;
      }
    }
    known->launchIn(target);
    return ncclSuccess;
  });
}

extern "C" ncclResult_t nccl4jHostGraphDestroy(nccl4jHostGraph_t graph) {
  return guarded([&]() -> ncclResult_t {
    GraphRef known = requireGraph(graph, "HostGraphDestroy");
    Lock lock(lockOfStreams());
    graphs().known.erase(reinterpret_cast<uintptr_t>(graph));
    return ncclSuccess;
  });
}
