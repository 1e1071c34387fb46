// fifo.h: a queue for few elements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace host {

/**
 * Most queues of a peer are empty most of the time: this one then begins again at the start of its memory. A std::deque
 * allocates and frees memory every few elements.
 */
template <class T>
class Fifo {
 public:
  bool empty() const { return elements_.empty(); }
  size_t size() const { return elements_.size() - first_; }
  T& front() { return elements_[first_]; }
  T& back() { return elements_.back(); }
  T& operator[](size_t index) { return elements_[first_ + index]; }

  /** Invalidates references to elements. */
  T& push_back(T element) {
    makeRoom();
    return elements_.emplace_back(std::move(element));
  }

  /** Makes the next push_back succeed. */
  void makeRoom() {
    if (elements_.size() < elements_.capacity()) return;
    // A queue that is never empty must not keep all that passed.
    if (first_ > size()) {
      elements_.erase(elements_.begin(), elements_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    } else {
      elements_.reserve(std::max<size_t>(4, 2 * elements_.capacity()));
    }
  }

  /** Leaves references to the other elements valid. */
  void pop_front() {
    if (++first_ == elements_.size()) clear();
  }

  void pop_back() {
    elements_.pop_back();
    if (first_ == elements_.size()) clear();
  }

  void clear() {
    elements_.clear();
    first_ = 0;
  }

 private:
  std::vector<T> elements_;
  size_t first_ = 0;  // in elements_, which has one element at least or none at all
};

}  // namespace host
