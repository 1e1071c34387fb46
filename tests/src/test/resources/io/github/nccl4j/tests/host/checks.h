// The programs end at the first call that does not do what it should, and say which.
#ifndef CHECKS_H_
#define CHECKS_H_

#include <nccl.h>
#include <unistd.h>

#include <cstdio>

inline void require(bool right, int line, const char* call) {
  if (right) return;
  printf("line %d: %s: %s\n", line, call, ncclGetLastError(nullptr));
  fflush(stdout);
  _exit(1);
}
#define OK(call) require((call) == ncclSuccess, __LINE__, #call)

#endif
