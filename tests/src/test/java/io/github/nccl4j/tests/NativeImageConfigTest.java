package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.extensions.global.nccl_m2n;
import io.github.nccl4j.global.nccl;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.Pointer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the jars tell GraalVM's native-image, compared with the classes and with the strings of the native libraries. */
class NativeImageConfigTest {
    private static final String FOLDER = "/META-INF/native-image/io.github.nccl4j/";
    private static final Pattern ENTRY = Pattern.compile("\"name\": \"([^\"]+)\"([^\\n]*)");
    private static final Pattern METHOD =
            Pattern.compile("\\{\"name\": \"([^\"]+)\", \"parameterTypes\": \\[([^\\]]*)\\]}");
    private static final String CONSTRUCTOR = "<init>";
    /** How native code looks for a method: its name, and the types of its parameters as the JVM writes them. */
    private static final Pattern LOOKED_UP =
            Pattern.compile("Get(?:Static)?MethodID\\(\\w+, \"(\\w+)\", \"\\(([^)]*)\\)");

    private static final String JAVACPP =
            "/META-INF/native-image/" + Loader.getPlatform() + "/jnijavacpp/jni-config.json";

    /** A jar with native code. */
    private enum Bindings {
        NCCL("nccl", nccl.class, "", "libjninccl4j.so", 8),
        EXTENSIONS("nccl-extensions", nccl_m2n.class, "extensions/", "libjninccl4jextensions.so", 20);

        /** The folder of the configuration. */
        final String folder;

        final Class<?> type;

        /** The resource of the library. */
        final String library;

        /** How many classes have native methods or are pointers, at least. */
        final int least;

        Bindings(String artifact, Class<?> type, String place, String library, int least) {
            folder = artifact + "/";
            this.type = type;
            this.library = "io/github/nccl4j/" + place + Loader.getPlatform() + "/" + library;
            this.least = least;
        }
    }

