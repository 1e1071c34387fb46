package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.header.Enumerator;
import io.github.nccl4j.header.Header;
import io.github.nccl4j.header.Macro;
import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.GinConnection;
import io.github.nccl4j.highlevel.GinType;
import io.github.nccl4j.highlevel.HostCftMode;
import io.github.nccl4j.highlevel.MemoryStatistic;
import io.github.nccl4j.highlevel.NvlsHostMode;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.Result;
import io.github.nccl4j.highlevel.RevokeFlag;
import io.github.nccl4j.highlevel.ScalarResidence;
import io.github.nccl4j.highlevel.ShrinkFlag;
import io.github.nccl4j.highlevel.SuspendFlag;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.tests.PackagedHeader;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.ToIntFunction;
import org.junit.jupiter.api.Test;

/** The constants of the highlevel package are those of the header: none is missing, none is beside it. */
class ConstantsTest {
    private static final Header HEADER = PackagedHeader.parse();

    /** The enumerators of an enum by their names as Java has them, with the values of the bindings. */
    private static Map<String, Integer> enumerators(String type, String prefix, String... others) {
        Map<String, Integer> constants = new TreeMap<>();
        for (Enumerator enumerator : HEADER.enums().get(type).enumerators()) {
            if (!Set.of(others).contains(enumerator.name())) {
                constants.put(javaName(enumerator.name(), prefix), bound(enumerator.name()));
            }
        }
        return constants;
    }

    private static Map<String, Integer> macros(String prefix, String... others) {
        Map<String, Integer> constants = new TreeMap<>();
        for (Macro macro : HEADER.macros().values()) {
            if (macro.name().startsWith(prefix) && !Set.of(others).contains(macro.name())) {
                constants.put(javaName(macro.name(), prefix), bound(macro.name()));
            }
        }
        return constants;
    }

    private static String javaName(String name, String prefix) {
        assertTrue(name.startsWith(prefix), name);
        return plain(name.substring(prefix.length()));
    }

    /** Names differ in nothing but case and underscores. */
    private static String plain(String name) {
        return name.replace("_", "").toUpperCase(Locale.ROOT);
    }

