// fork.h: what a child of fork() inherits from the engine.
//
// A child has a copy of the memory and of all descriptors, and one thread. It must not use the communicators of its parent, since
// both would read from the same sockets: calls are refused. Three things would go wrong nevertheless:
// - A connection ends when the last copy of its descriptor is closed: a child that lives on would hide the death of its parent. In
//   the child, other descriptors take the place of the engine's.
// - A lock that another thread held would stay locked: fork() takes the locks that all threads use.
// - The threads of streams are not there: the child has no streams.
// vfork, posix_spawn and clone do nothing of this; an exec closes the descriptors.
#pragma once

#include <mutex>
#include <vector>

namespace host {

/** True if forks are handled. False only if the system had no memory for it when the library was loaded. */
bool forksAreHandled();

/**
 * The locks that all threads use, in the order in which fork() takes them. A thread that holds one takes at most the last one, of
 * the descriptors, and calls no code of the program, which might fork.
 */
std::vector<std::mutex*> locksOfAllThreads();

// Each is defined beside the data that it guards.
std::mutex& lockOfComms();
std::mutex& lockOfToken();
std::mutex& lockOfErrors();
std::mutex& lockOfAllocations();
std::mutex& lockOfStreams();
std::mutex& lockOfRas();
std::mutex& lockOfDescriptors();

// In a child, with all locks held.
void renewProcess();
void replaceDescriptors();
void forgetStreams();
void renewProfilerLock();
void renewNetworkLock();

}  // namespace host
