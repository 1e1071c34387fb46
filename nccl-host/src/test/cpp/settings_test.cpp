// settings_test.cpp: numbers of the environment, and the faults that it lists.

#include "base/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "connected.h"

namespace host {
namespace {

/** Sets a variable for a scope. */
class Environment {
 public:
  Environment(const char* key, const char* value) : key_(key) { setenv(key, value, 1); }
  ~Environment() { unsetenv(key_); }
  Environment(const Environment&) = delete;

 private:
  const char* key_;
};

std::string valueOf(const Setting& setting, const char* text) {
  Environment environment(setting.key, text);
  std::string value;
  std::string failure = failureOf([&] { value = format("%g", setting.value()); });
  return failure.empty() ? value : failure;
}

TEST(SettingsTest, NumbersOfSeconds) {
  EXPECT_EQ("60", valueOf(initTimeoutSetting, ""));
  EXPECT_EQ("1.5", valueOf(initTimeoutSetting, "1.5"));
  EXPECT_EQ("0.25", valueOf(operationTimeoutSetting, "2.5e-1"));
  EXPECT_EQ("0", valueOf(operationTimeoutSetting, "0"));
  for (const char* invalid : {"0", "-1", "nan", "inf", "1e999", "1,5", "2 s", "x", " "}) {
    EXPECT_EQ(
        format("4: NCCL4J_HOST_INIT_TIMEOUT must be a number of seconds above 0: '%s'", invalid),
        valueOf(initTimeoutSetting, invalid));
  }
  EXPECT_EQ(
      "4: NCCL4J_HOST_OP_TIMEOUT must be a number of seconds, or 0 for no limit: '-1'",
      valueOf(operationTimeoutSetting, "-1"));
}

TEST(SettingsTest, Switches) {
  EXPECT_EQ("1", valueOf(sharedMemorySetting, ""));
  EXPECT_EQ("0", valueOf(sharedMemorySetting, "0"));
  EXPECT_EQ("4: NCCL4J_HOST_SHARED_MEMORY must be 0 or 1: '2'", valueOf(sharedMemorySetting, "2"));
  EXPECT_EQ("4: NCCL4J_HOST_SINGLE_COPY must be 0 or 1: '2'", valueOf(singleCopySetting, "2"));
  EXPECT_EQ("10", valueOf(alltoallvSetting, "10"));
  EXPECT_EQ("4: NCCL4J_HOST_ALLTOALLV must be 10 or 11: '9'", valueOf(alltoallvSetting, "9"));
  EXPECT_EQ("1", valueOf(singleCopySetting, ""));
}

TEST(SettingsTest, CommunicatorsCopyBetweenProcessesUnlessForbidden) {
  for (bool permitted : {true, false}) {
    Environment environment(singleCopySetting.key, permitted ? "1" : "0");
    ncclComm_t comms[2];
    ASSERT_EQ(ncclSuccess, ncclCommInitAll(comms, 2, nullptr));
    EXPECT_EQ(permitted, findComm(comms[0])->peers[1].data->offers());
    for (ncclComm_t comm : comms) EXPECT_EQ(ncclSuccess, ncclCommAbort(comm));
  }
}

std::unique_ptr<Faults> faultsOf(const char* text, int rank = 0) {
  Environment environment("NCCL4J_HOST_FAULT", text);
  return Faults::fromEnvironment(rank);
}

std::string refusalOf(const char* text) {
  return failureOf([&] { faultsOf(text); });
}

TEST(FaultsTest, ConditionsSelectTheOperation) {
  auto faults = faultsOf(" delay=1.5 , rank=2 ; drop,rank=1,op=3; result=6,call=Broadcast ;; hang,op=all,rank=9", 2);
  auto due = faults->at(Call::AllReduce);
  ASSERT_EQ(1u, due.size());
  EXPECT_EQ(FaultKind::Delay, due[0].kind);
  EXPECT_EQ(1.5, due[0].seconds);
  due = faults->at(Call::Broadcast);
  ASSERT_EQ(1u, due.size());
  EXPECT_EQ(FaultKind::Result, due[0].kind);
  EXPECT_EQ(ncclRemoteError, due[0].code);
  EXPECT_TRUE(faults->at(Call::Broadcast).empty());
}

TEST(FaultsTest, NumbersAreCountedPerCommunicator) {
  auto faults = faultsOf("drop,op=3");
  EXPECT_TRUE(faults->at(Call::Send).empty());
  EXPECT_TRUE(faults->at(Call::Recv).empty());
  EXPECT_EQ(1u, faults->at(Call::Recv).size());
  EXPECT_TRUE(faults->at(Call::Recv).empty());
  EXPECT_EQ(1u, faultsOf("kill,op=0")->atCreation().size());
  auto always = faultsOf("hang,op=all");
  for (int i = 0; i < 3; i++) EXPECT_EQ(1u, always->at(Call::Gather).size());
  EXPECT_EQ(nullptr, Faults::fromEnvironment(0));
}

TEST(FaultsTest, WhatIsNotUnderstoodIsRefused) {
  const std::pair<const char*, const char*> refused[] = {
      {"sleep", "'sleep' is not understood, expected delay=SECONDS, hang, result=CODE, drop or kill"},
      {"hang=1", "'hang=1' is not understood, expected delay=SECONDS, hang, result=CODE, drop or kill"},
      {"delay", "'delay' is not understood, expected a number of seconds"},
      {"delay=-1", "'delay=-1' is not understood, expected a number of seconds"},
      {"delay=nan", "'delay=nan' is not understood, expected a number of seconds"},
      {"result=0", "'result=0' is not understood, expected a number from 1 to 8"},
      {"result=7", "'result=7' is not understood, expected a code that is an error; hang stays in progress"},
      {"result=99999999999999999999", "'result=99999999999999999999' is not understood, expected a number from 1 to 8"},
      {"drop,rank=-1", "'rank=-1' is not understood, expected a number from 0 to 2147483647"},
      {"drop,rank=", "'rank=' is not understood, expected a number from 0 to 2147483647"},
      {"drop,op=1x", "'op=1x' is not understood, expected a number from 0 to 9223372036854775807"},
      {"drop,call=Nothing", "'call=Nothing' is not understood, expected the name of a call, such as AllReduce or CommSplit"},
      {"drop,", "'' is not understood, expected rank=N, op=K, op=all or call=NAME"},
      {"drop,op=0,call=Send", "'drop,op=0,call=Send' has op=0, the making of a communicator, and a call"},
  };
  for (const auto& [text, reason] : refused) {
    EXPECT_EQ(std::string("4: NCCL4J_HOST_FAULT : ") + reason, refusalOf(text));
  }
}

}  // namespace
}  // namespace host
