// netplugin.h: network plugins of NCCL, for elements between hosts.
//
// A plugin is a library with one of the tables of netinterface.h. It gets host memory only. Its connections have one direction, and
// bytes may move only while one of its functions runs; each connection is used by one thread at a time.
#pragma once

#include <stdint.h>

#include <memory>
#include <string>

#include "transport/netinterface.h"

namespace host {

/** The network of a plugin, for one communicator. A function throws if that of the plugin fails; the text names both. */
class Network {
 public:
  /**
   * The network that NCCL_NET_PLUGIN and NCCL_NET choose; NULL if these are the sockets of the engine. As in NCCL, a plugin that cannot be
   * used is skipped, with a warning, unless NCCL_NET names it. The ranks of a host take turns at the plugin's devices.
   */
  static std::shared_ptr<Network> open(uint64_t communicator, int rank);

  Network() = default;
  virtual ~Network() = default;
  Network(const Network&) = delete;

  struct Handle {
    char bytes[netapi::kHandleBytes] = {};
  };

  /** That of the plugin itself. Equal at all ranks of a communicator. */
  const std::string& name() const { return name_; }
  /** Maximum number of bytes of a message. */
  size_t maxMessage() const { return maxMessage_; }

  virtual void* listen(Handle& handle) = 0;
  /** NULL: call again, with the same handle, in which the plugin keeps its state. */
  virtual void* connect(Handle& handle) = 0;
  virtual void* accept(void* listener) = 0;
  virtual void* registerMemory(void* connection, void* data, size_t size) = 0;
  /** The request; NULL: call again. */
  virtual void* send(void* connection, void* data, size_t size, void* registration) = 0;
  virtual void* receive(void* connection, void* data, size_t size, void* registration) = 0;
  /** True if the request is complete; `size` is then that of the message. */
  virtual bool test(void* request, size_t& size) = 0;

  // False if the plugin fails.
  virtual bool deregister(void* connection, void* registration) noexcept = 0;
  virtual bool closeSending(void* connection) noexcept = 0;
  virtual bool closeReceiving(void* connection) noexcept = 0;
  virtual bool closeListener(void* listener) noexcept = 0;

 protected:
  /** Throws if the result is an error. */
  void check(const char* function, netapi::Result result) const;

  std::string name_;
  size_t maxMessage_ = 0;
};

}  // namespace host
