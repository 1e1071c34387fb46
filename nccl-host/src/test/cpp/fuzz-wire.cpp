// fuzz-wire.cpp: bytes that no rank sends, to everything that parses the bytes of a peer.
//
//     fuzz-wire SECONDS MESSAGES [SEED]
//
// ends after so many seconds or messages. Each step takes a message or the stream of an operation, which a real rank
// sent or which is built of the same structs, changes it (bits, numbers at limits, cut off, repeated), gives it to a rank,
// and then closes the connection: the rank must return, with whatever result. A step of more than 20 s is a hang. Run
// with AddressSanitizer and UndefinedBehaviorSanitizer.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <random>
#include <thread>

#include "connected.h"
#include "protocol/bootstrap.h"
#include "protocol/regroup.h"

using namespace host;

namespace {

using Random = std::mt19937;

template <class T>
std::string bytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

void write(const Fd& socket, const std::string& bytes) { sendSome(socket.get(), bytes.data(), bytes.size()); }

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random(seed) {}

  size_t draw(size_t limit) { return limit == 0 ? 0 : random() % limit; }

  uint64_t number() {
    static const uint64_t limits[] = {0, 1, 2, 7, 255, 1 << 16, INT32_MAX, 1u << 31, UINT32_MAX, INT64_MAX,
                                      1ull << 63, UINT64_MAX, 0x7ff0000000000000u, 0x7ff8000000000000u};
    uint64_t limit = limits[draw(std::size(limits))];
    return draw(4) == 0 ? random() : limit + draw(3) - 1;
  }

  std::string changed(std::string bytes) {
    for (size_t left = draw(4); left > 0 && !bytes.empty(); left--) {
      size_t at = draw(bytes.size());
      switch (draw(7)) {
        case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << draw(8)); break;
        case 1: bytes[at] = static_cast<char>(random()); break;
        case 2: {
          uint64_t value = number();
          size_t size = draw(2) == 0 ? 4 : 8;
          at = at / size * size;
          memcpy(&bytes[at], &value, std::min(size, bytes.size() - at));
          break;
        }
        case 3: bytes.resize(at); break;
        case 4: bytes.insert(at, bytes.substr(draw(bytes.size()), draw(200))); break;
        case 5: bytes.erase(at, 1 + draw(100)); break;
        default: {
          // Numbers near the beginning, where headers are.
          uint64_t value = number();
          at = std::min(at, draw(12) * 8);
          memcpy(&bytes[at], &value, std::min<size_t>(8, bytes.size() - at));
        }
      }
    }
    return bytes;
  }

  Random random;
};

/** An operation of a rank with buffers of the exact size. */
class Subject {
 public:
  Subject(Comm& comm, size_t kind) : comm_(comm) {
    static const Call calls[] = {Call::AllReduce, Call::AllReduce,     Call::Reduce,      Call::ReduceScatter,
                                 Call::Broadcast, Call::AllGather,     Call::AlltoAll,    Call::Gather,
                                 Call::Scatter,   Call::AlltoAllv,     Call::CommSplit,   Call::CommSplitId,
                                 Call::Send,      Call::CommWindowRegister, Call::AlltoAll, Call::Send,
                                 Call::Send,      Call::AllReduce};
    static_assert(std::size(calls) == kKinds);
    call_ = calls[kind];
    // In a frame; in the slots after it; after it, or offered.
    count_ = kind == 0 ? 3 : kind == 1 || kind == 14 || kind == 15 ? 20'000 : kind % 2 == 0 ? 100 : 200;
    messages_ = call_ != Call::Send ? 0 : kind == 16 ? 1 : 3;
    // Sends before the collective, and their Recvs after it.
    buffered_ = kind == 17 && comm.peers[static_cast<size_t>(1 - comm.rank)].data->has(Capability::Polling);
    if (buffered_) count_ = 50;
  }

  static constexpr size_t kKinds = 18;

