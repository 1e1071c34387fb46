// child.h: children of a test's process.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace host {

/** Runs the body in a child that then ends; one that hangs is ended after 20 s. Returns its process. */
template <class Body>
pid_t inChild(Body&& body) {
  pid_t child = fork();
  if (child != 0) return child;
  signal(SIGALRM, SIG_DFL);
  alarm(20);
  _exit(body());
}

inline int statusOf(pid_t child) {
  int status = -1;
  EXPECT_EQ(child, waitpid(child, &status, 0));
  return status;
}

}  // namespace host
