package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.library.Engine;
import java.util.ArrayList;
import java.util.List;

/** All misuses in a JVM of its own; {@link MisuseTest} reads what it prints: a line for each, and the failures. */
final class MisuseScenarios {
    static final String OK = "ok: ";
    static final String FAILED = "failed: ";

    private MisuseScenarios() {}

    static List<Misuse> all(boolean onHost) {
        List<Misuse> all = new ArrayList<>(OperationMisuses.all(onHost));
        all.addAll(StateMisuses.all(onHost));
        all.addAll(GroupMisuses.all());
        all.addAll(CreationMisuses.all(onHost));
        all.addAll(MemoryMisuses.all(onHost));
        if (onHost) {
            all.addAll(CollectiveConfigMisuses.all(true));
        } else {
            all.addAll(FaultyLibraryMisuses.ofTheNewest());
        }
        return all;
    }

    private static List<Misuse> all(NcclLibrary library) {
        if (library.version().equals(OldLibraryMisuses.VERSION)) {
            return OldLibraryMisuses.all();
        }
        if (library.version().equals(CollectiveConfigMisuses.FIRST_VERSION)) {
            return CollectiveConfigMisuses.ofTheFirst();
        }
        if (library.engine() != Engine.HOST && library.version().equals(CollectiveConfigMisuses.VERSION)) {
            return CollectiveConfigMisuses.all(false);
        }
        return library.version().equals(FaultyLibraryMisuses.VERSION)
                ? FaultyLibraryMisuses.all()
                : all(library.engine() == Engine.HOST);
    }

    public static void main(String... args) {
        NcclLibrary library = NcclLibrary.get();
        for (Misuse misuse : all(library)) {
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
