package io.github.nccl4j.header;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Writes the configuration of the bindings for GraalVM's native-image. Lists the elements that native code and JavaCPP look up by
 * name:
 *
 * <ul>
 *   <li>Classes with native methods and their superclasses, in whose annotations JavaCPP finds the library.
 *   <li>Pointer classes, which JavaCPP and native code instantiate.
 *   <li>Exceptions that native code throws, with the constructor that takes a message.
 *   <li>The method that native code calls, if there is one.
 *   <li>The native libraries, which are resources.
 * </ul>
 *
 * <p>JavaCPP's own generator of these files omits all constructors.
 */
public final class NativeImageConfig {
    private static final String POINTER = "org.bytedeco.javacpp.Pointer";
    private static final String MESSAGE_CONSTRUCTOR =
            "\"methods\": [{\"name\": \"<init>\", \"parameterTypes\": [\"java.lang.String\"]}]";
    private static final String CONSTRUCTORS = "\"allDeclaredConstructors\": true";

    /** The value of {@code --called} for native code that calls no method. */
    private static final String NONE = "none";

    /** Exceptions that JavaCPP's native code throws. */
    private static final List<String> JDK_EXCEPTIONS = List.of(
            "java.lang.NullPointerException",
            "java.lang.OutOfMemoryError",
            "java.lang.RuntimeException",
            "java.lang.UnsatisfiedLinkError");

    private NativeImageConfig() {}

    /**
     * Writes the files.
     *
     * <p>Usage: {@code --classes DIR --package NAME --called CLASS.METHOD|none --resources PATTERN,... --output DIR}.
     *
     * @param args the command line
     * @throws IOException if a file can't be read or written
     * @throws ClassNotFoundException if a class, or one to which it refers, is not on the class path
     * @throws IllegalStateException if no class has native methods, or if the number of methods with the name of the called one is
     *     not 1
     */
    public static void main(String... args) throws IOException, ClassNotFoundException {
        Arguments arguments = new Arguments(
                "NativeImageConfig --classes DIR --package NAME --called CLASS.METHOD|none --resources PATTERN,..."
                        + " --output DIR",
                args);
        Path classes = arguments.path("classes");
        String prefix = arguments.text("package") + ".";
        String folder = prefix.replace('.', '/');
        Map<String, String> entries = new TreeMap<>();
        for (String name : names(classes, folder)) {
            add(entries, load(name), prefix);
        }
        if (entries.isEmpty()) {
            throw new IllegalStateException("no class with native methods in " + classes.resolve(folder));
        }
        if (!arguments.text("called").equals(NONE)) {
            addCalled(entries, arguments.text("called"));
        }
        JDK_EXCEPTIONS.forEach(name -> entries.put(name, MESSAGE_CONSTRUCTOR));
        Path output = Files.createDirectories(arguments.path("output"));
        String list = entries.entrySet().stream()
                .map(entry -> "  {\"name\": \"" + entry.getKey() + "\""
                        + (entry.getValue().isEmpty() ? "" : ", " + entry.getValue()) + "}")
                .collect(Collectors.joining(",\n", "[\n", "\n]\n"));
        GeneratedFile.write(output.resolve("jni-config.json"), list);
        GeneratedFile.write(output.resolve("reflect-config.json"), list);
        GeneratedFile.write(
                output.resolve("resource-config.json"),
                Stream.of(arguments.text("resources").split(","))
                        .map(pattern -> "    {\"pattern\": \"" + pattern.replace("\\", "\\\\") + "\"}")
                        .collect(Collectors.joining(",\n", "{\n  \"resources\": {\"includes\": [\n", "\n  ]}\n}\n")));
    }

    /** The names of the classes below {@code folder}, which ends with a slash and is relative to {@code classes}. */
    static List<String> names(Path classes, String folder) throws IOException {
        try (Stream<Path> files = Files.walk(classes.resolve(folder))) {
            return files.filter(file -> file.toString().endsWith(".class"))
                    .map(file -> classes.relativize(file).toString())
                    .map(file ->
                            file.substring(0, file.length() - ".class".length()).replace('/', '.'))
                    .sorted()
                    .toList();
        }
    }

    private static void add(Map<String, String> entries, Class<?> type, String prefix) {
        List<Method> natives = Arrays.stream(type.getDeclaredMethods())
                .filter(method -> Modifier.isNative(method.getModifiers()))
                .toList();
        boolean pointer = isPointer(type);
        if (natives.isEmpty() && !pointer) {
            return;
        }
        entries.put(type.getName(), pointer ? CONSTRUCTORS : "");
        // JavaCPP's jar configures its own superclasses.
        for (Class<?> ancestor = type.getSuperclass();
                ancestor.getName().startsWith(prefix);
                ancestor = ancestor.getSuperclass()) {
            entries.putIfAbsent(ancestor.getName(), isPointer(ancestor) ? CONSTRUCTORS : "");
        }
        for (String exception : thrown(natives)) {
            entries.put(exception, MESSAGE_CONSTRUCTOR);
        }
        // Pointers of CUDA's presets, whose jars have no configuration.
        natives.stream()
                .map(Method::getReturnType)
                .filter(NativeImageConfig::isPointer)
                .map(Class::getName)
                .filter(name -> !name.startsWith(prefix) && !name.startsWith("org.bytedeco.javacpp."))
                .forEach(name -> entries.putIfAbsent(name, CONSTRUCTORS));
    }

    /** Adds the method that native code calls; there must be only one with its name. */
    private static void addCalled(Map<String, String> entries, String called) throws ClassNotFoundException {
        int dot = called.lastIndexOf('.');
        String type = called.substring(0, dot);
        String name = called.substring(dot + 1);
        List<Method> methods = Arrays.stream(load(type).getDeclaredMethods())
                .filter(method -> method.getName().equals(name))
                .toList();
        if (methods.size() != 1) {
            throw new IllegalStateException("there must be 1 method " + called + ": " + methods.size());
        }
        String parameters = Arrays.stream(methods.get(0).getParameterTypes())
                .map(parameter -> "\"" + parameter.getTypeName() + "\"")
                .collect(Collectors.joining(", "));
        entries.put(type, "\"methods\": [{\"name\": \"" + name + "\", \"parameterTypes\": [" + parameters + "]}]");
    }

    static Class<?> load(String name) throws ClassNotFoundException {
        return Class.forName(name, false, Thread.currentThread().getContextClassLoader());
    }

    private static TreeSet<String> thrown(List<Method> natives) {
        return natives.stream()
                .flatMap(method -> Arrays.stream(method.getExceptionTypes()))
                .map(Class::getName)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static boolean isPointer(Class<?> type) {
        for (Class<?> ancestor = type; ancestor != null; ancestor = ancestor.getSuperclass()) {
            if (ancestor.getName().equals(POINTER)) {
                return true;
            }
        }
        return false;
    }
}
