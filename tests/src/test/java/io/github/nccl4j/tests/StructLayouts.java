package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.nccl4j.header.Field;
import io.github.nccl4j.header.Header;
import io.github.nccl4j.header.StructType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.bytedeco.javacpp.Pointer;

/** Compares the generated classes of structs with the layout that a C compiler reports. */
final class StructLayouts {
    private StructLayouts() {}

    /**
     * Asserts sizes, offsets and the names of all accessors.
     *
     * @param packageName the package of the classes
     * @param header the header that declares the structs
     * @param layout numbers by "sizeof TYPE" and "offset TYPE.FIELD"
     */
    static void assertLikeC(String packageName, Header header, Map<String, String> layout)
            throws ReflectiveOperationException {
        for (StructType struct : header.structs().values()) {
            Class<?> type = Class.forName(packageName + "." + struct.name());
            try (Pointer instance = (Pointer) type.getConstructor().newInstance()) {
                assertEquals(layout.get("sizeof " + struct.name()), Long.toString(instance.sizeof()), struct.name());
                Set<String> accessors = new TreeSet<>();
                for (Field field : struct.fields()) {
                    assertEquals(
                            layout.get("offset " + struct.name() + "." + field.name()),
                            Long.toString(instance.offsetof(field.name())),
                            struct.name() + "." + field.name());
                    accessors.add(accessor(field));
                }
                Set<String> bound = Arrays.stream(type.getDeclaredMethods())
                        .filter(method ->
                                Modifier.isNative(method.getModifiers()) && Modifier.isPublic(method.getModifiers()))
                        .map(Method::getName)
                        .collect(Collectors.toCollection(TreeSet::new));
                assertEquals(accessors, bound, struct.name());
            }
        }
    }

    /** The name of a field in Java; that of one in a structure inside has a dot in C. */
    private static String accessor(Field field) {
        return field.name().replace('.', '_');
    }
}
