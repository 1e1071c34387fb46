package io.github.nccl4j.mutation;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.Opcodes;
import org.pitest.bytecode.analysis.ClassTree;
import org.pitest.classinfo.ClassByteArraySource;
import org.pitest.classinfo.ClassName;
import org.pitest.mutationtest.build.CompoundMutationInterceptor;
import org.pitest.mutationtest.build.InterceptorParameters;
import org.pitest.mutationtest.build.MutationInterceptor;
import org.pitest.mutationtest.build.MutationInterceptorFactory;
import org.pitest.mutationtest.config.ReportOptions;
import org.pitest.mutationtest.engine.MutationDetails;
import org.pitest.mutationtest.engine.gregor.GregorMutater;
import org.pitest.mutationtest.engine.gregor.MethodMutatorFactory;
import org.pitest.mutationtest.engine.gregor.config.Mutator;

/** The faults of compiled Java, which PIT's engine makes. */
final class JavaFaults {
    private static final List<String> KINDS = List.of(
            "CONDITIONALS_BOUNDARY",
            "NEGATE_CONDITIONALS",
            "REMOVE_CONDITIONALS",
            "MATH",
            "INCREMENTS",
            "INLINE_CONSTS",
            "RETURNS",
            "VOID_METHOD_CALLS",
            "NON_VOID_METHOD_CALLS",
            "EXPERIMENTAL_ARGUMENT_PROPAGATION",
            "EXPERIMENTAL_MEMBER_VARIABLE");

    private static final Pattern CALL = Pattern.compile("(?:call to|arguments of) .*::(\\w+)");

    private JavaFaults() {}

    /** A class whose source is written, not generated. */
    record Written(String path, byte[] bytes) {}

    /** By name with slashes: the classes of a module whose sources are in its src/main/java. */
    static Map<String, Written> written(Path root, String module) throws IOException {
        Path classes = root.resolve(module).resolve("target/classes");
        Map<String, Written> found = new TreeMap<>();
        if (!Files.isDirectory(classes)) {
            return found;
        }
        List<Path> files;
        try (Stream<Path> all = Files.walk(classes)) {
            files = all.filter(file -> file.toString().endsWith(".class")).toList();
        }
        for (Path file : files) {
            byte[] bytes = Files.readAllBytes(file);
            ClassReader reader = new ClassReader(bytes);
            String[] source = new String[1];
            reader.accept(
                    new ClassVisitor(Opcodes.ASM9) {
                        @Override
                        public void visitSource(String name, String debug) {
                            source[0] = name;
                        }
                    },
                    ClassReader.SKIP_FRAMES);
            String name = reader.getClassName();
            String path = module + "/src/main/java/" + name.substring(0, name.lastIndexOf('/') + 1) + source[0];
            if (name.indexOf('/') > 0 && Files.exists(root.resolve(path))) {
                found.put(name, new Written(path, bytes));
            }
        }
        return found;
    }

    static List<Fault> all(Path root, String module, ClassLoader libraries) throws IOException {
        Map<String, Written> classes = written(root, module);
        ClassByteArraySource source = name -> {
            Written known = classes.get(name.replace('.', '/'));
            return known != null ? Optional.of(known.bytes()) : fromClassPath(libraries, name.replace('.', '/'));
        };
        List<MethodMutatorFactory> kinds = new ArrayList<>(Mutator.fromStrings(KINDS));
        kinds.add(new SwappedArguments());
        GregorMutater mutater = new GregorMutater(source, method -> true, kinds);
        MutationInterceptor filters = filters(source);
        List<Fault> faults = new ArrayList<>();
        for (Map.Entry<String, Written> entry : classes.entrySet()) {
            ClassName name = ClassName.fromString(entry.getKey());
            filters.begin(ClassTree.fromBytes(entry.getValue().bytes()));
            Collection<MutationDetails> kept = filters.intercept(mutater.findMutations(name), mutater);
            filters.end();
            List<String> lines =
                    Files.readAllLines(root.resolve(entry.getValue().path()));
            for (MutationDetails details : kept) {
                if (isOfTheCompiler(details.getDescription(), lines.get(details.getLineNumber() - 1))) {
                    continue;
                }
                faults.add(new Fault(
                        entry.getValue().path(),
                        details.getLineNumber(),
                        details.getDescription(),
                        copy -> copy.replace(
                                entry.getKey() + ".class",
                                mutater.getMutation(details.getId()).getBytes())));
            }
        }
        return faults;
    }

    /** True for calls that the line does not name, by which the compiler boxes numbers, joins texts and iterates. */
    private static boolean isOfTheCompiler(String fault, String line) {
        Matcher call = CALL.matcher(fault);
        return call.find() && !line.contains(call.group(1));
    }

    private static Optional<byte[]> fromClassPath(ClassLoader libraries, String name) {
        try (var stream = libraries.getResourceAsStream(name + ".class")) {
            return stream == null ? Optional.empty() : Optional.of(stream.readAllBytes());
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    /** PIT's filters of what no programmer could get wrong. Static initializers are kept: each fault gets JVMs of its own. */
    private static MutationInterceptor filters(ClassByteArraySource source) {
        List<MutationInterceptor> filters = new ArrayList<>();
        for (MutationInterceptorFactory factory : ServiceLoader.load(MutationInterceptorFactory.class)) {
            if (factory.provides().isOnByDefault()
                    && !factory.getClass().getSimpleName().startsWith("StaticInitializer")) {
                filters.add(factory.createInterceptor(
                        new InterceptorParameters(null, new ReportOptions(), null, source, null, null, null)));
            }
        }
        return new CompoundMutationInterceptor(filters);
    }
}
