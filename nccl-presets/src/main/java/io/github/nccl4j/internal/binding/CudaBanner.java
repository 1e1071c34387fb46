package io.github.nccl4j.internal.binding;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads the text "NCCL version 2.28.3+cuda13.0" from the constants of a library, the only source of its CUDA release. */
public final class CudaBanner {
    private static final String START = "NCCL version ";
    private static final Pattern BANNER = Pattern.compile("\\d+\\.\\d+\\.\\d+\\S*?\\+cuda(\\d+(?:\\.\\d+)*)");
    private static final int LONGEST = 64;

    private CudaBanner() {}

    /**
     * Returns the CUDA release that a library was built for; empty if it has no such text, or is not a 64-bit ELF file.
     */
    public static Optional<String> read(Path library) throws IOException {
        return LibraryTexts.of(library).flatMap(CudaBanner::find);
    }

    private static Optional<String> find(LibraryTexts texts) {
        for (int i = texts.indexOf(START, 0); i >= 0; i = texts.indexOf(START, i + 1)) {
            Matcher banner = BANNER.matcher(texts.at(i + START.length(), LONGEST));
            if (banner.lookingAt()) {
                return Optional.of(banner.group(1));
            }
        }
        return Optional.empty();
    }
}
