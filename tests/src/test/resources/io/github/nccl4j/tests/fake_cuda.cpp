// CUDA without a GPU, for tests: the calls that nccl4j makes, over host memory. Strict where CUDA forgives, so that tests
// on it find what would go wrong on some machine only: a stream or an event is of no use but with its device current.
//
// Work in streams waits until somebody asks for it: a synchronization does it all, a query one operation. So a test sees
// what an asynchronous call leaves undone, and nothing depends on time.
//
// Compiled twice: with -DDRIVER into libcuda.so.1, which has all state, without into libcudart.so.N, which needs it.
//
// Environment:
//   FAKE_CUDA_DEVICES  how many devices there are, 2 unless set
//   FAKE_CUDA_MEMORY   bytes of memory of each device, 4 GiB unless set
//   FAKE_CUDA_FAIL     "cudaMalloc=2,cudaMemcpy=700:3": calls that fail, and with what; with ":n" only the nth is failing.
//                      "@path" takes that from a file, which may change while the process runs.
//   FAKE_CUDA_HANG     a path: work of cudaFakeHang is not done while there is a file
//   FAKE_CUDA_REPORT   with any value, what was left behind is printed at the end
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <ratio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#define API extern "C" __attribute__((visibility("default")))

namespace fake {
/** Returns false if it is not done yet. */
using Work = std::function<bool()>;

struct Queue {
  std::deque<Work> work;
};

struct Capture {
  struct Stream* origin = nullptr;
  int mode = 0;
  const void* thread = nullptr;
  bool valid = true;
  std::vector<Work> work;
};

struct Stream {
  struct Device* device = nullptr;
  bool blocking = true;
  std::shared_ptr<Queue> queue;
  std::shared_ptr<Capture> capture;
};

struct Event {
  struct Device* device = nullptr;
  bool timing = false;
  long recorded = 0, done = 0;
  std::chrono::steady_clock::time_point time;
  std::shared_ptr<Queue> queue;
  std::shared_ptr<Capture> capture;
};

/** Stands for its primary context, too. */
struct Device {
  int index = 0;
  bool hasContext = false;
  size_t used = 0;
  /** The default stream, whose queue the blocking streams share: each waits for the others anyway. */
  Stream standard;
};

struct Graph {
  std::vector<Work> work;
};

struct Allocation {
  size_t bytes;
  Device* device;
};

struct Thread {
  std::vector<Device*> contexts;
  int lastError = 0;
  int captureMode = 0;
};

struct State {
  std::recursive_mutex lock;
  std::vector<Device> devices;
  size_t memory = 0;
  std::map<uintptr_t, Allocation> allocations, hostAllocations;
  std::map<Stream*, std::shared_ptr<Stream>> streams;
  std::map<Event*, std::shared_ptr<Event>> events;
  std::set<Graph*> graphs, executables;
  std::set<std::shared_ptr<Capture>> captures;
  std::map<std::string, int> calls;
  long pushed = 0, implicitContexts = 0;
};

extern State& state();
extern Thread& thread();
extern int failing(const char* name);
}  // namespace fake

using namespace fake;

#define ENTER(name)                                             \
  std::lock_guard<std::recursive_mutex> guard(state().lock);    \
  if (int injected = failing(name)) return failed(injected)

#ifdef DRIVER
namespace fake {
static size_t number(const char* name, size_t otherwise) {
  const char* text = getenv(name);
  return text && *text ? strtoull(text, nullptr, 10) : otherwise;
}

static void report() {
  if (!getenv("FAKE_CUDA_REPORT")) return;
  State& s = state();
  fprintf(stderr,
          "fake CUDA left: %zu allocations, %zu host allocations, %zu streams, %zu events, %zu graphs,"
          " %zu executable graphs, %ld pushed contexts, %ld implicit contexts\n",
          s.allocations.size(), s.hostAllocations.size(), s.streams.size(), s.events.size(), s.graphs.size(),
          s.executables.size(), s.pushed, s.implicitContexts);
}

State& state() {
  // Never destroyed: threads may still call while the process ends.
  static State* it = [] {
    State* made = new State();
    made->devices.resize(number("FAKE_CUDA_DEVICES", 2));
    made->memory = number("FAKE_CUDA_MEMORY", size_t(4) << 30);
    int index = 0;
    for (Device& device : made->devices) {
      device.index = index++;
      device.standard.device = &device;
      device.standard.queue = std::make_shared<Queue>();
    }
    atexit(report);
    return made;
  }();
  return *it;
}

Thread& thread() {
  static thread_local Thread it;
  return it;
}

int failing(const char* name) {
  const char* set = getenv("FAKE_CUDA_FAIL");
  if (!set || !*set) return 0;
  std::string rules = set;
  if (rules[0] == '@') {
    FILE* file = fopen(rules.c_str() + 1, "r");
    if (!file) return 0;
    char text[1000];
    rules.assign(text, fread(text, 1, sizeof text, file));
    fclose(file);
  }
  for (size_t from = 0; from < rules.size();) {
    size_t to = rules.find_first_of(",\n", from);
    if (to == std::string::npos) to = rules.size();
    std::string rule = rules.substr(from, to - from);
    from = to + 1;
    size_t equals = rule.find('=');
    if (equals == std::string::npos || rule.substr(0, equals) != name) continue;
    size_t colon = rule.find(':', equals);
    int call = ++state().calls[rule];
    if (colon == std::string::npos || atoi(rule.c_str() + colon + 1) == call) return atoi(rule.c_str() + equals + 1);
  }
  return 0;
}
}  // namespace fake

