package io.github.nccl4j.internal.failure;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class ReasonTest {
    @Test
    void theFirstReasonThatAppliesCounts() {
        assertEquals(Reason.INTERRUPTED, Reason.of(true, true));
        assertEquals(Reason.INTERRUPTED, Reason.of(true, false));
        assertEquals(Reason.RANK_LOST, Reason.of(false, true));
        assertEquals(Reason.LATE, Reason.of(false, false));
    }
}
