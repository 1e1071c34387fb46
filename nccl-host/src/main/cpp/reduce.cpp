// reduce.cpp: the fold for 12 datatypes and 6 operators; see reduce.h for its rules.
// Elements are processed in blocks that fit the first-level cache: each rank's block is converted to the fold's type
// and combined in plain loops. build-native.sh compiles this file with -O3, so that GCC vectorises those of the types that
// are folded in themselves, and of ncclBfloat16.

#include "reduce.h"

#include <string.h>

#include <cmath>
#include <type_traits>

#include "types.h"

// A fused multiply-add would round the product of PreMulSum differently on different processors.
#pragma GCC optimize("fp-contract=off")

namespace host {
namespace {

constexpr size_t kBlock = 512;

// Small binary floats: E exponent bits, M mantissa bits. kFinite: no infinity, the largest code is the only NaN (e4m3).
// kSaturates: results never are infinity.
template <class Bits, int E, int M, bool kFinite, bool kSaturates>
struct SmallFloat {
  using Wire = Bits;
  using Acc = float;
  static constexpr int kBias = (1 << (E - 1)) - 1;
  static constexpr uint32_t kExponentMask = (1u << E) - 1;
  static constexpr uint32_t kMantissaMask = (1u << M) - 1;
  static constexpr uint32_t kSign = 1u << (E + M);
  static constexpr uint32_t kInfinity = kExponentMask << M;
  static constexpr uint32_t kNaN = kFinite ? kSign - 1 : kInfinity | (1u << (M - 1));
  static constexpr uint32_t kLargest = kFinite ? kNaN - 1 : kSaturates ? kInfinity - 1 : kInfinity;

  static float bitsToFloat(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }

  static float load(Bits code) {
    uint32_t sign = (code & kSign) ? 0x80000000u : 0;
    uint32_t exponent = (code >> M) & kExponentMask;
    uint32_t mantissa = code & kMantissaMask;
    if (exponent == 0) {
      // A power of two times a small integer is exact in float.
      float magnitude = static_cast<float>(mantissa) * bitsToFloat(static_cast<uint32_t>(127 + 1 - kBias - M) << 23);
      return sign ? -magnitude : magnitude;
    }
    if (kFinite ? (code & (kSign - 1)) == kNaN : exponent == kExponentMask) {
      return bitsToFloat(sign | 0x7f800000u | (kFinite ? 0x400000u : mantissa << (23 - M)));
    }
    return bitsToFloat(sign | (exponent + 127 - kBias) << 23 | mantissa << (23 - M));
  }

