// reduce.cpp: the fold for 12 datatypes and 6 operators; see reduce.h for its rules.
// Elements are processed in blocks that fit the first-level cache, in plain loops: build-native.sh compiles this file with -O3, so
// that GCC vectorises them. Small floats are converted to float for each step.

#include "protocol/reduce.h"

#include <string.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/types.h"

// Only multiplyAdd fuses: the results must be equal on all processors.
#pragma GCC optimize("fp-contract=off")

namespace host {
namespace {

constexpr size_t kBlock = 512;

uint32_t bitsOf(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

float floatOf(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/** a < b ? then : otherwise, without a branch. Both must be below 2^31. */
uint32_t ifLess(uint32_t a, uint32_t b, uint32_t then, uint32_t otherwise) {
  uint32_t mask = 0u - ((a - b) >> 31);
  return (then & mask) | (otherwise & ~mask);
}

// Small binary floats: E exponent bits, M mantissa bits. kFinite: no infinity, the largest code is the only NaN (e4m3).
// kSaturates: results never are infinity. Conversions compute all cases and select one: GCC vectorises no loop with branches.
template <class Bits, int E, int M, bool kFinite, bool kSaturates>
struct SmallFloat {
  using Wire = Bits;
  using Acc = float;
  static constexpr int kShift = 23 - M;
  static constexpr uint32_t kSign = 1u << (E + M);
  static constexpr uint32_t kInfinity = kSign - (1u << M);
  static constexpr uint32_t kNaN = kFinite ? kSign - 1 : kInfinity | (1u << (M - 1));
  static constexpr uint32_t kLargest = kFinite ? kNaN - 1 : kSaturates ? kInfinity - 1 : kInfinity;
  static constexpr uint32_t kFirstNotFinite = kFinite ? kNaN : kInfinity;
  // Difference between the exponents of the same number in a float and here.
  static constexpr uint32_t kBias = (128u - (1u << (E - 1))) << 23;
  static constexpr uint32_t kSmallestNormal = kBias + (1u << 23);  // as a float
  // A float whose last bit is worth as much as the last bit of a subnormal number here.
  static constexpr uint32_t kSubnormalUnit = kSmallestNormal + (static_cast<uint32_t>(kShift) << 23);

  static float load(uint32_t code) {
    uint32_t magnitude = code & (kSign - 1);
    uint32_t shifted = magnitude << kShift;
    float subnormal = floatOf(shifted + kSmallestNormal) - floatOf(kSmallestNormal);
    uint32_t bits = ifLess(magnitude, kFirstNotFinite, shifted + kBias, shifted | 0x7f800000u);
    bits = ifLess(magnitude, 1u << M, bitsOf(subnormal), bits);
    return floatOf(bits | (code & kSign) << (31 - E - M));
  }

  /** Rounds to nearest even. */
  static uint32_t store(float value) {
    uint32_t bits = bitsOf(value);
    uint32_t magnitude = bits & 0x7fffffffu;
    // A carry out of the mantissa adds one to the exponent.
    uint32_t half = (1u << (kShift - 1)) - 1 + (magnitude >> kShift & 1);
    uint32_t normal = (magnitude - kBias + half) >> kShift;
    uint32_t subnormal = bitsOf(floatOf(magnitude) + floatOf(kSubnormalUnit)) - kSubnormalUnit;
    uint32_t code = ifLess(magnitude, kSmallestNormal, subnormal, ifLess(normal, kLargest, normal, kLargest));
    code = ifLess(0x7f800000u, magnitude, kNaN, code);
    return code | (bits >> 31) << (E + M);
  }
};

// The upper half of a float; it has float's exponent range, so rounding works on the bits.
struct Bfloat16 {
  using Wire = uint16_t;
  using Acc = float;
  static float load(uint32_t code) { return floatOf(code << 16); }
  static uint32_t store(float value) {
    uint32_t bits = bitsOf(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
    return ifLess(0x7f800000u, bits & 0x7fffffffu, bits >> 16 | 0x40u, rounded);
  }
};

// A type with arithmetic of its own.
template <class T>
struct Plain {
  using Wire = T;
  using Acc = T;
  static T load(T value) { return value; }
  static T store(T value) { return value; }
};

using Half = SmallFloat<uint16_t, 5, 10, false, false>;
using Float8e4m3 = SmallFloat<uint8_t, 4, 3, true, true>;
using Float8e5m2 = SmallFloat<uint8_t, 5, 2, false, true>;

template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
    return static_cast<T>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
  } else {
    return a * b;
  }
}

/** Truncated toward zero. */
template <class T>
T quotient(T sum, int ranks) {
  if constexpr (std::is_signed_v<T>) {
    return static_cast<T>(sum / static_cast<int64_t>(ranks));
  } else {
    return static_cast<T>(sum / static_cast<uint64_t>(ranks));
  }
}

template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return b > a || a != a || (b == a && std::signbit(a)) ? b : a;
  } else {
    return b > a ? b : a;
  }
}

template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return b < a || a != a || (b == a && std::signbit(b)) ? b : a;
  } else {
    return b < a ? b : a;
  }
}

/** Loads an element from any address: rings and the buffers of users need not be aligned. */
template <class Codec>
typename Codec::Acc loadAt(const char* bytes, size_t index) {
  typename Codec::Wire element;
  memcpy(&element, bytes + index * sizeof element, sizeof element);
  return Codec::load(element);
}