    private static String text(String resource) throws IOException {
        try (InputStream in = nccl.class.getResourceAsStream(resource)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    /** Names, and what follows each in its line. */
    private static Map<String, String> entries(String file) throws IOException {
        Map<String, String> entries = new TreeMap<>();
        for (String line : text(FOLDER + file).lines().toList()) {
            var found = ENTRY.matcher(line);
            if (found.find()) {
                entries.put(found.group(1), found.group(2));
            }
        }
        assertFalse(entries.isEmpty(), file);
        return entries;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "nccl/jni-config.json",
                "nccl/reflect-config.json",
                "highlevel/reflect-config.json",
                "nccl-extensions/jni-config.json",
                "nccl-extensions/reflect-config.json"
            })
    void whatIsNamedExists(String file) throws Exception {
        for (Map.Entry<String, String> entry : entries(file).entrySet()) {
            if (entry.getKey().startsWith("java.lang.foreign.")
                    && Runtime.version().feature() < 22) {
                continue;
            }
            Class<?> type = Class.forName(entry.getKey(), false, getClass().getClassLoader());
            if (entry.getValue().contains("allDeclaredConstructors")) {
                assertTrue(type.getDeclaredConstructors().length > 0, type.getName());
            }
            for (MatchResult method : METHOD.matcher(entry.getValue()).results().toList()) {
                Class<?>[] parameters = parameters(method.group(2));
                if (method.group(1).equals(CONSTRUCTOR)) {
                    type.getDeclaredConstructor(parameters);
                } else {
                    type.getDeclaredMethod(method.group(1), parameters);
                }
            }
        }
    }

    /** {@code "int", "java.lang.String"}. */
    private static Class<?>[] parameters(String list) throws ClassNotFoundException {
        List<Class<?>> types = new ArrayList<>();
        for (String name :
                list.isEmpty() ? new String[0] : list.replace("\"", "").split(", ")) {
            types.add(
                    switch (name) {
                        case "int" -> int.class;
                        case "long" -> long.class;
                        default -> Class.forName(name);
                    });
        }
        return types.toArray(Class<?>[]::new);
    }

    @Test
    void methodsThatNativeCodeCallsAreNamed() throws Exception {
        String config = text(FOLDER + "nccl/jni-config.json");
        int found = 0;
        List<Path> all = new ArrayList<>();
        for (String module : List.of("nccl-presets", "nccl-extensions")) {
            try (Stream<Path> files = Files.list(Path.of("..", module, "src/main/native/glue"))) {
                all.addAll(files.toList());
            }
        }
        for (Path file : all) {
            for (MatchResult method :
                    LOOKED_UP.matcher(Files.readString(file)).results().toList()) {
                found++;
                String parameters =
                        MethodType.fromMethodDescriptorString("(" + method.group(2) + ")V", null)
                                .parameterList()
                                .stream()
                                .map(type -> "\"" + type.getTypeName() + "\"")
                                .collect(Collectors.joining(", "));
                String entry = "{\"name\": \"" + method.group(1) + "\", \"parameterTypes\": [" + parameters + "]}";
                assertTrue(config.contains(entry), () -> entry + " of " + file + " is not in " + config);
            }
        }
        assertTrue(found > 0);
    }

    @ParameterizedTest
    @EnumSource
    void classesWithNativeMethodsAndPointersAreNamed(Bindings bindings) throws Exception {
        Set<String> expected = new TreeSet<>();
        Path jar = Path.of(bindings.type
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
        try (JarFile file = new JarFile(jar.toFile())) {
            for (String name : file.stream().map(Object::toString).toList()) {
                if (!name.matches("io/github/.*\\.class")) {
                    continue;
                }
                Class<?> type = Class.forName(
                        name.substring(0, name.length() - ".class".length()).replace('/', '.'),
                        false,
                        getClass().getClassLoader());
                Method[] methods = type.getDeclaredMethods();
                if (Pointer.class.isAssignableFrom(type)
                        || Arrays.stream(methods).anyMatch(method -> Modifier.isNative(method.getModifiers()))) {
                    expected.add(type.getName());
                }
            }
        }
        assertTrue(expected.size() > bindings.least, expected.toString());
        Map<String, String> config = entries(bindings.folder + "jni-config.json");
        expected.removeAll(config.keySet());
        assertEquals(Set.of(), expected);
        assertEquals(config, entries(bindings.folder + "reflect-config.json"));
    }

    @ParameterizedTest
    @EnumSource
    void whatTheNativeLibraryLooksUpIsNamed(Bindings bindings) throws Exception {
        Set<String> looked = classesIn(bindings);
        assertTrue(looked.contains("io.github.nccl4j.highlevel.NcclLibraryException"), looked.toString());
        Map<String, String> ours = entries(bindings.folder + "jni-config.json");
        Set<String> javacpp = Pattern.compile("\"name\"\\s*:\\s*\"([^\"]+)\"")
                .matcher(text(JAVACPP))
                .results()
                .map(name -> name.group(1))
                .collect(Collectors.toSet());
        List<String> missing = new ArrayList<>();
        for (String name : looked) {
            Class<?> type = Class.forName(name, false, getClass().getClassLoader());
            if (!ours.containsKey(name) && !javacpp.contains(name)) {
                missing.add(name);
            }
            if (Throwable.class.isAssignableFrom(type)) {
                assertTrue(ours.getOrDefault(name, "").contains(CONSTRUCTOR), name + " needs its constructor");
            }
        }
        assertEquals(List.of(), missing);
    }

    /** The names of classes among the strings of a native library: "java/lang/Object". */
    private static Set<String> classesIn(Bindings bindings) throws IOException {
        try (InputStream in = bindings.type.getResourceAsStream("/" + bindings.library)) {
            String bytes = new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
            return Pattern.compile("\0([a-z]+(?:/[A-Za-z0-9_$]+){2,})(?=\0)")
                    .matcher(bytes)
                    .results()
                    .map(name -> name.group(1).replace('/', '.'))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }

    @ParameterizedTest
    @EnumSource
    void theNativeLibrariesAreResources(Bindings bindings) throws IOException {
        List<Pattern> patterns = Pattern.compile("\"pattern\": \"([^\"]+)\"")
                .matcher(text(FOLDER + bindings.folder + "resource-config.json"))
                .results()
                .map(found -> Pattern.compile(found.group(1).replace("\\\\", "\\")))
                .toList();
        List<String> names = new ArrayList<>(List.of(bindings.library));
        if (bindings == Bindings.NCCL) {
            names.add(String.format(Locale.ROOT, "io/github/nccl4j/host/%s/libnccl4j_host.so", Loader.getPlatform()));
        }
        assertEquals(names.size(), patterns.size());
        for (String name : names) {
            assertTrue(nccl.class.getResource("/" + name) != null, name);
            assertEquals(
                    1,
                    patterns.stream()
                            .filter(pattern -> pattern.matcher(name).matches())
                            .count(),
                    name);
        }
    }
}
