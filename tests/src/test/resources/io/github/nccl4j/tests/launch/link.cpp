// A link of a host that delays and loses what the host sends, for tests on a kernel without netem. The host and its network are
// network namespaces. The ends of the link are TAP devices, which exist as long as this process.
//
//   link HOST DEVICE NETWORK DEVICE DELAY JITTER LOSS SEED
//
// Delivers frames of the host after DELAY plus or minus JITTER milliseconds, and LOSS percent of them never; delivers frames of
// the network at once. Prints "ready" when the devices exist. After the line "cut" of the standard input it delivers nothing, not
// even frames in transit, and prints how many frames were lost until then. Ends at the end of the standard input.
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <queue>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxFrame = 1 << 16;

struct Frame {
  Clock::time_point due;
  uint64_t number;
  std::string bytes;

  bool operator<(const Frame& other) const {
    return due != other.due ? due > other.due : number > other.number;
  }
};

[[noreturn]] void fail(const std::string& what) {
  printf("%s: %s\n", what.c_str(), strerror(errno));
  exit(1);
}

int device(const std::string& space, const char* name) {
  int entered = open(("/var/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
  if (entered < 0 || setns(entered, CLONE_NEWNET) != 0) fail("can't enter " + space);
  close(entered);
  int tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (tap < 0) fail("can't open /dev/net/tun");
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (ioctl(tap, TUNSETIFF, &request) != 0) fail("can't create a TAP device");
  return tap;
}

void deliver(int tap, const std::string& bytes) {
  // As on a wire: a frame that the device refuses is lost.
  if (write(tap, bytes.data(), bytes.size()) < 0 && errno != EAGAIN && errno != EIO) fail("can't write a frame");
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 9) return 2;
  int host = device(arguments[1], arguments[2]);
  int network = device(arguments[3], arguments[4]);
  double delay = atof(arguments[5]);
  double jitter = atof(arguments[6]);
  double loss = atof(arguments[7]) / 100;
  std::mt19937_64 random(strtoull(arguments[8], nullptr, 10));
  std::uniform_real_distribution<double> chance(0, 1);
  std::uniform_real_distribution<double> milliseconds(delay - jitter, delay + jitter);
  setvbuf(stdout, nullptr, _IOLBF, 0);
  puts("ready");

  std::priority_queue<Frame> transit;
  std::vector<char> buffer(kMaxFrame);
  uint64_t frames = 0;
  uint64_t lost = 0;
  bool cut = false;
  for (;;) {
    timespec left{1, 0};
    if (!transit.empty()) {
      auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(transit.top().due - Clock::now()).count();
      left = {0, std::clamp<long>(wait, 0, 999999999)};
    }
    pollfd polled[] = {{host, POLLIN, 0}, {network, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (ppoll(polled, 3, &left, nullptr) < 0 && errno != EINTR) fail("can't wait for frames");
    if (polled[2].revents != 0) {
      char command[16];
      if (read(STDIN_FILENO, command, sizeof command) <= 0) return 0;
      cut = true;
      transit = {};
      printf("cut: %lu of %lu frames were lost\n", lost, frames);
    }
    ssize_t length;
    while ((length = read(host, buffer.data(), buffer.size())) > 0) {
      if (cut) continue;
      frames++;
      if (chance(random) < loss) {
        lost++;
        continue;
      }
      auto after = std::chrono::duration<double, std::milli>(milliseconds(random));
      transit.push(
          {Clock::now() + std::chrono::duration_cast<Clock::duration>(after), frames,
           std::string(buffer.data(), static_cast<size_t>(length))});
    }
    while ((length = read(network, buffer.data(), buffer.size())) > 0) {
      if (!cut) deliver(host, std::string(buffer.data(), static_cast<size_t>(length)));
    }
    for (; !transit.empty() && transit.top().due <= Clock::now(); transit.pop()) deliver(network, transit.top().bytes);
  }
}