  /** Runs the operation in a task, or tries to run it without one. */
  void run(bool eagerly) {
    size_t all = count_ * static_cast<size_t>(comm_.ranks);
    in_.assign(2 * all, 1.0f);
    out_.assign(2 * all, 0.0f);
    std::vector<Operation> operations;
    for (size_t i = 0; i < messages_; i++) {
      operations.push_back(operation(Call::Send, 1 - comm_.rank, i));
      operations.push_back(operation(Call::Recv, 1 - comm_.rank, i));
    }
    if (buffered_ && comm_.rank == 1) {
      comm_.peers[0].credits.hasSent();
      for (size_t i = 0; i < 4; i++) run({operation(Call::Send, 0, i)}, eagerly);
    }
    if (messages_ == 0) operations.push_back(collective());
    run(operations, eagerly);
    if (buffered_ && comm_.rank == 0) {
      for (size_t i = 0; i < 4; i++) run({operation(Call::Recv, 1, i)}, eagerly);
    }
  }

 private:
  Operation collective() {
    Operation one = operation(call_, 0, 0);
    switch (call_) {
      case Call::AlltoAllv:
        one.addExtras().rows = std::make_shared<AlltoAllvRows>(
            AlltoAllvRows{{count_, count_}, {0, count_}, {count_, count_}, {0, count_}, {1, 2, 3}});
        break;
      case Call::CommSplit:
        one.addExtras().allPairs = &pairs_;
        pairs_.resize(static_cast<size_t>(comm_.ranks));
        break;
      case Call::CommSplitId: one.type = ncclInt8; break;
      // Only the root sends.
      case Call::Broadcast: one.root = 1; break;
      case Call::CommWindowRegister:
        one.addExtras().windowBytes = out_.size() * sizeof(float);
        one.addExtras().windowOut = &window_;
        break;
      default: break;
    }
    return one;
  }

  void run(const std::vector<Operation>& operations, bool eagerly) {
    Work work;
    work.comm = &comm_;
    if (eagerly && runEagerly(comm_, operations.data(), operations.size(), work.begun)) return;
    work.add(task(operations, work.begun));
    runWork(work);
  }

  std::unique_ptr<Task> task(const std::vector<Operation>& operations, const Begun& begun) {
    Operation one = operations.front();
    if (isPointToPoint(one.call)) return makePointToPoint(comm_, operations, begun.isSent());
    if (call_ == Call::CommWindowRegister) return makeRegistration(comm_, std::move(one));
    return makeCollective(comm_, std::move(one), begun);
  }

  Operation operation(Call call, int root, size_t part) {
    Operation operation;
    operation.call = call;
    operation.send = reinterpret_cast<char*>(in_.data() + part * count_ / 4);
    operation.recv = reinterpret_cast<char*>(out_.data() + part * count_ / 4);
    operation.count = part == 1 ? 0 : count_;
    operation.type = ncclFloat32;
    operation.root = root;
    return operation;
  }

  Comm& comm_;
  Call call_;
  size_t count_;
  size_t messages_;  // in each direction; 0: a collective
  bool buffered_;
  std::vector<float> in_, out_;
  std::vector<std::pair<int64_t, int64_t>> pairs_;
  ncclWindow_t window_ = nullptr;
};

/** What a rank 1 sent to rank 0 in an operation, through sockets or through shared memory. */
struct Recording {
  std::string data;  // in shared memory: the elements
  std::string control;
  std::string frames;  // in shared memory, each with its elements
};

