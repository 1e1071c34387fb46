package io.github.nccl4j.tests;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.header.Header;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** The {@code nccl.h} in the jar of the bindings. */
public final class PackagedHeader {
    private PackagedHeader() {}

    public static Header parse() {
        try (InputStream text = nccl.class.getResourceAsStream("/io/github/nccl4j/include/nccl.h")) {
            return Header.parse(new String(text.readAllBytes(), StandardCharsets.UTF_8));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
