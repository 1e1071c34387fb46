import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermission;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.spi.ToolProvider;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

/**
 * Prepares the run of test classes: compiles what has changed since the last build, and puts it into the jars. Run by
 * {@code ./nccl4j test-one} as a source file. Maven builds what this program cannot: the first time, and when a POM, the
 * header, native code of the bindings or a native method has changed.
 *
 * <p>A class is out of date if its source is younger or its class file is missing. The classes that name a changed class are
 * compiled again if that class's declarations have changed; in later modules their class files are deleted, so that an
 * interrupted run leaves nothing that looks up to date.
 *
 * <p>Arguments: the root of the checkout, the file for the command that runs the tests, one word a line, and the tests,
 * {@code CLASS} or {@code CLASS#METHOD}; or the root, a folder, {@code --commands} and modules: compiles nothing, and writes for each
 * module a file of its name, with dots for slashes, with the command up to the class path.
 */
public final class TestOne {
    private final Path root;
    private final List<String> modules = new ArrayList<>();
    private final Map<String, String> profiles = new LinkedHashMap<>();
    private final Map<String, String> properties = new TreeMap<>();
    private final List<String> options;

    public static void main(String[] args) throws Exception {
        try {
            TestOne program = new TestOne(Path.of(args[0]));
            List<String> words = List.of(args).subList(2, args.length);
            if (words.get(0).equals("--commands")) {
                for (String module : words.subList(1, words.size())) {
                    Files.write(Path.of(args[1], module.replace('/', '.')), program.jvm(module, List.of()));
                }
            } else {
                program.prepare(Path.of(args[1]), words);
            }
        } catch (IllegalStateException problem) {
            System.err.println("nccl4j: " + problem.getMessage());
            System.exit(2);
        }
    }

    private TestOne(Path root) throws Exception {
        this.root = root.toRealPath();
        Element pom = xml(this.root.resolve("pom.xml"));
        for (Element module : children(child(pom, "modules"), "module")) {
            modules.add(module.getTextContent());
        }
        for (Element profile : children(child(pom, "profiles"), "profile")) {
            for (Element module : children(child(profile, "modules"), "module")) {
                profiles.putIfAbsent(
                        module.getTextContent(), child(profile, "id").getTextContent());
            }
        }
        modules.addAll(profiles.keySet());
        readProperties(pom);
        String architecture = System.getProperty("os.arch").equals("aarch64") ? "arm64" : "x86_64";
        properties.put("javacpp.platform", "linux-" + architecture);
        properties.put("java.home", System.getProperty("java.home"));
        properties.put("maven.multiModuleProjectDirectory", this.root.toString());
        options = Stream.concat(
                        Stream.of("-proc:none", "-g", "--release", properties.get("maven.compiler.release")),
                        descendants(pom, "compilerArgs").stream()
                                .flatMap(arguments -> children(arguments, "arg").stream())
                                .map(Element::getTextContent))
                .collect(Collectors.toCollection(ArrayList::new));
        // Jars name others in their manifests, and a module may have no classes.
        options.add("-Xlint:-path");
    }

    private void prepare(Path command, List<String> tests) throws Exception {
        Set<String> classes = new LinkedHashSet<>();
        List<String> methods = new ArrayList<>();
        String module = null;
        for (String test : tests) {
            String[] parts = test.split("#", 2);
            Path file = testFile(parts[0]);
            String its = moduleOf(file);
            if (module != null && !module.equals(its)) {
                throw new IllegalStateException("all tests must be of one module: " + module + " and " + its);
            }
            module = its;
            String name = className(root.resolve(its).resolve("src/test/java").relativize(file));
            classes.add(name);
            methods.add(Pattern.quote(name) + (parts.length == 1 ? "(\\$.*)?#.*" : "#" + Pattern.quote(parts[1])));
        }
        build(module);
        List<String> words = jvm(module, console());
        words.addAll(List.of("org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner"));
        words.addAll(List.of("--details=tree", "--fail-if-no-tests"));
        classes.forEach(name -> words.add("--select-class=" + name));
        // To select a method would take the types of its parameters.
        methods.forEach(pattern -> words.add("--include-methodname=" + pattern));
        Files.write(command, words);
    }

    /** The module whose target or src folder has a file. */
    private String moduleOf(Path file) {
        return root.relativize(file).toString().replaceAll("/(src|target)/.*", "");
    }

