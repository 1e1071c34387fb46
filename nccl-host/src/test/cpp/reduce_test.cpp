// reduce_test.cpp: every type and operator against an oracle that works on one element at a time, in other ways than
// reduce.cpp: small floats are tables of values, and integers are numbers of 128 bits.

#include "protocol/reduce.h"

#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"

namespace host {
namespace {

using Integer = __int128;

/** A binary float with few bits, as the table of its values. */
class SmallFloat {
 public:
  SmallFloat(int exponentBits, int mantissaBits, bool infinities, bool saturates)
      : bits_(1 + exponentBits + mantissaBits), saturates_(saturates) {
    int bias = (1 << (exponentBits - 1)) - 1;
    for (uint32_t code = 0; code < 1u << bits_; code++) {
      bool negative = code >> (bits_ - 1) != 0;
      int exponent = static_cast<int>(code >> mantissaBits) & ((1 << exponentBits) - 1);
      int mantissa = static_cast<int>(code) & ((1 << mantissaBits) - 1);
      bool top = exponent == (1 << exponentBits) - 1;
      float value;
      if (top && infinities) {
        value = mantissa == 0 ? HUGE_VALF : NAN;
      } else if (top && mantissa == (1 << mantissaBits) - 1) {
        value = NAN;
      } else if (exponent == 0) {
        value = ldexpf(static_cast<float>(mantissa), 1 - bias - mantissaBits);
      } else {
        value = ldexpf(static_cast<float>(mantissa + (1 << mantissaBits)), exponent - bias - mantissaBits);
      }
      values_.push_back(negative ? -value : value);
      if (!negative && isfinite(value)) largest_ = code;
    }
  }

  float load(uint32_t code) const { return values_[code]; }

  /** The nearest code; of two, the even one. */
  uint32_t store(float value) const {
    uint32_t sign = signbit(value) ? 1u << (bits_ - 1) : 0;
    double magnitude = fabs(static_cast<double>(value));
    // Rounds to infinity from half a step above the largest number.
    double last = values_[largest_];
    double limit = last + (last - static_cast<double>(values_[largest_ - 1])) / 2;
    if (magnitude >= limit) return sign | (saturates_ ? largest_ : largest_ + 1);
    uint32_t above = static_cast<uint32_t>(
        std::lower_bound(values_.begin(), values_.begin() + largest_, static_cast<float>(magnitude)) - values_.begin());
    if (above == 0) return sign;
    double up = static_cast<double>(values_[above]) - magnitude;
    double down = magnitude - static_cast<double>(values_[above - 1]);
    bool takesAbove = up < down || (up == down && above % 2 == 0);
    return sign | (takesAbove ? above : above - 1);
  }

  bool isNaN(uint32_t code) const { return isnan(values_[code]); }