static int failed(int result) { return result; }

API int cuInit(unsigned) { return failing("cuInit"); }

API int cuDeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount");
  *count = (int)state().devices.size();
  return 0;
}

API int cuDeviceGet(int* device, int index) {
  ENTER("cuDeviceGet");
  if (index < 0 || index >= (int)state().devices.size()) return 101;
  *device = index;
  return 0;
}

API int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  ENTER("cuDeviceGetUuid");
  for (int i = 0; i < 16; i++) uuid[i] = (unsigned char)(i + 16 * device);
  return 0;
}

API int cuDeviceGetName(char* name, int length, int device) {
  ENTER("cuDeviceGetName");
  snprintf(name, length, "Fake GPU %d", device);
  return 0;
}

API int cuDeviceGetUuid(unsigned char* uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }

API int cuDeviceTotalMem_v2(size_t* bytes, int) {
  ENTER("cuDeviceTotalMem");
  *bytes = state().memory;
  return 0;
}

API int cuDevicePrimaryCtxRetain(void** context, int device) {
  ENTER("cuDevicePrimaryCtxRetain");
  *context = &state().devices[device];
  state().devices[device].hasContext = true;
  return 0;
}

API int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  ENTER("cuDevicePrimaryCtxGetState");
  *flags = 0;
  *active = state().devices[device].hasContext;
  return 0;
}

API int cuCtxPushCurrent_v2(void* context) {
  ENTER("cuCtxPushCurrent");
  if (!context) return 201;
  thread().contexts.push_back((Device*)context);
  state().pushed++;
  return 0;
}

API int cuCtxPopCurrent_v2(void** context) {
  ENTER("cuCtxPopCurrent");
  if (thread().contexts.empty()) return 201;
  if (context) *context = thread().contexts.back();
  thread().contexts.pop_back();
  state().pushed--;
  return 0;
}

API int cuCtxGetCurrent(void** context) {
  ENTER("cuCtxGetCurrent");
  *context = thread().contexts.empty() ? nullptr : thread().contexts.back();
  return 0;
}

API int cuCtxSetCurrent(void* context) {
  ENTER("cuCtxSetCurrent");
  std::vector<Device*>& contexts = thread().contexts;
  if (!contexts.empty()) contexts.pop_back();
  if (context) contexts.push_back((Device*)context);
  return 0;
}

/** The device of memory is all that can be asked. */
API int cuPointerGetAttribute(void* value, int attribute, uintptr_t address) {
  ENTER("cuPointerGetAttribute");
  auto after = state().allocations.upper_bound(address);
  if (attribute != 9 || after == state().allocations.begin()) return 1;
  --after;
  if (address >= after->first + after->second.bytes) return 1;
  *(int*)value = after->second.device->index;
  return 0;
}

API int cuGetErrorName(int result, const char** text) {
  *text = result == 201 ? "CUDA_ERROR_INVALID_CONTEXT" : result == 101 ? "CUDA_ERROR_INVALID_DEVICE" : "CUDA_ERROR";
  return 0;
}

API int cuGetErrorString(int result, const char** text) {
  *text = result == 201 ? "invalid device context" : "a fake error";
  return 0;
}

#else

