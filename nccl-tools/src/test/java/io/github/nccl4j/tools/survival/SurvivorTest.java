package io.github.nccl4j.tools.survival;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class SurvivorTest {
    @Test
    void summaryHasTheRanksAndNoRecords() {
        String message =
                "ncclBroadcast of 8 int64 from rank 0 (operation 7) failed at rank 1: ncclRemoteError (6). [NCCL 2.28.3 from /lib"
                        + "/libnccl.so.2] (nccl4j explain NCCL4J-0005)\nLook for the first error of the other ranks.\nThe store reports: rank 2 (pid 7)"
                        + " is lost\nrank 3 has been silent for 2 s\nLast operations of this rank:\n  ncclBroadcast of 8 int64 from rank 0"
                        + " (operation 7), not observed as done\nFlight recorder: /tmp/rank 5.json";
        String summary = Survivor.summary(new IllegalStateException(message));
        assertEquals(
                "ncclBroadcast of 8 int64 from rank 0 (operation 7) failed at rank 1: ncclRemoteError (6). The store reports: rank 2"
                        + " (pid 7) is lost rank 3 has been silent for 2 s",
                summary);
        Survivor.Report report =
                new Survivor.Report(true, 1, "NcclTimeoutException: late. No answer from rank 2. Rank 4 is", "");
        assertTrue(report.names(2) && report.names(4));
        assertFalse(report.names(5));
    }
}
