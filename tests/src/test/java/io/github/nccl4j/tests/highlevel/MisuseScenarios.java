package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.library.Engine;
import java.util.List;

/** All misuses in a JVM of its own; {@link MisuseTest} reads what it prints: a line for each, and the failures. */
final class MisuseScenarios {
    static final String OK = "ok: ";
    static final String FAILED = "failed: ";

    private MisuseScenarios() {}

    static List<Misuse> all(boolean onHost) {
        return OperationMisuses.all(onHost);
    }

    public static void main(String... args) {
        for (Misuse misuse : all(NcclLibrary.get().engine() == Engine.HOST)) {
            try {
                misuse.run();
                System.out.println(OK + misuse.name());
            } catch (Throwable e) {
                System.out.println(FAILED + misuse.name());
                e.printStackTrace(System.out);
            }
        }
    }
}
