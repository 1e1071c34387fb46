package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.header.Function;
import io.github.nccl4j.header.Header;
import io.github.nccl4j.header.Layout;
import io.github.nccl4j.header.Parameter;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.nccl_device.ncclCommProperties_t;
import io.github.nccl4j.nccl_device.ncclDevCommRequirements_t;
import io.github.nccl4j.nccl_device.ncclDevComm_t;
import io.github.nccl4j.nccl_device.ncclTeamRequirements_t;
import io.github.nccl4j.nccl_device.ncclTeam_t;
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
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The classes of the device API against the header that they are made from: nothing is missing, nothing is beside it. */
class DeviceBindingsTest {
    private static final int FUNCTIONS = 23;

    @TempDir
    static Path folder;

    private static Header header;
    private static Header all;
    private static Map<String, String> layout;

    @BeforeAll
    static void readHeaders() throws Exception {
        Header included = Header.parse(extract("nccl.h"));
        Path file = extract("nccl_device.h");
        header = Header.parse(file);
        all = header.including(included);
        layout = new Layout(System.getProperty("nccl4j.test.cxx", "g++"), folder).of(file, header, header);
    }

    private static Path extract(String name) throws IOException {
        Path file = folder.resolve(name);
        try (InputStream text = nccl.class.getResourceAsStream("/io/github/nccl4j/include/" + name)) {
            Files.copy(text, file);
        }
        return file;
    }

    private static boolean isNumber(String type) {
        return all.enums().containsKey(type) || type.equals("int");
    }

    private static Class<?> rawType(String cType) {
        return cType.equals("size_t") || !isNumber(cType) ? long.class : int.class;
    }

    /** The release of each function, as the header tells it, is what the table of the native code has. */
    @Test
    void theTableHasAllFunctionsWithTheirReleases() {
        assertEquals(FUNCTIONS, header.functions().size());
        for (String function : header.functions().keySet()) {
            String since = header.since(function).orElseThrow();
            assertTrue(since.matches("NCCL 2\\.(28|29|30|31|32)\\.\\d"), function + " " + since);
            assertEquals(since, NativeLibrary.release(function), function);
        }
    }

    @Test
    void everyFunctionHasItsRawAddressFormAndItsPointerForm() {
        for (Function function : header.functions().values()) {
            Class<?>[] raw = function.parameters().stream()
                    .map(parameter -> rawType(parameter.type()))
                    .toArray(Class<?>[]::new);
            try {
                Method method = nccl_device.class.getDeclaredMethod(function.name(), raw);
                Class<?> result = function.returnType().equals("ncclTeam_t") ? ncclTeam_t.class : int.class;
                assertEquals(result, method.getReturnType(), function.name());
                assertEquals(List.of(NcclLibraryException.class), List.of(method.getExceptionTypes()), function.name());
            } catch (NoSuchMethodException e) {
                fail(function + " has no raw-address form", e);
            }
            boolean bound = overloads(function.name()).stream()
                    .anyMatch(method -> matches(method.getParameterTypes(), function.parameters()));
            assertTrue(bound, () -> function + " has no Pointer form: " + overloads(function.name()));
        }
    }

    private static List<Method> overloads(String function) {
        return Arrays.stream(nccl_device.class.getDeclaredMethods())
                .filter(method -> method.getName().equals(function))
                .toList();
    }

    /** Whether what is an address, a handle or a structure in C is an object in Java. */
    private static boolean matches(Class<?>[] types, List<Parameter> parameters) {
        for (int i = 0; i < types.length; i++) {
            String type = parameters.get(i).type();
            boolean plain = isNumber(type) || type.equals("size_t");
            if (types[i].isPrimitive() != plain) {
                return false;
            }
        }
        return types.length == parameters.size();
    }

    @Test
    void everyBoundFunctionIsInTheHeader() {
        Set<String> bound = Arrays.stream(nccl_device.class.getDeclaredMethods())
                .filter(method -> Modifier.isPublic(method.getModifiers()))
                .map(Method::getName)
                .filter(name -> Arrays.stream(nccl_device.class.getDeclaredFields())
                        .noneMatch(field -> field.getName().equals(name)))
                .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(new TreeSet<>(header.functions().keySet()), bound);
        assertEquals(FUNCTIONS, bound.size());
    }

    @Test
    void everyConstantIsBoundWithItsValueAndNoOther() throws IllegalAccessException {
        Map<String, String> expected = new TreeMap<>();
        layout.forEach((name, value) -> {
            if (name.startsWith("constant ") || name.startsWith("enumerator ")) {
                expected.put(name.substring(name.indexOf(' ') + 1), value);
            }
        });
        // C knows it as unsigned.
        expected.put("NCCL_LE_ID_INVALID", "-1");
        Map<String, String> bound = new TreeMap<>();
        for (java.lang.reflect.Field field : nccl_device.class.getDeclaredFields()) {
            bound.put(field.getName(), field.get(null).toString());
        }
        assertEquals(expected, bound);
        assertTrue(bound.size() > 15, bound::toString);
    }

    @Test
    void structsHaveTheLayoutOfC() throws ReflectiveOperationException {
        StructLayouts.assertLikeC("io.github.nccl4j.nccl_device", header, layout);
        assertEquals(12, header.structs().size());
        assertEquals("152", layout.get("sizeof ncclCommProperties_t"));
        assertEquals("120", layout.get("sizeof ncclDevCommRequirements_t"));
        assertEquals("248", layout.get("sizeof ncclDevComm_t"));
        assertEquals("56", layout.get("sizeof ncclDevResourceRequirements_t"));
        assertEquals("32", layout.get("sizeof ncclTeamRequirements_t"));
        assertEquals("12", layout.get("sizeof ncclTeam_t"));
        assertEquals("8", layout.get("sizeof ncclMultimemHandle_t"));
    }

    @Test
    void newStructuresAreInitialised() {
        try (ncclCommProperties_t properties = new ncclCommProperties_t();
                ncclDevCommRequirements_t requirements = new ncclDevCommRequirements_t();
                ncclTeamRequirements_t team = new ncclTeamRequirements_t();
                ncclDevComm_t device = new ncclDevComm_t()) {
            assertEquals(152, properties.size());
            assertEquals(nccl.NCCL_API_MAGIC, properties.magic());
            assertEquals(nccl.NCCL_VERSION_CODE, properties.version());
            assertFalse(properties.ginSupport(63));
            assertEquals(120, requirements.size());
            assertEquals(nccl.NCCL_API_MAGIC, requirements.magic());
            assertEquals(nccl.NCCL_VERSION_CODE, requirements.version());
            assertEquals(4, requirements.ginContextCount());
            assertEquals(nccl.NCCL_CONFIG_UNDEF_INT, requirements.ginTrafficClass());
            assertTrue(requirements.ginStrongSignalsRequired() && requirements.ginVaSignalsRequired());
            assertEquals(1, requirements.ginCustomStride());
            assertNull(requirements.resourceRequirementsList());
            assertNull(team.next());
            assertEquals(0, team.team().nRanks());
            assertEquals(0, device.magic());
            assertEquals(0, device.content(29));
        }
    }
}
