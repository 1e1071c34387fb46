// collconfig.cpp: checks of ncclCollConfig_t in NCCL's order and with its results, and the comparison between ranks,
// which NCCL leaves to the program. Fields for a GPU's multiprocessors have no effect here.

#include "protocol/collconfig.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include <algorithm>

namespace host {
namespace {

constexpr uint32_t setOf(std::initializer_list<Call> calls) {
  uint32_t set = 0;
  for (Call call : calls) set |= 1u << static_cast<int>(call);
  return set;
}

constexpr uint32_t kAllReduce = setOf({Call::AllReduce});
constexpr uint32_t kAllGather = setOf({Call::AllGather});
constexpr uint32_t kReduceScatter = setOf({Call::ReduceScatter});
constexpr uint32_t kScattered = kAllGather | kReduceScatter;
constexpr uint32_t kAny = kAllReduce | kScattered | setOf({Call::Broadcast, Call::Reduce});

/** An algorithm that a selection can name. AlltoAll, Gather and Scatter have no named algorithm. */
struct Algorithm {
  const char* name;
  uint32_t calls;  // with this algorithm
};

const Algorithm algorithms[] = {
    {"TREE_LL", kAllReduce},
    {"TREE_LL128", kAllReduce},
    {"TREE_SIMPLE", kAllReduce},
    {"RING_LL", kAny},
    {"RING_LL128", kAny},
    {"RING_SIMPLE", kAny},
    {"COLLNET_DIRECT_SIMPLE", kAllReduce | kScattered},
    {"COLLNET_CHAIN_SIMPLE", kAllReduce},
    {"NVLS_SIMPLE", kAllReduce | kScattered},
    {"NVLSTREE_SIMPLE", kAllReduce},
    {"PAT_SIMPLE", kScattered},
    {"SYMK_AGxLL_R", kAllReduce},
    {"SYMK_AGxLLMC_R", kAllReduce},
    {"SYMK_RSxTmaLD_AGxTmaST", kAllReduce},
    {"SYMK_RSxLD_AGxST", kAllReduce},
    {"SYMK_RSxLDMC_AGxSTMC", kAllReduce},
    {"SYMK_LL", kScattered},
    {"SYMK_LLMC", kAllGather},
    {"SYMK_TmaST", kAllGather},
    {"SYMK_ST", kAllGather},
    {"SYMK_TmaSTMC", kAllGather},
    {"SYMK_STMC", kAllGather},
    {"SYMK_RailRing_LsaSTMC", kAllGather},
    {"SYMK_TmaLD", kReduceScatter},
    {"SYMK_LD", kReduceScatter},
    {"SYMK_LDMC", kReduceScatter},
    {"SYMK_RailA2A_LsaLD", kReduceScatter},
    {"SYMK_RailA2A_LsaLDMC", kReduceScatter},
};
static_assert(std::size(algorithms) <= 64, "a bit for each");

template <class Condition>
uint64_t maskOf(Condition&& condition) {
  uint64_t mask = 0;
  for (size_t i = 0; i < std::size(algorithms); i++) {
    if (condition(algorithms[i])) mask |= uint64_t{1} << i;
  }
  return mask;
}

uint64_t algorithmsWithPrefix(const std::string& start) {
  return maskOf([&](const Algorithm& algorithm) {
    return strncasecmp(algorithm.name, start.c_str(), start.size()) == 0;
  });
}

bool inSymmetricWindow(Comm& comm, const char* address, size_t bytes) {
  return comm.windows.findIf([&](const Window& window) {
    return window.isSymmetricAt(address) && bytes <= window.size - window.offsetOf(address);
  }) != nullptr;
}

/**
 * True where NCCL has kernels for symmetric windows: every all-gather, and sums and averages of floats except doubles.
 */
bool hasSymmetricKernel(const Operation& operation) {
  if (operation.call == Call::AllGather) return true;
  bool sums = operation.op == ncclSum || operation.op == ncclAvg;
  switch (operation.type) {
    case ncclFloat16:
    case ncclFloat32:
    case ncclBfloat16:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2: return sums && (operation.call == Call::AllReduce || operation.call == Call::ReduceScatter);
    default: return false;
  }
}

/**
 * The algorithms of a machine without multicast, on one node: rings and trees, and kernels for symmetric windows if
 * both buffers are in symmetric windows. NCCL refuses other algorithms if hardware or plugins are missing.
 */
uint64_t available(Comm& comm, const Operation& operation) {
  uint64_t mask = algorithmsWithPrefix("RING") | algorithmsWithPrefix("TREE");
  if (!hasSymmetricKernel(operation)) return mask;
  size_t bytes = operation.count * typeSize(operation.type);
  size_t all = bytes * static_cast<size_t>(comm.ranks);
  size_t sent = operation.call == Call::ReduceScatter ? all : bytes;
  size_t received = operation.call == Call::AllGather ? all : bytes;
  if (!inSymmetricWindow(comm, operation.send, sent) || !inSymmetricWindow(comm, operation.recv, received)) return mask;
  return mask | maskOf([](const Algorithm& algorithm) {
           return strncmp(algorithm.name, "SYMK_", 5) == 0 && strstr(algorithm.name, "MC") == nullptr &&
                  strstr(algorithm.name, "Rail") == nullptr;
         });
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  // NCCL splits with strtok, which skips empty parts.
  parts.erase(std::remove(parts.begin(), parts.end(), std::string()), parts.end());
  return parts;
}

/**
 * Parses a selection such as "tree,ring+^ring_ll": prefixes of names, with a comma for "or", a plus for "and", and a
 * caret for "not". Returns the algorithms; on failure stores the reason in `problem`.
 */
uint64_t parse(const char* selection, std::string& problem) {
  const uint64_t all = maskOf([](const Algorithm&) { return true; });
  std::string text;
  for (const char* c = selection; *c != '\0'; c++) {
    if (*c != ' ' && *c != '\t' && *c != '\n' && *c != '\r') text += *c;
  }
  uint64_t mask = 0;
  for (const std::string& term : split(text, ',')) {
    std::vector<std::string> factors = split(term, '+');
    uint64_t termMask = all;
    for (const std::string& factor : factors) {
      bool negated = factor[0] == '^';
      std::string start = negated ? factor.substr(1) : factor;
      uint64_t named = start.empty() ? 0 : algorithmsWithPrefix(start);
      if (named == 0) {
        problem = start.empty() ? "a name is missing" : "no algorithm's name starts with " + start;
        return 0;
      }
      termMask &= negated ? all & ~named : named;
    }
    if (factors.empty() || termMask == 0) {
      problem = term + " leaves none";
      return 0;
    }
    mask |= termMask;
  }
  if (mask == 0) problem = "it names none";
  return mask;
}

/** The algorithms that an operation may use; 0 for any. */
uint64_t select(const ncclCollConfig_t& config, Comm& comm, const Operation& operation) {
  Call call = operation.call;
  const char* selection = config.algSelection;
  if (selection == nullptr || *selection == '\0') return 0;
  std::string problem;
  uint64_t mask = parse(selection, problem);
  if (problem.empty()) {
    mask &= maskOf([&](const Algorithm& algorithm) { return (algorithm.calls >> static_cast<int>(call) & 1) != 0; });
    if (mask == 0) problem = format("%s has none of them", callName(call));
  }
  // A single rank needs no algorithm.
  if (problem.empty() && comm.ranks > 1 && (mask & available(comm, operation)) == 0) {
    problem = "the host engine has rings and trees, and kernels for symmetric windows where both buffers are in such";
  }
  if (problem.empty()) return mask;
  if (config.forceAlgSelection == 0) return 0;
  fail(
      ncclInvalidArgument,
      "%s : config->algSelection \"%s\" cannot be had: %s (with forceAlgSelection 0 another algorithm would be taken)",
      callName(call), selection, problem.c_str());
}

/** A field as the ranks compare it: bits of a word, 0 for "unset". */
struct Field {
  const char* name;
  size_t word;
  unsigned shift;
  uint64_t mask;
  int64_t least;  // the value that is encoded as 1
};

const Field fields[] = {
    {"minCTAs", 0, 0, 0xff, 1},
    {"maxCTAs", 0, 8, 0xff, 1},
    {"nvlsCTAs", 0, 16, 0xff, 1},
    {"cgaClusterSize", 0, 24, 0xff, 0},
    {"CTAPolicy", 0, 32, 0xff, 0},
    {"forceAlgSelection", 0, 40, 1, 0},
    {"launchCompletionEvent", 0, 48, 1, 1},
    {"algSelection", 1, 0, UINT64_MAX, 1},
    {"userProfilerTag", 2, 0, UINT64_MAX, 1},
};
enum FieldIndex { kMinCTAs, kMaxCTAs, kNvlsCTAs, kCgaClusterSize, kCTAPolicy, kForce, kEvent, kAlgorithms, kTag };

uint64_t fieldValue(const ConfigWords& words, const Field& field) { return words[field.word] >> field.shift & field.mask; }

void put(ConfigWords& words, FieldIndex index, uint64_t value) {
  words[fields[index].word] |= (value & fields[index].mask) << fields[index].shift;
}

/** As in NCCL, a value out of range counts as unset. */
void putNumber(ConfigWords& words, FieldIndex index, int value, int most) {
  int64_t least = fields[index].least;
  if (value >= least && value <= most) put(words, index, static_cast<uint64_t>(value - least + 1));
}

std::string textOf(FieldIndex index, uint64_t value) {
  const Field& field = fields[index];
  if (value == 0) return format("%s unset", field.name);
  if (index == kEvent) return format("a %s", field.name);
  if (index == kTag) return format("%s %llu", field.name, static_cast<unsigned long long>(value));
  if (index == kAlgorithms) {
    std::string names;
    for (size_t i = 0; i < std::size(algorithms); i++) {
      if ((value >> i & 1) != 0) names += (names.empty() ? "" : ",") + std::string(algorithms[i].name);
    }
    return format("%s %s", field.name, names.c_str());
  }
  return format("%s %lld", field.name, static_cast<long long>(value) + field.least - 1);
}

}  // namespace

ncclCollConfig_t readCollConfig(const ncclCollConfig_t& given, const char* call) {
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  // The size of the first version, of 2.31.
  constexpr size_t kLeast = offsetof(ncclCollConfig_t, launchCompletionEvent);
  size_t size;
  memcpy(&size, &given, sizeof size);
  if (size < kLeast || given.magic != NCCL_API_MAGIC) {
    fail(
        ncclInvalidArgument,
        "%s : config was not initialized with NCCL_COLLCONFIG_INITIALIZER (size %zu, expected at least %zu; magic 0x%x, "
        "expected 0x%x)",
        call, size, kLeast, given.magic, NCCL_API_MAGIC);
  }
  memcpy(&config, &given, std::min(size, sizeof config));
  if (config.forceAlgSelection != 0 && config.forceAlgSelection != 1) {
    fail(
        ncclInvalidArgument, "%s : config->forceAlgSelection is %d, but must be in 0..1", call, config.forceAlgSelection);
  }
  if (config.CTAPolicy != NCCL_CONFIG_UNDEF_INT && (config.CTAPolicy < 0 || config.CTAPolicy > 3)) {
    fail(ncclInvalidArgument, "%s : config->CTAPolicy is %d, but must be in 0..3", call, config.CTAPolicy);
  }
  return config;
}

void applyCollConfig(const ncclCollConfig_t& config, Comm& comm, Operation& operation) {
  ConfigWords& words = operation.addExtras().config;
  putNumber(words, kMinCTAs, config.minCTAs, 64);
  putNumber(words, kMaxCTAs, config.maxCTAs, 64);
  putNumber(words, kNvlsCTAs, config.nvlsCTAs, 64);
  putNumber(words, kCgaClusterSize, config.cgaClusterSize, 8);
  putNumber(words, kCTAPolicy, config.CTAPolicy, 3);
  if (config.forceAlgSelection == 0) put(words, kForce, 1);
  put(words, kTag, config.userProfilerTag);
  // As in NCCL, a call without elements ignores the selection.
  if (operation.count > 0) put(words, kAlgorithms, select(config, comm, operation));
  if (config.launchCompletionEvent != nullptr) {
    put(words, kEvent, 1);
    operation.addExtras().launchEvent = config.launchCompletionEvent;
  }
}

std::pair<std::string, std::string> configDifference(const ConfigWords& one, const ConfigWords& other) {
  for (size_t i = 0; i < std::size(fields); i++) {
    uint64_t a = fieldValue(one, fields[i]);
    uint64_t b = fieldValue(other, fields[i]);
    auto index = static_cast<FieldIndex>(i);
    if (a != b) return {textOf(index, a), textOf(index, b)};
  }
  return {};
}

}  // namespace host
