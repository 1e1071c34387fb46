// network.h: addresses, interfaces and TCP sockets for the connections between hosts.
//
// The ranks of one host use the sockets of socket.h. Each connection of this file begins with the proof of proof.h, too: until
// then, the other end may be anybody in the network.
#pragma once

#include <stdint.h>

#include <string>
#include <vector>

#include "transport/socket.h"

namespace host {

/** An address and a port, as ranks tell them to each other. */
struct NetworkAddress {
  uint16_t family = 0;  // AF_INET or AF_INET6; 0: none
  uint16_t port = 0;
  uint32_t unused = 0;
  unsigned char bytes[16] = {};

  bool valid() const { return family != 0; }
  /** "10.0.0.1:1234", "[fe80::1]:1234". */
  std::string text() const;
};
static_assert(sizeof(NetworkAddress) == 24, "no padding in messages");

/** The name of this machine. */
std::string nodeName();

/**
 * Identifies the host of this process. Processes with equal numbers can connect by the sockets of socket.h: they have the same
 * network namespace, and NCCL_HOSTID or the boot of their kernel is the same.
 */
uint64_t hostNumber();

/**
 * True if an id that this process makes should be reachable from other hosts: the environment has one of NCCL's variables for
 * that, or a launcher has started ranks on several hosts.
 */
bool expectsOtherHosts();

/** A network interface with its first address. */
struct Interface {
  std::string name;
  unsigned index = 0;
  NetworkAddress address;  // port 0
  unsigned char mask[16] = {};
};

/** The interfaces that are running, in the order of the system, each once with its first address of the family; 0: of any. */
std::vector<Interface> runningInterfaces(int family);

/**
 * The interface that NCCL's bootstrap would use, or NULL. `names` is NCCL_SOCKET_IFNAME. With the address of NCCL_COMM_ID, only its
 * network counts.
 */
const Interface* chooseInterface(const std::vector<Interface>& all, const std::string& names, const NetworkAddress* commId);

/** The same for this process, by its environment. Throws if there is none. */
Interface ownInterface();

/** The address of NCCL_COMM_ID; not valid if it is unset. */
NetworkAddress commIdAddress();

/** Creates a non-blocking listener at the address; sets its port if that is 0. */
Fd listenAt(const Interface& interface, NetworkAddress& address);

/** Accepts one connection; false if none waits. */
bool acceptFromNetwork(const Fd& listener, Fd& out);

/** Begins a connection; its first bytes wait until it stands, or find it broken. */
Fd connectTo(const NetworkAddress& address);

/** Waits until the systems of the peers have all bytes that were sent on these sockets, at most so many seconds. */
void awaitDelivery(const std::vector<int>& sockets, double seconds);

}  // namespace host
