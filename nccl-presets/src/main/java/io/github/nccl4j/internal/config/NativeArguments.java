package io.github.nccl4j.internal.config;

import io.github.nccl4j.internal.memory.NativeMemory;
import java.util.List;
import java.util.Map;

/** Native arguments of a call that creates a communicator: unique ids and a configuration. Closed after the call. */
public final class NativeArguments implements AutoCloseable {
    private final NativeConfig config;
    private final NativeMemory ids;

    /**
     * Creates the arguments.
     *
     * @param config the values of the configuration, or null for none
     * @param ids the ids; possibly none
     */
    public NativeArguments(Map<ConfigField, Object> config, List<byte[]> ids) {
        this.config = config == null ? null : new NativeConfig(config);
        this.ids = new NativeMemory(
                Math.max(1, ids.stream().mapToInt(id -> id.length).reduce(0, Math::addExact)));
        ids.forEach(this.ids.buffer()::put);
    }

    /** Returns the address of the configuration, or 0. */
    public long config() {
        return config == null ? 0 : config.struct().address();
    }

    /** Returns the address of the first id. */
    public long ids() {
        return ids.address();
    }

    @Override
    public void close() {
        if (config != null) {
            config.close();
        }
        ids.close();
    }
}