template <class Codec>
typename Codec::Wire stored(typename Codec::Acc value) {
  return static_cast<typename Codec::Wire>(Codec::store(value));
}

/** The nearest value of the type of the elements. */
template <class Codec>
typename Codec::Acc rounded(typename Codec::Acc value) {
  return Codec::load(Codec::store(value));
}

/** As on a GPU: without rounding between the two steps, except for 8-bit floats, which have no such instruction. */
template <class Codec>
typename Codec::Acc multiplyAdd(typename Codec::Acc value, typename Codec::Acc scalar, typename Codec::Acc sum) {
  if constexpr (std::is_integral_v<typename Codec::Acc>) {
    return add(sum, multiply(value, scalar));
  } else if constexpr (sizeof(typename Codec::Wire) == 1) {
    return sum + rounded<Codec>(value * scalar);
  } else {
    return std::fma(value, scalar, sum);
  }
}

/** Not inline: GCC copies a block of limited size with `rep movs`, which takes 20 ns longer for a few elements. */
__attribute__((noinline)) void copy(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }

template <class Codec>
void foldAs(const Reduction& reduction, size_t begin, size_t end, void* dst) {
  using Acc = typename Codec::Acc;
  using Wire = typename Codec::Wire;
  const int op = reduction.op, ranks = reduction.ranks;
  const bool multiplies = op == kPreMulSum || (op == ncclAvg && std::is_floating_point_v<Acc>);
  Wire sum[kBlock];
  for (size_t start = begin; start < end; start += kBlock) {
    size_t block = std::min(end - start, kBlock);
    for (int i = 1, rank = reduction.last; i <= ranks; i++) {
      rank = rank + 1 < ranks ? rank + 1 : 0;
      const char* input = static_cast<const char*>(reduction.inputs[rank]) + start * sizeof(Wire);
      auto combine = [&](auto&& with) {
        for (size_t at = 0; at < block; at++) {
          sum[at] = stored<Codec>(with(Codec::load(sum[at]), loadAt<Codec>(input, at)));
        }
      };
      if (i == 1) copy(sum, input, block * sizeof(Wire));
      if (multiplies) {
        Acc scalar = op == ncclAvg ? rounded<Codec>(Acc(1) / static_cast<Acc>(ranks))
                                   : loadAt<Codec>(reinterpret_cast<const char*>(&reduction.scalars[rank]), 0);
        if (i == 1) {
          combine([scalar](Acc, Acc b) { return multiply(b, scalar); });
        } else {
          combine([scalar](Acc a, Acc b) { return multiplyAdd<Codec>(b, scalar, a); });
        }
        continue;
      }
      if (i == 1) continue;
      switch (op) {
        case ncclProd: combine([](Acc a, Acc b) { return multiply(a, b); }); break;
        case ncclMax: combine([](Acc a, Acc b) { return larger(a, b); }); break;
        case ncclMin: combine([](Acc a, Acc b) { return smaller(a, b); }); break;
        default: combine([](Acc a, Acc b) { return add(a, b); });
      }
    }
    if constexpr (std::is_integral_v<Acc>) {
      if (op == ncclAvg) {
        for (size_t at = 0; at < block; at++) sum[at] = quotient(sum[at], ranks);
      }
    }
    copy(static_cast<char*>(dst) + start * sizeof(Wire), sum, block * sizeof(Wire));
  }
}

void foldAny(const Reduction& reduction, size_t begin, size_t end, void* dst) {
  switch (reduction.type) {
    case ncclInt8: return foldAs<Plain<int8_t>>(reduction, begin, end, dst);
    case ncclUint8: return foldAs<Plain<uint8_t>>(reduction, begin, end, dst);
    case ncclInt32: return foldAs<Plain<int32_t>>(reduction, begin, end, dst);
    case ncclUint32: return foldAs<Plain<uint32_t>>(reduction, begin, end, dst);
    case ncclInt64: return foldAs<Plain<int64_t>>(reduction, begin, end, dst);
    case ncclUint64: return foldAs<Plain<uint64_t>>(reduction, begin, end, dst);
    case ncclFloat16: return foldAs<Half>(reduction, begin, end, dst);
    case ncclFloat32: return foldAs<Plain<float>>(reduction, begin, end, dst);
    case ncclFloat64: return foldAs<Plain<double>>(reduction, begin, end, dst);
    case ncclBfloat16: return foldAs<Bfloat16>(reduction, begin, end, dst);
    case ncclFloat8e4m3: return foldAs<Float8e4m3>(reduction, begin, end, dst);
    case ncclFloat8e5m2: return foldAs<Float8e5m2>(reduction, begin, end, dst);
    default: return;
  }
}

#ifdef __x86_64__
/** About twice as fast. All that it calls is compiled once more, with these instructions. */
__attribute__((target("avx2,fma"), flatten)) void foldWithAvx2(
    const Reduction& reduction, size_t begin, size_t end, void* dst) {
  foldAny(reduction, begin, end, dst);
}

const bool hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif

}  // namespace

void fold(const Reduction& reduction, size_t begin, size_t end, void* dst) {
#ifdef __x86_64__
  if (hasAvx2) return foldWithAvx2(reduction, begin, end, dst);
#endif
  foldAny(reduction, begin, end, dst);
}

void foldPortably(const Reduction& reduction, size_t begin, size_t end, void* dst) { foldAny(reduction, begin, end, dst); }

}  // namespace host
