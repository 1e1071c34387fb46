// exchange_test.cpp: chunks, and the order in which a reduction folds them.

#include "protocol/exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace host {
namespace {

Operation sum(Call call, size_t count, ncclDataType_t type = ncclFloat32) {
  Operation operation;
  operation.call = call;
  operation.count = count;
  operation.type = type;
  operation.op = ncclSum;
  return operation;
}

std::vector<size_t> starts(const Operation& operation, size_t chunks) {
  std::vector<size_t> all;
  for (size_t chunk = 0; chunk <= chunks; chunk++) all.push_back(chunkStart(operation, chunk, chunks));
  return all;
}

TEST(ChunkTest, HasAMultipleOf16Bytes) {
  EXPECT_EQ((std::vector<size_t>{0, 16, 32, 40}), starts(sum(Call::AllReduce, 10), 3));
  EXPECT_EQ((std::vector<size_t>{0, 48, 96, 144}), starts(sum(Call::AllReduce, 36), 3));
  EXPECT_EQ((std::vector<size_t>{0, 64, 128, 148}), starts(sum(Call::AllReduce, 37), 3));
  EXPECT_EQ((std::vector<size_t>{0, 16, 17, 17}), starts(sum(Call::AllReduce, 17, ncclInt8), 3));
  EXPECT_EQ((std::vector<size_t>{0, 8, 8, 8}), starts(sum(Call::AllReduce, 1, ncclFloat64), 3));
  EXPECT_EQ((std::vector<size_t>{0, 0}), starts(sum(Call::AllReduce, 0), 1));
}

/** The fold of an element of each rank, repeated, in parts of these sizes. */
std::vector<float> folded(
    const Operation& operation, int rank, const std::vector<float>& elements, const std::vector<size_t>& parts) {
  std::vector<std::vector<float>> inputs;
  for (float element : elements) inputs.emplace_back(operation.count, element);
  std::vector<float> result(operation.count);
  size_t from = 0;
  for (size_t count : parts) {
    std::vector<const void*> at;
    for (const std::vector<float>& input : inputs) at.push_back(&input[from]);
    Reduction reduction{operation.type, operation.op, static_cast<int>(elements.size()), rank, at.data(), nullptr};
    foldElements(operation, reduction, from, count, &result[from]);
    from += count;
  }
  EXPECT_EQ(operation.count, from);
  return result;
}

/** The sum of rank 0, 1 and 2 is 1 if rank 2 is the last, else 0. */
const std::vector<float> kOfThree{1e8f, -1e8f, 1};

TEST(FoldTest, OfAllReduceBetweenTwoRanksEndsWithTheRankOfTheChunk) {
  // If rank 0 is the last, half of its element is rounded together with the sum, to -0.
  std::vector<float> elements{-std::numeric_limits<float>::denorm_min(), 0};
  Operation average = sum(Call::AllReduce, 10);
  average.op = ncclAvg;
  for (const std::vector<size_t>& parts : {std::vector<size_t>{10}, {3, 1, 5, 1}, {8, 2}}) {
    for (int rank = 0; rank < 2; rank++) {
      std::vector<float> result = folded(average, rank, elements, parts);
      EXPECT_EQ(result, std::vector<float>(10, 0));
      for (size_t i = 0; i < result.size(); i++) EXPECT_EQ(i < 8, std::signbit(result[i])) << i;
    }
  }
}

TEST(FoldTest, OfAllReduceBetweenMoreRanksIsInTheirOrder) {
  for (size_t count : {10, 2000}) {
    Operation operation = sum(Call::AllReduce, count);
    EXPECT_EQ(count == 2000, isInChunks(operation, 3));
    for (int rank = 0; rank < 3; rank++) {
      EXPECT_EQ(std::vector<float>(count, 1), folded(operation, rank, kOfThree, {3, count - 3}));
      EXPECT_EQ(std::vector<float>(count, 0), folded(operation, rank, {1, 1e8f, -1e8f}, {count}));
    }
  }
}

TEST(FoldTest, OfALongAllReduceBetweenTwoRanksEndsWithThisRank) {
  Operation average = sum(Call::AllReduce, 4000);
  average.op = ncclAvg;
  EXPECT_TRUE(isInChunks(average, 2));
  for (int rank = 0; rank < 2; rank++) {
    std::vector<float> result = folded(average, rank, {-std::numeric_limits<float>::denorm_min(), 0}, {4000});
    EXPECT_EQ(rank == 0, std::signbit(result.front()));
    EXPECT_EQ(rank == 0, std::signbit(result.back()));
  }
}

TEST(FoldTest, OfOtherReductionsEndsWithThisRank) {
  for (int rank = 0; rank < 3; rank++) {
    float expected = rank == 2 ? 1 : 0;
    EXPECT_EQ(std::vector<float>(6, expected), folded(sum(Call::Reduce, 6), rank, kOfThree, {2, 4}));
    EXPECT_EQ(std::vector<float>(6, expected), folded(sum(Call::ReduceScatter, 6), rank, kOfThree, {6}));
  }
}

}  // namespace
}  // namespace host
