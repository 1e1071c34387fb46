// windowtable.cpp: the table of the windows of a communicator.

#include "protocol/windowtable.h"

#include <atomic>

namespace host {
namespace {

std::atomic<uint64_t> nextSerial{1};

}  // namespace

Inbox& WindowTable::openInbox(int rank, int ranks, int contexts, int signalsPerContext) {
  if (!inbox_) {
    auto opened = std::make_unique<Inbox>(rank, ranks, contexts, signalsPerContext);
    std::lock_guard<std::mutex> lock(mutex_);
    inbox_ = std::move(opened);
  }
  return *inbox_;
}

void WindowTable::closeInbox() {
  std::lock_guard<std::mutex> lock(mutex_);
  inbox_.reset();
}

size_t WindowTable::inboxBytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return inbox_ ? inbox_->heldBytes() : 0;
}

ncclWindow_t WindowTable::add(Window window) {
  // As for communicators, a unique number and no address.
  auto handle = reinterpret_cast<ncclWindow_t>(static_cast<uintptr_t>(0x6e63637700000000u + nextSerial++ * 16));
  std::lock_guard<std::mutex> lock(mutex_);
  windows_[handle] = std::make_shared<const Window>(std::move(window));
  return handle;
}

WindowRef WindowTable::find(ncclWindow_t handle) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = windows_.find(handle);
  return found == windows_.end() ? nullptr : found->second;
}

bool WindowTable::remove(ncclWindow_t handle) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = windows_.find(handle);
  if (found == windows_.end()) return false;
  if (inbox_) inbox_->removeWindow(found->second->number);
  windows_.erase(found);
  return true;
}

void WindowTable::removeFromInbox(uint64_t number) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (inbox_) inbox_->removeWindow(number);
}

void WindowTable::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  windows_.clear();
}

}  // namespace host
