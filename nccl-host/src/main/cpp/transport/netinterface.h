// netinterface.h: the interface between NCCL and a network plugin, in the versions 8 (NCCL 2.20) to 12 (2.30): a table of functions that
// a plugin exports as ncclNetPlugin_v8 to ncclNetPlugin_v12. Of what only GPUs need, the places in the table are declared.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

namespace host::netapi {

using Result = int;
constexpr Result kSuccess = 0;

constexpr int kHostMemory = 1;  // NCCL_PTR_HOST
constexpr size_t kHandleBytes = 128;
constexpr int kFirstVersion = 8, kLastVersion = 12;

using Logger = void (*)(int level, unsigned long flags, const char* file, int line, const char* format, ...);
constexpr int kWarning = 2;
using Profile = Result (*)(void** event, int type, void* parent, int64_t plugin, void* data);

struct Config {
  int trafficClass = -1;  // none
};

/** Of a device, before version 9. */
struct FirstProperties {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int speed;  // Mbit/s
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
};

/** Of a device, from version 9 on; some versions end before the last fields. */
template <int kDevices>
struct LaterProperties {
  char* name;
  char* pciPath;
  uint64_t guid;
  int ptrSupport;
  int regIsGlobal;
  int forceFlush;
  int speed;
  int port;
  float latency;
  int maxComms;
  int maxRecvs;
  int netDeviceType;
  int netDeviceVersion;
  struct {
    int count;
    int devices[kDevices];
  } virtualDevice;
  size_t maxP2pBytes;
  size_t maxCollBytes;
  int maxMultiRequestSize;  // from version 11 on
  int16_t railId;           // from version 12 on
  int16_t planeId;
};

template <int V>
using Properties = std::conditional_t<V == 8, FirstProperties, LaterProperties<V == 12 ? 8 : 4>>;

/** The type of a function: Newest in the versions from kNewest on, then Middle, then Oldest. */
template <int V, int kNewest, class Newest, int kMiddle, class Middle, class Oldest>
using Since = std::conditional_t<(V >= kNewest), Newest, std::conditional_t<(V >= kMiddle), Middle, Oldest>>;

template <int V>
struct Table {
  const char* name;
  Since<
      V, 11, Result (*)(void** context, uint64_t communicator, Config*, Logger, Profile), 10, Result (*)(Logger, Profile), Result (*)(Logger)>
      init;
  Result (*devices)(int* count);
  Result (*getProperties)(int device, Properties<V>*);
  std::conditional_t<
      (V >= 11), Result (*)(void* context, int device, void* handle, void** listener), Result (*)(int device, void* handle, void** listener)>
      listen;
  Since<
      V, 11, Result (*)(void* context, int device, void* handle, void** connection, void** ofDevice), 10,
      Result (*)(int device, Config*, void* handle, void** connection, void** ofDevice),
      Result (*)(int device, void* handle, void** connection, void** ofDevice)>
      connect;
  Result (*accept)(void* listener, void** connection, void** ofDevice);
  Result (*regMr)(void* connection, void* data, size_t size, int type, void** registration);
  Result (*regMrDmaBuf)(void* connection, void* data, size_t size, int type, uint64_t offset, int fd, void** registration);
  Result (*deregMr)(void* connection, void* registration);
  Since<
      V, 10, Result (*)(void* connection, void* data, size_t size, int tag, void* registration, void* profile, void** request), 9,
      Result (*)(void* connection, void* data, size_t size, int tag, void* registration, void** request),
      Result (*)(void* connection, void* data, int size, int tag, void* registration, void** request)>
      isend;
  Since<
      V, 10, Result (*)(void* connection, int n, void** data, size_t* sizes, int* tags, void** registrations, void** profiles, void** request),
      9, Result (*)(void* connection, int n, void** data, size_t* sizes, int* tags, void** registrations, void** request),
      Result (*)(void* connection, int n, void** data, int* sizes, int* tags, void** registrations, void** request)>
      irecv;
  Result (*iflush)(void* connection, int n, void** data, int* sizes, void** registrations, void** request);
  Result (*test)(void* request, int* done, int* sizes);
  Result (*closeSend)(void* connection);
  Result (*closeRecv)(void* connection);
  Result (*closeListen)(void* listener);
  void* getDeviceMr;
  void* irecvConsumed;
  void* makeVDevice;                 // from version 9 on
  Result (*finalize)(void* context);  // from version 11 on
  void* setNetAttr;
};

}  // namespace host::netapi
