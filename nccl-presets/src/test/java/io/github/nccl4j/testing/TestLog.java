package io.github.nccl4j.testing;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.logging.SimpleFormatter;

/** Records what is logged while it is open. */
public final class TestLog implements AutoCloseable {
    private final Logger logger;
    private final List<LogRecord> records = Collections.synchronizedList(new ArrayList<>());
    private final Handler handler = new Handler() {
        @Override
        public void publish(LogRecord line) {
            records.add(line);
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    public TestLog() {
        this("io.github.nccl4j");
    }

    /** Records the lines of a logger and of those below it. */
    public TestLog(String name) {
        logger = Logger.getLogger(name);
        logger.addHandler(handler);
        logger.setUseParentHandlers(false);
    }

    /** Each line with its level, such as "WARNING: text". */
    public List<String> lines() {
        return records().stream()
                .map(line -> line.getLevel() + ": " + new SimpleFormatter().formatMessage(line))
                .toList();
    }

    /** The lines with all else that was logged with them, such as an exception. */
    public List<LogRecord> records() {
        synchronized (records) {
            return List.copyOf(records);
        }
    }

    @Override
    public void close() {
        logger.removeHandler(handler);
        logger.setUseParentHandlers(true);
    }
}