    /** The source of a test class, which is given by its simple or its full name. */
    private Path testFile(String name) throws IOException {
        String end = "/" + name.replace('.', '/') + ".java";
        List<Path> found = new ArrayList<>();
        for (String module : modules) {
            Path tests = root.resolve(module).resolve("src/test/java");
            found.addAll(files(tests).stream()
                    .filter(file -> file.toString().endsWith(end))
                    .toList());
        }
        if (found.size() != 1) {
            throw new IllegalStateException(
                    found.isEmpty() ? "no such test class: " + name : name + " is the name of several: " + found);
        }
        return found.get(0);
    }

    // --- build -------------------------------------------------------------------------------------------------------

    private void build(String module) throws Exception {
        Path stamp = root.resolve(module + "/target/test-one.stamp");
        String state = Files.exists(stamp) ? mavenInput(module) : "";
        if (state.isEmpty() || !Files.readString(stamp).equals(state) || !compile(module)) {
            maven(module);
            // What Maven leaves alone, such as an old class file that no change of a source made old.
            compile(module);
            Files.writeString(stamp, mavenInput(module));
        }
    }

    private void maven(String module) throws Exception {
        System.err.println("nccl4j: building " + module + " with Maven ...");
        List<String> command = new ArrayList<>(List.of("mvn", "-B", "-q", "-ntp", "-pl", module, "-am", "-DskipTests"));
        if (profiles.containsKey(module)) {
            command.add("-P" + profiles.get(module));
        }
        command.addAll(List.of("-Dspotless.check.skip=true", "-Dmaven.javadoc.skip=true", "-Dmaven.source.skip=true"));
        command.add("package");
        run(root, command);
    }

    /** What only Maven can build from, as text: names, sizes and times. */
    private String mavenInput(String module) throws IOException {
        List<Path> input = new ArrayList<>(List.of(root.resolve("pom.xml")));
        for (String needed : needed(module)) {
            Path folder = root.resolve(needed);
            input.add(folder.resolve("pom.xml"));
            for (String part : List.of(
                    "src/main/native",
                    "src/main/module",
                    "src/main/java/io/github/nccl4j/presets",
                    "src/main/java/io/github/nccl4j/extensions/presets")) {
                input.addAll(files(folder.resolve(part)));
            }
        }
        StringBuilder state = new StringBuilder();
        for (Path file : input) {
            state.append(root.relativize(file))
                    .append(' ')
                    .append(Files.size(file))
                    .append(' ')
                    .append(Files.getLastModifiedTime(file).toMillis())
                    .append('\n');
        }
        return state.toString();
    }

    /** The module and those that its tests use, in the order of the build. */
    private List<String> needed(String module) throws IOException {
        Set<String> needed = new LinkedHashSet<>(List.of(module));
        for (String entry : testClassPath(module)) {
            Path path = Path.of(entry);
            if (path.startsWith(root)) {
                needed.add(moduleOf(path));
            }
        }
        // In the jar of the command.
        if (needed.contains("nccl-tools")) {
            needed.addAll(List.of("nccl-header", "nccl-presets", "nccl-host", "nccl-extensions", "samples"));
        }
        return modules.stream().filter(needed::contains).toList();
    }

    private List<String> testClassPath(String module) throws IOException {
        Path file = root.resolve(module + "/target/test-classpath");
        return Files.exists(file) ? List.of(Files.readString(file).trim().split(File.pathSeparator)) : List.of();
    }

    /** Compiles what is out of date. Returns false if that takes Maven. */
    private boolean compile(String module) throws Exception {
        if (testClassPath(module).isEmpty()) {
            return false;
        }
        List<String> needed = needed(module);
        for (String each : needed) {
            if (each.equals("nccl-host") && !engine()) {
                return false;
            }
            if (!compile(each, "main")) {
                return false;
            }
            // Those of the command have what other tests share.
            if (each.equals(module) || each.equals("nccl-tools")) {
                compile(each, "test");
            }
        }
        return true;
    }

