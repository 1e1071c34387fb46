package io.github.nccl4j.tools;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.tools.support.ToolsJar;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.jar.JarFile;
import org.junit.jupiter.api.Test;

/** The jar of the command names each library that it contains, with its licence. */
class ThirdPartyTest {
    private static final String NOTICES = "META-INF/THIRD-PARTY.txt";

    @Test
    void eachLibraryIsNamedWithItsLicence() throws IOException {
        try (JarFile jar = new JarFile(ToolsJar.PATH);
                InputStream in = jar.getInputStream(jar.getEntry(NOTICES))) {
            List<String[]> libraries = new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .map(line -> line.split(" {2}"))
                    .filter(line -> line.length == 4)
                    .toList();
            List<String> folders = libraries.stream()
                    .map(line -> line[1].replace('.', '/') + "/")
                    .toList();
            List<String> unnamed = jar.stream()
                    .map(entry -> entry.getName())
                    .filter(name -> name.endsWith(".class") && !name.startsWith("io/github/nccl4j/"))
                    .filter(name -> folders.stream().noneMatch(name::startsWith))
                    .map(name -> name.substring(0, name.lastIndexOf('/')))
                    .distinct()
                    .toList();
            assertEquals(List.of(), unnamed);
            List<String> absent = folders.stream()
                    .filter(folder ->
                            jar.stream().noneMatch(entry -> entry.getName().startsWith(folder)))
                    .toList();
            assertEquals(List.of(), absent);
        }
    }
}
