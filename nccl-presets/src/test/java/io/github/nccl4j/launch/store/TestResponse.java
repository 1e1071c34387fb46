package io.github.nccl4j.launch.store;

import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** Records the response to one request; a second response fails the test. */
final class TestResponse implements Responder {
    private byte[] content;
    private String outcome;

    /** The response in words; null if there is none. */
    String outcome() {
        return outcome;
    }

    byte[] content() {
        return content;
    }

    private void record(String text) {
        assertNull(outcome, () -> "a second response: " + text);
        outcome = text;
    }

    @Override
    public void succeed(byte[] value) {
        content = value;
        record("ok: " + new String(value, StandardCharsets.UTF_8));
    }

    @Override
    public void fail(String reason) {
        record("failed: " + reason);
    }

    @Override
    public void timeOut(String reason, List<Integer> missing) {
        record("timed out: " + reason + " " + missing);
    }
}
