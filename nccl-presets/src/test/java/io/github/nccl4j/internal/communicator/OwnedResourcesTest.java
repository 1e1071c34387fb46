package io.github.nccl4j.internal.communicator;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class OwnedResourcesTest {
    private final OwnedResources resources = new OwnedResources(() -> false);
    private final List<String> released = new ArrayList<>();

    @Test
    void whatIsKeptIsReleasedWhenTheCommunicatorHasEndedAndAtOnceAfterwards() {
        resources.keepUntilEnded(() -> released.add("before"));
        assertEquals(List.of(), released);
        resources.takeKept().forEach(Runnable::run);
        assertEquals(List.of("before"), released);
        resources.keepUntilEnded(() -> released.add("after"));
        assertEquals(List.of("before", "after"), released);
        assertEquals(List.of(), resources.takeKept());
    }
}
