package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.header.EnumType;
import io.github.nccl4j.header.Field;
import io.github.nccl4j.header.Function;
import io.github.nccl4j.header.Header;
import io.github.nccl4j.header.Layout;
import io.github.nccl4j.header.Parameter;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.nccl.ncclCollConfig_t;
import io.github.nccl4j.nccl.ncclConfigExt_t;
import io.github.nccl4j.nccl.ncclConfig_t;
import io.github.nccl4j.nccl.ncclEncryptionConfig_t;
import io.github.nccl4j.nccl.ncclSimInfo_t;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The generated classes against the header that they are made from: nothing is missing, nothing is beside it. */
class BindingsTest {
    /** Handles, structs and pointers, by what the raw-address form has for them: a long. */
    private static final Set<String> HANDLES =
            Set.of("ncclComm_t", "ncclWindow_t", "ncclParamHandle_t", "cudaStream_t", "ncclUniqueId");

    private static final int FUNCTIONS = 73;

    @TempDir
    static Path folder;

    private static Header header;
    private static Map<String, String> layout;

    @BeforeAll
    static void readHeader() throws Exception {
        Path file = folder.resolve("nccl.h");
        try (InputStream text = nccl.class.getResourceAsStream("/io/github/nccl4j/include/nccl.h")) {
            Files.copy(text, file);
        }
        header = Header.parse(file);
        layout = new Layout(System.getProperty("nccl4j.test.cxx", "g++"), folder).of(file, header, header);
    }

    private static List<Method> overloads(String function) {
        return Arrays.stream(nccl.class.getDeclaredMethods())
                .filter(method -> method.getName().equals(function))
                .toList();
    }

    private static Class<?> rawType(String cType) {
        String type = cType.replaceFirst("^const ", "");
        if (type.endsWith("*") || HANDLES.contains(type)) {
            return long.class;
        }
        return switch (type) {
            case "void" -> void.class;
            case "size_t" -> long.class;
            case "int", "unsigned int" -> int.class;
            default -> {
                assertTrue(header.enums().containsKey(type), cType);
                yield Integer.TYPE;
            }
        };
    }

    private static Class<?> returnType(Function function) {
        return function.returnType().equals("const char*") ? String.class : rawType(function.returnType());
    }

    @Test
    void theHeaderHasAllFunctionsOfNcclAndTheirTwins() {
        // And two of VCCL and RCCL, which NVIDIA's header has not.
        assertEquals(FUNCTIONS + 2, count(header.functions().keySet(), "nccl"));
        assertEquals(FUNCTIONS + 2, count(header.functions().keySet(), "pnccl"));
        for (Function function : header.functions().values()) {
            if (function.name().startsWith("nccl")) {
                Function twin = header.functions().get("p" + function.name());
                assertEquals(function.signature(), twin.signature(), function.name());
            }
        }
    }

    private static long count(Set<String> functions, String prefix) {
        return functions.stream()
                .filter(name -> name.matches(prefix + "[A-Z].*"))
                .count();
    }

    @Test
    void everyFunctionHasItsRawAddressForm() {
        for (Function function : header.functions().values()) {
            Class<?>[] parameters = function.parameters().stream()
                    .map(Parameter::type)
                    .map(BindingsTest::rawType)
                    .toArray(Class<?>[]::new);
            try {
                Method method = nccl.class.getDeclaredMethod(function.name(), parameters);
                assertEquals(returnType(function), method.getReturnType(), function.name());
                assertEquals(List.of(NcclLibraryException.class), List.of(method.getExceptionTypes()), function.name());
            } catch (NoSuchMethodException e) {
                fail(function + " has no raw-address form: " + overloads(function.name()), e);
            }
        }
    }

    @Test
    void everyFunctionHasItsPointerForm() {
        for (Function function : header.functions().values()) {
            List<Parameter> parameters = function.parameters();
            boolean bound = overloads(function.name()).stream()
                    .anyMatch(method -> method.getParameterCount() == parameters.size()
                            && matches(method.getParameterTypes(), parameters));
            assertTrue(bound, () -> function + " has no Pointer form: " + overloads(function.name()));
        }
    }