/** Passes on what has arrived in shared memory, and keeps it. */
void relay(Channel& from, Channel& to, Recording* record) {
  auto relayFrames = [&] {
    char elements[kMaxInlined];
    for (Frame frame; from.receiveFrame(frame, elements) > 0;) {
      if (record != nullptr) {
        record->frames += bytesOf(frame);
        if (MemoryChannel::slotsOf(frame) > 1) record->frames.append(elements, frame.inlined);
      }
      while (!to.sendFrame(frame, elements)) std::this_thread::yield();
    }
  };
  relayFrames();
  char buffer[4096];
  for (long got; (got = from.receive(buffer, sizeof buffer)) > 0;) {
    if (record != nullptr) record->data.append(buffer, static_cast<size_t>(got));
    for (size_t sent = 0; sent < static_cast<size_t>(got);) {
      iovec part{buffer + sent, static_cast<size_t>(got) - sent};
      sent += static_cast<size_t>(to.send(&part, 1));
      // The rank makes room when it has the frame of these bytes.
      relayFrames();
    }
  }
}

/** Passes on what has arrived, and keeps it. False at the end of the stream. */
bool relay(const Fd& from, const Fd& to, std::string* record) {
  char buffer[4096];
  Fd passed;
  long got = receiveWithDescriptor(from.get(), buffer, sizeof buffer, passed);
  if (got <= 0) return got == 0;
  if (record != nullptr) record->append(buffer, static_cast<size_t>(got));
  // The buffers of the sockets hold these short streams.
  if (passed.valid()) {
    sendWithDescriptor(to.get(), buffer, static_cast<size_t>(got), passed.get());
  } else {
    for (long sent = 0; sent < got;) {
      sent += sendSome(to.get(), buffer + sent, static_cast<size_t>(got - sent));
    }
  }
  return true;
}

Recording recorded(size_t kind, bool shared) {
  Connected zero(2, shared), one(2, shared, {}, 1);
  Recording recording;
  std::atomic<bool> done{false};
  std::unique_ptr<Channel> ofZero, ofOne;
  if (shared) {
    ofZero = openChannel(std::move(zero.ends[1].data), zero.ends[1].memory, kTestRing, false);
    ofOne = openChannel(std::move(one.ends[0].data), one.ends[0].memory, kTestRing, false);
  }
  std::thread relays([&] {
    while (!done) {
      if (shared) {
        relay(*ofZero, *ofOne, nullptr);
        relay(*ofOne, *ofZero, &recording);
      } else {
        relay(zero.ends[1].data, one.ends[0].data, nullptr);
        relay(one.ends[0].data, zero.ends[1].data, &recording.data);
      }
      relay(zero.ends[1].control, one.ends[0].control, nullptr);
      relay(one.ends[0].control, zero.ends[1].control, &recording.control);
    }
  });
  Subject mine(*zero.comm, kind), theirs(*one.comm, kind);
  std::thread other([&] { theirs.run(false); });
  mine.run(false);
  other.join();
  done = true;
  relays.join();
  return recording;
}

std::string control(ControlKind kind, const std::string& text) {
  Control message;
  message.kind = kind;
  message.code = ncclInvalidUsage;
  memcpy(message.text, text.data(), std::min(text.size(), sizeof message.text - 1));
  return bytesOf(message);
}

class Fuzzer {
 public:
  explicit Fuzzer(unsigned seed) : mutate_(seed) {
    for (size_t kind = 0; kind < Subject::kKinds; kind++) {
      for (bool shared : {false, true}) recordings_[shared].push_back(recorded(kind, shared));
    }
    RegroupNote note;
    note.attempt = 1;
    note.members = 77;
    controls_ = {
        control(ControlKind::Close, ""),
        control(ControlKind::Abort, ""),
        control(ControlKind::Fault, "reason"),
        control(ControlKind::Lane, ""),
        control(ControlKind::Regroup, bytesOf(note)),
        control(ControlKind::GrowId, std::string(sizeof(ncclUniqueId), 'i'))};
  }

  /** One step; returns the number of messages that a rank was given. */
  int step() {
    switch (mutate_.draw(8)) {
      case 0: return regroup();
      case 1: return puts();
      case 2: return mutate_.draw(4) == 0 ? rank() : server();
      default: return operation();
    }
  }

