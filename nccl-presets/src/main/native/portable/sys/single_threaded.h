/*
 * Replaces the header of glibc 2.32, whose variable std::shared_ptr reads: older systems lack it. A JVM always has several
 * threads, so the value is constant here.
 */
#ifndef NCCL4J_SINGLE_THREADED_H_
#define NCCL4J_SINGLE_THREADED_H_

static constexpr bool __libc_single_threaded = false;

#endif
