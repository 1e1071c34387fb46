// operators.h: the reduction operators that ncclRedOpCreatePreMulSum created for a communicator.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "base/abi.h"

namespace host {

struct PreMulSum {
  ncclDataType_t type = ncclInt8;
  bool onDevice = false;
  const void* address = nullptr;
  uint64_t value = 0;
};

class Operators {
 public:
  ncclRedOp_t add(const PreMulSum& created) {
    std::lock_guard<std::mutex> lock(mutex_);
    all_[next_] = created;
    return static_cast<ncclRedOp_t>(next_++);
  }

  std::optional<PreMulSum> find(int number) const {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = all_.find(number);
    if (found == all_.end()) return std::nullopt;
    return found->second;
  }

  bool remove(int number) {
    std::lock_guard<std::mutex> lock(mutex_);
    return all_.erase(number) > 0;
  }

 private:
  mutable std::mutex mutex_;
  std::map<int, PreMulSum> all_;
  int next_ = ncclNumOps;
};

}  // namespace host
