package io.github.nccl4j.internal.submission;

import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.operation.BlockLayout;

/** A buffer with a block for each rank, as a program passes it: not checked. */
public record Blocks(NativeBuffer buffer, long[] counts, long[] displacements) {
    /** As {@link BlockLayout#ofRank}. */
    BlockLayout layout(String what, CommunicatorCore core, boolean written) {
        return BlockLayout.ofRank(what, counts, displacements, core.rank(), core.size(), buffer.length, written);
    }
}
