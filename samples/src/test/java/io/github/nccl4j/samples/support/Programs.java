package io.github.nccl4j.samples.support;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.opentest4j.TestAbortedException;

/** Programs that a test needs besides those of the build and of the smallest installation of Debian. */
public final class Programs {
    private Programs() {}

    /**
     * Skips the test if a program is not on the PATH.
     *
     * @param program its name
     * @param debianPackage the package that has it
     */
    public static void require(String program, String debianPackage) {
        boolean found = Stream.of(System.getenv("PATH").split(File.pathSeparator))
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
        if (!found) {
            // ./nccl4j test reads these words in the reports.
            throw new TestAbortedException("needs " + program + " (Debian package " + debianPackage + ")");
        }
    }
}
