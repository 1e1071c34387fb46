package io.github.nccl4j.tools.perf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class PerfTest {
    @TempDir
    Path folder;

    /** Sizes and counts that nccl-tests prints for -b 1000 with floats and four ranks, and its bandwidth factors. */
    @ParameterizedTest
    @CsvSource({
        "ALL_REDUCE, 1000, 250, 1000, 1.5",
        "ALL_GATHER, 960, 60, 960, 0.75",
        "REDUCE_SCATTER, 960, 60, 960, 0.75",
        "BROADCAST, 1000, 250, 1000, 1",
        "REDUCE, 1000, 250, 1000, 1",
        "ALLTOALL, 960, 60, 960, 0.75",
        "ALLTOALLV, 960, 60, 960, 0.75",
        "GATHER, 960, 60, 960, 0.75",
        "SCATTER, 960, 60, 960, 0.75",
        "SENDRECV, 1000, 250, 1000, 1",
        "HYPERCUBE, 960, 60, 720, 1",
    })
    void sizesAndFactorsEqualThoseOfNcclTests(
            Collective collective, long bytes, long count, long algorithmBytes, double factor) {
        Sizes sizes = collective.sizes(1000, 4, 4, Traffic.spread(0));
        assertEquals(bytes, sizes.largest() * 4);
        assertEquals(count, sizes.count());
        assertEquals(algorithmBytes, collective.algorithmBytes(sizes, 4, 4));
        assertEquals(factor, collective.busFactor(4));
    }

    /** Received parts have been sent, and do not overlap. */
    @ParameterizedTest
    @EnumSource
    void receivedPartsFillTheBuffer(Collective collective) {
        Traffic traffic = Traffic.spread(0.5);
        Sizes sizes = collective.sizes(10_000, 8, 4, traffic);
        for (int rank = 0; rank < 4; rank++) {
            long end = 0;
            for (Part part : collective.received(sizes, rank, 4, 2, 8, traffic)) {
                assertEquals(end, part.offset());
                end += part.length();
                if (part.source() == Source.RANK) {
                    Part sent = collective.sent(sizes, part.rank(), 2).get(0);
                    assertTrue(part.index() + part.length() <= sent.length(), part + " of " + sent);
                }
            }
            assertEquals(sizes.recv(), end);
        }
    }

    @Test
    void trafficGrowsWithDistance() {
        assertEquals(List.of(0L, 160L, 320L, 480L), bytes(Traffic.spread(1)));
        assertEquals(List.of(240L, 240L, 240L, 240L), bytes(Traffic.spread(0)));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> Traffic.spread(1.5))
                .getMessage()
                .contains("1.5"));
    }

    private static List<Long> bytes(Traffic traffic) {
        return Arrays.stream(new int[] {2, 3, 0, 1})
                .mapToObj(to -> traffic.bytes(2, to, 4, 960))
                .toList();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "1 2 | must have as many columns as rows",
                "1 2;3 | row 2 has 1",
                "1 x;3 4 | row 1: ",
                "1 -2;3 4 | not a number of bytes: -2",
            })
    void rejectsInvalidMatrix(String rows, String message) throws IOException {
        Path file = Files.write(folder.resolve("matrix"), List.of(rows.split(";")));
        String refused = assertThrows(IllegalArgumentException.class, () -> Traffic.file(file, 1))
                .getMessage();
        assertTrue(refused.contains(message), refused);
    }

    @Test
    void matrixIsRoundedTo16Bytes() throws IOException {
        Path file = Files.write(folder.resolve("matrix"), List.of("31 16", "", "1e3 0"));
        Traffic traffic = Traffic.file(file, 2);
        assertEquals(48, traffic.bytes(0, 0, 2, 0));
        assertEquals(2000, traffic.bytes(1, 0, 2, 0));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> traffic.requireRanks(3))
                .getMessage()
                .contains("2 ranks, and there are 3"));
    }

    /** In exact arithmetic, partial results are small enough for 8-bit floats with 2 bits of mantissa. */
    @ParameterizedTest
    @EnumSource
    void partialResultsAreExactIn8Bits(Operator operator) {
        for (int ranks : new int[] {1, 2, 3, 4, 7, 8, 16, 64}) {
            for (int index = 0; index < 500; index++) {
                int sum = 0;
                for (int rank = 0; rank < ranks; rank++) {
                    int value = operator.value(rank, ranks, index, false);
                    assertTrue(value >= 0 && value <= 8, operator + " " + value);
                    sum += value;
                }
                int reduced = operator.reduced(ranks, index, false);
                assertTrue(reduced >= 0 && reduced <= 8, operator + " of " + ranks + ": " + reduced);
                if (operator == Operator.AVG) {
                    assertEquals(0, sum % ranks, "the average is an integer");
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"true, 0", "true, 70000", "false, 0", "false, 199999"})
    void countsWrongElements(boolean reduced, int wrong) {
        Elements elements = new Elements(ElementType.FLOAT16, reduced ? Operator.SUM : null, 3);
        DataCheck check = new DataCheck(elements, 2, DataCheck.staging());
        List<Part> parts = List.of(
                reduced ? Part.reduced(150_000, 17) : Part.of(1, 0, 150_000, 17),
                Part.untouched(50_000).at(150_000));
        try (DeviceBuffer<Uint8> buffer = Device.host().allocate(ElementType.UINT8, 400_000)) {
            buffer.fill((long) Elements.UNTOUCHED);
            check.write(buffer, parts.subList(0, 1), 5);
            assertEquals(0, check.wrong(buffer, parts, 5));
            assertTrue(check.wrong(buffer, parts, 6) > 75_000, "data of another repetition");
            byte[] element = new byte[2];
            buffer.slice(2L * wrong, 2).copyTo(element);
            element[0] ^= 1;
            buffer.slice(2L * wrong, 2).copyFrom(element);
            assertEquals(1, check.wrong(buffer, parts, 5));
        }
    }
}
