package io.github.nccl4j.internal.log;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.UniqueId;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** What is known of communicators by their handles. */
class KnownCommunicatorsTest {
    private static Communicator create(String name) {
        return Communicator.builder()
                .config(CommunicatorConfig.builder().commName(name).build())
                .create(UniqueId.create(), 0, 1);
    }

    @Test
    void openOnesAndTheLastEndedOnesAreKnown() {
        long handle;
        try (Communicator open = create("first")) {
            handle = open.nativeHandle();
            assertEquals("first", KnownCommunicators.of(handle).orElseThrow().name());
        }
        assertEquals("first", KnownCommunicators.of(handle).orElseThrow().name(), "the log is read later");
        for (int i = 0; i < 64; i++) {
            create("next").close();
        }
        // Another communicator may have got the handle.
        assertEquals(Optional.empty(), KnownCommunicators.of(handle).filter(known -> known.name()
                .equals("first")));
    }

    @Test
    void sixtyFourEndedOnesAreKept() {
        long first = -1000;
        for (long handle = first; handle < first + 64; handle++) {
            KnownCommunicators.add(handle, new KnownCommunicators.Member(3, "kept", 7));
            KnownCommunicators.remove(handle);
        }
        assertEquals("kept", KnownCommunicators.of(first).orElseThrow().name());
        KnownCommunicators.add(1000, new KnownCommunicators.Member(3, "last", 7));
        KnownCommunicators.remove(1000);
        assertEquals(Optional.empty(), KnownCommunicators.of(first));
        assertEquals("kept", KnownCommunicators.of(first + 1).orElseThrow().name());
        assertEquals("last", KnownCommunicators.of(1000).orElseThrow().name());
    }
}
