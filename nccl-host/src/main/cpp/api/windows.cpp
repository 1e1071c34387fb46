// windows.cpp: exported functions of windows and one-sided communication. The rules are NCCL's: a window starts on a
// page of 4096 bytes; the source of a put must lie in a window with NCCL_WIN_COLL_SYMMETRIC; the communicator's
// configuration sets the number of contexts and signal indexes, 1 by default; flags are 0. In contrast to NCCL, this
// engine checks that a put stays inside the windows of both sides.

#include <string.h>

#include "api/group.h"

using namespace host;

namespace {

void checkZero(const char* call, const char* name, long long value) {
  if (value != 0) fail(ncclInvalidArgument, "%s : invalid %s %lld, expected 0", call, name, value);
}

/** Checks the context and the index of signals. */
void checkSignal(const char* call, int context, int index, const Comm& comm) {
  auto check = [&](const char* name, int value, const char* field, int count) {
    if (value >= 0 && value < count) return;
    fail(
        ncclInvalidArgument, "%s : invalid %s %d, expected at least 0 and less than config.%s of the communicator, %d",
        call, name, value, field, count);
  };
  check("ctx", context, "numRmaCtx", comm.settings.rmaContexts);
  check("sigIdx", index, "numRmaSig", comm.settings.rmaSignals);
}

void checkPeer(const char* call, int peer, const Comm& comm) {
  if (peer >= 0 && peer < comm.ranks) return;
  fail(
      ncclInvalidArgument, "%s : invalid peer %d (peer should be in the 0..%d range)", call, peer, comm.ranks - 1);
}

[[noreturn]] void failUnknown(const char* call, const char* name, ncclWindow_t handle) {
  fail(
      ncclInvalidArgument, "%s : %s %p is no window of this communicator: deregistered, or of another one", call, name,
      static_cast<void*>(handle));
}

WindowRef requireWindow(const char* call, const char* name, const Comm& comm, ncclWindow_t handle) {
  if (handle == nullptr) fail(ncclInvalidArgument, "%s : %s argument is NULL", call, name);
  WindowRef found = comm.windows.find(handle);
  if (!found) failUnknown(call, name, handle);
  return found;
}

void checkSource(const char* call, const Comm& comm, const char* source, size_t bytes) {
  WindowRef window = comm.windows.findIf([&](const Window& one) { return one.isSymmetricAt(source); });
  if (window) {
    size_t offset = window->offsetOf(source);
    if (bytes <= window->size - offset) return;
    fail(
        ncclInvalidArgument, "%s : %zu bytes from offset %zu of localbuff's window are more than its %zu bytes", call,
        bytes, offset, window->size);
  }
  fail(
      ncclInvalidArgument, "%s : localbuff %p is in no window of this communicator with NCCL_WIN_COLL_SYMMETRIC", call,
      static_cast<const void*>(source));
}

}  // namespace

extern "C" ncclResult_t ncclCommWindowRegister(
    ncclComm_t comm, void* buff, size_t size, ncclWindow_t* win, int winFlags) {
  return guardedCall([&]() -> ncclResult_t {
    const char* call = "CommWindowRegister";
    std::shared_ptr<Comm> known = requireReadyComm(comm, call);
    if (win == nullptr) fail(ncclInvalidArgument, "%s : win argument is NULL", call);
    *win = nullptr;
    if (buff == nullptr || size == 0 || size > PTRDIFF_MAX) {
      fail(ncclInvalidArgument, "%s : invalid buffer %p, size %zu", call, buff, size);
    }
    if (reinterpret_cast<uintptr_t>(buff) % NCCL_WIN_REQUIRED_ALIGNMENT != 0) {
      fail(
          ncclInvalidArgument, "%s : buffer %p is not aligned to %d bytes", call, buff, NCCL_WIN_REQUIRED_ALIGNMENT);
    }
    Operation operation;
    operation.call = Call::CommWindowRegister;
    operation.recv = static_cast<char*>(buff);
    Extras& extras = operation.addExtras();
    extras.windowBytes = size;
    extras.windowFlags = winFlags;
    extras.windowOut = win;
    return submit(known, std::move(operation), nullptr);
  });
}
HOST_PROFILER_ALIAS(ncclCommWindowRegister)

// Not collective: from now on puts of other ranks to this rank's memory are errors.
extern "C" ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Comm> known = requireComm(comm, "CommWindowDeregister");
    if (win == nullptr) return ncclSuccess;
    // The window's memory may be the source of pending puts.
    if (known->operationsRun()) awaitOperations(*known);
    if (!known->windows.remove(win)) failUnknown("CommWindowDeregister", "win", win);
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclCommWindowDeregister)