 private:
  /** Bytes for the streams of a running operation, or numbers in the words that it shares. */
  int operation() {
    size_t kind = mutate_.draw(Subject::kKinds);
    bool shared = mutate_.draw(3) > 0;
    Connected rank(2, shared);
    PeerEnd& end = rank.ends[1];
    if (shared && mutate_.draw(4) > 0) rank.peer(1).data->permitCopies();
    rank.peer(1).process = processToken();
    const Recording& recording = recordings_[shared][kind];
    std::string data = mutate_.changed(recording.data);
    std::string frames = mutate_.changed(recording.frames);
    // A stream of another operation begins in the middle of this one.
    if (mutate_.draw(8) == 0) {
      const Recording& other = recordings_[shared][mutate_.draw(Subject::kKinds)];
      data += mutate_.changed(other.data);
      frames += mutate_.changed(other.frames);
    }
    std::string controls = mutate_.draw(3) == 0 ? mutate_.changed(recording.control) : recording.control;
    if (mutate_.draw(8) == 0) controls += mutate_.changed(controls_[mutate_.draw(controls_.size())]);
    Subject subject(*rank.comm, kind);
    int messages = 2;
    std::thread disturber;
    std::atomic<bool> done{false};
    if (shared) {
      std::unique_ptr<Channel> theirs;
      auto [socket, doorbell] = newStream();
      theirs = openChannel(std::move(socket), end.memory, kTestRing, false);
      for (size_t at = 0; at < frames.size();) {
        Frame frame;
        char elements[kMaxInlined] = {};
        auto take = [&](void* to, size_t size) {
          size = std::min(size, frames.size() - at);
          memcpy(to, frames.data() + at, size);
          at += size;
        };
        take(&frame, sizeof frame);
        if (MemoryChannel::slotsOf(frame) > 1) take(elements, frame.inlined);
        if (frame.kind == FrameKind::Data && mutate_.draw(2) == 0) {
          bool real = mutate_.draw(4) > 0;
          frame.offer.address = real ? reinterpret_cast<uintptr_t>(data.data()) : mutate_.number();
          frame.offer.token = real ? reinterpret_cast<uintptr_t>(&processToken()) : mutate_.number();
        }
        theirs->sendFrame(frame, elements);
      }
      iovec part{data.data(), data.size()};
      theirs->send(&part, 1);
      theirs->announceMessage();
      if (mutate_.draw(3) == 0) {
        auto mapped = std::make_shared<Mapped>(end.memory);
        auto change = [mapped](Mutator& by) {
          volatile RingWords& words = mapped->words(static_cast<int>(by.draw(2)));
          switch (by.draw(6)) {
            case 0: words.written = words.written + by.number(); break;
            case 1: words.read = by.number(); break;
            case 2: words.readFrames = static_cast<uint32_t>(by.number()); break;
            case 3: {
              uint32_t slot = static_cast<uint32_t>(by.draw(kTestSlots));
              mapped->slot(static_cast<int>(by.draw(2)), slot) = by.draw(2) == 0 ? kFirstFrame + slot : static_cast<uint32_t>(by.number());
              break;
            }
            case 4: words.answer = by.number(); break;
            default: words.flags[by.draw(4)] = static_cast<uint32_t>(by.number());
          }
        };
        messages++;
        change(mutate_);
        if (mutate_.draw(8) == 0) {
          // While the rank reads them.
          disturber = std::thread([change, &done, seed = mutate_.random()] {
            Mutator own(static_cast<unsigned>(seed));
            for (int i = 0; i < 200 && !done; i++) change(own);
          });
        }
      }
    } else {
      write(end.data, data);
    }
    sendControls(end.control, controls);
    end.control.reset();
    end.data.reset();
    failureOf([&] { subject.run(mutate_.draw(2) == 0); });
    done = true;
    if (disturber.joinable()) disturber.join();
    return messages;
  }

