// lastfound.h: the entry of a registry that a thread found last.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace host {

/**
 * The last entry, for one thread. Most threads use one communicator and one stream all the time: they need no lock to find
 * them, for which the threads of other ranks would wait, and no reference count, which costs more than the rest of the search.
 */
template <class Key, class T>
class LastFound {
 public:
  /**
   * Returns the entry with this key, from `find` if it is not the last one; NULL if there is none. Valid until the next get:
   * the thread keeps the entry, also one that is removed meanwhile.
   */
  template <class Find>
  const std::shared_ptr<T>& get(Key key, const std::atomic<uint64_t>& removals, Find&& find) {
    // Keys are never used again, so that an entry is right until one is removed.
    uint64_t before = removals;
    if (key == key_ && before == removals_ && last_) return last_;
    last_ = find();
    key_ = key;
    removals_ = before;
    return last_;
  }

  void forget() { last_.reset(); }

 private:
  Key key_{};
  uint64_t removals_ = 0;  // of the registry, when the last one was there
  std::shared_ptr<T> last_;
};

}  // namespace host
