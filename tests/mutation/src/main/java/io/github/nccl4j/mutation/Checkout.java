package io.github.nccl4j.mutation;

import java.io.IOException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import java.util.zip.ZipFile;

/** A copy of the checkout with its target folders, in which code can be replaced. */
final class Checkout {
    private final Path root;
    private final Path saved;
    /** The folders and jars that have a class or a native library, by its name within them. */
    private final Map<String, Set<Path>> holders = new HashMap<>();

    /** By changed file its copy from before, or null for a file that is new. */
    private final Map<Path, Path> originals = new LinkedHashMap<>();

    Checkout(Path root) throws IOException {
        this.root = root;
        this.saved = Files.createDirectories(root.resolveSibling(root.getFileName() + "-saved"));
        for (Path target : targets()) {
            for (Path jar : list(target)) {
                if (jar.toString().endsWith(".jar")) {
                    try (ZipFile zip = new ZipFile(jar.toFile())) {
                        zip.stream().forEach(entry -> hold(entry.getName(), jar));
                    }
                }
            }
            for (Path folder : list(target.resolve("native"))) {
                holdFiles(folder);
            }
            holdFiles(target.resolve("classes"));
        }
    }

    /** The output folders of all modules, which are not more than two folders deep. */
    private List<Path> targets() throws IOException {
        try (Stream<Path> folders = Files.find(root, 3, (path, attributes) -> path.endsWith("target"))) {
            return folders.sorted().toList();
        }
    }

    private static List<Path> list(Path folder) throws IOException {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(folder)) {
            return files.sorted().toList();
        }
    }

    private void holdFiles(Path folder) throws IOException {
        if (Files.isDirectory(folder)) {
            try (Stream<Path> files = Files.walk(folder)) {
                files.filter(Files::isRegularFile)
                        .forEach(file -> hold(folder.relativize(file).toString(), folder));
            }
        }
    }

    private void hold(String entry, Path holder) {
        holders.computeIfAbsent(entry, none -> new LinkedHashSet<>()).add(holder);
        holders.computeIfAbsent(packageOf(entry), none -> new LinkedHashSet<>()).add(holder);
    }

    private static String packageOf(String entry) {
        return entry.substring(0, entry.lastIndexOf('/') + 1);
    }

    Path root() {
        return root;
    }

    /** Replaces a class or a native library in each folder and jar that has it. */
    boolean replace(String entry, byte[] bytes) throws IOException {
        replace(Map.of(entry, bytes));
        return true;
    }

    /** As {@link #replace(String, byte[])}, of many. An entry that is new goes where others of its package are. */
    void replace(Map<String, byte[]> entries) throws IOException {
        Map<Path, List<String>> changes = new LinkedHashMap<>();
        entries.keySet().forEach(entry -> holdersOf(entry)
                .forEach(holder -> changes.computeIfAbsent(holder, none -> new ArrayList<>())
                        .add(entry)));
        for (Map.Entry<Path, List<String>> change : changes.entrySet()) {
            Path holder = change.getKey();
            if (Files.isDirectory(holder)) {
                for (String entry : change.getValue()) {
                    save(holder.resolve(entry));
                    Files.write(holder.resolve(entry), entries.get(entry));
                }
            } else {
                save(holder);
                try (FileSystem jar = FileSystems.newFileSystem(holder)) {
                    for (String entry : change.getValue()) {
                        Files.write(jar.getPath(entry), entries.get(entry));
                    }
                }
            }
        }
    }

    private Collection<Path> holdersOf(String entry) {
        Set<Path> known = holders.get(entry);
        return known != null ? known : holders.getOrDefault(packageOf(entry), Set.of());
    }

    private void save(Path file) throws IOException {
        if (!originals.containsKey(file)) {
            Path copy = null;
            if (Files.exists(file)) {
                copy = saved.resolve(Integer.toString(originals.size()));
                Files.copy(file, copy, StandardCopyOption.COPY_ATTRIBUTES, StandardCopyOption.REPLACE_EXISTING);
            }
            originals.put(file, copy);
        }
    }

    /** Changes a line of native code and compiles it; false if it does not compile. */
    boolean changeNative(String path, int line, String text) throws IOException, InterruptedException {
        Path source = root.resolve(path);
        List<String> lines = new ArrayList<>(Files.readAllLines(source));
        lines.set(line, text);
        save(source);
        Files.write(source, lines);
        Map<String, Path> libraries = new TreeMap<>();
        for (String module : List.of("nccl-host", "nccl-presets")) {
            for (Path folder : list(root.resolve(module).resolve("target/native"))) {
                for (Path library : filesBelow(folder, ".so")) {
                    save(library);
                    libraries.put(folder.relativize(library).toString(), library);
                }
            }
        }
        for (Path object : filesBelow(root.resolve("nccl-host/target/objects"), ".o")) {
            save(object);
        }
        int code = Commands.run(
                List.of("bash", "tests/mutation/compile-native", path), root, saved.resolve("compiler"), 600);
        if (code == 0) {
            for (Map.Entry<String, Path> library : libraries.entrySet()) {
                replace(library.getKey(), Files.readAllBytes(library.getValue()));
            }
        }
        return code == 0;
    }

    private static List<Path> filesBelow(Path folder, String end) throws IOException {
        if (!Files.isDirectory(folder)) {
            return List.of();
        }
        try (Stream<Path> all = Files.walk(folder)) {
            return all.filter(file -> file.toString().endsWith(end)).toList();
        }
    }

    /** Undoes all changes. */
    void restore() throws IOException {
        for (Map.Entry<Path, Path> original : originals.entrySet()) {
            if (original.getValue() == null) {
                Files.deleteIfExists(original.getKey());
            } else {
                Files.copy(
                        original.getValue(),
                        original.getKey(),
                        StandardCopyOption.COPY_ATTRIBUTES,
                        StandardCopyOption.REPLACE_EXISTING);
            }
        }
        originals.clear();
    }
}
