// ofthread.h: objects that each thread has of its own.
#pragma once

#include <utility>

namespace host {

/**
 * The pointer to the calling thread's T. It has a fixed place (-ftls-model in build-native.sh), so that no call looks for it. The
 * object itself is on the heap: the C library keeps few such places for libraries that are loaded later.
 */
template <class T>
struct OfThread {
  static thread_local T* object;
  ~OfThread() { delete std::exchange(object, nullptr); }
};
template <class T>
thread_local T* OfThread<T>::object = nullptr;

template <class T>
__attribute__((noinline, cold)) void makeOfThread() {
  OfThread<T>::object = new T;
  // Deletes it at the end of the thread. A call after that, in another destructor of the thread, makes one more.
  thread_local OfThread<T> owner;
}

/** The calling thread's T. */
template <class T>
T& ofThread() {
  if (OfThread<T>::object == nullptr) makeOfThread<T>();
  return *OfThread<T>::object;
}

}  // namespace host
