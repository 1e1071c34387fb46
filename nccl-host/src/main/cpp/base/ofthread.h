// ofthread.h: objects that each thread has of its own.
#pragma once

#include <utility>

namespace host {

/**
 * The pointer to the calling thread's T, in static TLS (-ftls-model in build-native.sh): reading it takes no call of
 * __tls_get_addr. The object is on the heap, since the C library reserves little static TLS for libraries that are loaded later.
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

/** The calling thread's T, or NULL if it has used none. */
template <class T>
T* ofThreadIfAny() {
  return OfThread<T>::object;
}

}  // namespace host