    private boolean compile(String module, String kind) throws Exception {
        Path sources = root.resolve(module + "/src/" + kind + "/java");
        Path output = root.resolve(module + "/target/" + (kind.equals("main") ? "classes" : "test-classes"));
        Set<Path> changed = new TreeSet<>();
        for (Map.Entry<Path, Path> resource : resources(module, kind).entrySet()) {
            Path copy = output.resolve(resource.getKey());
            if (isOlder(copy, resource.getValue())) {
                Files.createDirectories(copy.getParent());
                Files.copy(resource.getValue(), copy, StandardCopyOption.REPLACE_EXISTING);
                changed.add(resource.getKey());
            }
        }
        Set<Path> outdated = new TreeSet<>();
        for (Path source : files(sources)) {
            Path name = sources.relativize(source);
            Path compiled = output.resolve(name.toString().replaceAll("\\.java$", ".class"));
            if (isOlder(compiled, source) && (Files.exists(compiled) || !name.endsWith("package-info.java"))) {
                outdated.add(name);
            }
        }
        Set<Path> gone = withoutSource(module, sources, output);
        if (!outdated.isEmpty() || !gone.isEmpty()) {
            System.err.println("nccl4j: compiling " + outdated.size() + " of " + module + ", " + kind + " ...");
            Path fresh = Files.createTempDirectory("nccl4j-classes");
            try {
                Set<Path> declared = new TreeSet<>(gone);
                for (Path old : gone) {
                    Files.delete(output.resolve(old));
                    changed.add(old);
                }
                Set<Path> again = new TreeSet<>(outdated);
                again.addAll(users(gone, sources, output));
                // As long as the new declarations reach further classes.
                while (!again.isEmpty()) {
                    outdated.addAll(again);
                    javac(module, kind, sources, outdated, fresh, output);
                    Set<Path> redeclared = redeclared(fresh, output, kind.equals("main"));
                    if (redeclared == null) {
                        return false;
                    }
                    declared.addAll(redeclared);
                    again = users(declared, sources, output);
                    again.removeAll(outdated);
                }
                if (kind.equals("main") && !declared.isEmpty()) {
                    forget(declared, module);
                }
                for (Path old : classesOf(outdated, output)) {
                    Files.delete(output.resolve(old));
                    changed.add(old);
                }
                for (Path file : files(fresh)) {
                    Path name = fresh.relativize(file);
                    Files.createDirectories(output.resolve(name).getParent());
                    Files.move(file, output.resolve(name), StandardCopyOption.REPLACE_EXISTING);
                    changed.add(name);
                }
            } finally {
                delete(fresh);
            }
        }
        // Also into jars that this run does not need: the next run does not see the change any more.
        patch(output, changed, kind.equals("main") ? modules : List.of(module), kind.equals("test"));
        return true;
    }

    /** The files that Maven copies as they are, by their names in the output: those of the usual folder, and those that the POM names. */
    private Map<Path, Path> resources(String module, String kind) throws Exception {
        Map<Path, Path> resources = new TreeMap<>();
        Path usual = root.resolve(module + "/src/" + kind + "/resources");
        for (Path file : files(usual)) {
            resources.put(Path.of(usual.relativize(file).toString()), file);
        }
        if (kind.equals("main")) {
            for (Element resource : descendants(xml(root.resolve(module + "/pom.xml")), "resource")) {
                Path folder = root.resolve(module)
                        .resolve(text(resource, "directory"))
                        .normalize();
                for (Element include : children(child(resource, "includes"), "include")) {
                    resources.put(
                            Path.of(text(resource, "targetPath"), include.getTextContent()),
                            folder.resolve(include.getTextContent()));
                }
            }
        }
        return resources;
    }

    /** Classes, relative to the output, that no source makes any more. */
    private Set<Path> withoutSource(String module, Path sources, Path output) throws IOException {
        Set<Path> gone = new TreeSet<>();
        Path generated = root.resolve(module + "/target/generated-sources/javacpp");
        for (Path file : files(output)) {
            String name = output.relativize(file).toString();
            if (name.endsWith(".class") && !name.equals("module-info.class")) {
                String source = name.replaceAll("(\\$.*)?\\.class$", ".java");
                if (!Files.exists(sources.resolve(source)) && !Files.exists(generated.resolve(source))) {
                    gone.add(output.relativize(file));
                }
            }
        }
        return gone;
    }

    private void javac(String module, String kind, Path sources, Set<Path> names, Path fresh, Path output)
            throws IOException {
        List<String> arguments = new ArrayList<>(options);
        List<String> path = new ArrayList<>(List.of(fresh.toString(), output.toString()));
        if (kind.equals("test")) {
            path.add(root.resolve(module + "/target/classes").toString());
        }
        path.addAll(testClassPath(module));
        arguments.addAll(
                List.of("-implicit:none", "-d", fresh.toString(), "-cp", String.join(File.pathSeparator, path)));
        names.forEach(name -> arguments.add(sources.resolve(name).toString()));
        if (tool("javac").run(System.err, System.err, arguments.toArray(String[]::new)) != 0) {
            throw new IllegalStateException(module + " does not compile");
        }
    }

