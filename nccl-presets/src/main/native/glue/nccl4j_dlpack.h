/*
 * DLPack's structs, and exported tensors in them. A consumer calls the deleter of a tensor in any thread, once, when it
 * no longer uses the memory. Java polls for this call, so that nothing here calls Java.
 */
#ifndef NCCL4J_DLPACK_H_
#define NCCL4J_DLPACK_H_

#include <stdint.h>

#include <atomic>

namespace __attribute__((visibility("hidden"))) nccl4j {

struct DlpackTensor {
  void* data;
  int32_t deviceType;
  int32_t deviceId;
  int32_t dimensions;
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byteOffset;
};

/** DLManagedTensor. */
struct DlpackManaged {
  DlpackTensor tensor;
  void* context;
  void (*deleter)(DlpackManaged*);
};

/** DLManagedTensorVersioned, of DLPack 1.0 and newer. */
struct DlpackVersioned {
  uint32_t major;
  uint32_t minor;
  void* context;
  void (*deleter)(DlpackVersioned*);
  uint64_t flags;
  DlpackTensor tensor;
};

static_assert(sizeof(DlpackTensor) == 48 && sizeof(DlpackManaged) == 64 && sizeof(DlpackVersioned) == 80,
    "DLPack's structs on machines of 64 bits");

/** An exported tensor: freed when both the consumer and Java have released it. */
struct DlpackExport {
  union {
    DlpackManaged managed;
    DlpackVersioned versioned;
  };
  int64_t length;
  std::atomic<int> users;
};

inline void dlpackLeave(DlpackExport* one) {
  if (one->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete one;
}

/** Creates a tensor of one dimension. Returns the address for the consumer, which is also the address of the export. */
inline long long dlpackExport(long long data, long long length, int deviceType, int deviceId, int code, int bits,
    bool versioned) {
  auto* one = new DlpackExport{};
  one->length = length;
  one->users = 2;
  DlpackTensor& tensor = versioned ? one->versioned.tensor : one->managed.tensor;
  tensor.data = (void*)data;
  tensor.deviceType = deviceType;
  tensor.deviceId = deviceId;
  tensor.dimensions = 1;
  tensor.code = (uint8_t)code;
  tensor.bits = (uint8_t)bits;
  tensor.lanes = 1;
  tensor.shape = &one->length;
  // NULL means contiguous elements. Version 1.2 and newer require strides, so they are always set.
  static int64_t one_element = 1;
  tensor.strides = &one_element;
  if (versioned) {
    one->versioned.major = 1;
    one->versioned.minor = 0;
    one->versioned.context = one;
    one->versioned.deleter = [](DlpackVersioned* self) { dlpackLeave((DlpackExport*)self->context); };
  } else {
    one->managed.context = one;
    one->managed.deleter = [](DlpackManaged* self) { dlpackLeave((DlpackExport*)self->context); };
  }
  return (long long)one;
}

/** True if the consumer has released the tensor; Java's side is then freed, too, and Java must not call this again. */
inline bool dlpackIsReleased(long long address) {
  auto* one = (DlpackExport*)address;
  if (one->users.load(std::memory_order_acquire) != 1) return false;
  dlpackLeave(one);
  return true;
}

/** Calls the deleter of an imported tensor, if it has one. */
inline void dlpackDelete(long long address, bool versioned) {
  if (versioned) {
    auto* one = (DlpackVersioned*)address;
    if (one->deleter) one->deleter(one);
  } else {
    auto* one = (DlpackManaged*)address;
    if (one->deleter) one->deleter(one);
  }
}

}  // namespace nccl4j

#endif
