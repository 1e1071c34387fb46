package io.github.nccl4j.internal.config;

import io.github.nccl4j.internal.memory.Address;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.library.StructInitializers;
import io.github.nccl4j.nccl.ncclConfig_t;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.Loader;

/**
 * A {@code ncclConfig_t} in native memory, as an argument for NCCL. The creator must close it after the call of NCCL
 * has returned: NCCL copies the struct and netName within the call.
 *
 * <p>NCCL does not copy commName. NCCL keeps its address in the communicator and in all communicators that are split,
 * shrunk or grown from it. Therefore each name is written to native memory once and never freed.
 *
 * <p>Not thread-safe.
 */
public final class NativeConfig implements AutoCloseable {
    private static final Map<String, NativeMemory> COMMUNICATOR_NAMES = new ConcurrentHashMap<>();

    private final NativeMemory memory;
    private final ncclConfig_t config;
    private NativeMemory netName;

    /** Creates a struct with values that the library supports. */
    public NativeConfig(Map<ConfigField, Object> values) {
        memory = new NativeMemory(Loader.sizeof(ncclConfig_t.class));
        StructInitializers.config(memory.address());
        config = new ncclConfig_t(new Address(memory.address()));
        values.forEach((field, value) -> {
            switch (field) {
                case NET_NAME -> {
                    netName = text((String) value);
                    config.netName(pointer(netName));
                }
                case COMM_NAME ->
                    config.commName(pointer(COMMUNICATOR_NAMES.computeIfAbsent((String) value, NativeConfig::text)));
                default -> field.write(config, value);
            }
        });
    }

    private static NativeMemory text(String value) {
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        NativeMemory memory = new NativeMemory(bytes.length + 1);
        memory.buffer().put(bytes);
        return memory;
    }

    private static BytePointer pointer(NativeMemory memory) {
        return new BytePointer(new Address(memory.address()));
    }

    /** The struct; valid until {@link #close}. */
    public ncclConfig_t struct() {
        return config;
    }

    @Override
    public void close() {
        memory.close();
        if (netName != null) {
            netName.close();
        }
    }
}
