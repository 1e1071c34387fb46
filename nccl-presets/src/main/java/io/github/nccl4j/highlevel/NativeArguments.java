package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.memory.NativeMemory;
import java.util.List;

/** Native arguments of a call that creates a communicator: unique ids and a configuration. Closed after the call. */
final class NativeArguments implements AutoCloseable {
    private final NativeConfig config;
    private final NativeMemory ids;

    /**
     * Creates the arguments.
     *
     * @param config the configuration, or null for none
     * @param ids the ids, one after the other; possibly none
     */
    NativeArguments(CommunicatorConfig config, List<UniqueId> ids, NcclLibrary library) {
        this.config = config == null ? null : new NativeConfig(config, library);
        this.ids = new NativeMemory(Math.max(1, Math.multiplyExact(ids.size(), UniqueId.BYTES)));
        ids.forEach(id -> this.ids.buffer().put(id.toBytes()));
    }

    /** Returns the address of the configuration, or 0. */
    long config() {
        return config == null ? 0 : config.struct().address();
    }

    /** Returns the address of the first id. */
    long ids() {
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
