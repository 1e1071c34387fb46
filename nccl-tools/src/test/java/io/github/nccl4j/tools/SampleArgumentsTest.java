package io.github.nccl4j.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The samples refuse wrong options before they do anything else. */
class SampleArgumentsTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "01-all-reduce | -e 1X | For input string: \"1X\"",
                "01-all-reduce | -b 1K -e 8 | -b must be from 4 to -e, -f at least 2, -w 0 and -i 1: -b 1K -e 8",
                "01-all-reduce | -b 2 | -b must be from 4 to -e, -f at least 2, -w 0 and -i 1: -b 2",
                "01-all-reduce | -f 1 | -b must be from 4 to -e, -f at least 2, -w 0 and -i 1: -f 1",
                "01-all-reduce | -w -1 | -b must be from 4 to -e, -f at least 2, -w 0 and -i 1: -w -1",
                "01-all-reduce | -i 0 | -b must be from 4 to -e, -f at least 2, -w 0 and -i 1: -i 0",
                "02-send-recv | -e 1 | -e must be at least the size of one float, 4",
                "03-all-to-all-v | -c 0 | -c must be at least 1: 0",
                "04-multi-communicator | -c 0 | -r and -c must be at least 1: null, 0",
                "04-multi-communicator | -r 0 | -r and -c must be at least 1: 0, 100000",
                "05-data-parallel-training | -p 0 | -p and -s must be at least 1: 0, 200",
                "06-cuda-graph | -i 0 | -c and -i must be at least 1: 10000, 0",
                "07-windows | -c 0 | -c and -i must be at least 1: 0, 5",
                "08-survive-a-failure | -s 0 | -c, -s and -d must be at least 1: 10000, 0, 10",
                "09-grow | -c 0 | -c must be at least 1: 0",
                "10-with-python | -d 0 | -c and -d must be at least 1: 100000, 0",
                "12-reshard | -r 0 | -r and -c must be at least 1: 0, 600",
                "13-mixture-of-experts | -e 0 | -t and -e must be at least 1: 100, 0",
                "10-with-python | --python a --python3 | no such option: --python3",
            })
    void wrongValueIsRefused(String name, String arguments, String message) throws ReflectiveOperationException {
        Samples.Sample sample = Samples.all().stream()
                .filter(one -> one.name().equals(name))
                .findFirst()
                .orElseThrow();
        Method main = Class.forName(sample.className()).getMethod("main", String[].class);
        Throwable failure = assertThrows(
                        InvocationTargetException.class, () -> main.invoke(null, (Object) arguments.split(" ")))
                .getCause();
        assertInstanceOf(IllegalArgumentException.class, failure);
        assertEquals(message, failure.getMessage());
    }
}
