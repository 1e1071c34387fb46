package io.github.nccl4j.samples.support;

import io.github.nccl4j.samples.launch.ChildProcesses;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Kills the processes that a test has left, so that those of a failed one do not disturb the next. In force everywhere. */
public final class EndProcesses implements BeforeEachCallback, AfterEachCallback {
    private static final ExtensionContext.Namespace OWN = ExtensionContext.Namespace.create(EndProcesses.class);

    @Override
    public void beforeEach(ExtensionContext test) {
        test.getStore(OWN).put("before", new HashSet<>(ChildProcesses.running()));
    }

    @Override
    public void afterEach(ExtensionContext test) {
        Set<?> before = test.getStore(OWN).get("before", Set.class);
        ChildProcesses.running().stream()
                .filter(process -> !before.contains(process))
                .forEach(ChildProcesses::kill);
    }
}