    private static int bound(String name) {
        try {
            return nccl.class.getField(name).getInt(null);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e);
        }
    }

    private static <T> Map<String, Integer> constants(
            List<T> constants, Function<T, String> name, ToIntFunction<T> code) {
        Map<String, Integer> codes = new TreeMap<>();
        constants.forEach(constant -> codes.put(plain(name.apply(constant)), code.applyAsInt(constant)));
        return codes;
    }

    private static <E extends Enum<E>> Map<String, Integer> constants(Class<E> type, ToIntFunction<E> code) {
        return constants(List.of(type.getEnumConstants()), Enum::name, code);
    }

    @Test
    void dataTypesAreThoseOfTheHeader() {
        String[] others = {"ncclNumTypes", "ncclChar", "ncclInt", "ncclHalf", "ncclFloat", "ncclDouble"};
        assertEquals(enumerators("ncclDataType_t", "nccl", others), constants(DataType.class, DataType::code));
        assertEquals(nccl.ncclNumTypes, DataType.values().length);
        for (DataType type : DataType.values()) {
            assertSame(type, DataType.of(type.code()));
        }
        // The other names are names of types that are there.
        assertEquals(DataType.INT8, DataType.of(nccl.ncclChar));
        assertEquals(DataType.INT32, DataType.of(nccl.ncclInt));
        assertEquals(DataType.FLOAT16, DataType.of(nccl.ncclHalf));
        assertEquals(DataType.FLOAT32, DataType.of(nccl.ncclFloat));
        assertEquals(DataType.FLOAT64, DataType.of(nccl.ncclDouble));
    }

    @Test
    void dataTypesHaveTheSizeTheirNameAndTheirCarrierSay() {
        for (DataType type : DataType.values()) {
            String bits = type.name().replaceFirst("_E.M.$", "").replaceAll("\\D", "");
            assertEquals(Integer.parseInt(bits), type.size() * 8, type.name());
            Object element = java.lang.reflect.Array.get(java.lang.reflect.Array.newInstance(type.carrier(), 1), 0);
            int carried = element instanceof Byte
                    ? Byte.BYTES
                    : element instanceof Short
                            ? Short.BYTES
                            : element instanceof Integer || element instanceof Float ? Integer.BYTES : Long.BYTES;
            assertEquals(type.size(), carried, type.name());
        }
    }

    @Test
    void dataTypesKnowTheReleaseThatTheHeaderTells() {
        int told = 0;
        for (Enumerator enumerator : HEADER.enums().get("ncclDataType_t").enumerators()) {
            if (!enumerator.since().isEmpty()) {
                told++;
                DataType type = DataType.of((int) enumerator.value().getAsLong());
                assertEquals(enumerator.since(), "NCCL " + type.since(), enumerator.name());
            }
        }
        assertTrue(told > 0, "the header tells it of some");
        assertEquals(new Version(2, 3, 5), DataType.FLOAT32.since());
        assertEquals(new Version(2, 24, 3), DataType.FLOAT8_E4M3.since());
    }

    @Test
    void codesThatAreNoTypeAreRefusedWithTheirValue() {
        for (int code : new int[] {-1, 12, Integer.MAX_VALUE, Integer.MIN_VALUE}) {
            String message = assertThrows(IllegalArgumentException.class, () -> DataType.of(code))
                    .getMessage();
            assertEquals("a data type's code must be in 0..11: " + code, message);
        }
    }

    @Test
    void operatorsAreThoseOfTheHeader() {
        assertEquals(
                enumerators("ncclRedOp_t", "nccl", "ncclNumOps", "ncclMaxRedOp"),
                constants(ReduceOp.builtIn(), ReduceOp::toString, ReduceOp::code));
        assertEquals(nccl.ncclNumOps, ReduceOp.builtIn().size());
        assertEquals(0, ReduceOp.class.getConstructors().length);
    }

    @Test
    void resultsAreThoseOfTheHeader() throws IllegalAccessException {
        assertEquals(
                enumerators("ncclResult_t", "nccl", "ncclNumResults"),
                constants(Result.known(), result -> result.name().substring("nccl".length()), Result::code));
        for (Result result : Result.known()) {
            assertSame(result, Result.of(result.code()));
            assertTrue(result.isKnown());
            assertFalse(result.meaning().isEmpty());
            assertEquals(result.equals(Result.SUCCESS), result.advice().isEmpty(), result.toString());
        }
        for (Field field : Result.class.getFields()) {
            if (Modifier.isStatic(field.getModifiers())) {
                Result result = (Result) field.get(null);
                assertEquals(plain(field.getName()), plain(result.name().substring("nccl".length())));
            }
        }
    }

    @Test
    void unknownResultsKeepTheirCode() {
        for (int code : new int[] {9, 100, -1, Integer.MAX_VALUE}) {
            Result result = Result.of(code);
            assertEquals(code, result.code());
            assertFalse(result.isKnown());
            assertEquals("unknown result (" + code + ")", result.toString());
            assertEquals(Result.of(code), result);
            assertEquals(Result.of(code).hashCode(), result.hashCode());
            assertNotEquals(Result.SUCCESS, result);
            assertFalse(result.advice().isEmpty());
        }
    }

    @Test
    void flagsPoliciesAndStatisticsAreThoseOfTheHeader() {
        assertEquals(macros("NCCL_CTA_POLICY_"), constants(CtaPolicy.class, CtaPolicy::code));
        assertEquals(macros("NCCL_WIN_", "NCCL_WIN_REQUIRED_ALIGNMENT"), constants(WindowFlag.class, WindowFlag::code));
        assertEquals(nccl.NCCL_WIN_REQUIRED_ALIGNMENT, WindowFlag.REQUIRED_ALIGNMENT);
        assertEquals(macros("NCCL_SHRINK_"), constants(ShrinkFlag.class, ShrinkFlag::code));
        assertEquals(macros("NCCL_REVOKE_"), constants(RevokeFlag.class, RevokeFlag::code));
        assertEquals(macros("NCCL_SUSPEND_"), constants(SuspendFlag.class, SuspendFlag::code));
        // Default is the value of a field that is not set.
        assertEquals(
                enumerators("ncclHostCftMode_t", "ncclHostCft", "ncclHostCftDefault"),
                constants(HostCftMode.class, HostCftMode::code));
        assertEquals(
                enumerators("ncclNvlsHostMode_t", "ncclNvlsHostMode", "ncclNvlsHostModeDefault"),
                constants(NvlsHostMode.class, NvlsHostMode::code));
        assertEquals(
                enumerators("ncclCommMemStat_t", "ncclStat"), constants(MemoryStatistic.class, MemoryStatistic::code));
        assertEquals(
                enumerators("ncclScalarResidence_t", "ncclScalar"),
                constants(ScalarResidence.class, ScalarResidence::code));
    }

    @Test
    void flagsAndPoliciesKnowTheReleaseThatTheHeaderTells() {
        for (CtaPolicy policy : CtaPolicy.values()) {
            assertEquals(since("NCCL_CTA_POLICY_" + policy.name()), "NCCL " + policy.since());
        }
        for (WindowFlag flag : WindowFlag.values()) {
            assertEquals(since("NCCL_WIN_" + flag.name()), "NCCL " + flag.since());
        }
    }

    private static String since(String macro) {
        return HEADER.macros().get(macro).since();
    }

    @Test
    void versionsAreReadFromCodesAndOrderedByAge() {
        assertEquals(new Version(2, 28, 3), Version.of(22803));
        assertEquals(new Version(2, 7, 8), Version.of(2708));
        assertEquals(new Version(2, 26, 62), Version.of(22662));
        assertEquals(new Version(0, 0, 0), Version.of(0));
        assertEquals(new Version(3, 1, 0), Version.of(30100));
        assertEquals("2.32.3", Version.of(nccl.NCCL_VERSION_CODE).toString());
        assertTrue(Version.of(22803).isAtLeast(Version.of(22803)));
        assertTrue(Version.of(21005).isAtLeast(Version.of(2908)));
        assertFalse(Version.of(22803).isAtLeast(Version.of(22807)));
        String message = assertThrows(IllegalArgumentException.class, () -> Version.of(-1))
                .getMessage();
        assertEquals("a version code must be >= 0: -1", message);
    }

    @Test
    void transfersOfKernelsAreThoseOfTheDeviceApi() {
        Map<String, Integer> types = new TreeMap<>();
        for (GinType type : GinType.values()) {
            types.put(plain(type.name()), type.code());
        }
        Map<String, Integer> connections = new TreeMap<>();
        for (GinConnection connection : GinConnection.values()) {
            connections.put(plain(connection.name()), connection.code());
        }
        for (Map<String, Integer> ours : List.of(types, connections)) {
            assertEquals(-1, ours.remove("UNKNOWN"));
        }
        assertEquals(ofDevice("NCCL_GIN_TYPE_"), types);
        assertEquals(ofDevice("NCCL_GIN_CONNECTION_"), connections);
    }

    private static Map<String, Integer> ofDevice(String prefix) {
        Map<String, Integer> constants = new TreeMap<>();
        for (Field field : nccl_device.class.getFields()) {
            if (field.getName().startsWith(prefix)) {
                try {
                    constants.put(javaName(field.getName(), prefix), field.getInt(null));
                } catch (IllegalAccessException e) {
                    throw new AssertionError(e);
                }
            }
        }
        return constants;
    }
}
