package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.ArchConfiguration;
import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaCodeUnit;
import com.tngtech.archunit.core.domain.JavaField;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.domain.JavaType;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import io.github.nccl4j.highlevel.Communicator;
import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleDescriptor;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The layers of the nccl jar, read from its class files. */
class LayersTest {
    private static final String ROOT = "io.github.nccl4j.";

    /** The packages that the build generates. Their classes name each other freely. */
    private static final Set<String> GENERATED = Set.of("global", "nccl", "nccl_device");

    /** The most classes that the largest cycle may have. Lower it when the cycle becomes smaller; never raise it. */
    private static final int LARGEST_CYCLE = 4;

    /** The most classes that any other cycle may have. */
    private static final int OTHER_CYCLES = 4;

    /**
     * From the bottom up. A class may use its own layer and those below. An entry is a package, or one class of a package
     * whose other classes are in a higher layer: exceptions, values and interfaces of the API that the layers below it share.
     */
    static final List<Set<String>> LAYERS = List.of(
            Set.of("presets"),
            Set.of("highlevel.NcclException", "highlevel.NcclLibraryException", "internal.log.HelpText"),
            Set.of("library"),
            Set.of("internal.binding"),
            GENERATED,
            Set.of("highlevel.CallInterceptor", "highlevel.DataType", "highlevel.Version"),
            Set.of("internal.log", "internal.memory", "internal.threads"),
            Set.of(
                    "launch.RendezvousException",
                    "launch.RendezvousTimeoutException",
                    "launch.Inquiry",
                    "launch.LostRank",
                    "launch.Membership",
                    "launch.StatusEntry",
                    "launch.RankStatus",
                    "launch.JobStatus"),
            Set.of("launch.env"),
            Set.of("launch.RankInfo", "launch.wire"),
            Set.of("launch.Rendezvous", "launch.Scope"),
            Set.of("launch.store"),
            Set.of("launch", "ras"),
            Set.of(
                    "highlevel.AlltoAllvForm",
                    "highlevel.CtaPolicy",
                    "highlevel.CudaException",
                    "highlevel.CudaLibraryException",
                    "highlevel.Element",
                    "highlevel.ElementType",
                    "highlevel.HostCftMode",
                    "highlevel.Incubating",
                    "highlevel.NvlsHostMode",
                    "highlevel.ProfiledOperation",
                    "highlevel.Result",
                    "highlevel.ScalarResidence",
                    "highlevel.ShrinkFlag",
                    "highlevel.SignalWait"),
            Set.of("internal.config", "internal.recovery"),
            // The loaded library, the lines of its log, and the exceptions of its calls.
            Set.of(
                    "highlevel.NcclEncryption",
                    "highlevel.NcclInterruptedException",
                    "highlevel.NcclLibrary",
                    "highlevel.NcclLog",
                    "highlevel.NcclRemoteException",
                    "highlevel.NcclResultException",
                    "highlevel.NcclTimeoutException",
                    "highlevel.NcclUsageException",
                    "highlevel.UniqueId",
                    "internal.failure"),
            Set.of("internal.operation"),
            Set.of("internal.cuda"),
            Set.of("internal.diagnostics"),
            Set.of("internal.communicator"),
            Set.of("internal.submission"),
            Set.of("highlevel"));

    private static Collection<JavaClass> classes;
    private static Set<String> exported;

    @BeforeAll
    static void readTheJar() throws IOException, URISyntaxException {
        ArchConfiguration.get().setResolveMissingDependenciesFromClassPath(false);
        Path path = Path.of(Communicator.class
                .getProtectionDomain()
                .getCodeSource()
                .getLocation()
                .toURI());
        try (JarFile jar = new JarFile(path.toFile())) {
            classes = new ClassFileImporter()
                    .importJar(jar).stream()
                            .filter(type -> type.getName().startsWith(ROOT))
                            .toList();
            try (InputStream descriptor = jar.getInputStream(jar.getEntry("module-info.class"))) {
                exported = ModuleDescriptor.read(descriptor).exports().stream()
                        .map(ModuleDescriptor.Exports::source)
                        .collect(Collectors.toSet());
            }
        }
        assertTrue(classes.size() > 200, () -> classes.size() + " classes");
    }

    /** The packages of the jar, below the common one. */
    static Set<String> packages() {
        return classes.stream().map(type -> packageOf(topLevel(type))).collect(Collectors.toCollection(TreeSet::new));
    }