  /** A socket, or something else, comes with the first message. */
  void sendControls(const Fd& to, const std::string& bytes) {
    if (bytes.empty()) return;
    if (mutate_.draw(2) == 0) {
      write(to, bytes);
      return;
    }
    auto [mine, theirs] = newStream();
    Fd event = newEvent();
    write(mine, mutate_.changed(bytesOf(PutFrame())));
    const Fd& passed = mutate_.draw(8) == 0 ? event : theirs;
    sendWithDescriptor(to.get(), bytes.data(), std::min<size_t>(bytes.size(), 512), passed.get());
    if (bytes.size() > 512) write(to, bytes.substr(512));
  }

  int regroup() {
    Connected rank(2, mutate_.draw(2) == 0);
    Comm child(0, 2, 0, {});
    int messages = 0;
    for (size_t left = 1 + mutate_.draw(4); left > 0; left--, messages++) {
      sendControls(rank.ends[1].control, mutate_.changed(controls_[mutate_.draw(2) == 0 ? 4 : mutate_.draw(controls_.size())]));
    }
    rank.ends[1].control.reset();
    rank.ends[1].data.reset();
    failureOf([&] {
      if (mutate_.draw(4) == 0) {
        Regrouping(*rank.comm, child, Call::CommGrow).takeGrowId();
        return;
      }
      for (int i = 0; i < 2; i++) {
        RegroupNote mine;
        mine.members = 77;
        Regrouping regrouping(*rank.comm, child, Call::CommShrink);
        regrouping.exchange({0, 1}, mine);
        regrouping.exchange({0, 1}, mine);
        regrouping.complete();
      }
    });
    return messages;
  }

  int puts() {
    std::vector<char> memory(1000);
    std::string stream;
    for (size_t left = 1 + mutate_.draw(4); left > 0; left--) {
      PutFrame frame;
      frame.window = 7;
      frame.offset = mutate_.draw(1000);
      frame.bytes = mutate_.draw(1000);
      stream += bytesOf(frame) + std::string(frame.bytes, 'p');
    }
    Inbox inbox(0, 2, 1, 1);
    inbox.addWindow(7, memory.data(), memory.size());
    auto [mine, theirs] = newStream();
    write(mine, mutate_.changed(stream));
    mine.reset();
    inbox.addLane(1, std::move(theirs));
    while (!inbox.ended(1)) {
      pollfd polled{inbox.notification(), POLLIN, 0};
      poll(&polled, 1, 1000);
      inbox.clearNotification();
    }
    inbox.take({{{1, 0, 0}, 1}});
    failureOf([&] { inbox.throwIfFaulty(); });
    return 1;
  }

  /** Messages for the server of an id, in half of the steps from other hosts. */
  int server() {
    bool network = mutate_.draw(2) == 0;
    ncclUniqueId id = makeUniqueId(network ? Reach::OtherHosts : Reach::OwnHost);
    UniqueIdLayout layout;
    memcpy(&layout, id.internal, sizeof layout);
    std::vector<Fd> ranks(1 + mutate_.draw(3));
    int messages = 0;
    for (size_t rank = 0; rank < ranks.size(); rank++) {
      if (!connectProven(layout.secret, socketName(layout.name), 5, ranks[rank], network ? &layout.address : nullptr)) continue;
      Hello hello;
      hello.rank = static_cast<int>(rank);
      hello.ranks = static_cast<int>(ranks.size());
      hello.timeout = 5;
      Report report;
      report.code = static_cast<int32_t>(mutate_.draw(3));
      write(ranks[rank], mutate_.changed(bytesOf(hello)) + mutate_.changed(bytesOf(report)));
      messages += 2;
    }
    // A process without the secret.
    Fd stranger;
    if (network) stranger = connectTo(layout.address);
    if (network || connectTo(socketName(layout.name), stranger) == Connect::Done) {
      write(stranger, mutate_.changed(bytesOf(Greeting::make())));
      messages++;
    }
    // The answers are not read: the server must not wait for that.
    ranks.clear();
    cancelUniqueId(id);
    return messages;
  }

