package io.github.nccl4j.tools.analyze;

import java.io.IOException;

/** A folder has no records that can be read. */
final class NoRecordsException extends IOException {
    private static final long serialVersionUID = 1;

    NoRecordsException(String message) {
        super(message);
    }
}
