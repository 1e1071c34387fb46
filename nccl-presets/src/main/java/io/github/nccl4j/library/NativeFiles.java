package io.github.nccl4j.library;

import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger.Level;
import java.net.JarURLConnection;
import java.net.URL;
import java.net.URLConnection;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.zip.CRC32;
import org.bytedeco.javacpp.ClassProperties;
import org.bytedeco.javacpp.Loader;

/**
 * JavaCPP's cache: the folder into which JavaCPP unpacks native files, and the files in it. JavaCPP takes any folder, and
 * any file in it that has the expected size and time. This class chooses a folder that no other user can change, and checks
 * that a file is a copy of the one in the jar.
 *
 * <p>All methods are static and may be called from any thread.
 */
final class NativeFiles {
    private static final String PROPERTY = "org.bytedeco.javacpp.cachedir";

    /** The bits of a file's mode by which group and others may write. */
    private static final int WRITABLE = 0_022;

    /** The bit of a folder's mode by which only the owner of an entry may rename or delete the entry. */
    private static final int STICKY = 01_000;

    private NativeFiles() {}

    /**
     * Sets JavaCPP's cache: the first of JavaCPP's own choices that no other user can change, else a new folder, which is
     * deleted when the process exits. Logs a warning if another user can change one of the choices.
     *
     * @throws IOException if there is no such folder, or if JavaCPP already uses a folder that another user can change
     */
    static void chooseFolder() throws IOException {
        int user = user();
        List<String> reasons = new ArrayList<>();
        boolean warns = false;
        Path chosen = null;
        for (String place : places()) {
            try {
                Path folder = prepare(place, user);
                String problem = problem(folder, user);
                if (problem.isEmpty()) {
                    chosen = folder.toRealPath();
                    break;
                }
                reasons.add(place + ": " + problem);
                warns = true;
            } catch (IOException | InvalidPathException unusable) {
                reasons.add(place + ": " + unusable.getMessage());
            }
        }
        if (chosen == null) {
            chosen = newFolder(reasons);
            warns = true;
        }
        System.setProperty(PROPERTY, chosen.toString());
        Path used = Loader.getCacheDir().toPath();
        // JavaCPP keeps its first choice if it was used before.
        String problem = used.equals(chosen) ? "" : problem(used, user);
        if (!problem.isEmpty()) {
            throw new IOException(problem + ". The program has used JavaCPP before nccl4j");
        }
        if (warns) {
            System.getLogger("io.github.nccl4j")
                    .log(
                            Level.WARNING,
                            "Native files are unpacked into {0}, because JavaCPP''s usual cache cannot be used ({1})."
                                    + " The system property {2} names another folder",
                            used,
                            String.join("; ", reasons),
                            PROPERTY);
        }
    }

    /** JavaCPP's choices in its order, except those that depend on the working directory. */
    private static Set<String> places() {
        Set<String> places = new LinkedHashSet<>();
        for (String property : List.of(PROPERTY, "org.bytedeco.javacpp.cacheDir")) {
            String named = System.getProperty(property, "");
            if (!named.isEmpty()) {
                places.add(named);
            }
        }
        String home = System.getProperty("user.home", "");
        String temporary = System.getProperty("java.io.tmpdir", "") + "/.javacpp-" + System.getProperty("user.name");
        for (String folder : List.of(home + "/.javacpp", temporary)) {
            if (folder.startsWith("/")) {
                places.add(folder + "/cache");
            }
        }
        return places;
    }

