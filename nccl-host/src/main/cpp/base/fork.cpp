// fork.cpp: the handlers of fork().

#include "base/fork.h"

#include <pthread.h>

namespace host {
namespace {

/** Held during a fork. On the heap: threads may fork while static destructors run. */
std::vector<std::mutex*>& held = *new std::vector<std::mutex*>;

void release() {
  std::vector<std::mutex*> locks;
  locks.swap(held);
  for (std::mutex* lock : locks) lock->unlock();
}

void prepare() {
  std::vector<std::mutex*> locks = locksOfAllThreads();
  for (std::mutex* lock : locks) lock->lock();
  held = std::move(locks);
}

void beginChild() {
  renewProcess();
  replaceDescriptors();
  forgetStreams();
  renewProfilerLock();
  renewNetworkLock();
  release();
}

const bool handled = pthread_atfork(prepare, release, beginChild) == 0;

}  // namespace

bool forksAreHandled() { return handled; }

std::vector<std::mutex*> locksOfAllThreads() {
  // Also makes them, so that no other thread is making one during the fork.
  return {&lockOfComms(),   &lockOfToken(), &lockOfErrors(),     &lockOfAllocations(),
          &lockOfStreams(), &lockOfRas(),   &lockOfDescriptors()};
}

}  // namespace host