    /** The new classes whose declarations differ from the old ones; null if that of a native method of the bindings does. */
    private static Set<Path> redeclared(Path fresh, Path output, boolean bindings) throws IOException {
        Set<Path> redeclared = new TreeSet<>();
        Map<Path, String> now =
                declarations(fresh, files(fresh).stream().map(fresh::relativize).toList());
        Map<Path, String> before = declarations(output, List.copyOf(now.keySet()));
        for (Map.Entry<Path, String> each : now.entrySet()) {
            String old = before.getOrDefault(each.getKey(), "");
            if (!old.equals(each.getValue())) {
                redeclared.add(each.getKey());
            }
            if (bindings && !lines(old, " native ").equals(lines(each.getValue(), " native "))) {
                return null;
            }
        }
        return redeclared;
    }

    private static List<String> lines(String declarations, String word) {
        return declarations.lines().filter(line -> line.contains(word)).toList();
    }

    /** What other classes can use of each class that exists, constants with their values, and all native methods. */
    private static Map<Path, String> declarations(Path folder, List<Path> names) {
        List<Path> existing = names.stream()
                .filter(name -> Files.exists(folder.resolve(name)))
                .toList();
        Map<Path, String> declarations = new TreeMap<>();
        if (!existing.isEmpty()) {
            for (String visible : List.of("-package", "-private")) {
                List<String> arguments = new ArrayList<>(List.of(visible, "-constants"));
                existing.forEach(name -> arguments.add(folder.resolve(name).toString()));
                ByteArrayOutputStream out = new ByteArrayOutputStream();
                PrintStream printed = new PrintStream(out, true, StandardCharsets.UTF_8);
                tool("javap").run(printed, printed, arguments.toArray(String[]::new));
                // A text for each class, in the order of the arguments; it begins with a line that names the source.
                String[] texts = out.toString(StandardCharsets.UTF_8).split("(?m)^Compiled from .*\n");
                for (int i = 0; i < existing.size(); i++) {
                    String text = texts[i + 1];
                    declarations.merge(
                            existing.get(i),
                            visible.equals("-package") ? text : String.join("\n", lines(text, " native ")),
                            String::concat);
                }
            }
        }
        return declarations;
    }

    /** The sources whose class files name one of the classes. That of a class which uses a constant has a name, too, since Java 9. */
    private static Set<Path> users(Set<Path> classes, Path sources, Path output) throws IOException {
        Set<Path> users = new TreeSet<>();
        if (classes.isEmpty()) {
            return users;
        }
        Set<String> names = classes.stream()
                .map(name -> name.toString().replaceAll("(\\$.*)?\\.class$", ""))
                .collect(Collectors.toCollection(TreeSet::new));
        Pattern compiled = Pattern.compile(
                names.stream().map(Pattern::quote).collect(Collectors.joining("|", "(", ")")) + "(?![A-Za-z0-9_/])");
        for (Path file : files(output)) {
            String name = output.relativize(file).toString();
            if (name.endsWith(".class")
                    && compiled.matcher(Files.readString(file, StandardCharsets.ISO_8859_1))
                            .find()) {
                users.add(Path.of(name.replaceAll("(\\$.*)?\\.class$", ".java")));
            }
        }
        users.removeIf(name -> !Files.exists(sources.resolve(name)) || name.endsWith("package-info.java"));
        return users;
    }

    /** Deletes the class files of those who use one of the classes in later modules, and in the tests of this one. */
    private void forget(Set<Path> classes, String module) throws IOException {
        for (String later : modules.subList(modules.indexOf(module), modules.size())) {
            for (String kind : later.equals(module) ? List.of("test") : List.of("main", "test")) {
                Path sources = root.resolve(later + "/src/" + kind + "/java");
                Path output = root.resolve(later + "/target/" + (kind.equals("main") ? "classes" : "test-classes"));
                for (Path old : classesOf(users(classes, sources, output), output)) {
                    Files.delete(output.resolve(old));
                }
            }
        }
    }

