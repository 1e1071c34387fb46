package io.github.nccl4j.internal.operation;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What checks, records and messages learn of a kind of operation. */
class OperationKindTest {
    private static final int INT32 = ElementType.INT32.dataType().code();
    private static final List<OperationKind> COLLECTIVES = List.of(
            OperationKind.ALL_REDUCE,
            OperationKind.REDUCE,
            OperationKind.BROADCAST,
            OperationKind.ALL_GATHER,
            OperationKind.REDUCE_SCATTER,
            OperationKind.ALL_TO_ALL,
            OperationKind.GATHER,
            OperationKind.SCATTER);
    private static final List<OperationKind> ONE_SIDED =
            List.of(OperationKind.PUT_SIGNAL, OperationKind.SIGNAL, OperationKind.WAIT_SIGNAL);

    private static String described(OperationKind kind, long count, int peer) {
        return OperationKind.describe(kind.code(), count, INT32, peer);
    }

    @Test
    void eachCodeHasItsKind() {
        for (int code = 0; code <= OperationKind.NONE.code(); code++) {
            assertEquals(code, OperationKind.of(code).code());
            assertSame(OperationKind.of(code), OperationKind.of(code + OperationKind.CONFIGURED));
            assertSame(
                    OperationKind.of(code),
                    OperationKind.of(OperationKind.of(code).function()));
            assertFalse(OperationKind.isConfigured(code));
            assertTrue(OperationKind.isConfigured(code + OperationKind.CONFIGURED));
        }
        assertSame(OperationKind.NONE, OperationKind.of("ncclGroupEnd"));
        assertEquals("ncclAllReduce", OperationKind.function(OperationKind.Code.ALL_REDUCE));
        assertEquals(
                "ncclScatterConfig", OperationKind.function(OperationKind.Code.SCATTER + OperationKind.CONFIGURED));
    }

    @Test
    void collectivesAreThoseThatAllRanksCall() {
        for (int code = 0; code <= OperationKind.NONE.code(); code++) {
            OperationKind kind = OperationKind.of(code);
            assertEquals(COLLECTIVES.contains(kind), kind.isCollective(), kind.function());
            // The arguments of this one differ between the ranks.
            boolean made = kind.isCollective() || kind == OperationKind.ALL_TO_ALLV;
            assertEquals(made, OperationKind.isCollective(code), kind.function());
            assertEquals(made, OperationKind.isCollective(code + OperationKind.CONFIGURED), kind.function());
        }
    }

    @Test
    void operatorsThatAProgramCreatedHaveOneName() {
        List<ReduceOp> builtIn = ReduceOp.builtIn();
        for (int code = 0; code < builtIn.size(); code++) {
            assertEquals(builtIn.get(code).toString(), OperationKind.operator(code));
        }
        assertEquals("PreMulSum", OperationKind.operator(builtIn.size()));
        assertEquals("PreMulSum", OperationKind.operator(-1));
    }

    @Test
    void signalsHaveNoElementsAndSymmetricOperationsNoPeer() {
        List<OperationKind> withoutElements =
                List.of(OperationKind.SIGNAL, OperationKind.WAIT_SIGNAL, OperationKind.NONE);
        List<OperationKind> withoutPeer = List.of(
                OperationKind.ALL_REDUCE,
                OperationKind.ALL_GATHER,
                OperationKind.REDUCE_SCATTER,
                OperationKind.ALL_TO_ALL,
                OperationKind.ALL_TO_ALLV,
                OperationKind.NONE);
        for (int code = 0; code <= OperationKind.NONE.code(); code++) {
            OperationKind kind = OperationKind.of(code);
            assertEquals(!withoutElements.contains(kind), kind.hasElements(), kind.function());
            assertEquals(!withoutPeer.contains(kind), kind.hasPeer(), kind.function());
        }
    }

    @Test
    void descriptionsNameElementsAndRanks() {
        assertEquals("ncclAllReduce of 5 int32", described(OperationKind.ALL_REDUCE, 5, 1));
        assertEquals("ncclReduce of 5 int32 to rank 1", described(OperationKind.REDUCE, 5, 1));
        assertEquals("ncclBroadcast of 5 int32 from rank 0", described(OperationKind.BROADCAST, 5, 0));
        assertEquals("ncclSend of 1 int32 to rank 2", described(OperationKind.SEND, 1, 2));
        assertEquals("ncclSignal to rank 2", described(OperationKind.SIGNAL, 0, 2));
        assertEquals("ncclWaitSignal of 1 signal from rank 0", described(OperationKind.WAIT_SIGNAL, 1, 0));
        assertEquals("ncclWaitSignal of 2 signals", described(OperationKind.WAIT_SIGNAL, 2, -1));
        assertEquals("no operation", described(OperationKind.NONE, 7, 7));
        assertEquals(
                "ncclGatherConfig of 3 int32 to rank 1",
                OperationKind.describe(OperationKind.Code.GATHER + OperationKind.CONFIGURED, 3, INT32, 1));
    }

    @Test
    void signaturesHaveWhatMustAgree() {
        int sum = ReduceOp.SUM.code();
        assertEquals(
                "ncclReduce of 5 int32 to rank 1, SUM",
                OperationKind.signature(OperationKind.Code.REDUCE, 5, INT32, sum, 1, null));
        assertEquals(
                "ncclAllGather of 5 int32",
                OperationKind.signature(OperationKind.Code.ALL_GATHER, 5, INT32, sum, 0, null));
        assertEquals(
                "ncclAllReduceConfig of 5 int32, SUM, {maxCTAs=8}",
                OperationKind.signature(
                        OperationKind.Code.ALL_REDUCE + OperationKind.CONFIGURED, 5, INT32, sum, 0, "{maxCTAs=8}"));
        assertNull(OperationKind.signature(OperationKind.Code.SEND, 5, INT32, 0, 1, null));
    }

    @Test
    void theLibrarysRefusalIsReturned() {
        List<Integer> codes = IntStream.rangeClosed(0, OperationKind.WAIT_SIGNAL.code())
                .boxed()
                .toList();
        for (int code : codes) {
            assertEquals(nccl.ncclInvalidArgument, callWithoutCommunicator(code), OperationKind.function(code));
        }
        for (OperationKind kind : COLLECTIVES) {
            int code = kind.code() + OperationKind.CONFIGURED;
            assertEquals(nccl.ncclInvalidArgument, callWithoutCommunicator(code), OperationKind.function(code));
        }
        for (OperationKind kind : ONE_SIDED) {
            int code = kind.code() + OperationKind.CONFIGURED;
            assertEquals(
                    "operation " + code,
                    assertThrows(IllegalArgumentException.class, () -> callWithoutCommunicator(code))
                            .getMessage());
        }
    }

    private static int callWithoutCommunicator(int code) {
        return OperationKind.call(code, 0, 0, 1, INT32, 0, 0, 0, 0, 0);
    }
}
