package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.extensions.global.nccl_ep;
import io.github.nccl4j.extensions.global.nccl_m2n;
import io.github.nccl4j.extensions.library.ExtensionLibrary;
import io.github.nccl4j.extensions.nccl_ep.ncclEpDispatchInputs_t;
import io.github.nccl4j.extensions.nccl_ep.ncclEpGroupConfig_t;
import io.github.nccl4j.extensions.nccl_ep.ncclEpTensor_t;
import io.github.nccl4j.extensions.nccl_m2n.ncclDistTensor_t;
import io.github.nccl4j.extensions.nccl_m2n.ncclM2nConfig_t;
import io.github.nccl4j.extensions.nccl_m2n.ncclMesh_t;
import io.github.nccl4j.header.Header;
import io.github.nccl4j.header.Layout;
import io.github.nccl4j.highlevel.NcclLibraryException;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.javacpp.SizeTPointer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The bindings of NCCL's extensions against their headers and against NVIDIA's, and their choice of libraries. */
class ExtensionBindingsTest {
    private static final int M2N_FUNCTIONS = 8;
    private static final int EP_FUNCTIONS = 18;
    private static final int STUB_VERSION = 23203;

    /** A library of each extension that lacks most functions. */
    private static final String M2N_STUB = """
            extern "C" const char* ncclM2nGetLastError() { return "no reason"; }
            extern "C" int ncclM2nInit(void** handle, const void* config) { *handle = (void*)config; return 0; }
            extern "C" int ncclReshard(const void* handle, const void* comm, const void* src, const void* dst, const void* stream) {
              return handle == (void*)1 && comm == (void*)2 && src == (void*)3 && dst == (void*)4 && stream == (void*)5 ? 0 : 7;
            }
            """;

    private static final String EP_STUB = """
            extern "C" int ncclEpGetVersion(int* version) { *version = 100; return %d; }
            """;

    @TempDir
    static Path folder;

    /** A stand-in for NVIDIA's libnccl. */
    private static Path nccl;

    private static final Map<String, Header> HEADERS = new TreeMap<>();
    private static final Map<String, Map<String, String>> LAYOUTS = new TreeMap<>();

    @BeforeAll
    static void readHeaders() throws Exception {
        nccl = StubLibraries.copyOfNccl(folder.resolve("nccl"), STUB_VERSION);
        extract("/io/github/nccl4j/include/nccl.h");
        for (String name : List.of("nccl_m2n", "nccl_ep")) {
            Path file = extract("/io/github/nccl4j/extensions/include/" + name + ".h");
            Header header = Header.parse(file);
            HEADERS.put(name, header);
            LAYOUTS.put(
                    name, new Layout(System.getProperty("nccl4j.test.cxx", "g++"), folder).of(file, header, header));
        }
    }

    private static Path extract(String resource) throws IOException {
        Path file = folder.resolve(resource.substring(resource.lastIndexOf('/') + 1));
        try (InputStream text = nccl_m2n.class.getResourceAsStream(resource)) {
            Files.copy(text, file);
        }
        return file;
    }

    private static Set<String> bound(Class<?> type) {
        return Arrays.stream(type.getDeclaredMethods())
                .filter(method -> Modifier.isPublic(method.getModifiers()))
                .map(Method::getName)
                .collect(Collectors.toCollection(TreeSet::new));
    }

    @Test
    void everyFunctionIsBoundAndNoOther() {
        assertEquals(HEADERS.get("nccl_m2n").functions().keySet(), bound(nccl_m2n.class));
        assertEquals(HEADERS.get("nccl_ep").functions().keySet(), bound(nccl_ep.class));
        assertEquals(M2N_FUNCTIONS, bound(nccl_m2n.class).size());
        assertEquals(EP_FUNCTIONS, bound(nccl_ep.class).size());
        for (Class<?> type : List.of(nccl_m2n.class, nccl_ep.class)) {
            for (Method method : type.getDeclaredMethods()) {
                if (Modifier.isPublic(method.getModifiers())) {
                    assertEquals(
                            List.of(NcclLibraryException.class),
                            List.of(method.getExceptionTypes()),
                            method.toString());
                }
            }
        }
    }

    @Test
    void structsHaveTheLayoutOfC() throws ReflectiveOperationException {
        for (String name : HEADERS.keySet()) {
            StructLayouts.assertLikeC("io.github.nccl4j.extensions." + name, HEADERS.get(name), LAYOUTS.get(name));
        }
    }

