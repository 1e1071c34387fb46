package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import org.junit.jupiter.params.provider.ValueSource;

/** What the jar tells GraalVM's native-image, compared with the classes and with the strings of the native library. */
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
    @ValueSource(strings = {"nccl/jni-config.json", "nccl/reflect-config.json", "highlevel/reflect-config.json"})
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
        try (Stream<Path> files = Files.list(Path.of("../nccl-presets/src/main/native/glue"))) {
            for (Path file : files.toList()) {
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
        }
        assertTrue(found > 0);
    }

    @Test
    void classesWithNativeMethodsAndPointersAreNamed() throws Exception {
        Set<String> expected = new TreeSet<>();
        Path jar = Path.of(
                nccl.class.getProtectionDomain().getCodeSource().getLocation().toURI());
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
        assertTrue(expected.size() > 8, expected.toString());
        expected.removeAll(entries("nccl/jni-config.json").keySet());
        assertEquals(Set.of(), expected);
        assertEquals(entries("nccl/jni-config.json"), entries("nccl/reflect-config.json"));
    }

    @Test
    void whatTheNativeLibraryLooksUpIsNamed() throws Exception {
        Set<String> looked = classesIn(nccl.class, "libjninccl4j.so");
        assertTrue(looked.contains("io.github.nccl4j.highlevel.NcclLibraryException"), looked.toString());
        Map<String, String> ours = entries("nccl/jni-config.json");
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
    private static Set<String> classesIn(Class<?> neighbour, String library) throws IOException {
        String path = "/io/github/nccl4j/" + Loader.getPlatform() + "/" + library;
        try (InputStream in = neighbour.getResourceAsStream(path)) {
            String bytes = new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
            return Pattern.compile("\0([a-z]+(?:/[A-Za-z0-9_$]+){2,})(?=\0)")
                    .matcher(bytes)
                    .results()
                    .map(name -> name.group(1).replace('/', '.'))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }

    @Test
    void theNativeLibrariesAreResources() throws IOException {
        List<Pattern> patterns = Pattern.compile("\"pattern\": \"([^\"]+)\"")
                .matcher(text(FOLDER + "nccl/resource-config.json"))
                .results()
                .map(found -> Pattern.compile(found.group(1).replace("\\\\", "\\")))
                .toList();
        for (String library : List.of("%s/libjninccl4j.so", "host/%s/libnccl4j_host.so")) {
            String name = "io/github/nccl4j/" + String.format(Locale.ROOT, library, Loader.getPlatform());
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