extern "C" ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t win, void** outUserPtr) {
  return guarded([&]() -> ncclResult_t {
    std::shared_ptr<Comm> known = requireComm(comm, "WinGetUserPtr");
    if (outUserPtr == nullptr) fail(ncclInvalidArgument, "WinGetUserPtr : outUserPtr argument is NULL");
    *outUserPtr = requireWindow("WinGetUserPtr", "win", *known, win)->base;
    return ncclSuccess;
  });
}
HOST_PROFILER_ALIAS(ncclWinGetUserPtr)

extern "C" ncclResult_t ncclPutSignal(
    const void* localbuff, size_t count, ncclDataType_t datatype, int peer, ncclWindow_t peerWin, size_t peerWinOffset,
    int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t cudaStream) {
  return guardedCall([&]() -> ncclResult_t {
    const char* call = "PutSignal";
    std::shared_ptr<Comm> known = requireReadyComm(comm, call);
    const StreamRef& stream = requireStream(cudaStream, call);
    if (!validType(datatype)) {
      fail(ncclInvalidArgument, "%s : invalid type %d, expected 0 to %d", call, datatype, ncclNumTypes - 1);
    }
    checkPeer(call, peer, *known);
    checkSignal(call, ctx, sigIdx, *known);
    checkZero(call, "flags", flags);
    if (localbuff == nullptr) fail(ncclInvalidArgument, "%s : localbuff argument is NULL", call);
    size_t bytes;
    if (__builtin_mul_overflow(count, typeSize(datatype), &bytes)) {
      fail(
          ncclInvalidArgument, "%s : count %zu of %s is more than memory can hold", call, count, typeName(datatype));
    }
    Operation operation;
    operation.call = Call::PutSignal;
    operation.send = static_cast<const char*>(localbuff);
    operation.count = count;
    operation.type = datatype;
    operation.root = peer;
    Extras& extras = operation.addExtras();
    extras.windowOffset = peerWinOffset;
    extras.context = ctx;
    extras.signal = sigIdx;
    WindowRef window = requireWindow(call, "peerWin", *known, peerWin);
    if (peerWinOffset > window->size || bytes > window->size - peerWinOffset) {
      fail(
          ncclInvalidArgument, "%s : %zu bytes at offset %zu of the window of rank %d are more than its %zu bytes", call,
          bytes, peerWinOffset, peer, window->size);
    }
    checkSource(call, *known, operation.send, bytes);
    extras.windowNumber = window->number;
    // Used only if the peer is this rank.
    operation.recv = window->base + peerWinOffset;
    return submit(known, std::move(operation), stream);
  });
}
HOST_PROFILER_ALIAS(ncclPutSignal)

extern "C" ncclResult_t ncclSignal(int peer, int sigIdx, int ctx, unsigned int flags, ncclComm_t comm, cudaStream_t cudaStream) {
  return guardedCall([&]() -> ncclResult_t {
    const char* call = "Signal";
    std::shared_ptr<Comm> known = requireReadyComm(comm, call);
    const StreamRef& stream = requireStream(cudaStream, call);
    checkPeer(call, peer, *known);
    checkSignal(call, ctx, sigIdx, *known);
    checkZero(call, "flags", flags);
    Operation operation;
    operation.call = Call::Signal;
    operation.root = peer;
    Extras& extras = operation.addExtras();
    extras.context = ctx;
    extras.signal = sigIdx;
    return submit(known, std::move(operation), stream);
  });
}
HOST_PROFILER_ALIAS(ncclSignal)

extern "C" ncclResult_t ncclWaitSignal(
    int nDesc, ncclWaitSignalDesc_t* signalDescs, ncclComm_t comm, cudaStream_t cudaStream) {
  return guardedCall([&]() -> ncclResult_t {
    const char* call = "WaitSignal";
    std::shared_ptr<Comm> known = requireReadyComm(comm, call);
    const StreamRef& stream = requireStream(cudaStream, call);
    if (signalDescs == nullptr) fail(ncclInvalidArgument, "%s : signalDescs argument is NULL", call);
    if (nDesc < 1) fail(ncclInvalidArgument, "%s : invalid nDesc %d, expected at least 1", call, nDesc);
    Operation operation;
    operation.call = Call::WaitSignal;
    auto signals = std::make_shared<SignalCounts>();
    operation.addExtras().signals = signals;
    for (int i = 0; i < nDesc; i++) {
      const ncclWaitSignalDesc_t& descriptor = signalDescs[i];
      if (descriptor.opCnt <= 0) {
        fail(
            ncclInvalidArgument, "%s : signalDescs[%d].opCnt is %d, expected at least 1", call, i, descriptor.opCnt);
      }
      checkPeer(call, descriptor.peer, *known);
      checkSignal(call, descriptor.ctx, descriptor.sigIdx, *known);
      (*signals)[{descriptor.peer, descriptor.ctx, descriptor.sigIdx}] += static_cast<uint64_t>(descriptor.opCnt);
    }
    return submit(known, std::move(operation), stream);
  });
}
HOST_PROFILER_ALIAS(ncclWaitSignal)
