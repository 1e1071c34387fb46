package io.github.nccl4j.library;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Text that the locale cannot encode, in any locale: UnspellablePathsTest starts JVMs in the C locale. */
class SystemTextTest {
    /** What Java makes of the two bytes of u with diaeresis in the C locale. */
    private static final String DAMAGED = "/j\ufffd\ufffdrgen";

    private static final String WHOLE = "/j\u00fcrgen";

    @TempDir
    Path folder;

    /** A file of texts in UTF-8, each with a zero at its end. The byte 0xff stands for 0xff, which is not UTF-8. */
    private Path entries(String... texts) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (String text : texts) {
            for (String part : text.split("(?<=\u00ff)|(?=\u00ff)")) {
                bytes.writeBytes(
                        part.equals("\u00ff") ? new byte[] {(byte) 0xff} : part.getBytes(StandardCharsets.UTF_8));
            }
            bytes.write(0);
        }
        return Files.write(folder.resolve("entries"), bytes.toByteArray());
    }

    @Test
    void undamagedVariablesStayAsTheyAre() throws IOException {
        Map<String, String> variables = Map.of("HOME", "/me", "EMPTY", "");
        assertSame(variables, SystemText.environment(variables, entries("HOME=/other")));
    }

    @Test
    void damagedVariablesAreReadFromTheirBytes() throws IOException {
        Map<String, String> variables = Map.of("HOME", DAMAGED, "PATH", "/bin", "BYTES", "\ufffd", "A", "\ufffd=b");
        Path bytes = entries("=" + WHOLE, "PATH=/other", "BYTES=\u00ff", "HOME=" + WHOLE, "UNKNOWN=1", "A=\u00fc=b");
        assertEquals(
                Map.of("HOME", WHOLE, "PATH", "/bin", "BYTES", "\ufffd", "A", "\u00fc=b"),
                SystemText.environment(variables, bytes));
    }

    @Test
    void aVariableThatIsAnotherTextIsNotReplaced() throws IOException {
        Map<String, String> variables = Map.of("HOME", DAMAGED);
        assertEquals(variables, SystemText.environment(variables, entries("HOME=/h\u00fcgel")));
        assertEquals(variables, SystemText.environment(variables, entries("OTHER=" + WHOLE)));
        assertEquals(variables, SystemText.environment(variables, folder.resolve("missing")));
    }

    @Test
    void theEnvironmentOfThisProcessHasAllVariables() {
        assertEquals(System.getenv().keySet(), SystemText.environment().keySet());
        assertEquals(System.getenv("PATH"), SystemText.environment().get("PATH"));
    }

    @Test
    void damagedPropertyIsReadFromTheArguments() throws IOException {
        Path arguments = entries(
                "java",
                "-Dx.dir=/h\u00fcgel",
                "-Dother.dir=" + WHOLE,
                "x-Dx.dir=" + WHOLE,
                "-Dx.dir=" + WHOLE,
                "\u00ff");
        assertEquals(WHOLE, SystemText.property("x.dir", DAMAGED, arguments));
        assertEquals(DAMAGED, SystemText.property("x", DAMAGED, arguments));
        assertEquals(DAMAGED, SystemText.property("x.dir", DAMAGED, entries("-Dother.dir=" + WHOLE)));
        assertEquals("/plain", SystemText.property("x.dir", "/plain", arguments));
        assertNull(SystemText.property("x.dir", null, arguments));
    }

    @Test
    void propertyOfThisProcess() {
        assertEquals(System.getProperty("java.home"), SystemText.property("java.home"));
        assertNull(SystemText.property("nccl4j.no.such.property"));
    }

    @Test
    void pathOfText() {
        assertEquals(Path.of("some/plain", "path"), SystemText.path("some/plain/path"));
        // Not the damaged neighbour: its bytes are unknown.
        InvalidPathException zero = assertThrows(InvalidPathException.class, () -> SystemText.path("/a\0b"));
        assertEquals("it has a character of code 0: /a\0b", zero.getMessage());
        InvalidPathException first = assertThrows(InvalidPathException.class, () -> SystemText.path("\0"));
        assertEquals("it has a character of code 0", first.getReason());
        InvalidPathException both = assertThrows(InvalidPathException.class, () -> SystemText.path("\ufffd\0"));
        assertEquals(SystemText.problem("\ufffd"), both.getReason());
    }

    @Test
    void pathOfUtf8Bytes() {
        assertEquals("/j%C3%BCrgen/a%20b/Z9%25", rawPath(SystemText.utf8Path(WHOLE + "/a b/Z9%")));
        // The first character that is not ASCII, and the last one that is.
        assertEquals("/%C2%80/%7F", rawPath(SystemText.utf8Path("/\u0080/\u007f")));
        assertEquals(rawPath(Path.of("").toAbsolutePath()) + "/%C3%BC/b", rawPath(SystemText.utf8Path("\u00fc/b")));
    }

    private static String rawPath(Path path) {
        String text = path.toUri().getRawPath();
        return text.endsWith("/") ? text.substring(0, text.length() - 1) : text;
    }

    @Test
    void textOfPath() throws IOException {
        assertEquals("some/path", SystemText.text(Path.of("some", "path")));
        // A folder that exists has a slash at the end of its URI.
        URI place = URI.create(folder.toUri() + "%FC");
        Path file = Path.of(place);
        assertEquals(folder + "/\ufffd", SystemText.text(file));
        assertEquals(folder + "/\ufffd", SystemText.text(Files.createDirectory(file)));
        // A damaged relative path becomes absolute.
        Path relative = Path.of("").toAbsolutePath().relativize(file);
        assertEquals(relative.toAbsolutePath().toUri().getPath().replaceAll("/$", ""), SystemText.text(relative));
    }

    @Test
    void problemOfText() {
        assertEquals("", SystemText.problem("plain"));
        assertEquals("it has a character of code 0", SystemText.problem("\0"));
        String damaged = SystemText.problem("\ufffd");
        assertEquals(damaged, SystemText.problem("a\ufffd"));
        assertEquals(
                "the locale, whose encoding is , cannot spell it; set LC_ALL=C.UTF-8",
                damaged.replaceAll("is [^,]*,", "is ,"));
    }

    @Test
    void textsOfC() {
        assertArrayEquals(new byte[] {'a', 0}, SystemText.toC("a"));
        assertEquals("a", SystemText.fromC(new byte[] {'a', 'b', 0}, 1));
        // The euro sign, whose bytes in UTF-8 no other encoding of a locale shares.
        byte[] euro = SystemText.toC("\u20ac");
        assertEquals(0, euro[euro.length - 1]);
        assertEquals("\u20ac", SystemText.fromC(euro, euro.length - 1));
        assertEquals("\ufffd", SystemText.fromC(new byte[] {(byte) 0xff}, 1));
    }
}
