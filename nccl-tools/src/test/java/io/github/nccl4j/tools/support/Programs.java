package io.github.nccl4j.tools.support;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.opentest4j.TestAbortedException;

/** Programs that a test needs in addition to those of the build and of a minimal Debian. */
public final class Programs {
    private Programs() {}

    /**
     * Skips the test if a program is not on the PATH.
     *
     * @param program the name of the program
     * @param debianPackage the Debian package of the program
     */
    public static void require(String program, String debianPackage) {
        boolean found = Stream.of(System.getenv("PATH").split(File.pathSeparator))
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
        if (!found) {
            // ./nccl4j test searches the reports for this text.
            throw new TestAbortedException("needs " + program + " (Debian package " + debianPackage + ")");
        }
    }

    /**
     * As {@link #require} for a file that is no program.
     *
     * @param file the file
     * @param debianPackage the Debian package of the file
     */
    public static void requireFile(Path file, String debianPackage) {
        if (!Files.exists(file)) {
            throw new TestAbortedException("needs " + file + " (Debian package " + debianPackage + ")");
        }
    }
}