    /** The record is of NVIDIA's headers; nothing of it is missing here, and no structure here is missing in it. */
    @Test
    void layoutsAndConstantsAreThoseOfNvidia() throws IOException, ReflectiveOperationException {
        String text;
        try (InputStream record = ExtensionBindingsTest.class.getResourceAsStream("extension_layouts.txt")) {
            text = new String(record.readAllBytes(), StandardCharsets.UTF_8);
        }
        Map<String, String> ours = new TreeMap<>();
        LAYOUTS.values().forEach(ours::putAll);
        Set<String> structs = new TreeSet<>();
        for (String line : text.lines().filter(one -> !one.startsWith("#")).toList()) {
            String[] parts = line.split("\t");
            String[] name = parts[0].split(" ");
            if (name[0].equals("constant")) {
                assertEquals(parts[1], Long.toString(constant(name[1], parts[1])), name[1]);
            } else {
                assertEquals(parts[1], ours.get(parts[0]), parts[0]);
            }
            if (name[0].equals("sizeof")) {
                structs.add(name[1]);
            }
        }
        Set<String> known = new TreeSet<>();
        HEADERS.values().forEach(header -> known.addAll(header.structs().keySet()));
        assertEquals(known, structs);
    }

    /** A constant of Java, where C's unsigned numbers are negative ints. */
    private static long constant(String name, String expected) throws ReflectiveOperationException {
        for (Class<?> type : List.of(nccl_m2n.class, nccl_ep.class)) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    int value = field.getInt(null);
                    return expected.startsWith("-") ? value : Integer.toUnsignedLong(value);
                }
            }
        }
        throw new NoSuchFieldException(name);
    }

    @Test
    void newStructuresAreInitialised() {
        try (ncclMesh_t mesh = new ncclMesh_t();
                ncclDistTensor_t tensor = new ncclDistTensor_t();
                ncclM2nConfig_t config = new ncclM2nConfig_t();
                ncclEpGroupConfig_t group = new ncclEpGroupConfig_t();
                ncclEpTensor_t two = new ncclEpTensor_t(2);
                ncclEpDispatchInputs_t inputs = new ncclEpDispatchInputs_t()) {
            assertEquals(32, mesh.size());
            assertEquals(nccl_m2n.NCCL_M2N_API_VERSION, mesh.version());
            assertEquals(56, tensor.size());
            assertNull(tensor.mesh());
            assertEquals(24, config.size());
            assertEquals(nccl_m2n.NCCL_M2N_API_MAGIC, config.magic());
            assertEquals(nccl_m2n.NCCL_M2N_CONFIG_UNDEF_INT, config.maxCta());
            assertEquals(112, group.size());
            assertEquals(nccl_ep.NCCL_EP_MAGIC, group.magic());
            assertEquals(nccl_ep.NCCL_EP_API_VERSION, group.version());
            assertNull(group.alloc().context());
            assertEquals(nccl_ep.NCCL_EP_TENSOR_MAGIC, two.getPointer(1).magic());
            assertEquals(0, two.getPointer(1).ndim());
            assertEquals(32, inputs.size());
            assertNull(inputs.tokens());
        }
    }

    @Test
    void structuresReferToEachOther() {
        try (IntPointer dims = new IntPointer(2, 3);
                SizeTPointer shape = new SizeTPointer(4, 5);
                ncclMesh_t mesh = new ncclMesh_t().ndims(2).dims(dims).startRank(1);
                ncclDistTensor_t tensor =
                        new ncclDistTensor_t().mesh(mesh).localShape(shape).ndims(2)) {
            assertEquals(3, tensor.mesh().dims().get(1));
            assertEquals(5, tensor.localShape().get(1));
        }
    }

    @Test
    void nothingIsLinked() throws IOException {
        Path library = Path.of(Loader.load(nccl_ep.class));
        assertEquals("libjninccl4jextensions.so", library.getFileName().toString());
        String undefined = Cxx.output(List.of("nm", "-D", "--undefined-only", library.toString()));
        assertFalse(undefined.contains("nccl"), undefined);
        String needed = Cxx.output(List.of("readelf", "-d", library.toString()));
        assertFalse(needed.contains("libnccl") || needed.contains("libcuda"), needed);
    }

    private static ChildJvm onStub() {
        return new ChildJvm().property("nccl4j.library", nccl);
    }

    @Test
    void missingFunctionsAreNamed() throws IOException {
        Path m2n = Cxx.library(folder, "m2n", M2N_STUB);
        Path ep = Cxx.library(folder, "ep", String.format(Locale.ROOT, EP_STUB, 0));
        ChildJvm.Outcome outcome = onStub().property("nccl4j.m2n.library", m2n)
                .property("nccl4j.ep.library", ep)
                .run(Calls.class);
        assertEquals(
                String.join(
                        "\n",
                        "reshard 0",
                        "no reason",
                        "config 48",
                        "m2n " + m2n + " Optional.empty true false",
                        "ep " + ep + " Optional[100]",
                        "ncclM2nGroupAbort is not provided by " + m2n
                                + " (unknown version); it came with NCCL M2N 0.2.0",
                        "ncclEpMaskClean is not provided by " + ep + " (NCCL EP 0.1.0); it came with NCCL EP 0.2.0",
                        ""),
                outcome.output());
    }

    /** Runs in a JVM of its own, on the stubs. */
    static final class Calls {
        public static void main(String... args) {
            System.out.println("reshard " + nccl_m2n.ncclReshard(1, 2, 3, 4, 5));
            System.out.println(nccl_m2n.ncclM2nGetLastError());
            try (SizeTPointer cell = new SizeTPointer(1)) {
                nccl_m2n.ncclM2nInit(cell.address(), 48);
                System.out.println("config " + cell.get());
            }
            System.out.println("m2n " + ExtensionLibrary.M2N.path() + " " + ExtensionLibrary.M2N.versionCode() + " "
                    + ExtensionLibrary.M2N.provides("ncclReshard") + " "
                    + ExtensionLibrary.M2N.provides("ncclM2nGroupEnd"));
            System.out.println("ep " + ExtensionLibrary.EP.path() + " " + ExtensionLibrary.EP.versionCode());
            printFailure(nccl_m2n::ncclM2nGroupAbort);
            printFailure(() -> nccl_ep.ncclEpMaskClean(0, 0));
        }

        private static void printFailure(Runnable call) {
            try {
                call.run();
                System.out.println("no failure");
            } catch (NcclLibraryException e) {
                System.out.println(e.getMessage().lines().findFirst().orElseThrow());
            }
        }
    }

    @Test
    void missingLibrariesAreNamedWithThePlaces() throws IOException {
        Path broken = Cxx.library(folder, "brokenep", String.format(Locale.ROOT, EP_STUB, 3));
        ChildJvm.Outcome outcome =
                onStub().property("nccl4j.ep.library", broken).run(Failures.class);
        assertTrue(
                outcome.output().contains("NCCL M2N could not be loaded; tried in this order:\n  libnccl_m2n.so: "),
                outcome::output);
        assertTrue(outcome.output().contains("NCCL4J_M2N_LIBRARY"), outcome::output);
        assertTrue(
                outcome.output().contains(broken + ": its ncclEpGetVersion fails with 3\nIt was chosen by"),
                outcome::output);
        assertTrue(outcome.output().endsWith("false false\n"), outcome::output);
    }

    /** The communicators of another NCCL than NVIDIA's would crash the libraries. */
    @Test
    void hostEngineIsRefused() throws IOException {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.engine", "host")
                .property("nccl4j.m2n.library", Cxx.library(folder, "m2nonhost", M2N_STUB))
                .run(Failures.class);
        assertTrue(
                outcome.output().startsWith("NCCL M2N could not be loaded: it needs NVIDIA's libnccl.so.2"),
                outcome::output);
    }

    /** Without libnccl its own message says why. */
    @Test
    void missingNcclIsNamed() throws IOException {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", folder.resolve("none.so"))
                .run(Failures.class);
        assertTrue(outcome.output().startsWith("NCCL could not be loaded"), outcome::output);
    }

    /** Runs in a JVM of its own. */
    static final class Failures {
        public static void main(String... args) {
            for (Runnable call : List.<Runnable>of(nccl_m2n::ncclM2nGroupStart, () -> nccl_ep.ncclEpErrorClear(0))) {
                try {
                    call.run();
                    System.out.println("no failure");
                } catch (NcclLibraryException e) {
                    System.out.println(e.getMessage());
                }
            }
            System.out.println(ExtensionLibrary.M2N.isAvailable() + " " + ExtensionLibrary.EP.isAvailable());
        }
    }

    @Test
    void foldersOfPipAreSearched() throws IOException {
        Path environment = folder.resolve("venv");
        Path place = Files.createDirectories(environment.resolve("lib/python3.11/site-packages/nccl/m2n/lib/cu12"));
        Path library = Files.move(Cxx.library(folder, "pip", M2N_STUB), place.resolve("libnccl_m2n.so"));
        ChildJvm.Outcome outcome =
                onStub().environment("VIRTUAL_ENV", environment.toString()).run(Places.class);
        assertEquals(library.toRealPath() + "\n", outcome.output());
    }

    /** Runs in a JVM of its own. */
    static final class Places {
        public static void main(String... args) {
            System.out.println(ExtensionLibrary.M2N.path());
        }
    }
}
