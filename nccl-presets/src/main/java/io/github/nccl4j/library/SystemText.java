package io.github.nccl4j.library;

import java.io.IOException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Environment variables, properties and paths with characters that the locale cannot encode.
 *
 * <p>Java decodes these texts by the locale and loses characters that the locale's encoding lacks: in the C locale, all
 * non-ASCII characters. This class reads the bytes again from {@code /proc} and decodes them as UTF-8. Text that is not
 * UTF-8 stays as Java decoded it, and {@link #path} refuses such text.
 *
 * <p>All methods may be called from any thread.
 *
 * @since 0.1
 */
public final class SystemText {
    /** Replaces each byte that Java could not decode. */
    private static final char LOST = '\uFFFD';

    private static final Charset ENCODING = encoding(System.getProperty("sun.jnu.encoding", "UTF-8"));

    private SystemText() {}

    private static Charset encoding(String name) {
        return Charset.isSupported(name) ? Charset.forName(name) : StandardCharsets.UTF_8;
    }

    /**
     * Returns the environment variables of this process.
     *
     * @return as {@link System#getenv()}, without losses where the values are UTF-8
     */
    public static Map<String, String> environment() {
        return environment(System.getenv(), Path.of("/proc/self/environ"));
    }

    /** As {@link #environment()}, of variables as Java decoded them and a file with their bytes. */
    static Map<String, String> environment(Map<String, String> variables, Path bytes) {
        if (variables.values().stream().noneMatch(SystemText::isDamaged)) {
            return variables;
        }
        Map<String, String> whole = new HashMap<>(variables);
        for (String entry : utf8(bytes)) {
            int equals = entry.indexOf('=');
            if (equals > 0) {
                String value = entry.substring(equals + 1);
                whole.computeIfPresent(
                        entry.substring(0, equals), (name, known) -> isOriginal(value, known) ? value : known);
            }
        }
        return Map.copyOf(whole);
    }

    /**
     * Returns a system property.
     *
     * @param name the name of the property
     * @return as {@link System#getProperty(String)}, without losses if it is an argument of the process in UTF-8
     */
    public static String property(String name) {
        return property(name, System.getProperty(name), Path.of("/proc/self/cmdline"));
    }

    /** As {@link #property(String)}, of a value as Java decoded it and a file with the bytes of the arguments. */
    static String property(String name, String known, Path arguments) {
        if (known == null || !isDamaged(known)) {
            return known;
        }
        String option = "-D" + name + "=";
        return utf8(arguments).stream()
                .filter(argument -> argument.startsWith(option))
                .map(argument -> argument.substring(option.length()))
                .filter(value -> isOriginal(value, known))
                .findFirst()
                .orElse(known);
    }

    /**
     * Returns a path, even if the locale cannot encode it. Such a path can be opened, but {@link Path#toString} returns
     * a damaged text.
     *
     * @param text the path
     * @return the path
     * @throws InvalidPathException if its bytes are unknown, because neither the locale nor UTF-8 could decode them
     */
    public static Path path(String text) {
        try {
            return Path.of(text);
        } catch (InvalidPathException unspellable) {
            if (isDamaged(text) || text.indexOf('\0') >= 0) {
                throw new InvalidPathException(text, problem(text));
            }
            return utf8Path(text);
        }
    }

    /** Returns the path whose bytes are a text in UTF-8. A URI keeps the bytes; a string is encoded by the locale. */
    static Path utf8Path(String text) {
        String folder = text.startsWith("/")
                ? "file://"
                : Path.of("").toAbsolutePath().toUri().toString();
        return Path.of(URI.create(folder + percentEncoded(text.getBytes(StandardCharsets.UTF_8))));
    }

    /**
     * Returns the text of a path, without losses if it is UTF-8.
     *
     * @param path the path
     * @return as {@link Path#toString}; an absolute path if that text would be damaged
     */
    public static String text(Path path) {
        String text = path.toString();
        if (!isDamaged(text)) {
            return text;
        }
        String uri = path.toUri().getPath();
        return uri.endsWith("/") ? uri.substring(0, uri.length() - 1) : uri;
    }

    /** Returns the reason why a text cannot be passed to the system; empty if there is none. */
    static String problem(String text) {
        return isDamaged(text)
                ? "the locale, whose encoding is " + ENCODING + ", cannot spell it; set LC_ALL=C.UTF-8"
                : text.indexOf('\0') >= 0 ? "it has a character of code 0" : "";
    }

    /**
     * Returns a C string: the bytes of a text and a zero.
     *
     * @param text the text
     * @return the bytes
     */
    public static byte[] toC(String text) {
        return (text + '\0').getBytes(ENCODING.newEncoder().canEncode(text) ? ENCODING : StandardCharsets.UTF_8);
    }

    /**
     * Converts back from {@link #toC}, without the zero.
     *
     * @param bytes the bytes
     * @param length the number of bytes
     * @return the text
     */
    public static String fromC(byte[] bytes, int length) {
        for (Charset charset : List.of(ENCODING, StandardCharsets.UTF_8)) {
            try {
                return charset.newDecoder()
                        .decode(ByteBuffer.wrap(bytes, 0, length))
                        .toString();
            } catch (CharacterCodingException another) {
                continue;
            }
        }
        return new String(bytes, 0, length, StandardCharsets.UTF_8);
    }

    private static boolean isDamaged(String text) {
        return text.indexOf(LOST) >= 0;
    }

    /** Returns true if a text may be the original of a damaged one. */
    private static boolean isOriginal(String text, String damaged) {
        return isDamaged(damaged) && ascii(text).equals(ascii(damaged));
    }

    private static String ascii(String text) {
        return text.replaceAll("[^\\x00-\\x7f]", "");
    }

    /** Returns the zero-terminated texts of a system file that are UTF-8. */
    private static List<String> utf8(Path file) {
        List<String> texts = new ArrayList<>();
        try {
            byte[] bytes = Files.readAllBytes(file);
            int start = 0;
            for (int end = 0; end < bytes.length; end++) {
                if (bytes[end] == 0) {
                    try {
                        texts.add(StandardCharsets.UTF_8
                                .newDecoder()
                                .decode(ByteBuffer.wrap(bytes, start, end - start))
                                .toString());
                    } catch (CharacterCodingException other) {
                        // The text stays as Java has it.
                    }
                    start = end + 1;
                }
            }
        } catch (IOException withoutProc) {
            return List.of();
        }
        return texts;
    }

    private static String percentEncoded(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte one : bytes) {
            char c = (char) (one & 0xff);
            if (c == '/' || c < 128 && Character.isLetterOrDigit(c)) {
                text.append(c);
            } else {
                text.append('%').append(Character.forDigit(c >> 4, 16)).append(Character.forDigit(c & 15, 16));
            }
        }
        return text.toString();
    }
}
