package io.github.nccl4j.internal.operation;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.header.Function;
import io.github.nccl4j.header.Parameter;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.tests.PackagedHeader;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** What checks, records and messages learn of a kind of operation. */
class OperationKindTest {
    private static final int INT32 = ElementType.INT32.dataType().code();
    /** ncclBcast is an old form of ncclBroadcast; the others are of other libraries. */
    private static final Set<String> WITHOUT_KIND = Set.of("ncclBcast", "ncclAllReduceWithBias", "ncclAlltoAllv");

    private static final Map<String, Function> FUNCTIONS =
            PackagedHeader.parse().functions();

    /** All kinds with a function of NCCL; that of ALL_TO_ALLV differs between the other libraries. */
    private static List<OperationKind> ofNccl() {
        return OperationKind.all().stream()
                .filter(kind -> kind != OperationKind.NONE && kind != OperationKind.ALL_TO_ALLV)
                .toList();
    }

    private static boolean has(OperationKind kind, Predicate<Parameter> parameter) {
        return FUNCTIONS.get(kind.function()).parameters().stream().anyMatch(parameter);
    }

    private static String described(OperationKind kind, long count, int peer) {
        return OperationKind.describe(kind.code(), count, INT32, peer);
    }

    @Test
    void eachCodeHasItsKind() throws IllegalAccessException {
        List<Integer> codes = new ArrayList<>();
        for (Field code : OperationKind.Code.class.getFields()) {
            codes.add(code.getInt(null));
        }
        assertEquals(
                codes,
                OperationKind.all().stream().map(OperationKind::code).sorted().toList());
        for (OperationKind kind : OperationKind.all()) {
            int code = kind.code();
            assertSame(kind, OperationKind.of(code));
            assertSame(kind, OperationKind.of(code + OperationKind.CONFIGURED));
            assertSame(kind, OperationKind.of(kind.function()));
            assertFalse(OperationKind.isConfigured(code));
            assertTrue(OperationKind.isConfigured(code + OperationKind.CONFIGURED));
            assertEquals(kind.function(), OperationKind.function(code));
            assertEquals(kind.function() + "Config", OperationKind.function(code + OperationKind.CONFIGURED));
        }
        assertSame(OperationKind.NONE, OperationKind.of("ncclGroupEnd"));
    }

    /** The header tells them: what all ranks call has a twin with a configuration. */
    @Test
    void kindsHaveThePropertiesOfTheirFunctions() {
        Set<String> inStreams = FUNCTIONS.values().stream()
                .filter(function -> function.name().startsWith("nccl"))
                .filter(function -> Set.of("ncclComm_t", "cudaStream_t")
                        .equals(function.parameters().stream()
                                .map(Parameter::type)
                                .filter(type -> type.matches("ncclComm_t|cudaStream_t"))
                                .collect(Collectors.toSet())))
                .map(Function::name)
                .filter(name -> !name.endsWith("Config") && !WITHOUT_KIND.contains(name))
                .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(
                inStreams,
                ofNccl().stream().map(OperationKind::function).collect(Collectors.toCollection(TreeSet::new)));
        for (OperationKind kind : ofNccl()) {
            String function = kind.function();
            assertEquals(FUNCTIONS.containsKey(function + "Config"), kind.isCollective(), function);
            assertEquals(has(kind, parameter -> parameter.type().equals("ncclRedOp_t")), kind.reduces(), function);
            assertEquals(
                    has(kind, parameter -> parameter.type().equals("ncclDataType_t")), kind.hasElements(), function);
            // The descriptors of ncclWaitSignal have the ranks.
            assertEquals(
                    has(kind, parameter -> parameter.name().matches("root|peer|signalDescs")),
                    kind.hasPeer(),
                    function);
        }
        assertTrue(OperationKind.ALL_TO_ALLV.isCollective());
        assertFalse(OperationKind.NONE.isCollective());
    }

    @Test
    void codesTellCollectivesToo() {
        for (OperationKind kind : OperationKind.all()) {
            int code = kind.code();
            assertEquals(kind.isCollective(), OperationKind.isCollective(code), kind.function());
            assertEquals(
                    kind.isCollective(), OperationKind.isCollective(code + OperationKind.CONFIGURED), kind.function());
        }
    }

    @Test
    void operatorsThatAProgramCreatedHaveOneName() {
        List<ReduceOp> builtIn = ReduceOp.builtIn();
        for (int code = 0; code < builtIn.size(); code++) {
            assertEquals(builtIn.get(code).toString(), Operator.nameOf(code));
        }
        assertEquals("PreMulSum", Operator.nameOf(builtIn.size()));
        assertEquals("PreMulSum", Operator.nameOf(-1));
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

    /** The counts of an all-to-all with a count for each pair of ranks differ between the ranks. */
    @Test
    void collectivesHaveSignatures() {
        for (OperationKind kind : OperationKind.all()) {
            boolean hasSignature = OperationKind.signature(kind.code(), 5, INT32, 0, 1, null) != null;
            assertEquals(kind.isCollective() && kind != OperationKind.ALL_TO_ALLV, hasSignature, kind.function());
        }
    }

    @Test
    void theLibrarysRefusalIsReturned() {
        for (OperationKind kind : ofNccl()) {
            assertEquals(nccl.ncclInvalidArgument, callWithoutCommunicator(kind.code()), kind.function());
            int code = kind.code() + OperationKind.CONFIGURED;
            if (kind.isCollective()) {
                assertEquals(nccl.ncclInvalidArgument, callWithoutCommunicator(code), OperationKind.function(code));
            } else {
                assertEquals(
                        "operation " + code,
                        assertThrows(IllegalArgumentException.class, () -> callWithoutCommunicator(code))
                                .getMessage());
            }
        }
    }

    private static int callWithoutCommunicator(int code) {
        return OperationKind.call(code, 0, 0, 1, INT32, 0, 0, 0, 0, 0);
    }
}