 private:
  const int bits_;
  const bool saturates_;
  std::vector<float> values_;  // by code
  uint32_t largest_ = 0;
};

const SmallFloat& smallFloat(ncclDataType_t type) {
  static const SmallFloat half(5, 10, true, false), bfloat(8, 7, true, false), e4m3(4, 3, false, true),
      e5m2(5, 2, true, true);
  return type == ncclFloat16    ? half
         : type == ncclBfloat16 ? bfloat
         : type == ncclFloat8e4m3 ? e4m3
                                  : e5m2;
}

enum class Kind { Signed, Unsigned, Float, Double, Small };

Kind kindOf(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclInt32:
    case ncclInt64: return Kind::Signed;
    case ncclUint8:
    case ncclUint32:
    case ncclUint64: return Kind::Unsigned;
    case ncclFloat32: return Kind::Float;
    case ncclFloat64: return Kind::Double;
    default: return Kind::Small;
  }
}

template <class T>
T bitCast(uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <class T>
uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

/** One step of a fold of floats, in their own type. */
template <class T>
T combined(int op, T a, T b) {
  switch (op) {
    case ncclProd: return a * b;
    case ncclMax: return isnan(a) ? b : isnan(b) ? a : a == b ? (signbit(a) ? b : a) : std::max(a, b);
    case ncclMin: return isnan(a) ? b : isnan(b) ? a : a == b ? (signbit(a) ? a : b) : std::min(a, b);
    default: return a + b;
  }
}

/** The ranks in the order of the fold. */
std::vector<size_t> ring(size_t ranks, size_t last) {
  std::vector<size_t> order;
  for (size_t i = 1; i <= ranks; i++) order.push_back((last + i) % ranks);
  return order;
}

/** `round` rounds to the type of the elements. */
template <class T, class Round>
T foldFloats(
    int op, const std::vector<T>& inputs, const std::vector<T>& scalars, size_t last, bool fuses, Round&& round) {
  T sum = 0;
  bool first = true;
  for (size_t rank : ring(inputs.size(), last)) {
    T input = inputs[rank];
    if (op == ncclAvg || op == kPreMulSum) {
      T scalar = op == ncclAvg ? round(T(1) / static_cast<T>(inputs.size())) : scalars[rank];
      T product = round(input * scalar);
      sum = first ? product : round(fuses ? std::fma(input, scalar, sum) : sum + product);
    } else {
      sum = first ? input : round(combined(op, sum, input));
    }
    first = false;
  }
  return sum;
}

/** A number as it wraps in a type of this size. */
Integer wrapped(Integer value, size_t bytes, bool isSigned) {
  Integer range = Integer(1) << (8 * bytes);
  value = ((value % range) + range) % range;
  return isSigned && value >= range / 2 ? value - range : value;
}

/** Modulo 2^128, which no type here tells from the product. */
Integer product(Integer a, Integer b) {
  using Wraps = unsigned __int128;
  return static_cast<Integer>(static_cast<Wraps>(a) * static_cast<Wraps>(b));
}

uint64_t expected(
    ncclDataType_t type, int op, const std::vector<uint64_t>& inputs, const std::vector<uint64_t>& scalars, size_t last) {
  size_t bytes = typeSize(type);
  auto converted = [](const std::vector<uint64_t>& all, auto&& convert) {
    std::vector<decltype(convert(0))> values;
    for (uint64_t one : all) values.push_back(convert(one));
    return values;
  };
  auto exact = [](auto value) { return value; };
  switch (kindOf(type)) {
    case Kind::Float:
      return bitsOf(foldFloats(op, converted(inputs, bitCast<float>), converted(scalars, bitCast<float>), last, true, exact));
    case Kind::Double:
      return bitsOf(foldFloats(op, converted(inputs, bitCast<double>), converted(scalars, bitCast<double>), last, true, exact));
    case Kind::Small: {
      const SmallFloat& small = smallFloat(type);
      auto load = [&](uint64_t code) { return small.load(static_cast<uint32_t>(code)); };
      auto round = [&](float value) { return isnan(value) ? value : load(small.store(value)); };
      float sum = foldFloats(op, converted(inputs, load), converted(scalars, load), last, bytes > 1, round);
      // Of one rank, infinity of an 8-bit float stays.
      if (inputs.size() == 1 && op != ncclAvg && op != kPreMulSum) return isnan(sum) ? UINT64_MAX : inputs[0];
      return isnan(sum) ? UINT64_MAX : small.store(sum);
    }
    default: {
      bool isSigned = kindOf(type) == Kind::Signed;
      auto number = [&](uint64_t bits) { return wrapped(static_cast<Integer>(bits), bytes, isSigned); };
      Integer sum = 0;
      bool first = true;
      for (size_t rank : ring(inputs.size(), last)) {
        Integer input = number(inputs[rank]);
        if (op == kPreMulSum) input = wrapped(product(input, number(scalars[rank])), bytes, isSigned);
        if (std::exchange(first, false)) {
          sum = input;
        } else if (op == ncclProd) {
          sum = product(sum, input);
        } else if (op == ncclMax) {
          sum = std::max(sum, input);
        } else if (op == ncclMin) {
          sum = std::min(sum, input);
        } else {
          sum = sum + input;
        }
        sum = wrapped(sum, bytes, isSigned);
      }
      if (op == ncclAvg) sum /= static_cast<Integer>(inputs.size());
      return static_cast<uint64_t>(wrapped(sum, bytes, false));
    }
  }
}

bool isNaN(ncclDataType_t type, uint64_t bits) {
  switch (kindOf(type)) {
    case Kind::Float: return isnan(bitCast<float>(bits));
    case Kind::Double: return isnan(bitCast<double>(bits));
    case Kind::Small: return bits == UINT64_MAX || smallFloat(type).isNaN(static_cast<uint32_t>(bits));
    default: return false;
  }
}

/** Values at which something happens: limits, zeros, infinities, NaN, subnormal numbers, and their neighbours. */
std::vector<uint64_t> specialValues(ncclDataType_t type) {
  std::vector<uint64_t> values;
  switch (kindOf(type)) {
    case Kind::Float:
      for (float value :
           {0.0f, 1.0f, 3.0f, 0.1f, 1e30f, HUGE_VALF, NAN, std::numeric_limits<float>::max(),
            std::numeric_limits<float>::min(), std::numeric_limits<float>::denorm_min(), 16777217.0f}) {
        values.push_back(bitsOf(value));
        values.push_back(bitsOf(-value));
      }
      break;
    case Kind::Double:
      for (double value :
           {0.0, 1.0, 3.0, 0.1, 1e300, HUGE_VAL, static_cast<double>(NAN), std::numeric_limits<double>::max(),
            std::numeric_limits<double>::min(), std::numeric_limits<double>::denorm_min(), 9007199254740993.0}) {
        values.push_back(bitsOf(value));
        values.push_back(bitsOf(-value));
      }
      break;
    default: {
      size_t bits = 8 * typeSize(type);
      for (size_t at = 0; at < bits; at++) {
        uint64_t power = uint64_t{1} << at;
        for (uint64_t value : {power - 1, power, power + 1, ~power, ~power + 1}) {
          values.push_back(bits == 64 ? value : value & ((uint64_t{1} << bits) - 1));
        }
      }
    }
  }
  return values;
}

using Case = std::tuple<int, int>;

class ReduceTest : public testing::TestWithParam<Case> {
 protected:
  const ncclDataType_t type = static_cast<ncclDataType_t>(std::get<0>(GetParam()));
  const int op = std::get<1>(GetParam());
  const size_t element = typeSize(type);

  /** Compares the fold of some elements of each rank with the oracle, for two ranks as the last one. */
  void check(const std::vector<std::vector<uint64_t>>& byRank, const std::vector<uint64_t>& scalars, size_t shift = 0) {
    check(byRank, scalars, shift, 0);
    check(byRank, scalars, shift, byRank.size() / 2);
  }

  void check(
      const std::vector<std::vector<uint64_t>>& byRank, const std::vector<uint64_t>& scalars, size_t shift, size_t last) {
    size_t count = byRank.front().size();
    std::vector<std::vector<char>> bytes;
    std::vector<const void*> inputs;
    for (const std::vector<uint64_t>& values : byRank) {
      // Rings give elements at any address.
      bytes.emplace_back(count * element + shift);
      for (size_t i = 0; i < count; i++) memcpy(bytes.back().data() + shift + i * element, &values[i], element);
    }
    for (const std::vector<char>& one : bytes) inputs.push_back(one.data() + shift);
    Reduction reduction{type, op, static_cast<int>(byRank.size()), static_cast<int>(last), inputs.data(), scalars.data()};
    // The first element and the last stay as they are.
    std::vector<char> out(count * element, '$'), portable = out;
    fold(reduction, 1, count - 1, out.data());
    foldPortably(reduction, 1, count - 1, portable.data());
    for (size_t i = 0; i < count; i++) {
      std::vector<uint64_t> elements;
      for (const std::vector<uint64_t>& values : byRank) elements.push_back(values[i]);
      bool stays = i == 0 || i == count - 1;
      uint64_t wanted = stays ? 0x2424242424242424u >> (64 - 8 * element) : expected(type, op, elements, scalars, last);
      for (const std::vector<char>* results : {&out, &portable}) {
        uint64_t result = 0;
        memcpy(&result, results->data() + i * element, element);
        if (!stays && isNaN(type, wanted)) {
          ASSERT_TRUE(isNaN(type, result)) << "element " << i << std::hex << ": " << result;
        } else {
          ASSERT_EQ(wanted, result) << "element " << i << " of " << testing::PrintToString(elements);
        }
      }
    }
  }

  uint64_t scalar(double value) const {
    switch (kindOf(type)) {
      case Kind::Float: return bitsOf(static_cast<float>(value));
      case Kind::Double: return bitsOf(value);
      case Kind::Small: return smallFloat(type).store(static_cast<float>(value));
      default: return static_cast<uint64_t>(static_cast<int64_t>(value)) & (UINT64_MAX >> (64 - 8 * element));
    }
  }
};

TEST_P(ReduceTest, PairsOfSpecialValues) {
  std::vector<uint64_t> special = specialValues(type);
  std::vector<std::vector<uint64_t>> byRank(2);
  for (uint64_t one : special) {
    for (uint64_t other : special) {
      byRank[0].push_back(one);
      byRank[1].push_back(other);
    }
  }
  check(byRank, {scalar(3), scalar(-2)});
}

TEST_P(ReduceTest, AnyBitsOfSeveralRanks) {
  std::mt19937_64 random(static_cast<uint64_t>(std::get<0>(GetParam()) * 10 + op));
  for (size_t ranks : {1, 3, 5, 8}) {
    std::vector<std::vector<uint64_t>> byRank(ranks);
    std::vector<uint64_t> scalars;
    for (std::vector<uint64_t>& values : byRank) {
      for (int i = 0; i < 1027; i++) values.push_back(random() >> (64 - 8 * element));
      scalars.push_back(scalar(static_cast<double>(random() % 7) - 3));
    }
    check(byRank, scalars, ranks % 2);
  }
}

TEST_P(ReduceTest, EveryElementOfTypesOfOneOrTwoBytes) {
  if (element > 2) return;
  std::vector<std::vector<uint64_t>> byRank(2);
  for (uint64_t bits = 0; bits >> (8 * element) == 0; bits++) {
    byRank[0].push_back(bits);
    byRank[1].push_back(bits ^ 0x5a);
  }
  check(byRank, {scalar(3), scalar(-2)});
  byRank.resize(1);
  check(byRank, {scalar(3)});
}

// The result may be one of the inputs.
TEST_P(ReduceTest, InPlace) {
  std::vector<char> one(1000 * element, 1), other(one.size(), 2), out(one.size());
  const void* inputs[] = {one.data(), other.data()};
  uint64_t scalars[] = {scalar(1), scalar(2)};
  Reduction reduction{type, op, 2, 0, inputs, scalars};
  fold(reduction, 0, 1000, out.data());
  fold(reduction, 0, 1000, other.data());
  EXPECT_EQ(out, other);
}

INSTANTIATE_TEST_SUITE_P(
    TypesAndOperators, ReduceTest,
    testing::Combine(testing::Range(0, static_cast<int>(ncclNumTypes)), testing::Range(0, kPreMulSum + 1)),
    [](const auto& info) {
      return std::string(typeName(std::get<0>(info.param))).substr(4) + opName(std::get<1>(info.param));
    });

}  // namespace
}  // namespace host