  static Bits store(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 31 ? kSign : 0;
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<Bits>(sign | kNaN);
    if (magnitude == 0x7f800000u) return static_cast<Bits>(sign | kLargest);
    int exponent = static_cast<int>(magnitude >> 23) - 127;
    uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    int shift = 23 - M;
    bool subnormal = exponent < 1 - kBias;
    if (subnormal) shift += 1 - kBias - exponent;
    if (shift > 24) return static_cast<Bits>(sign);  // below half of the smallest subnormal
    uint32_t rounded = mantissa >> shift;
    uint32_t rest = mantissa & ((1u << shift) - 1);
    uint32_t half = 1u << (shift - 1);
    if (rest > half || (rest == half && (rounded & 1))) rounded++;
    // The hidden bit, or the carry out of the mantissa, adds one to the exponent field.
    uint32_t code = subnormal ? rounded : (static_cast<uint32_t>(exponent + kBias - 1) << M) + rounded;
    if (code > kLargest) code = kLargest;
    return static_cast<Bits>(sign | code);
  }
};

// The upper half of a float; it has float's exponent range, so rounding works on the bits.
struct Bfloat16 {
  using Wire = uint16_t;
  using Acc = float;
  static float load(uint16_t code) {
    uint32_t bits = static_cast<uint32_t>(code) << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  static uint16_t store(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
    return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
  }
};

// A type that is folded in itself.
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
void loadBlock(typename Codec::Acc* out, const void* input, size_t offset, size_t count) {
  const char* bytes = static_cast<const char*>(input) + offset * sizeof(typename Codec::Wire);
  for (size_t i = 0; i < count; i++) out[i] = loadAt<Codec>(bytes, i);
}

template <class Codec>
void storeBlock(void* output, size_t offset, const typename Codec::Acc* in, size_t count) {
  char* bytes = static_cast<char*>(output) + offset * sizeof(typename Codec::Wire);
  for (size_t i = 0; i < count; i++) {
    typename Codec::Wire element = Codec::store(in[i]);
    memcpy(bytes + i * sizeof element, &element, sizeof element);
  }
}

template <class Codec>
typename Codec::Acc scalarOf(uint64_t bits) {
  typename Codec::Wire scalar;
  memcpy(&scalar, &bits, sizeof scalar);
  return Codec::load(scalar);
}

template <class Codec>
void foldAs(int op, void* dst, const void* const* inputs, int ranks, size_t count, const uint64_t* scalars) {
  using Acc = typename Codec::Acc;
  Acc sum[kBlock];
  for (size_t start = 0; start < count; start += kBlock) {
    size_t block = count - start < kBlock ? count - start : kBlock;
    for (int rank = 0; rank < ranks; rank++) {
      if (rank == 0) loadBlock<Codec>(sum, inputs[rank], start, block);
      const char* bytes = static_cast<const char*>(inputs[rank]) + start * sizeof(typename Codec::Wire);
      // Loads each element where it is combined, which saves a pass over the block.
      auto combine = [&](auto&& with) {
        for (size_t i = 0; i < block; i++) sum[i] = with(sum[i], loadAt<Codec>(bytes, i));
      };
      if (op == kPreMulSum || (op == ncclAvg && std::is_floating_point_v<Acc>)) {
        Acc scalar = op == ncclAvg ? Acc(1) / static_cast<Acc>(ranks) : scalarOf<Codec>(scalars[rank]);
        if (rank == 0) {
          for (size_t i = 0; i < block; i++) sum[i] = multiply(sum[i], scalar);
        } else {
          combine([scalar](Acc a, Acc b) { return add(a, multiply(b, scalar)); });
        }
        continue;
      }
      if (rank == 0) continue;
      switch (op) {
        case ncclProd: combine([](Acc a, Acc b) { return multiply(a, b); }); break;
        case ncclMax: combine([](Acc a, Acc b) { return larger(a, b); }); break;
        case ncclMin: combine([](Acc a, Acc b) { return smaller(a, b); }); break;
        default: combine([](Acc a, Acc b) { return add(a, b); });
      }
    }
    if constexpr (std::is_integral_v<Acc>) {
      if (op == ncclAvg) {
        for (size_t i = 0; i < block; i++) sum[i] = quotient(sum[i], ranks);
      }
    }
    storeBlock<Codec>(dst, start, sum, block);
  }
}

}  // namespace

void fold(
    ncclDataType_t type, int op, void* dst, const void* const* inputs, int ranks, size_t count,
    const uint64_t* scalars) {
  switch (type) {
    case ncclInt8: return foldAs<Plain<int8_t>>(op, dst, inputs, ranks, count, scalars);
    case ncclUint8: return foldAs<Plain<uint8_t>>(op, dst, inputs, ranks, count, scalars);
    case ncclInt32: return foldAs<Plain<int32_t>>(op, dst, inputs, ranks, count, scalars);
    case ncclUint32: return foldAs<Plain<uint32_t>>(op, dst, inputs, ranks, count, scalars);
    case ncclInt64: return foldAs<Plain<int64_t>>(op, dst, inputs, ranks, count, scalars);
    case ncclUint64: return foldAs<Plain<uint64_t>>(op, dst, inputs, ranks, count, scalars);
    case ncclFloat16: return foldAs<Half>(op, dst, inputs, ranks, count, scalars);
    case ncclFloat32: return foldAs<Plain<float>>(op, dst, inputs, ranks, count, scalars);
    case ncclFloat64: return foldAs<Plain<double>>(op, dst, inputs, ranks, count, scalars);
    case ncclBfloat16: return foldAs<Bfloat16>(op, dst, inputs, ranks, count, scalars);
    case ncclFloat8e4m3: return foldAs<Float8e4m3>(op, dst, inputs, ranks, count, scalars);
    case ncclFloat8e5m2: return foldAs<Float8e5m2>(op, dst, inputs, ranks, count, scalars);
    default: return;
  }
}

}  // namespace host
