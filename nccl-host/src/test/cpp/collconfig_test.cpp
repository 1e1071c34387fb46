// collconfig_test.cpp: the selection of algorithms, and the comparison of configurations.

#include "protocol/collconfig.h"

#include <gtest/gtest.h>

#include "connected.h"

namespace host {
namespace {

/** The configuration of a call as the ranks compare it, by its difference to none; or the refusal. */
std::string applied(Call call, const char* selection, bool forced = true, int ranks = 2, size_t count = 1) {
  Comm comm(0, ranks, 0, {});
  Operation operation;
  operation.call = call;
  operation.count = count;
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = selection;
  config.forceAlgSelection = forced ? 1 : 0;
  std::string text;
  std::string failure = failureOf([&] {
    applyCollConfig(config, comm, operation);
    ConfigWords words{};
    words[1] = operation.extras().config[1];
    text = configDifference(words, {}).first;
  });
  return failure.empty() ? text : failure;
}

TEST(CollConfigTest, SelectionsName) {
  EXPECT_EQ("", applied(Call::AllReduce, nullptr));
  EXPECT_EQ("", applied(Call::AllReduce, ""));
  EXPECT_EQ("algSelection TREE_LL,TREE_LL128,TREE_SIMPLE", applied(Call::AllReduce, "tree"));
  EXPECT_EQ("algSelection TREE_SIMPLE,RING_LL,RING_LL128", applied(Call::AllReduce, " tree_s , Ring+^ring_S\n"));
  EXPECT_EQ("algSelection RING_LL128", applied(Call::Reduce, "^ring_simple+ring_ll128,,RING_LL128"));
  EXPECT_EQ("algSelection RING_LL,RING_LL128,RING_SIMPLE", applied(Call::Broadcast, "^tree"));
}

TEST(CollConfigTest, SelectionsThatLeaveNothingAreRefused) {
  const std::pair<const char*, const char*> refused[] = {
      {"bogus", "no algorithm's name starts with bogus"},
      {"^", "a name is missing"},
      {"ring,^", "a name is missing"},
      {"ring+tree", "ring+tree leaves none"},
      {"+", "+ leaves none"},
      {",", "it names none"},
      {"nvls", "the host engine has rings and trees, and kernels for symmetric windows where both buffers are in such"},
  };
  for (const auto& [selection, problem] : refused) {
    EXPECT_EQ(
        format(
            "4: AllReduce : config->algSelection \"%s\" cannot be had: %s (with forceAlgSelection 0 another algorithm "
            "would be taken)",
            selection, problem),
        applied(Call::AllReduce, selection));
    EXPECT_EQ("", applied(Call::AllReduce, selection, false));
  }
  EXPECT_EQ("algSelection NVLS_SIMPLE,NVLSTREE_SIMPLE", applied(Call::AllReduce, "nvls", true, 1)) << "a single rank";
  EXPECT_EQ("", applied(Call::AllReduce, "bogus", true, 2, 0)) << "no elements";
}

TEST(CollConfigTest, SymmetricWindowsHaveKernelsForSumsAndAveragesOfFloats) {
  Comm comm(0, 2, 0, {});
  char memory[64];
  Window window;
  window.base = memory;
  window.size = sizeof memory;
  window.flags = NCCL_WIN_COLL_SYMMETRIC;
  comm.windows.add(window);
  ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
  config.algSelection = "symk";
  config.forceAlgSelection = 1;
  auto refused = [&](Call call, ncclDataType_t type, ncclRedOp_t op) {
    Operation operation;
    operation.call = call;
    operation.send = operation.recv = memory;
    operation.count = 1;
    operation.type = type;
    operation.op = op;
    return failureOf([&] { applyCollConfig(config, comm, operation); });
  };
  for (ncclRedOp_t op : {ncclSum, ncclAvg, ncclProd, ncclMax, ncclMin}) {
    bool has = op == ncclSum || op == ncclAvg;
    for (Call call : {Call::AllReduce, Call::ReduceScatter}) {
      EXPECT_EQ(has, refused(call, ncclFloat32, op).empty()) << callName(call) << ", " << op;
      EXPECT_FALSE(refused(call, ncclFloat64, op).empty()) << callName(call) << ", " << op;
    }
    EXPECT_EQ("", refused(Call::AllGather, ncclInt8, op));
  }
}

TEST(CollConfigTest, TheFirstDifferenceIsNamed) {
  Comm comm(0, 2, 0, {});
  auto words = [&](auto&& change) {
    ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
    change(config);
    Operation operation;
    applyCollConfig(config, comm, operation);
    return operation.extras().config;
  };
  ConfigWords none = words([](auto&) {});
  using Difference = std::pair<std::string, std::string>;
  EXPECT_EQ(Difference(), configDifference(none, none));
  EXPECT_EQ(
      Difference("minCTAs 4", "minCTAs unset"), configDifference(words([](auto& c) { c.minCTAs = 4; }), none));
  EXPECT_EQ(
      Difference("maxCTAs unset", "maxCTAs 64"), configDifference(none, words([](auto& c) { c.maxCTAs = 64; })));
  EXPECT_EQ(Difference(), configDifference(none, words([](auto& c) { c.maxCTAs = 65; }))) << "out of range";
  EXPECT_EQ(
      Difference("userProfilerTag 5", "userProfilerTag 6"),
      configDifference(words([](auto& c) { c.userProfilerTag = 5; }), words([](auto& c) { c.userProfilerTag = 6; })));
}

// The words of a peer hold any bits.
TEST(CollConfigTest, AnyWordsCanBeCompared) {
  for (unsigned bit = 0; bit < 192; bit++) {
    ConfigWords words{};
    words[bit / 64] = uint64_t{1} << bit % 64;
    configDifference(words, {});
    configDifference({}, words);
  }
}

}  // namespace
}  // namespace host
