package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.DataType;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import java.util.List;
import java.util.Locale;

/** The element types, named as in nccl-tests. */
final class Types {
    private Types() {}

    static String label(ElementType<?> type) {
        return switch (type.dataType()) {
            case FLOAT16 -> "half";
            case FLOAT32 -> "float";
            case FLOAT64 -> "double";
            case FLOAT8_E4M3 -> "f8e4m3";
            case FLOAT8_E5M2 -> "f8e5m2";
            default -> type.toString().toLowerCase(Locale.ROOT);
        };
    }

    /** The type with a name, or all types that the library supports for "all". */
    static List<ElementType<?>> named(String name) {
        if (name.equalsIgnoreCase("all")) {
            return ElementType.values().stream()
                    .filter(type -> NcclLibrary.get()
                            .version()
                            .isAtLeast(type.dataType().since()))
                    .toList();
        }
        for (ElementType<?> type : ElementType.values()) {
            if (label(type).equalsIgnoreCase(name)) {
                return List.of(type);
            }
        }
        throw new IllegalArgumentException("no such type: '" + name + "'; there are "
                + ElementType.values().stream().map(Types::label).toList() + " and all");
    }

    /** Throws if there is no type with this name. Does not load a library. */
    static void requireKnown(String name) {
        if (!name.equalsIgnoreCase("all")) {
            named(name);
        }
    }

    static boolean isSigned(DataType type) {
        return type != DataType.UINT8 && type != DataType.UINT32 && type != DataType.UINT64;
    }
}
