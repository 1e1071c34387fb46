// reduce.h: element-wise reduction of one block of every rank.
//
// The result is defined bit for bit, independent of timing, and is that of a ring of NCCL on a GPU:
// - The fold begins with the rank after the one to which the elements belong, and ends with that rank.
// - Each step rounds to the type of the elements, to nearest even; sums and products of integers wrap. 8-bit floats
//   saturate: what is larger than the largest finite magnitude, infinity too, becomes that magnitude with the same sign.
//   The other floats overflow to infinity.
// - ncclAvg multiplies floats by 1 / ranks, rounded to their type, and adds them, so that the sum of large elements does
//   not overflow. Integers are added, wrap, and are divided, truncated toward zero.
// - PreMulSum multiplies every rank's input by that rank's scalar. After the first input, floats of more than 8 bits are
//   multiplied and added without rounding between: in float for those of 16 bits, which is then rounded to the type.
// - ncclMax and ncclMin ignore NaN, as fmax and fmin do, unless all inputs are NaN; +0 is greater than -0.
#pragma once

#include "base/abi.h"

namespace host {

struct Reduction {
  ncclDataType_t type;
  int op;  // one of ncclSum to ncclAvg, or kPreMulSum
  int ranks;
  int last;                   // the rank whose input is folded at the end
  const void* const* inputs;  // one for each rank
  const uint64_t* scalars;    // one for each rank, with the value in the first bytes; only for kPreMulSum
};

/**
 * Folds the elements from `begin` to `end` of the inputs to the same places of dst. dst may be one of the inputs; no other overlap is
 * allowed.
 */
void fold(const Reduction& reduction, size_t begin, size_t end, void* dst);
/** The same on any processor. */
void foldPortably(const Reduction& reduction, size_t begin, size_t end, void* dst);

}  // namespace host
