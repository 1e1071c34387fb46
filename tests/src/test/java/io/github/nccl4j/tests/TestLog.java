package io.github.nccl4j.tests;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Records what is logged while it is open. */
public final class TestLog implements AutoCloseable {
    private final Logger logger = Logger.getLogger("io.github.nccl4j");
    private final List<String> lines = Collections.synchronizedList(new ArrayList<>());
    private final Handler handler = new Handler() {
        @Override
        public void publish(LogRecord line) {
            lines.add(line.getLevel() + ": " + line.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    public TestLog() {
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
    }

    /** Each line with its level, such as "WARNING: text". */
    public List<String> lines() {
        synchronized (lines) {
            return List.copyOf(lines);
        }
    }

    @Override
    public void close() {
        logger.removeHandler(handler);
        logger.setUseParentHandlers(true);
    }
}
