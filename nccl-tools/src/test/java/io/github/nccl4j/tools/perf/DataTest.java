package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The data that ranks send and must receive, and the detection of wrong elements. */
class DataTest {
    private static final Traffic EVEN = Traffic.spread(0);

    /* Operators */

    /** The elements and the result of four ranks, as literals, so that changes of the test data show. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "SUM|1 0 0 2 1 0 0 2, 0 2 2 0 0 2 2 0, 0 1 1 0 0 1 1 0, 1 0 0 2 1 0 0 2, 2 3 3 4 2 3 3 4",
                "PROD|2 1 1 2 2 1 1 2, 1 2 1 1 1 2 1 1, 1 2 2 1 1 2 2 1, 1 1 1 2 1 1 1 2, 2 4 2 4 2 4 2 4",
                "MAX|-3 2 0 -2 3 1 -1 -3, 0 -2 3 1 -1 -3 2 0, 3 1 -1 -3 2 0 -2 3, -1 -3 2 0 -2 3 1 -1, 3 2 3 1 3 3 2 3",
                "MIN|-3 2 0 -2 3 1 -1 -3, 0 -2 3 1 -1 -3 2 0, 3 1 -1 -3 2 0 -2 3, -1 -3 2 0 -2 3 1 -1, -3 -3 -1 -3 -2 -3 -2 -3",
                "AVG|2 3 4 2 3 4 2 3, 0 1 2 0 1 2 0 1, 2 3 4 2 3 4 2 3, 0 1 2 0 1 2 0 1, 1 2 3 1 2 3 1 2",
                "MULSUM|1 0 0 2 1 0 0 2, 0 2 2 0 0 2 2 0, 0 1 1 0 0 1 1 0, 1 0 0 2 1 0 0 2, 3 5 5 6 3 5 5 6"
            })
    void generatesElementsOfARank(Operator operator, String expected) {
        assertEquals(expected, elements(operator));
    }

    private static String elements(Operator operator) {
        return IntStream.rangeClosed(0, 4)
                .mapToObj(rank -> IntStream.range(0, 8)
                        .mapToObj(index -> ""
                                + (rank < 4 ? operator.value(rank, 4, index, true) : operator.reduced(4, index, true)))
                        .collect(Collectors.joining(" ")))
                .collect(Collectors.joining(", "));
    }

    @ParameterizedTest
    @EnumSource
    void resultIsTheReductionOfTheElements(Operator operator) {
        for (boolean signed : new boolean[] {true, false}) {
            for (int ranks : new int[] {1, 2, 3, 4, 5, 8}) {
                for (int index = 0; index < 100; index++) {
                    int at = index;
                    int[] values = IntStream.range(0, ranks)
                            .map(rank -> operator.value(rank, ranks, at, signed))
                            .toArray();
                    int expected =
                            switch (operator) {
                                case SUM -> IntStream.of(values).sum();
                                case AVG -> IntStream.of(values).sum() / ranks;
                                case PROD -> IntStream.of(values).reduce(1, (a, b) -> a * b);
                                case MAX -> IntStream.of(values).max().orElseThrow();
                                case MIN -> IntStream.of(values).min().orElseThrow();
                                case MULSUM ->
                                    IntStream.range(0, ranks)
                                            .map(rank -> values[rank] * (rank % 2 == 0 ? 1 : 2))
                                            .sum();
                            };
                    assertEquals(expected, operator.reduced(ranks, index, signed), operator + " of " + ranks);
                    assertTrue(signed || IntStream.of(values).allMatch(value -> value >= 0));
                }
            }
        }
    }

    @Test
    void findsOperatorsByName() {
        assertEquals(List.of(Operator.MULSUM), Operator.named("MulSum"));
        assertEquals(List.of(Operator.values()), Operator.named("all"));
        assertEquals(
                "no such reduction: 'xor'; there are [sum, prod, max, min, avg, mulsum] and all",
                assertThrows(IllegalArgumentException.class, () -> Operator.named("xor"))
                        .getMessage());
        assertEquals(List.of(1, 2, 1), List.of(Operator.scalar(0), Operator.scalar(1), Operator.scalar(2)));
    }

    /* Types */

