// windowtable.h: the windows of a communicator.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/abi.h"
#include "protocol/inbox.h"

namespace host {

/** Memory of all ranks, equally large, that was registered with ncclCommWindowRegister. */
struct Window {
  uint64_t number = 0;  // equal on all ranks
  char* base = nullptr;
  size_t size = 0;
  int flags = 0;
  std::vector<char*> bases;  // by rank; valid in the process of that rank

  /** True if the window is symmetric and the address lies in it. */
  bool isSymmetricAt(const char* address) const {
    return (flags & NCCL_WIN_COLL_SYMMETRIC) != 0 && offsetOf(address) < size;
  }
  /** Not less than `size` if the address is outside. */
  size_t offsetOf(const char* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(base);
  }
};
using WindowRef = std::shared_ptr<const Window>;

/** The windows by handle, and the inbox for puts to this rank's memory. */
class WindowTable {
 public:
  /** The inbox, which the first window or one-sided call opens; NULL before. Needs Comm::operation. */
  const std::unique_ptr<Inbox>& inbox() const { return inbox_; }
  Inbox& openInbox(int rank, int ranks, int contexts, int signalsPerContext);
  /** Drops the inbox. Needs Comm::operation. */
  void closeInbox();
  size_t inboxBytes() const;

  /** Adds a window and returns its handle. */
  ncclWindow_t add(Window window);
  /** Returns NULL if there is no such window. */
  WindowRef find(ncclWindow_t handle) const;
  /** Returns a window for which the condition is true, or NULL. */
  template <class Condition>
  WindowRef findIf(Condition&& condition) const {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [handle, window] : windows_) {
      if (condition(*window)) return window;
    }
    return nullptr;
  }
  /** Removes a window, and refuses further puts to it. Returns false if there is no such window. */
  bool remove(ncclWindow_t handle);
  /** Refuses further puts to a window of this rank that has no handle. */
  void removeFromInbox(uint64_t number);
  void clear();

 private:
  mutable std::mutex mutex_;
  std::map<ncclWindow_t, WindowRef> windows_;
  std::unique_ptr<Inbox> inbox_;  // changed only with both mutex_ and Comm::operation held
};

}  // namespace host
