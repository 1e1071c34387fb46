package io.github.nccl4j.mutation;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CheckoutTest {
    private static final String ENTRY = "p/Some.class";
    private static final byte[] NEW = {'n', 'e', 'w'};
    private static final String LIBRARY = "p/linux/libsome.so";

    @TempDir
    Path folder;

    private Path root;
    private Path compiled;
    private Path jar;
    private byte[] jarBefore;

    @BeforeEach
    void makeCheckout() throws IOException {
        root = folder.resolve("checkout");
        compiled = write("module/target/classes/" + ENTRY, "old");
        jar = root.resolve("other/target/other.jar");
        Files.createDirectories(jar.getParent());
        try (FileSystem entries =
                FileSystems.newFileSystem(URI.create("jar:" + jar.toUri()), Map.of("create", "true"))) {
            Files.createDirectories(entries.getPath("p/linux"));
            Files.writeString(entries.getPath(ENTRY), "old");
            Files.writeString(entries.getPath(LIBRARY), "old");
        }
        jarBefore = Files.readAllBytes(jar);
    }

    @Test
    void aClassIsReplacedWhereverItIs() throws IOException {
        Checkout checkout = new Checkout(root);
        checkout.replace(ENTRY, NEW);
        assertEquals("new", Files.readString(compiled));
        assertEquals("new", inJar(ENTRY));
        assertEquals("old", inJar(LIBRARY));
        checkout.restore();
        assertEquals("old", Files.readString(compiled));
        assertArrayEquals(jarBefore, Files.readAllBytes(jar));
    }

    @Test
    void aNewClassIsGoneAfterwards() throws IOException {
        Checkout checkout = new Checkout(root);
        checkout.replace(Map.of("p/New.class", NEW, ENTRY, NEW));
        Path added = compiled.resolveSibling("New.class");
        assertEquals("new", Files.readString(added));
        assertEquals("new", inJar("p/New.class"));
        checkout.restore();
        assertFalse(Files.exists(added));
        assertEquals("old", Files.readString(compiled));
        assertArrayEquals(jarBefore, Files.readAllBytes(jar));
    }

    @Test
    void nativeCodeIsCompiledAndPutIntoJars() throws IOException, InterruptedException {
        Path source = write("nccl-presets/src/main/native/glue/some.h", "one\ntwo\n");
        Path object = write("nccl-host/target/objects/linux/some.o", "old");
        Path library = write("nccl-presets/target/native/linux/" + LIBRARY, "old");
        write(
                "tests/mutation/compile-native",
                "grep -q TWO \"$1\" && echo new | tee " + object + " >" + library + "\n");
        Checkout checkout = new Checkout(root);
        String path = root.relativize(source).toString();
        assertFalse(checkout.changeNative(path, 0, "1"), "a line that does not compile");
        checkout.restore();
        assertTrue(checkout.changeNative(path, 1, "TWO"));
        assertEquals("one\nTWO\n", Files.readString(source));
        assertEquals("new\n", inJar(LIBRARY));
        checkout.restore();
        assertEquals("one\ntwo\n", Files.readString(source));
        assertEquals("old", Files.readString(object));
        assertEquals("old", Files.readString(library));
        assertArrayEquals(jarBefore, Files.readAllBytes(jar));
    }

    private Path write(String path, String text) throws IOException {
        Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        return Files.writeString(file, text);
    }

    private String inJar(String entry) throws IOException {
        try (FileSystem entries = FileSystems.newFileSystem(jar)) {
            return Files.readString(entries.getPath(entry));
        }
    }
}