    @Test
    void findsTypesByTheNamesOfNcclTests() {
        List<String> names = List.of(
                "int8",
                "uint8",
                "int32",
                "uint32",
                "int64",
                "uint64",
                "half",
                "float",
                "double",
                "bfloat16",
                "f8e4m3",
                "f8e5m2");
        assertEquals(names, ElementType.values().stream().map(Types::label).toList());
        for (int i = 0; i < names.size(); i++) {
            assertEquals(List.of(ElementType.values().get(i)), Types.named(names.get(i)));
        }
        Types.requireKnown("ALL");
        Types.requireKnown("Half");
        assertEquals(
                "no such type: 'int'; there are " + names + " and all",
                assertThrows(IllegalArgumentException.class, () -> Types.requireKnown("int"))
                        .getMessage());
    }

    @ParameterizedTest
    @EnumSource
    void onlyUintTypesAreUnsigned(DataType type) {
        assertEquals(!type.name().startsWith("UINT"), Types.isSigned(type));
    }

    /* Parts of three ranks: root 1, blocks of 4 elements */

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "ALL_REDUCE|0|REDUCED -1 0+12@0",
                "REDUCE|0|UNTOUCHED -1 0+12@0",
                "REDUCE|1|REDUCED -1 0+12@0",
                "REDUCE_SCATTER|2|REDUCED -1 0+4@8",
                "BROADCAST|2|RANK 1 0+12@0",
                "SCATTER|2|RANK 1 0+4@8",
                "SENDRECV|0|RANK 2 0+12@0",
                "SENDRECV|2|RANK 1 0+12@0",
                "ALL_GATHER|2|RANK 0 0+4@0, RANK 1 4+4@0, RANK 2 8+4@0",
                "HYPERCUBE|2|RANK 0 0+4@0, RANK 1 4+4@0, RANK 2 8+4@0",
                "GATHER|1|RANK 0 0+4@0, RANK 1 4+4@0, RANK 2 8+4@0",
                "GATHER|2|UNTOUCHED -1 0+12@0",
                "ALLTOALL|2|RANK 0 0+4@8, RANK 1 4+4@8, RANK 2 8+4@8",
                "ALLTOALLV|2|RANK 0 0+4@8, RANK 1 4+4@8, RANK 2 8+4@8"
            })
    void eachRankReceivesItsParts(Collective collective, int rank, String parts) {
        Sizes sizes = collective.sizes(48, 4, 3, EVEN);
        assertEquals(parts, text(collective.received(sizes, rank, 3, 1, 4, EVEN)));
    }

    private static String text(List<Part> parts) {
        return parts.stream()
                .map(part -> part.source() + " " + part.rank() + " " + part.offset() + "+" + part.length() + "@"
                        + part.index())
                .collect(Collectors.joining(", "));
    }

    @ParameterizedTest
    @EnumSource
    void onlyTheRootOfBroadcastAndScatterSends(Collective collective) {
        Sizes sizes = collective.sizes(48, 4, 3, EVEN);
        boolean rootAlone = collective == Collective.BROADCAST || collective == Collective.SCATTER;
        String all = "RANK 2 0+" + sizes.send() + "@0";
        assertEquals(rootAlone ? "" : all, text(collective.sent(sizes, 2, 1)));
        assertEquals(all, text(collective.sent(sizes, 2, 2)));
    }

    @Test
    void restOfALargerBufferStaysUntouched(@TempDir Path folder) throws IOException {
        Path file = Files.write(folder.resolve("matrix"), List.of("0 32 64", "16 0 48", "32 16 0"));
        Traffic matrix = Traffic.file(file, 1);
        Sizes sizes = Collective.ALLTOALLV.sizes(0, 4, 3, matrix);
        assertEquals(new Sizes(24, 28, 0, 0, 0), sizes);
        assertEquals(
                "RANK 0 0+0@0, RANK 1 0+4@0, RANK 2 4+8@0, UNTOUCHED -1 12+16@0",
                text(Collective.ALLTOALLV.received(sizes, 0, 3, 0, 4, matrix)));
        assertEquals(
                "RANK 0 0+16@8, RANK 1 16+12@4, RANK 2 28+0@12",
                text(Collective.ALLTOALLV.received(sizes, 2, 3, 0, 4, matrix)));
        matrix.requireRanks(3);
    }

    @Test
    void computesTrafficByDistance() {
        assertEquals(992, Traffic.spread(1).bytes(0, 0, 1, 1000));
        assertEquals(0, Traffic.spread(1).bytes(1, 1, 2, 1000));
        assertEquals(
                List.of(0L, 4L, 10L),
                IntStream.range(0, 3)
                        .mapToObj(i -> Traffic.displacements(new long[] {4, 6, 1})[i])
                        .toList());
        assertEquals(11, Traffic.sum(new long[] {4, 6, 1}));
        long[] sends = Traffic.spread(1).sends(1, 3, 960, 4);
        assertEquals("160 0 80", sends[0] + " " + sends[1] + " " + sends[2]);
        long[] receives = Traffic.spread(1).receives(1, 3, 960, 4);
        assertEquals("80 0 160", receives[0] + " " + receives[1] + " " + receives[2]);
    }

    @Test
    void rejectsInvalidNumbersOfBytes(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("matrix"), "0");
        assertEquals(0, Traffic.file(file, 1).bytes(0, 0, 1, 99));
        Files.writeString(file, "NaN");
        assertEquals(
                file + ", row 1: not a number of bytes: NaN",
                assertThrows(IllegalArgumentException.class, () -> Traffic.file(file, 1))
                        .getMessage());
        Traffic.spread(0);
        Traffic.spread(1);
        assertThrows(IllegalArgumentException.class, () -> Traffic.spread(-0.1));
        assertThrows(IllegalArgumentException.class, () -> Traffic.spread(Double.NaN));
    }

    /* Elements and their check */

    private static byte[] bytes(ElementType<?> type, int value) {
        ByteBuffer bytes = ByteBuffer.allocate(type.sizeInBytes()).order(ByteOrder.nativeOrder());
        switch (type.dataType()) {
            case FLOAT16 -> bytes.putShort((short) (value == 1 ? 0x3c00 : 0xc000));
            case BFLOAT16 -> bytes.putShort((short) (value == 1 ? 0x3f80 : 0xc000));
            case FLOAT32 -> bytes.putFloat(value);
            case FLOAT64 -> bytes.putDouble(value);
            case FLOAT8_E4M3 -> bytes.put((byte) (value == 1 ? 0x38 : 0xc0));
            case FLOAT8_E5M2 -> bytes.put((byte) (value == 1 ? 0x3c : 0xc0));
            default -> {
                switch (type.sizeInBytes()) {
                    case 1 -> bytes.put((byte) value);
                    case 4 -> bytes.putInt(value);
                    default -> bytes.putLong(value);
                }
            }
        }
        return bytes.array();
    }

    @Test
    void encodesElementsOfEachType() {
        for (ElementType<?> type : ElementType.values()) {
            for (int value : Types.isSigned(type.dataType()) ? new int[] {1, -2} : new int[] {1}) {
                assertEquals(
                        ByteBuffer.wrap(bytes(type, value)), ByteBuffer.wrap(Elements.encode(type, value)), "" + type);
            }
        }
    }

    @Test
    void phaseDependsOnRankAndRepetition() {
        Elements copied = new Elements(ElementType.INT32, null, 4);
        assertEquals(5, copied.phase(Part.of(0, 0, 9, 5), 0));
        assertEquals(5 + 7919, copied.phase(Part.of(1, 0, 9, 5), 0));
        assertEquals(5 + 3 * 7919 + 2 * 131, copied.phase(Part.of(3, 0, 9, 5), 2));
        assertEquals((70_000 + 131) % 65_521, copied.phase(Part.of(0, 0, 9, 70_000), 1));
        Elements reduced = new Elements(ElementType.INT32, Operator.SUM, 4);
        assertEquals(5 + 131, reduced.phase(Part.of(3, 0, 9, 5), 1));
        assertEquals(5, reduced.phase(Part.reduced(9, 5), 0));
        // Without a reduction all ranks share a period; with one, each has its own.
        assertEquals(
                ByteBuffer.wrap(copied.period(Part.of(0, 0, 9, 0))),
                ByteBuffer.wrap(copied.period(Part.of(3, 0, 9, 0))));
        assertFalse(ByteBuffer.wrap(reduced.period(Part.of(0, 0, 9, 0)))
                .equals(ByteBuffer.wrap(reduced.period(Part.of(1, 0, 9, 0)))));
        assertEquals(0x5a, copied.period(Part.untouched(9))[2 * 65_521 * 4 - 1]);
    }

    /** A whole period follows each position in the first one. */
    @Test
    void periodIsRepeatedOnce() {
        byte[] twice = new Elements(ElementType.INT8, null, 2).period(Part.of(0, 0, 1, 0));
        assertEquals(2 * Elements.PERIOD, twice.length);
        assertEquals(
                ByteBuffer.wrap(twice, 0, Elements.PERIOD).slice(),
                ByteBuffer.wrap(twice, Elements.PERIOD, Elements.PERIOD).slice());
        assertTrue(IntStream.range(0, 1000).anyMatch(i -> twice[Elements.PERIOD + i] != 0));
    }

    @Test
    void averageOfFloatsHasATolerance() {
        Part result = Part.reduced(1, 0);
        assertEquals(4, new Elements(ElementType.FLOAT32, Operator.AVG, 4).tolerance(result));
        assertEquals(0, new Elements(ElementType.INT32, Operator.AVG, 4).tolerance(result));
        assertEquals(0, new Elements(ElementType.FLOAT32, Operator.SUM, 4).tolerance(result));
        assertEquals(0, new Elements(ElementType.FLOAT32, Operator.AVG, 4).tolerance(Part.of(1, 0, 1, 0)));
    }

    /** The tolerance is one unit in the last place per rank, in both directions. */
    @ParameterizedTest
    @ValueSource(ints = {3, 4, -3, -4})
    void valuesBeyondTheToleranceAreWrong(int places) {
        Elements elements = new Elements(ElementType.FLOAT32, Operator.AVG, 3);
        DataCheck check = new DataCheck(elements, 4, DataCheck.staging());
        List<Part> parts = List.of(Part.reduced(10, 0));
        try (DeviceBuffer<Uint8> buffer = Device.host().allocate(ElementType.UINT8, 40)) {
            check.write(buffer, parts, 0);
            ByteBuffer element = ByteBuffer.allocate(4).order(ByteOrder.nativeOrder());
            buffer.slice(36, 4).copyTo(element.array());
            element.putInt(0, element.getInt(0) + places);
            buffer.slice(36, 4).copyFrom(element.array());
            assertEquals(Math.abs(places) > 3 ? 1 : 0, check.wrong(buffer, parts, 0));
        }
    }

    /** The first and the last element of a buffer and of a part, for each element size; empty parts are ignored. */
    @ParameterizedTest
    @ValueSource(strings = {"uint8", "half", "int32", "double"})
    void findsWrongElementsOfEachSize(String name) {
        ElementType<?> type = Types.named(name).get(0);
        int size = type.sizeInBytes();
        DataCheck check = new DataCheck(new Elements(type, Operator.MAX, 2), size, DataCheck.staging());
        List<Part> parts = List.of(
                Part.of(0, 0, 0, 0), Part.of(1, 0, 100, 3), Part.reduced(50, 7).at(100));
        try (DeviceBuffer<Uint8> buffer = Device.host().allocate(ElementType.UINT8, 150L * size)) {
            check.write(buffer, parts, 1);
            assertEquals(0, check.wrong(buffer, parts, 1));
            for (int at : new int[] {0, 99, 100, 149}) {
                byte[] element = new byte[size];
                buffer.slice((long) at * size, size).copyTo(element);
                byte right = element[size - 1];
                element[size - 1] ^= 1;
                buffer.slice((long) at * size, size).copyFrom(element);
                assertEquals(1, check.wrong(buffer, parts, 1), "element " + at);
                element[size - 1] = right;
                buffer.slice((long) at * size, size).copyFrom(element);
            }
        }
    }

    @Test
    void checksBuffersLargerThanTheStagingBuffer() {
        long count = 40L << 20;
        DataCheck check = new DataCheck(new Elements(ElementType.INT8, null, 2), 1, DataCheck.staging());
        List<Part> parts = List.of(Part.of(1, 0, count, 0));
        try (DeviceBuffer<Uint8> buffer = Device.host().allocate(ElementType.UINT8, count)) {
            check.write(buffer, parts, 0);
            assertEquals(0, check.wrong(buffer, parts, 0));
            for (long at : new long[] {(16L << 20) - 1, 17L << 20, count - 1}) {
                byte[] element = new byte[1];
                buffer.slice(at, 1).copyTo(element);
                element[0] ^= 1;
                buffer.slice(at, 1).copyFrom(element);
            }
            assertEquals(3, check.wrong(buffer, parts, 0));
        }
    }
}
