package io.github.nccl4j.highlevel;

import java.util.List;

/** Native memory that a call which makes a communicator reads: unique ids and a configuration. Closed after the call. */
final class NativeArguments implements AutoCloseable {
    private final NativeConfig config;
    private final NativeMemory ids;

    /**
     * Fills it.
     *
     * @param config the configuration, or null for none
     * @param ids the ids, one after the other; possibly none
     */
    NativeArguments(CommunicatorConfig config, List<UniqueId> ids, NcclLibrary library) {
        this.config = config == null ? null : new NativeConfig(config, library);
        this.ids = new NativeMemory(Math.max(1, Math.multiplyExact(ids.size(), UniqueId.BYTES)));
        ids.forEach(id -> this.ids.buffer().put(id.toBytes()));
    }

    /** The address of the configuration, 0 for none. */
    long config() {
        return config == null ? 0 : config.struct().address();
    }

    /** The address of the first id. */
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
