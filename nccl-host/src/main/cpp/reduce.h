// reduce.h: element-wise reduction of one block of every rank.
//
// The result is defined bit for bit, independent of timing: the inputs are folded in rank order 0, 1, 2, ...
// - ncclFloat32 and ncclFloat64 fold in their own type.
// - ncclFloat16, ncclBfloat16 and the two 8-bit floats are converted to float, folded in float, and rounded once, to
//   nearest even. As on a GPU, the 8-bit floats saturate: what is larger than the largest finite magnitude, infinity too,
//   becomes that magnitude with the same sign, and NaN stays NaN. The other small floats overflow to infinity.
// - ncclAvg, as on a GPU: floats are multiplied by 1 / ranks in the type of the fold and then added, so that the sum of
//   large elements does not overflow. Integers are added, wrap, and are divided, truncated toward zero.
// - Integer sums and products wrap.
// - ncclMax and ncclMin ignore NaN, as fmax and fmin do, unless all inputs are NaN; +0 is greater than -0.
// - PreMulSum multiplies every rank's input by that rank's scalar, in the type of the fold: for small floats the scalar
//   is converted to float and the product stays in float; integer products wrap.
#pragma once

#include "abi.h"

namespace host {

/**
 * Folds inputs[0..ranks-1], count elements each, into dst. dst may be one of the inputs; no other overlap is allowed.
 * op is one of ncclSum to ncclAvg or kPreMulSum. Only kPreMulSum uses scalars: one per rank, value in the first bytes.
 */
void fold(
    ncclDataType_t type, int op, void* dst, const void* const* inputs, int ranks, size_t count,
    const uint64_t* scalars);

}  // namespace host
