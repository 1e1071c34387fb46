package io.github.nccl4j.mutation;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** A test class, and what is known of it: its time, whether it passes without a fault, and the lines that it reaches. */
record TestClass(String module, String name, double seconds, boolean passes, Map<String, BitSet> lines) {
    String simpleName() {
        return name.substring(name.lastIndexOf('.') + 1);
    }

    /** The tests of native code, whose lines nothing records, by a part of the path of a source. The first that fits counts. */
    private static final Map<String, String> OF_NATIVE_CODE = new LinkedHashMap<>();

    static {
        String loading =
                ".*Librar(y|ies).*|.*Bindings.*|CacheFolderTest|UnspellablePathsTest|CompatibilityTest|NativeC.*Test";
        OF_NATIVE_CODE.put("nccl-host/", "HostEngine.*|NativeSuiteTest");
        OF_NATIVE_CODE.put(
                "/nccl4j_alltoallv.h", "Alltoallv.*|AlltoAllv.*|ComposedOperationsTest|GroupTest|NcclLibraryTest");
        OF_NATIVE_CODE.put("/nccl4j_dlpack.h", "InteropTest");
        OF_NATIVE_CODE.put("/nccl4j_intercept.h", "InterceptionTest|GroupTest|VirtualThreadsTest|CallCheckTest");
        OF_NATIVE_CODE.put("/nccl4j_profiler.h", ".*Profiler.*|JfrTest|InspectorFileTest");
        OF_NATIVE_CODE.put("/glue/", loading);
        OF_NATIVE_CODE.put("/native/", loading + "|HostEngine.*|NativeSuiteTest");
    }

    boolean reaches(Fault fault) {
        for (Map.Entry<String, String> known : OF_NATIVE_CODE.entrySet()) {
            if (fault.path().matches(".*\\.(cpp|h)") && fault.path().contains(known.getKey())) {
                return simpleName().matches(known.getValue());
            }
        }
        BitSet reached = lines.get(fault.path());
        return reached != null && reached.get(fault.line());
    }

    String source() {
        return module + "/src/test/java/" + name.replace('.', '/') + ".java";
    }

    /** The record in a file, or null if there is none or one of its sources has changed since. */
    static TestClass read(Path root, Path file, String module, String name) throws IOException {
        if (!Files.exists(file)) {
            return null;
        }
        List<String> text = Files.readAllLines(file);
        String[] head = text.get(0).split(" ");
        Map<String, BitSet> lines = new TreeMap<>();
        for (String line : text.subList(1, text.size())) {
            String[] words = line.split(" ");
            if (!words[1].equals(hash(root.resolve(words[0])))) {
                return null;
            }
            lines.put(words[0], BitSet.valueOf(HexFormat.of().parseHex(words.length > 2 ? words[2] : "")));
        }
        return new TestClass(module, name, Double.parseDouble(head[0]), Boolean.parseBoolean(head[1]), lines);
    }

    void write(Path root, Path file) throws IOException {
        List<String> text = new ArrayList<>();
        text.add(seconds + " " + passes);
        text.add(source() + " " + hash(root.resolve(source())));
        for (Map.Entry<String, BitSet> entry : lines.entrySet()) {
            text.add(entry.getKey() + " " + hash(root.resolve(entry.getKey())) + " "
                    + HexFormat.of().formatHex(entry.getValue().toByteArray()));
        }
        Files.createDirectories(file.getParent());
        Files.writeString(file, text.stream().collect(Collectors.joining("\n", "", "\n")));
    }

    private static String hash(Path file) throws IOException {
        if (!Files.exists(file)) {
            return "-";
        }
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file));
            return HexFormat.of().formatHex(digest, 0, 8);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}
