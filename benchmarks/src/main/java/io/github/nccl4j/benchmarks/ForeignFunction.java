package io.github.nccl4j.benchmarks;

import java.lang.invoke.MethodHandle;
import java.lang.reflect.Array;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Functions by {@code java.lang.foreign}: found by reflection, because Java 17 lacks it. The handle is called like any other method
 * handle.
 */
final class ForeignFunction {
    private static final String PACKAGE = "java.lang.foreign.";

    private ForeignFunction() {}

    /** A handle that takes {@code ncclAllReduce}'s pointers as long. */
    static MethodHandle allReduce(Path library) {
        try {
            Class<?> layout = Class.forName(PACKAGE + "MemoryLayout");
            Class<?> layouts = Class.forName(PACKAGE + "ValueLayout");
            Object ofLong = layouts.getField("JAVA_LONG").get(null);
            Object ofInt = layouts.getField("JAVA_INT").get(null);
            Object[] parameters = {ofLong, ofLong, ofLong, ofInt, ofInt, ofLong, ofLong};
            Object list = Array.newInstance(layout, parameters.length);
            for (int i = 0; i < parameters.length; i++) {
                Array.set(list, i, parameters[i]);
            }
            Class<?> descriptor = Class.forName(PACKAGE + "FunctionDescriptor");
            Object type = descriptor.getMethod("of", layout, list.getClass()).invoke(null, ofInt, list);

            Class<?> arena = Class.forName(PACKAGE + "Arena");
            Class<?> lookup = Class.forName(PACKAGE + "SymbolLookup");
            Object symbols = lookup.getMethod("libraryLookup", Path.class, arena)
                    .invoke(null, library, arena.getMethod("global").invoke(null));
            Optional<?> symbol =
                    (Optional<?>) lookup.getMethod("find", String.class).invoke(symbols, "ncclAllReduce");

            Class<?> linker = Class.forName(PACKAGE + "Linker");
            Object noOptions = Array.newInstance(Class.forName(PACKAGE + "Linker$Option"), 0);
            return (MethodHandle) linker.getMethod(
                            "downcallHandle",
                            Class.forName(PACKAGE + "MemorySegment"),
                            descriptor,
                            noOptions.getClass())
                    .invoke(linker.getMethod("nativeLinker").invoke(null), symbol.orElseThrow(), type, noOptions);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}
