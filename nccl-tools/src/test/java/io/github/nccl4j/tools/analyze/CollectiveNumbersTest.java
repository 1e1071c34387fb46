package io.github.nccl4j.tools.analyze;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.internal.operation.OperationKind;
import org.junit.jupiter.api.Test;

/** The functions that a record numbers as collectives are those of the communicator. */
class CollectiveNumbersTest {
    @Test
    void theFunctionsOfCollectivesAreNumbered() {
        for (OperationKind kind : OperationKind.all()) {
            if (kind != OperationKind.NONE) {
                assertEquals(kind.isCollective(), CollectiveNumbers.isCollective(kind.function()), kind.function());
            }
        }
    }
}
