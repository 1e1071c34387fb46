// ofthread_test.cpp: objects that each thread has of its own.

#include "base/ofthread.h"

#include <gtest/gtest.h>


#include "testthread.h"

namespace host {
namespace {

int made = 0;
int ended = 0;

struct Object {
  Object() { made++; }
  ~Object() { ended++; }
};

/** Uses the thread's object when the thread ends. */
struct Late {
  bool used = false;
  ~Late() {
    ofThread<Object>();
    delete OfThread<Object>::object;
  }
};

TEST(OfThread, EachThreadHasOneUntilItsEnd) {
  made = ended = 0;
  Object* own = &ofThread<Object>();
  EXPECT_EQ(own, &ofThread<Object>());
  TestThread([&] {
    EXPECT_NE(own, &ofThread<Object>());
    EXPECT_EQ(2, made);
  }).join();
  EXPECT_EQ(2, made);
  EXPECT_EQ(1, ended);
}

TEST(OfThread, AUseAfterTheEndMakesAnother) {
  made = ended = 0;
  TestThread([] {
    // Made before the object, so it ends after it.
    thread_local Late late;
    late.used = true;
    ofThread<Object>();
  }).join();
  EXPECT_EQ(2, made);
  EXPECT_EQ(2, ended);
}

}  // namespace
}  // namespace host