    /** Whether what is an address or a handle in C is an object in Java. */
    private static boolean matches(Class<?>[] types, List<Parameter> parameters) {
        for (int i = 0; i < types.length; i++) {
            String cType = parameters.get(i).type();
            boolean address = cType.endsWith("*") || HANDLES.contains(cType.replaceFirst("^const ", ""));
            if (address ? types[i].isPrimitive() : types[i] != rawType(cType)) {
                return false;
            }
        }
        return true;
    }

    @Test
    void everyBoundFunctionIsInTheHeader() {
        Set<String> bound = Arrays.stream(nccl.class.getDeclaredMethods())
                .filter(method -> Modifier.isPublic(method.getModifiers()))
                .map(Method::getName)
                .filter(name -> !isConstant(name))
                .collect(Collectors.toCollection(TreeSet::new));
        Set<String> declared = new TreeSet<>(header.functions().keySet());
        declared.add("NCCL_VERSION");
        assertEquals(declared, bound);
        assertEquals(FUNCTIONS + 2, count(bound, "nccl"));
        assertEquals(FUNCTIONS + 2, count(bound, "pnccl"));
    }

    /** Constants whose value comes from C have a native method of their name. */
    private static boolean isConstant(String name) {
        return Arrays.stream(nccl.class.getDeclaredFields())
                .anyMatch(field -> field.getName().equals(name));
    }

    @Test
    void alltoAllvHasItsThreeForms() {
        for (String name : List.of("ncclAlltoAllv", "pncclAlltoAllv")) {
            Map<Integer, Long> forms = overloads(name).stream()
                    .collect(Collectors.groupingBy(Method::getParameterCount, TreeMap::new, Collectors.counting()));
            assertEquals(Map.of(9, 2L, 10, 2L, 11, 2L), forms, name);
        }
    }

    @Test
    void whatNcclWritesLaterIsNeverTheAddressOfALocal() {
        Set<String> looked = new TreeSet<>();
        for (Function function : header.functions().values()) {
            for (int i = 0; i < function.parameters().size(); i++) {
                if (function.parameters().get(i).type().matches("nccl(Comm|Window|ParamHandle)_t\\*")) {
                    for (Method method : overloads(function.name())) {
                        Class<?> type = method.getParameterTypes()[i];
                        assertTrue(type == long.class || type == PointerPointer.class, method.toString());
                        looked.add(function.name());
                    }
                }
            }
        }
        assertTrue(
                looked.containsAll(Set.of("ncclCommInitRank", "ncclCommSplit", "ncclCommWindowRegister")),
                looked::toString);
    }

    @Test
    void everyConstantIsBoundWithItsValueAndNoOther() throws IllegalAccessException {
        Map<String, String> expected = new TreeMap<>();
        layout.forEach((name, value) -> {
            if (name.startsWith("constant ") || name.startsWith("enumerator ")) {
                expected.put(name.substring(name.indexOf(' ') + 1), value);
            }
        });
        expected.put("NCCL_MAJOR", header.macros().get("NCCL_MAJOR").text());
        expected.put("NCCL_MINOR", header.macros().get("NCCL_MINOR").text());
        expected.put("NCCL_PATCH", header.macros().get("NCCL_PATCH").text());
        expected.put(
                "NCCL_VERSION_CODE", header.macros().get("NCCL_VERSION_CODE").text());
        expected.put("NCCL_SUFFIX", "");
        Map<String, String> bound = new TreeMap<>();
        for (java.lang.reflect.Field field : nccl.class.getDeclaredFields()) {
            Object value = field.get(null);
            bound.put(field.getName(), value == null ? "0" : text(value));
        }
        assertEquals(expected, bound);
        long enumerators = header.enums().values().stream()
                .map(EnumType::enumerators)
                .mapToLong(List::size)
                .sum();
        assertTrue(expected.size() > enumerators, "the probe says nothing of the macros");
    }

    private static String text(Object value) {
        if (value instanceof Float f) {
            return f == Math.rint(f) ? Integer.toString(f.intValue()) : value.toString();
        }
        // C knows the magic as unsigned.
        return value instanceof Integer i && i == nccl.NCCL_API_MAGIC
                ? Long.toString(i & 0xffffffffL)
                : value.toString();
    }

