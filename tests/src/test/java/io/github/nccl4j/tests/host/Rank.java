package io.github.nccl4j.tests.host;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.nccl.ncclComm;
import io.github.nccl4j.nccl.ncclUniqueId;
import java.util.HexFormat;
import org.bytedeco.javacpp.PointerPointer;

/** One rank of a communicator, in this process. */
record Rank(int rank, int count, long comm) {

    /** A new unique id, as text. */
    static String newId() {
        try (ncclUniqueId id = new ncclUniqueId()) {
            check(nccl.ncclGetUniqueId(id), "ncclGetUniqueId");
            return text(id);
        }
    }

    static String text(ncclUniqueId id) {
        byte[] bytes = new byte[nccl.NCCL_UNIQUE_ID_BYTES];
        id.internal().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static Rank join(String id, int rank, int count) {
        try (ncclUniqueId uniqueId = uniqueId(id);
                PointerPointer<ncclComm> cell = new PointerPointer<>(1)) {
            check(nccl.ncclCommInitRank(cell, count, uniqueId, rank), "ncclCommInitRank");
            return new Rank(rank, count, cell.get(ncclComm.class).address());
        }
    }

    static ncclUniqueId uniqueId(String id) {
        ncclUniqueId uniqueId = new ncclUniqueId();
        uniqueId.internal().put(HexFormat.of().parseHex(id));
        return uniqueId;
    }

    void destroy() {
        check(nccl.ncclCommDestroy(comm), "ncclCommDestroy");
    }

    static void check(int result, String call) {
        if (result != nccl.ncclSuccess) {
            throw new NcclFailure(result, call);
        }
    }

    /** A call that failed, with the library's own words. */
    static final class NcclFailure extends RuntimeException {
        private static final long serialVersionUID = 1L;

        final int result;

        NcclFailure(int result, String call) {
            super(call + " gave " + result + ": " + nccl.ncclGetLastError(0L));
            this.result = result;
        }
    }
}
