package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class NumbersTest {

    @ParameterizedTest
    @CsvSource({"8,8", "0,0", "1K,1024", "64m,67108864", "1G,1073741824", "2gb,2147483648", "512B,512"})
    void parsesSizes(String text, long bytes) {
        assertEquals(bytes, ByteSize.parse(text));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "K", "1.5M", "-8", "8T", "1 K", "99999999999G", "9999999999999999999"})
    void rejectsInvalidSizes(String text) {
        assertTrue(assertThrows(IllegalArgumentException.class, () -> ByteSize.parse(text))
                .getMessage()
                .contains("'" + text + "'"));
    }

    /** Formula of nccl-tests' doc/PERFORMANCE.md: busbw = S/t * 2(n-1)/n. */
    @Test
    void computesBusBandwidthOfAllReduce() {
        assertEquals(100, Bandwidth.algorithm(1_000_000_000L, 10_000), 1e-9);
        assertEquals(100, Bandwidth.allReduceBus(1_000_000_000L, 10_000, 2), 1e-9);
        assertEquals(150, Bandwidth.allReduceBus(1_000_000_000L, 10_000, 4), 1e-9);
        assertEquals(0, Bandwidth.allReduceBus(1_000_000_000L, 10_000, 1), 1e-9);
    }

    @Test
    void compareFindsWrongElements() {
        Pattern pattern = Pattern.of(3).plus(Pattern.of(4));
        float[] data = new float[5000];
        pattern.fill(data, data.length, 77);
        assertTrue(pattern.compare(data, data.length, 77, 0).isEmpty());
        data[4000]++;
        data[4500] = Float.NaN;
        Mismatch mismatch = pattern.compare(data, data.length, 77, 100);
        assertEquals(new Mismatch(2, 4100, pattern.at(4077), pattern.at(4077) + 1), mismatch);
    }

    @Test
    void patternsOfOtherRanksAndIndicesDiffer() {
        float[] data = new float[64];
        Pattern.of(0).fill(data, data.length, 0);
        for (int other = 1; other < 64; other++) {
            assertTrue(Pattern.of(other).compare(data, data.length, 0, 0).count() > 32, "seed " + other);
            assertTrue(
                    Pattern.of(0)
                                    .compare(data, data.length, 1L << (other % 32), 0)
                                    .count()
                            > 32,
                    "shift " + other);
        }
    }
}