    /**
     * Creates a folder if it is missing, and closes it for other users.
     *
     * @return the folder; a folder above it if another user can change that one
     * @throws IOException if the folder cannot be JavaCPP's cache
     */
    private static Path prepare(String place, int user) throws IOException {
        // JavaCPP would create another folder, with question marks in its name.
        String unspellable = SystemText.problem(place);
        if (!unspellable.isEmpty()) {
            throw new IOException(unspellable);
        }
        Path folder = Path.of(place).toAbsolutePath();
        Path parent = folder.getParent();
        if (parent != null && String.valueOf(parent.getFileName()).startsWith(".javacpp")) {
            keepOthersFromWriting(parent, user);
        }
        keepOthersFromWriting(folder, user);
        Path existing = folder;
        while (!Files.exists(existing)) {
            existing = existing.getParent();
        }
        if (!existing.equals(folder)) {
            if (!problem(existing, user).isEmpty()) {
                return existing;
            }
            Files.createDirectories(
                    folder, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
        }
        if (!Files.isReadable(folder) || !Files.isWritable(folder) || !Files.isExecutable(folder)) {
            throw new IOException("this user cannot write it");
        }
        return folder;
    }

    /** Creates a folder for this process. */
    private static Path newFolder(List<String> reasons) throws IOException {
        String temporary = System.getProperty("java.io.tmpdir", "");
        try {
            Path folder =
                    Files.createTempDirectory(Path.of(temporary), "nccl4j-").toRealPath();
            Runtime.getRuntime().addShutdownHook(new Thread(() -> delete(folder)));
            String problem = problem(folder, (int) Files.getAttribute(folder, "unix:uid"));
            if (problem.isEmpty()) {
                return folder;
            }
            reasons.add(problem);
        } catch (IOException | InvalidPathException unusable) {
            reasons.add(temporary + ": " + unusable.getMessage());
        }
        throw new IOException("no folder can be used (" + String.join("; ", reasons) + ")");
    }

    private static void delete(Path folder) {
        try {
            Loader.deleteDirectory(folder.toFile());
        } catch (IOException left) {
            System.getLogger("io.github.nccl4j").log(Level.WARNING, "{0} could not be deleted: {1}", folder, left);
        }
    }

    /** The id of this process's user; -1 without {@code /proc}, and then only root's folders are trusted. */
    private static int user() {
        try {
            return (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid");
        } catch (IOException withoutProc) {
            return -1;
        }
    }

    /** Removes the permissions by which others may write a file or folder of this user. */
    private static void keepOthersFromWriting(Path file, int user) throws IOException {
        if (Files.exists(file)) {
            Map<String, Object> attributes = Files.readAttributes(file, "unix:uid,mode");
            int mode = (int) attributes.get("mode");
            if ((int) attributes.get("uid") == user && (mode & WRITABLE) != 0) {
                Files.setAttribute(file, "unix:mode", mode & ~WRITABLE);
            }
        }
    }

    /**
     * Returns which part of a path another user can change, except root; empty if there is none. Each folder counts: its
     * owner decides what has the names in it.
     */
    private static String problem(Path path, int user) throws IOException {
        // In a container of a user without privileges, root is shown as another user. Root owns the root folder.
        List<Object> trusted = List.of(0, user, Files.getAttribute(Path.of("/"), "unix:uid"));
        Path real = path.toRealPath();
        for (int parts = 0; parts <= real.getNameCount(); parts++) {
            Path part = parts == 0 ? real.getRoot() : real.getRoot().resolve(real.subpath(0, parts));
            Map<String, Object> attributes = Files.readAttributes(part, "unix:uid,mode");
            int mode = (int) attributes.get("mode");
            if (!trusted.contains(attributes.get("uid"))) {
                return part + " belongs to another user (" + attributes.get("uid") + ")";
            }
            if ((mode & WRITABLE) != 0) {
                if ((mode & STICKY) == 0 || !Files.isDirectory(part)) {
                    return "other users can write " + part + " (mode " + Integer.toOctalString(mode & 07777) + ")";
                }
                trusted = List.of(0, user);
            }
        }
        return "";
    }

    /**
     * Unpacks the native files that JavaCPP loads for a class, without loading them. JavaCPP itself loads a file while
     * another process unpacks those that the file depends on; then a half-written file is mapped.
     */
    static void unpack(Class<?> user) throws IOException {
        Properties platform = Loader.loadProperties();
        ClassProperties properties = Loader.loadProperties(user, platform, true);
        List<String> names = new ArrayList<>(properties.get("platform.preload"));
        names.addAll(properties.get("platform.link"));
        names.addAll(properties.get("platform.library"));
        for (String name : names) {
            for (URL url : Loader.findLibrary(user, properties, name)) {
                if (!url.getProtocol().equals("file")) {
                    cached(url);
                }
            }
        }
        if (properties.getInheritedClasses() != null) {
            for (Class<?> other : properties.getInheritedClasses()) {
                unpack(other);
            }
        }
    }

    /** Returns JavaCPP's copy of a file in a jar; replaces a copy with other contents. */
    static Path cached(URL url) throws IOException {
        Path cache = Loader.getCacheDir().toPath();
        Path file = Loader.cacheResource(url).toPath();
        int user = user();
        for (Path part = file; !part.equals(cache); part = part.getParent()) {
            keepOthersFromWriting(part, user);
        }
        String problem = problem(file, user);
        if (!problem.isEmpty()) {
            throw new IOException(problem + "; delete the folder");
        }
        if (checksum(new URL(url.toString().split("#")[0]).openConnection()) != checksum(Files.newInputStream(file))) {
            replace(file, url);
        }
        return file;
    }

    private static long checksum(URLConnection connection) throws IOException {
        return connection instanceof JarURLConnection inJar
                ? inJar.getJarEntry().getCrc()
                : checksum(connection.getInputStream());
    }

    private static long checksum(InputStream opened) throws IOException {
        CRC32 sum = new CRC32();
        try (InputStream in = opened) {
            byte[] bytes = new byte[1 << 16];
            for (int length = in.read(bytes); length >= 0; length = in.read(bytes)) {
                sum.update(bytes, 0, length);
            }
        }
        return sum.getValue();
    }

    /** Replaces a file at once: a process that has mapped the old one keeps it. */
    private static void replace(Path file, URL url) throws IOException {
        Path copy = Files.createTempFile(file.getParent(), ".", null);
        try {
            try (InputStream in = url.openStream()) {
                Files.copy(in, copy, StandardCopyOption.REPLACE_EXISTING);
            }
            // JavaCPP compares it.
            Files.setLastModifiedTime(copy, Files.getLastModifiedTime(file));
            Files.move(copy, file, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(copy);
        }
    }
}
