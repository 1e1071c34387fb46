package io.github.nccl4j.tools.support;

import io.github.nccl4j.tools.launch.ChildProcesses;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** JUnit extension for all tests: kills the child processes of a test after it, so that they do not disturb the next test. */
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
