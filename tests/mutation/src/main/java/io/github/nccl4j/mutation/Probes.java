package io.github.nccl4j.mutation;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassWriter;
import org.objectweb.asm.Opcodes;
import org.objectweb.asm.commons.ClassRemapper;
import org.objectweb.asm.commons.SimpleRemapper;
import org.objectweb.asm.tree.AbstractInsnNode;
import org.objectweb.asm.tree.ClassNode;
import org.objectweb.asm.tree.InsnList;
import org.objectweb.asm.tree.LdcInsnNode;
import org.objectweb.asm.tree.LineNumberNode;
import org.objectweb.asm.tree.MethodInsnNode;
import org.objectweb.asm.tree.MethodNode;

/** Probes at the lines of all written classes of a copy, by which {@link Hits} knows those that a test reaches. */
final class Probes {
    private static final String HITS = "Nccl4jHits";
    private final Path file;
    /** By path of the source, the place of its line 0 in the file. */
    private final Map<String, Integer> starts = new TreeMap<>();

    private int size;

    Probes(Checkout copy, Iterable<String> modules) throws IOException {
        file = copy.root().resolveSibling("hits");
        Map<String, byte[]> changed = new HashMap<>();
        for (String module : modules) {
            Map<String, JavaFaults.Written> classes = JavaFaults.written(copy.root(), module);
            for (Map.Entry<String, JavaFaults.Written> entry : classes.entrySet()) {
                String name = entry.getKey();
                String hits = name.substring(0, name.lastIndexOf('/') + 1) + HITS;
                changed.put(name + ".class", withProbes(copy.root(), entry.getValue(), hits));
                if (!changed.containsKey(hits + ".class")) {
                    changed.put(hits + ".class", hits(hits));
                }
            }
        }
        copy.replace(changed);
        clear();
    }

    private byte[] withProbes(Path root, JavaFaults.Written written, String hits) throws IOException {
        Integer known = starts.get(written.path());
        if (known == null) {
            known = size;
            starts.put(written.path(), size);
            size += Files.readAllLines(root.resolve(written.path())).size() + 2;
        }
        ClassNode node = new ClassNode();
        new ClassReader(written.bytes()).accept(node, 0);
        for (MethodNode method : node.methods) {
            for (AbstractInsnNode at : method.instructions.toArray()) {
                if (at instanceof LineNumberNode line) {
                    AbstractInsnNode next = at;
                    while (next.getOpcode() < 0) {
                        next = next.getNext();
                    }
                    InsnList probe = new InsnList();
                    probe.add(new LdcInsnNode(known + line.line));
                    probe.add(new MethodInsnNode(Opcodes.INVOKESTATIC, hits, "hit", "(I)V"));
                    // A stack frame names an object without a constructor call by the label before its NEW.
                    if (next.getOpcode() == Opcodes.NEW) {
                        method.instructions.insert(next, probe);
                    } else {
                        method.instructions.insertBefore(next, probe);
                    }
                }
            }
        }
        ClassWriter writer = new ClassWriter(ClassWriter.COMPUTE_MAXS);
        node.accept(writer);
        return writer.toByteArray();
    }

    private byte[] hits(String name) throws IOException {
        String template = Hits.class.getName().replace('.', '/');
        ClassNode node = new ClassNode();
        try (var stream = ClassLoader.getSystemResourceAsStream(template + ".class")) {
            new ClassReader(stream)
                    .accept(new ClassRemapper(node, new SimpleRemapper(Opcodes.ASM9, template, name)), 0);
        }
        for (MethodNode method : node.methods) {
            for (AbstractInsnNode at : method.instructions) {
                if (at instanceof LdcInsnNode constant && "@file@".equals(constant.cst)) {
                    constant.cst = file.toString();
                }
            }
        }
        ClassWriter writer = new ClassWriter(0);
        node.accept(writer);
        return writer.toByteArray();
    }

    void clear() throws IOException {
        Files.write(file, new byte[size]);
    }

    /** By path of the source, the lines that have run since the last {@link #clear}. */
    Map<String, BitSet> lines() throws IOException {
        byte[] bytes = Files.readAllBytes(file);
        Map<Integer, String> paths = new TreeMap<>();
        starts.forEach((path, start) -> paths.put(start, path));
        Map<String, BitSet> lines = new TreeMap<>();
        for (int at = 0; at < bytes.length; at++) {
            if (bytes[at] != 0) {
                Map.Entry<Integer, String> source = ((TreeMap<Integer, String>) paths).floorEntry(at);
                lines.computeIfAbsent(source.getValue(), none -> new BitSet()).set(at - source.getKey());
            }
        }
        return lines;
    }
}
