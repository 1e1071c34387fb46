/* The share of its core that a thread gets, for CoreShare.java. */
#include <stdint.h>

#include <chrono>

namespace {

constexpr int kTimes = 3000;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

extern "C" double Java_io_github_nccl4j_benchmarks_CoreShare_additionsInAMultiplication(void*, void*) {
  uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0;
  uint64_t product = 3;
  double start = now();
  for (int i = 0; i < kTimes; i++) {
    a++, b++, c++, d++, e++, f++;
    /* The compiler must assume that this statement changes all variables, and so keeps each addition in its place. */
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  }
  double added = now();
  for (int i = 0; i < kTimes; i++) {
    product *= product;
    __asm__ volatile("" : "+r"(product));
  }
  double multiplied = now();
  return 6 * (multiplied - added) / (added - start);
}