    @Test
    void versionCodesAreComputedAsTheHeaderDoes() {
        assertEquals(2408, nccl.NCCL_VERSION(2, 4, 8));
        assertEquals(2804, nccl.NCCL_VERSION(2, 8, 4));
        assertEquals(20906, nccl.NCCL_VERSION(2, 9, 6));
        assertEquals(nccl.NCCL_VERSION_CODE, nccl.NCCL_VERSION(nccl.NCCL_MAJOR, nccl.NCCL_MINOR, nccl.NCCL_PATCH));
    }

    @Test
    void structsHaveTheLayoutOfC() throws ReflectiveOperationException {
        assertEquals(
                Set.of(
                        "ncclCollConfig_t",
                        "ncclConfigExt_t",
                        "ncclConfig_t",
                        "ncclEncryptionConfig_t",
                        "ncclSimInfo_t",
                        "ncclUniqueId",
                        "ncclWaitSignalDesc_t"),
                header.structs().keySet());
        StructLayouts.assertLikeC("io.github.nccl4j.nccl", header, layout);
        assertEquals("120", layout.get("sizeof ncclConfig_t"));
        assertEquals("72", layout.get("sizeof ncclCollConfig_t"));
        assertEquals("24", layout.get("sizeof ncclConfigExt_t"));
        assertEquals("32", layout.get("sizeof ncclEncryptionConfig_t"));
        assertEquals("24", layout.get("sizeof ncclSimInfo_t"));
        assertEquals("16", layout.get("sizeof ncclWaitSignalDesc_t"));
        assertEquals("128", layout.get("sizeof ncclUniqueId"));
    }

    @Test
    void newConfigurationsAreInitialised() throws ReflectiveOperationException {
        try (ncclConfig_t config = new ncclConfig_t();
                ncclConfig_t two = new ncclConfig_t(2)) {
            for (ncclConfig_t one : List.of(config, two, two.getPointer(1))) {
                assertEquals(120, one.size());
                assertEquals(0xcafebeef, one.magic());
                assertEquals(nccl.NCCL_VERSION_CODE, one.version());
                for (Field field : header.structs().get("ncclConfig_t").fields()) {
                    if (!Set.of("size", "magic", "version").contains(field.name())) {
                        Object value =
                                ncclConfig_t.class.getMethod(field.name()).invoke(one);
                        Object unset = field.type().equals("int") ? nccl.NCCL_CONFIG_UNDEF_INT : null;
                        assertEquals(unset, value, field.name());
                    }
                }
            }
        }
        try (ncclCollConfig_t call = new ncclCollConfig_t();
                ncclCollConfig_t two = new ncclCollConfig_t(2)) {
            for (ncclCollConfig_t one : List.of(call, two, two.getPointer(1))) {
                assertEquals(72, one.size());
                assertEquals(0xcafebeef, one.magic());
                // What NCCL 2.31 decides by, how much of it it reads.
                assertEquals(nccl.NCCL_VERSION_CODE, one.version());
                for (int number :
                        new int[] {one.minCTAs(), one.maxCTAs(), one.nvlsCTAs(), one.cgaClusterSize(), one.CTAPolicy()
                        }) {
                    assertEquals(nccl.NCCL_CONFIG_UNDEF_INT, number);
                }
                assertEquals(1, one.forceAlgSelection());
                assertEquals(0, one.userProfilerTag());
                assertNull(one.ext());
                assertNull(one.algSelection());
                assertNull(one.launchCompletionEvent());
            }
        }
        try (ncclEncryptionConfig_t encryption = new ncclEncryptionConfig_t()) {
            assertEquals(32, encryption.size());
            assertEquals(0xcafebeef, encryption.magic());
            assertEquals(nccl.NCCL_VERSION_CODE, encryption.version());
            assertEquals(nccl.NCCL_ENCRYPTION_MODE_NONE, encryption.mode());
            assertNull(encryption.psk());
        }
        try (ncclSimInfo_t info = new ncclSimInfo_t()) {
            assertEquals(24, info.size());
            assertEquals(0x74685283, info.magic());
            assertEquals(nccl.NCCL_VERSION_CODE, info.version());
            assertEquals(nccl.NCCL_UNDEF_FLOAT, info.estimatedTime());
        }
    }