    static Set<String> exportedPackages() {
        return exported.stream()
                .map(name -> name.substring(ROOT.length()))
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void noLayerUsesOneAboveIt() {
        Map<String, Set<String>> packages = new TreeMap<>();
        Set<String> upwards = new TreeSet<>();
        uses().forEach((user, used) -> used.forEach(other -> {
            packages.computeIfAbsent(packageOf(user), name -> new TreeSet<>()).add(packageOf(other));
            if (layer(user) < layer(other)) {
                upwards.add(user + " uses " + other);
            }
        }));
        packages.forEach((user, used) -> {
            used.remove(user);
            System.out.println(user + " uses " + String.join(", ", used));
        });
        assertEquals(Set.of(), upwards);
    }

    @Test
    void exportedSignaturesShowNoInternalType() {
        Set<String> shown = new TreeSet<>();
        for (JavaClass type : classes) {
            if (isVisible(type)) {
                signature(type)
                        .flatMap(part -> part.getAllInvolvedRawTypes().stream())
                        .map(JavaClass::getBaseComponentType)
                        .filter(part -> part.getName().startsWith(ROOT) && !exported.contains(part.getPackageName()))
                        .forEach(part -> shown.add(shorten(type) + " shows " + shorten(part)));
            }
        }
        assertEquals(Set.of(), shown);
    }

    @Test
    void cyclesOfClassesAreSmall() {
        List<Set<String>> cycles = new Components(writtenUses()).found;
        cycles.removeIf(cycle -> cycle.size() == 1);
        cycles.sort(Comparator.comparing((Set<String> cycle) -> -cycle.size()).thenComparing(Object::toString));
        cycles.forEach(cycle -> System.out.println("cycle of " + cycle.size() + ": " + String.join(", ", cycle)));
        for (int i = 0; i < cycles.size(); i++) {
            int limit = i == 0 ? LARGEST_CYCLE : OTHER_CYCLES;
            Set<String> cycle = cycles.get(i);
            assertTrue(
                    cycle.size() <= limit,
                    () -> "a cycle must have <= " + limit + " classes: " + cycle.size() + ", " + cycle);
        }
    }

    /** Top-level classes, and those that they and their nested classes use. */
    private static Map<String, Set<String>> uses() {
        Map<String, Set<String>> uses = new TreeMap<>();
        for (JavaClass type : classes) {
            Set<String> used = uses.computeIfAbsent(topLevel(type), name -> new TreeSet<>());
            for (Dependency dependency : type.getDirectDependenciesFromSelf()) {
                JavaClass other = dependency.getTargetClass().getBaseComponentType();
                if (other.getName().startsWith(ROOT) && !topLevel(other).equals(topLevel(type))) {
                    used.add(topLevel(other));
                }
            }
        }
        return uses;
    }

    private static Map<String, Set<String>> writtenUses() {
        Map<String, Set<String>> uses = uses();
        uses.keySet().removeIf(name -> GENERATED.contains(packageOf(name)));
        uses.values().forEach(used -> used.retainAll(uses.keySet()));
        return uses;
    }

    private static int layer(String topLevel) {
        for (String entry : List.of(topLevel, packageOf(topLevel))) {
            for (int i = 0; i < LAYERS.size(); i++) {
                if (LAYERS.get(i).contains(entry)) {
                    return i;
                }
            }
        }
        throw new AssertionError(topLevel + " has no layer");
    }

    private static boolean isVisible(JavaClass type) {
        for (JavaClass outer = type;
                outer != null;
                outer = outer.getEnclosingClass().orElse(null)) {
            if (!isVisible(outer.getModifiers())) {
                return false;
            }
        }
        return exported.contains(type.getPackageName());
    }

    private static boolean isVisible(Set<JavaModifier> modifiers) {
        return (modifiers.contains(JavaModifier.PUBLIC) || modifiers.contains(JavaModifier.PROTECTED))
                && !modifiers.contains(JavaModifier.SYNTHETIC);
    }

    /** The types that a caller or a subclass sees. */
    private static Stream<JavaType> signature(JavaClass type) {
        Stream.Builder<JavaType> types = Stream.builder();
        type.getSuperclass().ifPresent(types);
        type.getInterfaces().forEach(types);
        type.getTypeParameters().forEach(types);
        for (JavaField field : type.getFields()) {
            if (isVisible(field.getModifiers())) {
                types.add(field.getType());
            }
        }
        for (JavaCodeUnit code : type.getCodeUnits()) {
            if (isVisible(code.getModifiers())) {
                types.add(code.getReturnType());
                code.getParameterTypes().forEach(types);
                code.getTypeParameters().forEach(types);
                code.getExceptionTypes().forEach(types);
            }
        }
        return types.build();
    }

    private static String topLevel(JavaClass type) {
        String name = shorten(type);
        int nested = name.indexOf('$');
        return nested < 0 ? name : name.substring(0, nested);
    }

    private static String shorten(JavaClass type) {
        return type.getName().substring(ROOT.length());
    }

    private static String packageOf(String name) {
        return name.substring(0, name.lastIndexOf('.'));
    }

    /** The strongly connected components of a graph, by Tarjan's algorithm. */
    private static final class Components {
        private final Map<String, Set<String>> graph;
        private final Map<String, Integer> indexes = new HashMap<>();
        private final Map<String, Integer> lowest = new HashMap<>();
        private final Deque<String> open = new ArrayDeque<>();
        private final List<Set<String>> found = new ArrayList<>();

        Components(Map<String, Set<String>> graph) {
            this.graph = graph;
            graph.keySet().stream().filter(node -> !indexes.containsKey(node)).forEach(this::visit);
        }

        private void visit(String node) {
            int index = indexes.size();
            indexes.put(node, index);
            lowest.put(node, index);
            open.push(node);
            for (String next : graph.get(node)) {
                if (!indexes.containsKey(next)) {
                    visit(next);
                    lowest.merge(node, lowest.get(next), Math::min);
                } else if (open.contains(next)) {
                    lowest.merge(node, indexes.get(next), Math::min);
                }
            }
            if (lowest.get(node) == index) {
                Set<String> component = new TreeSet<>();
                while (component.add(open.peek()) && !open.pop().equals(node)) {
                    continue;
                }
                found.add(component);
            }
        }
    }
}