static const struct {
  int code;
  const char *name, *text;
} ERRORS[] = {{0, "cudaSuccess", "no error"},
              {1, "cudaErrorInvalidValue", "invalid argument"},
              {2, "cudaErrorMemoryAllocation", "out of memory"},
              {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
              {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
              {401, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
              {600, "cudaErrorNotReady", "device not ready"},
              {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
              {900, "cudaErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
              {901, "cudaErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
              {906, "cudaErrorStreamCaptureImplicit",
               "operation would make the legacy stream depend on a capturing blocking stream"},
              {907, "cudaErrorCapturedEvent", "operation not permitted on an event last recorded in a capturing stream"},
              {908, "cudaErrorStreamCaptureWrongThread",
               "attempt to terminate a thread-local capture sequence from another thread"}};

static int failed(int result) { return thread().lastError = result; }

/** The current device. A call on a thread that has none current makes its device's context current, for good. */
static Device* current() {
  std::vector<Device*>& contexts = thread().contexts;
  if (contexts.empty()) {
    state().implicitContexts++;
    contexts.push_back(&state().devices[0]);
  }
  return contexts.back();
}

/** Null if it is no stream, or one of another device. */
static Stream* find(void* handle) {
  Device* device = current();
  if ((uintptr_t)handle <= 2) return &device->standard;
  auto found = state().streams.find((Stream*)handle);
  return found != state().streams.end() && found->first->device == device ? found->first : nullptr;
}

static std::shared_ptr<Event> findEvent(void* handle) {
  auto found = state().events.find((Event*)handle);
  return found == state().events.end() ? nullptr : found->second;
}

/** False if there is nothing to do, or it cannot be done now. */
static bool step(Queue& queue) {
  if (queue.work.empty()) return false;
  Work work = std::move(queue.work.front());
  queue.work.pop_front();
  if (work()) return true;
  queue.work.push_front(std::move(work));
  return false;
}

/** Waits as long as it takes; other threads may call meanwhile. */
template <class Condition>
static void stepUntil(Queue& queue, Condition&& done) {
  while (!done()) {
    if (step(queue)) continue;
    state().lock.unlock();
    usleep(1000);
    state().lock.lock();
  }
}

static void drain(Queue& queue) {
  stepUntil(queue, [&] { return queue.work.empty(); });
}

static void drain(Device* device) {
  std::vector<std::shared_ptr<Queue>> queues{device->standard.queue};
  for (auto& stream : state().streams)
    if (stream.first->device == device) queues.push_back(stream.first->queue);
  for (auto& queue : queues) drain(*queue);
}

static void add(Stream* stream, Work work) {
  if (stream->capture)
    stream->capture->work.push_back(std::move(work));
  else
    stream->queue->work.push_back(std::move(work));
}

static void enqueue(Stream* stream, std::function<void()> work) {
  add(stream, [=] { return work(), true; });
}

/** What may not be called while a thread captures, as the modes of the capture and of the calling thread want it. */
static int unsafe() {
  for (auto& capture : state().captures) {
    int mode = thread().captureMode;
    if (capture->thread == &thread() ? capture->mode != 2 && mode != 2 : capture->mode == 0 && mode == 0) {
      capture->valid = false;
      return 900;
    }
  }
  return 0;
}

/** What uses the default stream, which waits for all blocking ones. */
static int usesStandard(Device* device) {
  for (auto& capture : state().captures) {
    if (capture->origin->blocking && capture->origin->device == device) {
      capture->valid = false;
      return 906;
    }
  }
  return 0;
}

/** Whether memory may be used: if some of it is of a device, all of it is in one allocation. */
static bool usable(const void* memory, size_t bytes) {
  uintptr_t from = (uintptr_t)memory;
  if (!from) return false;
  auto after = state().allocations.upper_bound(from);
  if (after != state().allocations.end() && after->first < from + bytes) return false;
  if (after == state().allocations.begin()) return true;
  --after;
  uintptr_t end = after->first + after->second.bytes;
  return from >= end || from + bytes <= end;
}

#define CHECK(call) \
  if (int result_ = (call)) return failed(result_)

API int cudaGetDeviceCount(int* count) {
  ENTER("cudaGetDeviceCount");
  *count = (int)state().devices.size();
  return 0;
}

API int cudaGetDevice(int* device) {
  ENTER("cudaGetDevice");
  *device = thread().contexts.empty() ? 0 : thread().contexts.back()->index;
  return 0;
}

API int cudaSetDevice(int device) {
  ENTER("cudaSetDevice");
  if (device < 0 || device >= (int)state().devices.size()) return failed(101);
  std::vector<Device*>& contexts = thread().contexts;
  if (contexts.empty()) contexts.push_back(nullptr);
  contexts.back() = &state().devices[device];
  contexts.back()->hasContext = true;
  return 0;
}

API int cudaDeviceGetPCIBusId(char* id, int length, int device) {
  ENTER("cudaDeviceGetPCIBusId");
  snprintf(id, length, "0000:%02X:00.0", device + 0x1a);
  return 0;
}

API int cudaDriverGetVersion(int* version) {
  ENTER("cudaDriverGetVersion");
  *version = 13010;
  return 0;
}

API int cudaRuntimeGetVersion(int* version) {
  ENTER("cudaRuntimeGetVersion");
  *version = 13000;
  return 0;
}

/** Devices of compute capability 9.5, 9.6 and so on. */
API int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER("cudaDeviceGetAttribute");
  if (attribute != 75 && attribute != 76) return failed(1);
  *value = attribute == 75 ? 9 : 5 + device;
  return 0;
}

/** Each device can access those before it. */
API int cudaDeviceCanAccessPeer(int* can, int from, int to) {
  ENTER("cudaDeviceCanAccessPeer");
  *can = to < from;
  return 0;
}

API int cudaGetLastError() {
  int last = thread().lastError;
  thread().lastError = 0;
  return last;
}

API int cudaPeekAtLastError() { return thread().lastError; }

API const char* cudaGetErrorName(int result) {
  for (auto& error : ERRORS)
    if (error.code == result) return error.name;
  return "unrecognized error code";
}

API const char* cudaGetErrorString(int result) {
  for (auto& error : ERRORS)
    if (error.code == result) return error.text;
  return "unrecognized error code";
}

API int cudaMalloc(void** memory, size_t bytes) {
  ENTER("cudaMalloc");
  Device* device = current();
  CHECK(unsafe());
  if (bytes > state().memory - device->used) return failed(2);
  *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*memory) return failed(2);
  device->used += bytes;
  state().allocations[(uintptr_t)*memory] = {bytes, device};
  return 0;
}

API int cudaFree(void* memory) {
  ENTER("cudaFree");
  Device* device = current();
  if (!memory) return 0;
  CHECK(unsafe());
  auto found = state().allocations.find((uintptr_t)memory);
  if (found == state().allocations.end() || found->second.device != device) return failed(1);
  // CUDA keeps all other threads out while it waits here: a program must wait before.
  if (const char* hang = getenv("FAKE_CUDA_HANG"); hang && access(hang, F_OK) == 0) return failed(1);
  drain(device);
  memset(memory, 0xdd, found->second.bytes);
  device->used -= found->second.bytes;
  state().allocations.erase(found);
  free(memory);
  return 0;
}

API int cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  ENTER("cudaHostAlloc");
  Device* device = current();
  CHECK(unsafe());
  if (bytes > state().memory) return failed(2);
  *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*memory) return failed(2);
  state().hostAllocations[(uintptr_t)*memory] = {bytes, device};
  return 0;
}

API int cudaFreeHost(void* memory) {
  ENTER("cudaFreeHost");
  current();
  CHECK(unsafe());
  auto found = state().hostAllocations.find((uintptr_t)memory);
  if (found == state().hostAllocations.end()) return failed(1);
  memset(memory, 0xdd, found->second.bytes);
  state().hostAllocations.erase(found);
  free(memory);
  return 0;
}

API int cudaMemGetInfo(size_t* left, size_t* total) {
  ENTER("cudaMemGetInfo");
  *total = state().memory;
  *left = *total - current()->used;
  return 0;
}

API int cudaMemcpyAsync(void* target, const void* source, size_t bytes, int kind, void* handle) {
  ENTER("cudaMemcpyAsync");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  if (kind < 0 || kind > 4 || !usable(target, bytes) || !usable(source, bytes)) return failed(1);
  if (stream == &stream->device->standard) CHECK(usesStandard(stream->device));
  enqueue(stream, [=] { memmove(target, source, bytes); });
  return 0;
}

API int cudaMemcpy(void* target, const void* source, size_t bytes, int kind) {
  ENTER("cudaMemcpy");
  Device* device = current();
  CHECK(unsafe());
  CHECK(usesStandard(device));
  if (kind < 0 || kind > 4 || !usable(target, bytes) || !usable(source, bytes)) return failed(1);
  drain(*device->standard.queue);
  memmove(target, source, bytes);
  return 0;
}

API int cudaMemsetAsync(void* target, int value, size_t bytes, void* handle) {
  ENTER("cudaMemsetAsync");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  if (!usable(target, bytes)) return failed(1);
  if (stream == &stream->device->standard) CHECK(usesStandard(stream->device));
  enqueue(stream, [=] { memset(target, value, bytes); });
  return 0;
}

API int cudaMemset(void* target, int value, size_t bytes) {
  ENTER("cudaMemset");
  Device* device = current();
  CHECK(unsafe());
  CHECK(usesStandard(device));
  if (!usable(target, bytes)) return failed(1);
  drain(*device->standard.queue);
  memset(target, value, bytes);
  return 0;
}

API int cudaDeviceSynchronize() {
  ENTER("cudaDeviceSynchronize");
  Device* device = current();
  CHECK(unsafe());
  drain(device);
  return 0;
}

API int cudaStreamCreateWithFlags(void** handle, unsigned flags) {
  ENTER("cudaStreamCreateWithFlags");
  auto stream = std::make_shared<Stream>();
  stream->device = current();
  stream->blocking = !(flags & 1);
  stream->queue = stream->blocking ? stream->device->standard.queue : std::make_shared<Queue>();
  state().streams[stream.get()] = stream;
  *handle = stream.get();
  return 0;
}

API int cudaStreamDestroy(void* handle) {
  ENTER("cudaStreamDestroy");
  Stream* stream = find(handle);
  if (!stream || stream == &stream->device->standard) return failed(400);
  if (stream->capture) return failed(900);
  // What is in it goes on to its end: now, or when somebody asks for an event in it.
  while (step(*stream->queue)) {
  }
  state().streams.erase(stream);
  return 0;
}

static int forbidden(Stream* stream) {
  if (!stream->capture)
    if (int result = unsafe()) return result;
  if (!stream->capture) return stream == &stream->device->standard ? usesStandard(stream->device) : 0;
  stream->capture->valid = false;
  return 900;
}

API int cudaStreamSynchronize(void* handle) {
  ENTER("cudaStreamSynchronize");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  CHECK(forbidden(stream));
  drain(*stream->queue);
  return 0;
}

API int cudaStreamQuery(void* handle) {
  ENTER("cudaStreamQuery");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  CHECK(forbidden(stream));
  return step(*stream->queue) || !stream->queue->work.empty() ? failed(600) : 0;
}

/** Puts work into a stream that is not done while there is the file of FAKE_CUDA_HANG. */
API int cudaFakeHang(void* handle) {
  ENTER("cudaFakeHang");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  add(stream, [] { return access(getenv("FAKE_CUDA_HANG"), F_OK) != 0; });
  return 0;
}

API int cudaLaunchHostFunc(void* handle, void (*function)(void*), void* data) {
  ENTER("cudaLaunchHostFunc");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  enqueue(stream, [=] { function(data); });
  return 0;
}

API int cudaEventCreateWithFlags(void** handle, unsigned flags) {
  ENTER("cudaEventCreateWithFlags");
  auto event = std::make_shared<Event>();
  event->device = current();
  event->timing = !(flags & 2);
  state().events[event.get()] = event;
  *handle = event.get();
  return 0;
}

API int cudaEventDestroy(void* handle) {
  ENTER("cudaEventDestroy");
  current();
  return state().events.erase((Event*)handle) ? 0 : failed(400);
}

API int cudaEventRecord(void* handle, void* streamHandle) {
  ENTER("cudaEventRecord");
  Stream* stream = find(streamHandle);
  std::shared_ptr<Event> event = findEvent(handle);
  if (!stream || !event || event->device != stream->device) return failed(400);
  if (stream == &stream->device->standard) CHECK(usesStandard(stream->device));
  event->capture = stream->capture;
  if (stream->capture) return 0;
  event->queue = stream->queue;
  long mark = ++event->recorded;
  enqueue(stream, [=] {
    event->done = mark;
    event->time = std::chrono::steady_clock::now();
  });
  return 0;
}

API int cudaStreamWaitEvent(void* streamHandle, void* handle, unsigned) {
  ENTER("cudaStreamWaitEvent");
  Stream* stream = find(streamHandle);
  std::shared_ptr<Event> event = findEvent(handle);
  if (!stream || !event) return failed(400);
  if (event->capture) {
    if (stream->capture && stream->capture != event->capture) return failed(900);
    stream->capture = event->capture;
    return 0;
  }
  std::shared_ptr<Queue> queue = event->queue;
  long mark = event->recorded;
  add(stream, [=] {
    while (event->done < mark && step(*queue)) {
    }
    return event->done >= mark;
  });
  return 0;
}

static int forbidden(Event& event) {
  if (!event.capture) return unsafe();
  event.capture->valid = false;
  return 907;
}

API int cudaEventSynchronize(void* handle) {
  ENTER("cudaEventSynchronize");
  current();
  std::shared_ptr<Event> event = findEvent(handle);
  if (!event) return failed(400);
  CHECK(forbidden(*event));
  if (event->queue) stepUntil(*event->queue, [&] { return event->done >= event->recorded; });
  return 0;
}

API int cudaEventQuery(void* handle) {
  ENTER("cudaEventQuery");
  current();
  std::shared_ptr<Event> event = findEvent(handle);
  if (!event) return failed(400);
  CHECK(forbidden(*event));
  if (event->done >= event->recorded) return 0;
  step(*event->queue);
  return failed(600);
}

API int cudaEventElapsedTime(float* milliseconds, void* start, void* end) {
  ENTER("cudaEventElapsedTime");
  current();
  std::shared_ptr<Event> from = findEvent(start), to = findEvent(end);
  if (!from || !to || !from->timing || !to->timing) return failed(400);
  *milliseconds = std::chrono::duration<float, std::milli>(to->time - from->time).count();
  return 0;
}

API int cudaStreamIsCapturing(void* handle, int* status) {
  ENTER("cudaStreamIsCapturing");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  if (stream == &stream->device->standard) CHECK(usesStandard(stream->device));
  *status = !stream->capture ? 0 : stream->capture->valid ? 1 : 2;
  return 0;
}

API int cudaThreadExchangeStreamCaptureMode(int* mode) {
  ENTER("cudaThreadExchangeStreamCaptureMode");
  std::swap(*mode, thread().captureMode);
  return 0;
}

API int cudaStreamBeginCapture(void* handle, int mode) {
  ENTER("cudaStreamBeginCapture");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  if (stream == &stream->device->standard) return failed(900);
  if (stream->capture) return failed(401);
  stream->capture = std::make_shared<Capture>();
  stream->capture->origin = stream;
  stream->capture->mode = mode;
  stream->capture->thread = &thread();
  state().captures.insert(stream->capture);
  return 0;
}

API int cudaStreamEndCapture(void* handle, void** graph) {
  ENTER("cudaStreamEndCapture");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  *graph = nullptr;
  std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || capture->origin != stream) return failed(401);
  if (capture->mode != 2 && capture->thread != &thread()) return failed(908);
  for (auto& other : state().streams)
    if (other.first->capture == capture) other.first->capture = nullptr;
  for (auto& event : state().events)
    if (event.first->capture == capture) event.first->capture = nullptr;
  state().captures.erase(capture);
  if (!capture->valid) return failed(901);
  Graph* made = new Graph{capture->work};
  state().graphs.insert(made);
  *graph = made;
  return 0;
}

API int cudaGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  ENTER("cudaGraphInstantiateWithFlags");
  current();
  if (!state().graphs.count((Graph*)graph)) return failed(1);
  Graph* made = new Graph(*(Graph*)graph);
  state().executables.insert(made);
  *executable = made;
  return 0;
}

API int cudaGraphInstantiate(void** executable, void* graph, unsigned long long flags) {
  return cudaGraphInstantiateWithFlags(executable, graph, flags);
}

API int cudaGraphLaunch(void* executable, void* handle) {
  ENTER("cudaGraphLaunch");
  Stream* stream = find(handle);
  if (!stream) return failed(400);
  if (!state().executables.count((Graph*)executable)) return failed(1);
  for (auto& work : ((Graph*)executable)->work) add(stream, work);
  return 0;
}

API int cudaGraphDestroy(void* graph) {
  ENTER("cudaGraphDestroy");
  if (!state().graphs.erase((Graph*)graph)) return failed(1);
  delete (Graph*)graph;
  return 0;
}

API int cudaGraphExecDestroy(void* executable) {
  ENTER("cudaGraphExecDestroy");
  if (!state().executables.erase((Graph*)executable)) return failed(1);
  delete (Graph*)executable;
  return 0;
}
#endif
