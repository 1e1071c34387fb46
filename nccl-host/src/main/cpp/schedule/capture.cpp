// capture.cpp: what is recorded, and which work of which stream precedes it.

#include "schedule/capture.h"

#include <algorithm>
#include <utility>

namespace host {

void Capture::begin(const StreamRef& origin) {
  auto capture = std::make_shared<Capture>();
  capture->streams_.push_back(origin);
  capture->clocks_.emplace_back(1);
  origin->setCapture(std::move(capture), 0);
}

void Capture::include(Clock& clock, const Clock& other) {
  clock.resize(streams_.size());
  for (size_t lane = 0; lane < other.size(); lane++) clock[lane] = std::max(clock[lane], other[lane]);
}

void Capture::add(const std::vector<std::vector<StreamRef>>& joined, Node node) {
  nodes_.push_back(std::move(node));
  for (const std::vector<StreamRef>& streams : joined) {
    Clock all(streams_.size());
    for (const StreamRef& stream : streams) include(all, clocks_[stream->lane]);
    for (const StreamRef& stream : streams) all[stream->lane]++;
    for (const StreamRef& stream : streams) clocks_[stream->lane] = all;
  }
}

size_t Capture::mark(const StreamRef& stream) {
  size_t number = marks_.size(), lane = stream->lane;
  marks_.push_back(clocks_[lane]);
  nodes_.push_back({[=](Replay& replay) { replay.marks[number] = endOf(replay.streams[lane]); }, {}});
  return number;
}

void Capture::await(const StreamRef& stream, size_t mark) {
  if (!stream->capture) {
    streams_.push_back(stream);
    clocks_.emplace_back();
    stream->setCapture(streams_.front()->capture, streams_.size() - 1);
  }
  size_t lane = stream->lane;
  include(clocks_[lane], marks_[mark]);
  nodes_.push_back({[=](Replay& replay) { delay(replay.streams[lane], replay.marks[mark]); }, {}});
}

void Capture::refuse(const char* call, const char* why) {
  problem_ = why;
  fail(ncclInvalidUsage, "%s : %s; the capture of the stream can't be used any more", call, why);
}

std::vector<Node> Capture::end(const char* call) {
  ended_ = true;
  // Its streams refer to it.
  std::shared_ptr<Capture> own = streams_.front()->capture;
  for (const StreamRef& stream : streams_) stream->setCapture(nullptr, 0);
  if (!problem_.empty()) fail(ncclInvalidUsage, "%s : the capture can't be used: %s", call, problem_.c_str());
  for (size_t lane = 1; lane < streams_.size(); lane++) {
    Clock& origin = clocks_.front();
    origin.resize(streams_.size());
    if (origin[lane] == clocks_[lane][lane]) continue;
    fail(
        ncclInvalidUsage,
        "%s : the work of stream %p was captured, but the stream in which the capture began does not wait for it", call,
        reinterpret_cast<void*>(streams_[lane]->handle));
  }
  return std::move(nodes_);
}

}  // namespace host
