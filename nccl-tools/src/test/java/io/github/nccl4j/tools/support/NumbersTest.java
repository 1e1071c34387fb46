package io.github.nccl4j.tools.support;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
}
