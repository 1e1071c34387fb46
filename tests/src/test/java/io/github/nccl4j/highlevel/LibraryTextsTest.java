package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.internal.binding.CudaBanner;
import io.github.nccl4j.internal.binding.LibraryTexts;
import io.github.nccl4j.tests.Cxx;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.LongUnaryOperator;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LibraryTextsTest {
    private static final String SOURCE = """
            extern "C" const char first[] = "NCCL version unknown";
            extern "C" const char second[] = "NCCL version 2.30.1+cuda13.2 and more";
            extern "C" char written[] = "a text that changes";
            """;

    /* Of the header of an ELF file. */
    private static final int CLASS = 4;
    private static final int ENDIANNESS = 5;
    private static final int SECTIONS_AT = 0x28;
    private static final int SECTION_COUNT = 0x3c;
    private static final int NAMES_INDEX = 0x3e;

    /* Of the header of a section. */
    private static final int SECTION_OFFSET = 0x18;
    private static final int SECTION_SIZE = 0x20;

    @TempDir
    static Path folder;

    private static byte[] library;

    @BeforeAll
    static void make() throws IOException {
        library = Files.readAllBytes(Cxx.library(folder, "texts", SOURCE));
    }

    private static Optional<LibraryTexts> texts(byte[] bytes) throws IOException {
        return LibraryTexts.of(Files.write(folder.resolve("changed.so"), bytes));
    }

    private static ByteBuffer copy() {
        return ByteBuffer.wrap(library.clone()).order(ByteOrder.LITTLE_ENDIAN);
    }

    @Test
    void constantsAreFoundAndNothingElse() throws IOException {
        LibraryTexts texts = texts(library).orElseThrow();
        assertTrue(texts.contain("NCCL version"));
        assertTrue(texts.contain("more\0"));
        assertFalse(texts.contain("NCCL versions"));
        assertFalse(texts.contain("a text that changes"));
        int first = texts.indexOf("NCCL", 0);
        int second = texts.indexOf("NCCL", first + 1);
        assertEquals(first, texts.indexOf("NCCL", first));
        assertEquals("NCCL version unknown\0", texts.at(first, 21));
        assertTrue(texts.at(second, 1000).startsWith("NCCL version 2.30.1+cuda13.2 and more\0"));
        assertEquals(-1, texts.indexOf("NCCL", second + 1));
    }

    @Test
    void theBannerIsTheFirstOneWithARelease() throws IOException {
        Path file = Files.write(folder.resolve("banner.so"), library);
        assertEquals(Optional.of("13.2"), CudaBanner.read(file));
        String other = SOURCE.replace("+cuda", "");
        assertEquals(Optional.empty(), CudaBanner.read(Cxx.library(folder, "none", other)));
    }

    /** The last bytes of the section are looked at, too. */
    @Test
    void aTextAtTheEndIsFound() throws IOException {
        LibraryTexts texts = texts(library).orElseThrow();
        int end = texts.indexOf("NCCL", 0);
        while (texts.at(end, 1000).length() > 4) {
            end++;
        }
        String last = texts.at(end, 4);
        assertEquals(4, last.length());
        assertTrue(texts.indexOf(last, end) == end);
        assertEquals(-1, texts.indexOf(last + "x", end));
    }

    @Test
    void whatIsNo64BitElfFileHasNoTexts() throws IOException {
        assertEquals(Optional.empty(), texts(new byte[0]));
        assertEquals(Optional.empty(), texts(new byte[63]));
        assertEquals(Optional.empty(), texts("x".repeat(5000).getBytes(StandardCharsets.US_ASCII)));
        assertEquals(Optional.empty(), texts(copy().put(1, (byte) 'X').array()));
        assertEquals(Optional.empty(), texts(copy().put(CLASS, (byte) 1).array()));
        assertEquals(Optional.empty(), texts(copy().put(ENDIANNESS, (byte) 2).array()));
        assertThrows(NoSuchFileException.class, () -> LibraryTexts.of(folder.resolve("missing.so")));
    }

    @Test
    void aBrokenTableOfSectionsHasNoTexts() throws IOException {
        assertEquals(
                Optional.empty(),
                texts(copy().putLong(SECTIONS_AT, library.length).array()));
        assertEquals(Optional.empty(), texts(copy().putLong(SECTIONS_AT, -1).array()));
        int count = copy().getShort(SECTION_COUNT);
        assertEquals(
                Optional.empty(),
                texts(copy().putShort(NAMES_INDEX, (short) count).array()));
        assertEquals(
                Optional.empty(),
                texts(copy().putShort(SECTION_COUNT, (short) 0).array()));
        assertEquals(
                Optional.empty(),
                texts(copy().putShort(SECTION_COUNT, (short) -1).array()));
    }

    @Test
    void aSectionThatReachesBeyondTheFileIsNotRead() throws IOException {
        ByteBuffer changed = copy();
        int table = (int) changed.getLong(SECTIONS_AT);
        for (int i = 0; i < changed.getShort(SECTION_COUNT); i++) {
            int offset = table + 64 * i + 0x18;
            if (i != changed.getShort(NAMES_INDEX)) {
                changed.putLong(offset, library.length - 1);
            }
        }
        assertEquals(Optional.empty(), texts(changed.array()));
        ByteBuffer names = copy();
        names.putLong(table + 64 * names.getShort(NAMES_INDEX) + 0x20, Long.MAX_VALUE);
        assertEquals(Optional.empty(), texts(names.array()));
    }

    /** The library with other values in the headers of all sections but that of the names. */
    private static byte[] sections(int field, LongUnaryOperator valueOfSize) {
        ByteBuffer changed = copy();
        int table = (int) changed.getLong(SECTIONS_AT);
        for (int i = 0; i < changed.getShort(SECTION_COUNT); i++) {
            int header = table + 64 * i;
            if (i != changed.getShort(NAMES_INDEX)) {
                changed.putLong(header + field, valueOfSize.applyAsLong(changed.getLong(header + SECTION_SIZE)));
            }
        }
        return changed.array();
    }

    @Test
    void aSectionMayReachFromTheBeginningOrToTheEndOfTheFile() throws IOException {
        assertEquals(
                "\177ELF",
                texts(sections(SECTION_OFFSET, size -> 0)).orElseThrow().at(0, 4));
        LibraryTexts last =
                texts(sections(SECTION_OFFSET, size -> library.length - size)).orElseThrow();
        assertEquals((char) (library[library.length - 1] & 0xff), lastCharacter(last));
        assertFalse(texts(sections(SECTION_SIZE, size -> 0)).orElseThrow().contain("NCCL"));
    }

    private static char lastCharacter(LibraryTexts texts) {
        String all = texts.at(0, Integer.MAX_VALUE);
        return all.charAt(all.length() - 1);
    }

    @Test
    void aFileWithoutReadOnlyDataHasNoTexts() throws IOException {
        String bytes = new String(library, StandardCharsets.ISO_8859_1);
        byte[] renamed = bytes.replace("\0.rodata\0", "\0.rxdata\0").getBytes(StandardCharsets.ISO_8859_1);
        assertEquals(Optional.empty(), texts(renamed));
    }

    @Test
    void aNameBehindTheTableOfNamesIsNone() throws IOException {
        ByteBuffer changed = copy();
        int table = (int) changed.getLong(SECTIONS_AT);
        long namesSize = changed.getLong(table + 64 * changed.getShort(NAMES_INDEX) + SECTION_SIZE);
        changed.putInt(table, (int) namesSize);
        assertTrue(texts(changed.array()).orElseThrow().contain("NCCL version"));
    }
}