  /** A server, and a higher rank, for a rank that joins. In half of the steps the higher rank is on another host. */
  int rank() {
    bool network = mutate_.draw(2) == 0;
    UniqueIdLayout layout = UniqueIdLayout::make();
    // The rank then listens in the network, too.
    if (network) layout.address = ownInterface().address;
    Fd listener = listenAt(socketName(layout.name));
    std::thread serves([&] {
      Fd client;
      while (!acceptFrom(listener, client)) std::this_thread::yield();
      Proof proof(layout.secret, socketName(layout.name));
      while (proof.accept(client) == Proof::Step::Waiting) std::this_thread::yield();
      Hello hello;
      for (size_t have = 0; have < sizeof hello;) {
        long got = receiveSome(client.get(), reinterpret_cast<char*>(&hello) + have, sizeof hello - have);
        if (got < 0) return;
        have += static_cast<size_t>(got);
      }
      TableEntry entries[2];
      for (TableEntry& entry : entries) entry.host = hostNumber();
      if (network) entries[1].host++;
      Answer table{AnswerKind::Table, sizeof entries};
      Fd pairs[3];
      write(client, mutate_.changed(bytesOf(table) + bytesOf(entries)));
      for (uint32_t kind = 0; kind < (network ? 3 : 2); kind++) {
        std::string name = socketName(hello.listener);
        if (!connectProven(layout.secret, name, 0.05, pairs[kind], network ? &hello.address : nullptr)) continue;
        PairHello first;
        first.from = 1;
        first.kind = static_cast<PairKind>(kind);
        first.shared = !network && kind == 0;
        std::string bytes = mutate_.changed(bytesOf(first));
        if (first.shared != 0 && !bytes.empty()) {
          Fd memory = MemoryChannel::newMemory(mutate_.draw(4) == 0 ? 4096 : MemoryChannel::ringBytes(2));
          sendWithDescriptor(pairs[0].get(), bytes.data(), bytes.size(), memory.get());
        } else {
          write(pairs[kind], bytes);
        }
      }
      Answer last{mutate_.draw(2) == 0 ? AnswerKind::Go : AnswerKind::Error, 0};
      write(client, mutate_.changed(bytesOf(last) + (mutate_.draw(2) == 0 ? bytesOf(Report()) : "")));
      shutdown(client.get(), SHUT_WR);
      // Until the rank has seen the end.
      char byte;
      while (receiveSome(client.get(), &byte, 1) >= 0) std::this_thread::yield();
    });
    ncclUniqueId id;
    memcpy(id.internal, &layout, sizeof layout);
    {
      Comm comm(0, 2, 0, {});
      failureOf([&] { connectRanks(comm, id); });
    }
    serves.join();
    return 4;
  }

  Mutator mutate_;
  std::vector<Recording> recordings_[2];  // without and with shared memory
  std::vector<std::string> controls_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "fuzz-wire: expected SECONDS MESSAGES [SEED]\n");
    return 1;
  }
  // Ranks of other hosts are connected by the loopback interface.
  setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
  double end = now() + atof(argv[1]);
  long wanted = atol(argv[2]);
  unsigned seed = argc > 3 ? static_cast<unsigned>(atol(argv[3])) : static_cast<unsigned>(now() * 1e3);
  printf("fuzz-wire: seed %u\n", seed);
  fflush(stdout);
  std::atomic<long> messages{0};
  std::thread([&] {
    long before = -1;
    for (;;) {
      std::this_thread::sleep_for(std::chrono::seconds(20));
      long after = messages;
      if (after == before) {
        fprintf(stderr, "fuzz-wire: hangs after %ld messages\n", after);
        abort();
      }
      before = after;
    }
  }).detach();
  Fuzzer fuzzer(seed);
  while (messages < wanted && now() < end) messages += fuzzer.step();
  printf("fuzz-wire: %ld messages\n", messages.load());
  fflush(stdout);
  // Servers of ids may still run.
  _Exit(0);
}
