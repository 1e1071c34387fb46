package io.github.nccl4j.mutation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs test classes, one after another, and ends the JVM with 1 at the first failure: TestRunner RESULT CLASS... */
final class TestRunner {
    private TestRunner() {}

    public static void main(String[] arguments) {
        Path result = Path.of(arguments[0]);
        for (String name : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
                    .selectors(DiscoverySelectors.selectClass(name))
                    .build();
            LauncherFactory.create().execute(request, new TestExecutionListener() {
                @Override
                public void executionFinished(TestIdentifier test, TestExecutionResult outcome) {
                    if (outcome.getStatus() == TestExecutionResult.Status.FAILED) {
                        outcome.getThrowable().ifPresent(Throwable::printStackTrace);
                        write(result, name + " " + test.getDisplayName());
                        Runtime.getRuntime().halt(1);
                    }
                }
            });
        }
        // Threads that a test has left must not hold up the end.
        System.exit(0);
    }

    private static void write(Path file, String text) {
        try {
            Files.writeString(file, text);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