    /** The class files of sources: those of the same name, and those of classes within these. */
    private static Set<Path> classesOf(Set<Path> sources, Path output) throws IOException {
        Set<Path> classes = new TreeSet<>();
        for (Path file : files(output)) {
            Path name = output.relativize(file);
            if (sources.contains(Path.of(name.toString().replaceAll("(\\$.*)?\\.class$", ".java")))) {
                classes.add(name);
            }
        }
        return classes;
    }

    /** Puts changed files into each jar that has files of the same folder, and takes those out that are gone. */
    private void patch(Path output, Set<Path> changed, List<String> of, boolean tests) throws IOException {
        Set<Path> jars = new TreeSet<>();
        for (String module : changed.isEmpty() ? List.<String>of() : of) {
            Path target = root.resolve(module + "/target");
            try (Stream<Path> built = Files.isDirectory(target) ? Files.list(target) : Stream.empty()) {
                built.filter(file -> file.toString().endsWith(".jar"))
                        .filter(file -> !file.toString().matches(".*-(sources|javadoc)\\.jar"))
                        .filter(file -> file.toString().endsWith("-tests.jar") == tests)
                        .forEach(jars::add);
            }
        }
        for (Path jar : jars) {
            FileTime time = Files.getLastModifiedTime(jar);
            Set<PosixFilePermission> permissions = Files.getPosixFilePermissions(jar);
            boolean written = false;
            try (FileSystem entries = FileSystems.newFileSystem(URI.create("jar:" + jar.toUri()), Map.of())) {
                for (Path name : changed) {
                    Path entry = entries.getPath("/" + name);
                    // Every jar has META-INF; a jar of tests may have a folder for what is below it alone.
                    boolean belongs = name.startsWith("META-INF") ? Files.exists(entry) : hasFiles(entry.getParent());
                    if (!belongs) {
                        continue;
                    }
                    written = true;
                    if (Files.exists(output.resolve(name))) {
                        Files.copy(output.resolve(name), entry, StandardCopyOption.REPLACE_EXISTING);
                    } else {
                        Files.deleteIfExists(entry);
                    }
                }
            }
            // Only its owner can read what Java writes in its place.
            Files.setPosixFilePermissions(jar, permissions);
            if (!written) {
                Files.setLastModifiedTime(jar, time);
            }
        }
    }

