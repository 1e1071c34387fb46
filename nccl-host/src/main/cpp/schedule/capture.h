// capture.h: work of streams that is recorded for a graph instead of being run, by CUDA's rules.
//
// A capture begins with one stream. Another one joins it by waiting for an event of the capture, and must be waited for in
// turn before the capture ends. The streams are lanes: the launches of a graph run in other streams than its capture.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "schedule/stream.h"

namespace host {

/** A launch of a graph. */
struct Replay {
  std::vector<StreamRef> streams;  // by lane
  std::vector<ItemRef> marks;      // by number of the mark
};

/** A part of a graph. */
struct Node {
  std::function<void(Replay&)> launch;       // puts it into the streams of a launch
  std::vector<std::weak_ptr<Comm>> comms;  // of its operations
};

/** The lock of stream.cpp guards all members, and Stream::capture. */
class Capture {
 public:
  static void begin(const StreamRef& origin);

  /** Work in sets of its streams; the streams of a set wait for the work in all of them. */
  void add(const std::vector<std::vector<StreamRef>>& joined, Node node);
  /** The number of the present position in a stream. */
  size_t mark(const StreamRef& stream);
  /** Later work of the stream, which joins if necessary, waits for the mark. */
  void await(const StreamRef& stream, size_t mark);
  /** Makes the end fail; throws. */
  [[noreturn]] void refuse(const char* call, const char* why);

  bool isOrigin(const StreamRef& stream) const { return stream == streams_.front(); }
  bool hasEnded() const { return ended_; }
  size_t lanes() const { return streams_.size(); }
  size_t marks() const { return marks_.size(); }
  /** Releases the streams. Returns what was recorded; throws if it can't be used. */
  std::vector<Node> end(const char* call);

 private:
  /** By lane: how many nodes precede a position. */
  using Clock = std::vector<size_t>;
  void include(Clock& clock, const Clock& other);

  std::vector<StreamRef> streams_;
  std::vector<Clock> clocks_;  // of the ends of the lanes
  std::vector<Clock> marks_;
  std::vector<Node> nodes_;
  std::string problem_;
  bool ended_ = false;
};

}  // namespace host