    /** NCCL has no initializer for these; what the memory held before must not be taken for pointers, in arrays either. */
    @Test
    void otherStructsBeginWithZeros() {
        // From the second round on, malloc gives the memory of the round before.
        for (int i = 0; i < 100; i++) {
            try (ncclConfigExt_t one = new ncclConfigExt_t();
                    ncclConfigExt_t two = new ncclConfigExt_t(2)) {
                for (ncclConfigExt_t option : List.of(one, two, two.getPointer(1))) {
                    assertNull(option.next());
                    assertEquals(0, option.key_vendorId());
                    assertEquals(0, option.key_optionId());
                    assertNull(option.val_raw());
                }
                Pointer.memset(one, 0x7f, one.sizeof());
                Pointer.memset(two, 0x7f, 2L * two.sizeof());
            }
        }
    }

    @Test
    void optionsAreListed() {
        try (ncclCollConfig_t call = new ncclCollConfig_t();
                ncclConfigExt_t first = new ncclConfigExt_t();
                ncclConfigExt_t second = new ncclConfigExt_t();
                BytePointer text = new BytePointer("text")) {
            call.ext(first.key_vendorId(7).key_optionId(1).val_i(42).next(second));
            second.key_vendorId(7).key_optionId(2).val_s(text);
            assertEquals(42, call.ext().val_i());
            assertEquals(2, call.ext().next().key_optionId());
            assertEquals("text", call.ext().next().val_s().getString());
            assertNull(call.ext().next().next());
        }
    }

    /** The Pointer form must pass the address that the position stands for, whatever the type. */
    @Test
    void pointerFormsHonourPositions() throws IOException {
        ChildJvm.Outcome outcome = new ChildJvm()
                .property("nccl4j.library", StubLibraries.addresses(folder))
                .property("nccl4j.vccl.alltoallv", 11)
                .run(Positions.class);
        assertEquals("ok\n", outcome.output());
    }

    /** Runs in a JVM of its own, on a library that gives back the addresses it was called with. */
    static final class Positions {
        public static void main(String... args) {
            try (IntPointer ints = new IntPointer(10);
                    LongPointer longs = new LongPointer(10);
                    SizeTPointer counts = new SizeTPointer(10);
                    LongPointer seen = new LongPointer(4)) {
                nccl.ncclSend(seen, 0, 0, 0, null, null);
                ints.position(3);
                longs.position(5);
                nccl.ncclAllReduce(ints, longs, 1, nccl.ncclInt32, nccl.ncclSum, null, null);
                check(ints.address() + 12, seen.get(0));
                check(longs.address() + 40, seen.get(1));
                counts.position(2);
                nccl.ncclAlltoAllv(ints, counts, counts, null, counts, counts, null, 0, 0, null, null);
                check(ints.address() + 12, seen.get(0));
                check(0, seen.get(1));
                check(counts.address() + 16, seen.get(2));
                System.out.println("ok");
            }
        }

        private static void check(long expected, long seen) {
            if (expected != seen) {
                throw new AssertionError("expected " + Long.toHexString(expected) + ", saw " + Long.toHexString(seen));
            }
        }
    }

    @Test
    void nothingIsLinkedAgainstNcclOrCuda() throws IOException {
        Path library = Path.of(org.bytedeco.javacpp.Loader.load(nccl.class));
        String needed = Cxx.output(List.of("readelf", "-d", library.toString()));
        String undefined = Cxx.output(List.of("nm", "-D", "--undefined-only", library.toString()));
        assertFalse(undefined.contains("nccl"), undefined);
        for (String name : List.of("libnccl", "libcuda", "libcudart", "librccl")) {
            assertFalse(needed.contains(name), needed);
        }
        assertTrue(needed.contains("libc.so.6"), needed);
        assertTrue(library.getFileName().toString().equals("libjninccl4j.so"), library.toString());
    }
}