    private static boolean hasFiles(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            return false;
        }
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.anyMatch(Files::isRegularFile);
        }
    }

    /** Builds the host engine. Returns false if it has not been built before. */
    private boolean engine() throws Exception {
        String platform = properties.get("javacpp.platform");
        Path output = root.resolve("nccl-host/target/native/" + platform);
        Path name = Path.of("io/github/nccl4j/host/" + platform + "/libnccl4j_host.so");
        Path library = output.resolve(name);
        if (!Files.exists(library)) {
            return false;
        }
        FileTime before = Files.getLastModifiedTime(library);
        run(root, List.of("nccl-host/build-native.sh", properties.get("nccl4j.cxx"), library.toString()));
        if (!before.equals(Files.getLastModifiedTime(library))) {
            patch(output, Set.of(name), modules, false);
        }
        return true;
    }

    // --- run ---------------------------------------------------------------------------------------------------------

    /** Java for the tests of a module, with what its POM has Surefire set, up to the class path, which ends with some jars. */
    private List<String> jvm(String module, List<String> jars) throws Exception {
        Path folder = root.resolve(module);
        properties.put("project.build.directory", folder.resolve("target").toString());
        properties.put("project.basedir", folder.toString());
        Element pom = xml(folder.resolve("pom.xml"));
        readProperties(pom);
        Map<String, String> settings = new LinkedHashMap<>();
        Map<String, String> environment = new LinkedHashMap<>();
        String line = "";
        for (Element from : List.of(xml(root.resolve("pom.xml")), pom)) {
            for (Element plugin : descendants(from, "plugin")) {
                if (!"maven-surefire-plugin".equals(text(plugin, "artifactId"))) {
                    continue;
                }
                for (Element configuration : descendants(plugin, "configuration")) {
                    String own = text(configuration, "argLine");
                    line = own == null ? line : own;
                    readInto(settings, child(configuration, "systemPropertyVariables"));
                    readInto(environment, child(configuration, "environmentVariables"));
                }
            }
        }
        List<String> command = new ArrayList<>(List.of("env", "-C", folder.toString()));
        environment.forEach((name, value) -> command.add(name + "=" + resolved(value)));
        command.add(System.getProperty("java.home") + "/bin/java");
        command.addAll(Arrays.asList(resolved(line).trim().split("\\s+")));
        settings.forEach((name, value) -> command.add("-D" + name + "=" + resolved(value)));
        List<String> path = new ArrayList<>();
        path.add(folder.resolve("target/test-classes").toString());
        path.add(folder.resolve("target/classes").toString());
        path.addAll(testClassPath(module));
        path.addAll(jars);
        command.addAll(List.of("-cp", String.join(File.pathSeparator, path)));
        return command;
    }

    /** The jars of JUnit's launcher, as ./nccl4j mutate has them. */
    private List<String> console() throws Exception {
        Path list = root.resolve("tests/mutation/target/tools");
        if (isOlder(list, root.resolve("tests/mutation/pom.xml"))) {
            Files.createDirectories(list.getParent());
            run(
                    root,
                    List.of(
                            "mvn",
                            "-B",
                            "-q",
                            "-f",
                            "tests/mutation/pom.xml",
                            "dependency:build-classpath",
                            "-Dmdep.outputFile=" + list));
        }
        return Stream.of(Files.readString(list).trim().split(File.pathSeparator))
                .filter(entry -> entry.contains("/org/junit/platform/"))
                .toList();
    }

    // --- helpers -----------------------------------------------------------------------------------------------------

    private String resolved(String text) {
        Matcher named = Pattern.compile("\\$\\{([^}]+)}").matcher(text);
        return named.replaceAll(found -> {
            String value = properties.get(found.group(1));
            if (value == null) {
                throw new IllegalStateException("a POM's property without a value: " + found.group());
            }
            return Matcher.quoteReplacement(resolved(value));
        });
    }

    private void readProperties(Element pom) {
        readInto(properties, child(pom, "properties"));
    }

    private static void readInto(Map<String, String> map, Element parent) {
        for (Element each : children(parent, null)) {
            map.put(each.getTagName(), each.getTextContent().trim());
        }
    }

    private static Element xml(Path file) throws Exception {
        return DocumentBuilderFactory.newInstance()
                .newDocumentBuilder()
                .parse(file.toFile())
                .getDocumentElement();
    }

    /** Those of no parent are none. */
    private static List<Element> children(Element parent, String name) {
        List<Element> children = new ArrayList<>();
        for (Node each = parent == null ? null : parent.getFirstChild(); each != null; each = each.getNextSibling()) {
            if (each instanceof Element element
                    && (name == null || element.getTagName().equals(name))) {
                children.add(element);
            }
        }
        return children;
    }

    private static Element child(Element parent, String name) {
        return children(parent, name).stream().findFirst().orElse(null);
    }

    private static String text(Element parent, String name) {
        Element child = child(parent, name);
        return child == null ? null : child.getTextContent().trim();
    }

    private static List<Element> descendants(Element parent, String name) {
        List<Element> found = new ArrayList<>();
        for (int i = 0; i < parent.getElementsByTagName(name).getLength(); i++) {
            found.add((Element) parent.getElementsByTagName(name).item(i));
        }
        return found;
    }

    private static ToolProvider tool(String name) {
        return ToolProvider.findFirst(name).orElseThrow(() -> new IllegalStateException("this Java has no " + name));
    }

    private static void run(Path folder, List<String> command) throws IOException, InterruptedException {
        int code = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectInput(ProcessBuilder.Redirect.from(new File("/dev/null")))
                .redirectOutput(ProcessBuilder.Redirect.INHERIT)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start()
                .waitFor();
        if (code != 0) {
            throw new IllegalStateException(command.get(0) + " failed: exit code " + code);
        }
    }

    private static boolean isOlder(Path made, Path from) throws IOException {
        return !Files.exists(made) || Files.getLastModifiedTime(made).compareTo(Files.getLastModifiedTime(from)) < 0;
    }

    private static List<Path> files(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> all = Files.walk(folder)) {
            return all.filter(Files::isRegularFile).sorted().toList();
        }
    }

    private static String className(Path file) {
        return file.toString().replaceAll("\\.java$", "").replace('/', '.');
    }

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> all = Files.walk(folder)) {
            for (Path file : all.sorted(java.util.Comparator.reverseOrder()).toList()) {
                Files.delete(file);
            }
        }
    }
}
