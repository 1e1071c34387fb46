// lastfound.h: what a thread found last in a registry of the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace host {

/**
 * Most threads use one communicator and one stream all the time, and then need no lock to find them, which threads with other
 * communicators would wait for. To be thread_local.
 */
template <class Key, class T>
class LastFound {
 public:
  /** Returns what has this key, from `find` if it is not the last one; NULL if nothing has it. */
  template <class Find>
  std::shared_ptr<T> get(Key key, const std::atomic<uint64_t>& removals, Find&& find) {
    // Keys are never used again, so that what was found is right until something is removed.
    uint64_t before = removals;
    if (key == key_ && before == removals_) {
      if (std::shared_ptr<T> last = last_.lock()) return last;
    }
    std::shared_ptr<T> found = find();
    key_ = key;
    removals_ = before;
    last_ = found;
    return found;
  }

 private:
  Key key_{};
  uint64_t removals_ = 0;  // of the registry, when the last one was there
  std::weak_ptr<T> last_;
};

}  // namespace host
