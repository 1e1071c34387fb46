package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.config.CollectiveConfigField;
import io.github.nccl4j.internal.config.FaultyAlgorithm;
import io.github.nccl4j.internal.config.NativeCollectiveConfig;
import io.github.nccl4j.internal.cuda.NativeEvent;
import io.github.nccl4j.internal.submission.CallConfig;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * Options of a single collective, such as the algorithm; the fields of {@code ncclCollConfig_t}. The last argument of
 * {@link Communicator#allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream, CollectiveConfig)} and of the seven other
 * collectives. Fields that are not set follow the communicator's configuration, or NCCL chooses their values.
 *
 * <pre>{@code
 * CollectiveConfig ring = CollectiveConfig.algorithm("ring");
 * CollectiveConfig config = CollectiveConfig.builder()
 *         .preferAlgorithm(AlgorithmSelection.NVLS.or(AlgorithmSelection.TREE))
 *         .maxCtas(16)
 *         .profilerTag(42)
 *         .build();
 * communicator.allReduce(send, recv, ReduceOp.SUM, stream, config);
 * }</pre>
 *
 * <p>All ranks of a collective must pass equal configurations, except for the event, of which each rank has its own.
 * NCCL does not compare the configurations. The host engine and {@link CommunicatorBuilder#check} compare them, and
 * name the field that differs.
 *
 * <p><b>Releases.</b> Configurations need NCCL 2.31.2. A call with a field that the library does not support throws a
 * {@link NcclLibraryException} that names the function or the field, the release that added it, and the library. No field is
 * omitted.
 *
 * <p><b>Memory.</b> NCCL reads a configuration from native memory. The first call fills this memory, and later calls
 * reuse it. The memory is freed with this object, and stays valid as long as an open group, a captured graph, or a
 * call that has not returned may read it. Configurations need not be closed, and need about 150 bytes each.
 *
 * <p>Instances are immutable and may be used in any number of calls, communicators and threads at once; a
 * configuration with an event may be used in one call at a time. A builder is confined to one thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html">NCCL: ncclCollConfig_t</a>
 * @since 0.1
 */
@Incubating
public final class CollectiveConfig {
    private static final int MOST_VENDOR_ID = (1 << 24) - 1;

    static final CollectiveConfig EMPTY = builder().build();

    private final Map<CollectiveConfigField, Object> values;
    /** Null if the configuration has no event. */
    private final CudaEvent event;

    /** Null until the first call. */
    private volatile NativeCollectiveConfig struct;
    /** The configurations without an algorithm, by the ordinal of {@link FaultyAlgorithm}; null until the first call. */
    private volatile CollectiveConfig[] restricted;

    /** The configuration for calls. */
    final CallConfig call = new Call();

    private CollectiveConfig(Map<CollectiveConfigField, Object> values) {
        this.values = values;
        event = (CudaEvent) values.get(CollectiveConfigField.LAUNCH_COMPLETION_EVENT);
    }

    /**
     * An option for the library of another vendor. NVIDIA's library reads no such options.
     *
     * @param vendorId the vendor's number, 1 to 2^24 - 1
     * @param optionId the option's number, which the vendor defines
     * @param value an {@link Integer}, a {@link String}, or an address as a {@link Long}
     */
    public record VendorOption(int vendorId, int optionId, Object value) {
        /**
         * Creates an option.
         *
         * @param vendorId the vendor's number
         * @param optionId the option's number
         * @param value the option's value
         * @throws IllegalArgumentException if the vendor's number is out of range, the value has another type, or a
         *     text has a NUL character
         */
        public VendorOption {
            if (vendorId < 1 || vendorId > MOST_VENDOR_ID) {
                throw new IllegalArgumentException(
                        "vendorId must be in 1.." + MOST_VENDOR_ID + ": " + vendorId + ", option " + optionId);
            }
            Objects.requireNonNull(value, "value");
            if (value instanceof String text && text.indexOf('\0') >= 0) {
                throw new IllegalArgumentException("the text of option " + vendorId + "/" + optionId
                        + " must have no NUL character: '" + text.replace("\0", "\\0") + "'");
            }
            if (!(value instanceof Integer || value instanceof String || value instanceof Long)) {
                throw new IllegalArgumentException(
                        "the value of option " + vendorId + "/" + optionId + " must be an Integer, a String or a Long: "
                                + value.getClass().getName());
            }
        }

        private boolean hasKeyOf(VendorOption other) {
            return vendorId == other.vendorId && optionId == other.optionId;
        }

        /** {@return the key and the value, such as "7/1=fast", or "7/1=0x7f12" for an address} */
        @Override
        public String toString() {
            return vendorId + "/" + optionId + "="
                    + (value instanceof Long address ? "0x" + Long.toHexString(address) : value);
        }
    }

    /**
     * Creates a builder.
     *
     * @return a builder without any field set
     */
    public static Builder builder() {
        return new Builder(Map.of());
    }

    /**
     * Creates a configuration that forces an algorithm, without any other field.
     *
     * @param selection a selection in the syntax of {@link AlgorithmSelection#of}, such as "ring"
     * @return the configuration
     * @throws IllegalArgumentException if the text names no algorithm
     */
    public static CollectiveConfig algorithm(String selection) {
        return builder().algorithm(selection).build();
    }

    /**
     * Creates a builder with the fields of this configuration, for example to add the event of one rank.
     *
     * @return a new builder
     */
    public Builder toBuilder() {
        return new Builder(values);
    }

    /**
     * Returns the fields that are set, by their names in C.
     *
     * @return an immutable map in the order of {@code ncclCollConfig_t}; values have the types of the builder's
     *     parameters, the value of {@code forceAlgSelection} is a Boolean, and the value of {@code ext} is a list of
     *     {@link VendorOption}
     */
    public Map<String, Object> values() {
        Map<String, Object> named = new LinkedHashMap<>();
        values.forEach((field, value) -> named.put(field.cName, value));
        return Collections.unmodifiableMap(named);
    }

    /**
     * Checks that a library supports all fields that are set. Every call with the configuration makes this check, too.
     * Loads no library and calls no function of it.
     *
     * @param library the library, usually {@link NcclLibrary#get()}
     * @throws NcclLibraryException if the library does not support a field; the message names the field, the release
     *     that it needs, and the loaded library
     */
    public void requireSupportedBy(NcclLibrary library) {
        Objects.requireNonNull(library, "library");
        values.keySet().forEach(field -> {
            if (!library.version().isAtLeast(field.since())) {
                throw new NcclLibraryException(
                        field.cName + " of a collective needs NCCL " + field.since() + ", loaded is " + library);
            }
        });
    }

    private Map<CollectiveConfigField, Object> nativeValues() {
        Map<CollectiveConfigField, Object> natives = new EnumMap<>(CollectiveConfigField.class);
        values.forEach((field, value) -> natives.put(
                field,
                switch (field) {
                    case EXT ->
                        ((List<?>) value)
                                .stream()
                                        .map(one -> (VendorOption) one)
                                        .map(one -> new NativeCollectiveConfig.Option(
                                                one.vendorId, one.optionId, one.value))
                                        .toList();
                    case CTA_POLICY -> ((CtaPolicy) value).code();
                    case LAUNCH_COMPLETION_EVENT -> event.nativeHandle();
                    default -> value;
                }));
        return natives;
    }

    private synchronized NativeCollectiveConfig makeStruct(NcclLibrary library) {
        if (struct == null) {
            requireSupportedBy(library);
            struct = new NativeCollectiveConfig(nativeValues());
        }
        return struct;
    }

    /**
     * Returns a configuration that excludes an algorithm, and has the other fields of this one. A preference would let
     * NCCL fall back to the excluded algorithm, and is replaced.
     *
     * @throws IllegalArgumentException if this configuration forces the algorithm
     */
    CollectiveConfig excluding(FaultyAlgorithm algorithm) {
        CollectiveConfig[] made = restricted;
        CollectiveConfig one = made == null ? null : made[algorithm.ordinal()];
        return one != null ? one : restrict(algorithm);
    }

    private synchronized CollectiveConfig restrict(FaultyAlgorithm algorithm) {
        AlgorithmSelection selection = (AlgorithmSelection) values.get(CollectiveConfigField.ALG_SELECTION);
        boolean isForced = selection != null && !values.containsKey(CollectiveConfigField.FORCE_ALG_SELECTION);
        if (isForced && selection.needs(algorithm.prefix)) {
            throw new IllegalArgumentException(algorithm.refusal(selection));
        }
        AlgorithmSelection others = AlgorithmSelection.of("^" + algorithm.prefix);
        CollectiveConfig one =
                toBuilder().algorithm(isForced ? selection.and(others) : others).build();
        CollectiveConfig[] made =
                restricted == null ? new CollectiveConfig[FaultyAlgorithm.values().length] : restricted.clone();
        made[algorithm.ordinal()] = one;
        restricted = made;
        return one;
    }

    /** Returns the configuration for a call, which must not be null. */
    static CallConfig callOf(CollectiveConfig config) {
        return Objects.requireNonNull(config, "config").call;
    }

    /** The configuration as the submission of calls sees it; keeps its owner, and so the struct, alive. */
    private final class Call implements CallConfig {
        @Override
        public long struct(NcclLibrary library) {
            NativeCollectiveConfig made = struct;
            return (made != null ? made : makeStruct(library)).address();
        }

        @Override
        public CallConfig excluding(FaultyAlgorithm algorithm) {
            return CollectiveConfig.this.excluding(algorithm).call;
        }

        @Override
        public NativeEvent launchCompletionEvent() {
            return event == null ? null : event.nativeEvent;
        }

        @Override
        public Integer cgaClusterSize() {
            return (Integer) values.get(CollectiveConfigField.CGA_CLUSTER_SIZE);
        }

        /** Addresses and the event differ between ranks: only their presence counts. */
        @Override
        public String signature() {
            Map<String, Object> same = new LinkedHashMap<>(values());
            same.computeIfPresent(CollectiveConfigField.LAUNCH_COMPLETION_EVENT.cName, (name, event) -> "set");
            same.computeIfPresent(CollectiveConfigField.EXT.cName, (name, options) -> ((List<?>) options)
                    .stream()
                            .map(option -> (VendorOption) option)
                            .map(option -> option.value() instanceof Long
                                    ? option.vendorId() + "/" + option.optionId() + "=an address"
                                    : option.toString())
                            .sorted()
                            .toList());
            return same.toString();
        }

        @Override
        public String toString() {
            return CollectiveConfig.this.toString();
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof CollectiveConfig config && values.equals(config.values);
    }

    @Override
    public int hashCode() {
        return values.hashCode();
    }

    /** {@return the fields that are set, such as "CollectiveConfig{maxCTAs=4, algSelection=ring}"} */
    @Override
    public String toString() {
        return "CollectiveConfig" + values();
    }

    /** Builder of a configuration. Setting a field again replaces its value. */
    public static final class Builder {
        private final Map<CollectiveConfigField, Object> values = new EnumMap<>(CollectiveConfigField.class);

        private Builder(Map<CollectiveConfigField, Object> values) {
            this.values.putAll(values);
        }

        /**
         * Restricts NCCL to the given algorithms. If NCCL has none of them for a call, because of the operation, the
         * machine or the buffers, the call fails with {@link Result#INVALID_ARGUMENT}.
         *
         * <p>Default: NCCL chooses among all algorithms. Since NCCL 2.31.2.
         *
         * @param selection the algorithms
         * @return this builder
         */
        public Builder algorithm(AlgorithmSelection selection) {
            values.put(CollectiveConfigField.ALG_SELECTION, Objects.requireNonNull(selection, "selection"));
            values.remove(CollectiveConfigField.FORCE_ALG_SELECTION);
            return this;
        }

        /**
         * As {@link #algorithm(AlgorithmSelection)} with a selection as text.
         *
         * @param selection a selection in the syntax of {@link AlgorithmSelection#of}, such as "ring"
         * @return this builder
         * @throws IllegalArgumentException if the text names no algorithm
         */
        public Builder algorithm(String selection) {
            return algorithm(AlgorithmSelection.of(selection));
        }

        /**
         * Prefers the given algorithms. If NCCL has none of them for a call, it chooses among all algorithms.
         *
         * <p>Default: NCCL chooses among all algorithms. Since NCCL 2.31.2.
         *
         * @param selection the algorithms
         * @return this builder
         */
        public Builder preferAlgorithm(AlgorithmSelection selection) {
            algorithm(selection);
            values.put(CollectiveConfigField.FORCE_ALG_SELECTION, false);
            return this;
        }

        /**
         * As {@link #preferAlgorithm(AlgorithmSelection)} with a selection as text.
         *
         * @param selection a selection in the syntax of {@link AlgorithmSelection#of}, such as "ring"
         * @return this builder
         * @throws IllegalArgumentException if the text names no algorithm
         */
        public Builder preferAlgorithm(String selection) {
            return preferAlgorithm(AlgorithmSelection.of(selection));
        }

        /**
         * Sets the minimum number of thread blocks, and thereby of the GPU's multiprocessors, of the kernel.
         *
         * <p>Default: the communicator's value. Since NCCL 2.31.2.
         *
         * @param count 1 to 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder minCtas(int count) {
            return setNumber(CollectiveConfigField.MIN_CTAS, count);
        }

        /**
         * Sets the maximum number of thread blocks of the kernel; at most the communicator's value.
         *
         * <p>Default: the communicator's value. Since NCCL 2.31.2.
         *
         * @param count 1 to 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder maxCtas(int count) {
            return setNumber(CollectiveConfigField.MAX_CTAS, count);
        }

        /**
         * Sets the number of thread blocks of a kernel that reduces in the NVLink switch.
         *
         * <p>Default: the communicator's value. Since NCCL 2.31.2.
         *
         * @param count 1 to 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder nvlsCtas(int count) {
            return setNumber(CollectiveConfigField.NVLS_CTAS, count);
        }

        /**
         * Sets the number of thread blocks (CTAs) in a cluster, on GPUs that have clusters. All collectives of a group
         * must have the same size; NCCL does not define the result of different sizes.
         *
         * <p>Default: the communicator's value. Since NCCL 2.31.2.
         *
         * @param size 0 to 8; 0 disables clusters
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder cgaClusterSize(int size) {
            return setNumber(CollectiveConfigField.CGA_CLUSTER_SIZE, size);
        }

        /**
         * Sets the policy for NCCL's use of the GPU's multiprocessors.
         *
         * <p>Default: the communicator's value. Since NCCL 2.31.2.
         *
         * @param policy the policy
         * @return this builder
         */
        public Builder ctaPolicy(CtaPolicy policy) {
            values.put(CollectiveConfigField.CTA_POLICY, Objects.requireNonNull(policy, "policy"));
            return this;
        }

        /**
         * Sets a number that a profiler plugin receives with the events of the call, such as the number of the
         * training step.
         *
         * <p>Default: 0. Since NCCL 2.31.2.
         *
         * @param tag at least 0; the most significant bit is reserved
         * @return this builder
         * @throws IllegalArgumentException if the value is negative
         */
        public Builder profilerTag(long tag) {
            if (tag < 0) {
                throw new IllegalArgumentException(
                        "userProfilerTag must be >= 0, its most significant bit is reserved: " + tag);
            }
            values.put(CollectiveConfigField.USER_PROFILER_TAG, tag);
            return this;
        }

        /**
         * Sets an event that NCCL records when the kernel has been launched, not when the kernel is done. Work of
         * another stream that waits for the event then uses only the multiprocessors that the kernel leaves free. With
         * CUDA before 12.3, NCCL records the event before the launch. Either every rank passes an event of its own, or
         * no rank passes an event. In a group, one call of each communicator may have an event. A closed event is
         * destroyed when the call and the graph that has captured the call are done.
         *
         * <p>Default: none. Since NCCL 2.32.3.
         *
         * @param event an event of {@link CudaEvent#create} on the communicator's device
         * @return this builder
         * @throws IllegalArgumentException if the event records timing
         */
        public Builder launchCompletionEvent(CudaEvent event) {
            Objects.requireNonNull(event, "event");
            if (event.nativeEvent.hasTiming()) {
                throw new IllegalArgumentException(
                        "launchCompletionEvent must not record the time, create it with CudaEvent.create: " + event);
            }
            values.put(CollectiveConfigField.LAUNCH_COMPLETION_EVENT, event);
            return this;
        }

        /**
         * Adds an option with an integer for a vendor's library, or replaces the option with the same numbers.
         *
         * <p>Default: none. Since NCCL 2.31.2. NVIDIA's library ignores the option.
         *
         * @param vendorId the vendor's number, 1 to 2^24 - 1
         * @param optionId the option's number
         * @param value the option's value
         * @return this builder
         * @throws IllegalArgumentException if the vendor's number is out of range
         */
        public Builder vendorOption(int vendorId, int optionId, int value) {
            return addOption(new VendorOption(vendorId, optionId, value));
        }

        /**
         * As {@link #vendorOption(int, int, int)} with a text.
         *
         * @param vendorId the vendor's number, 1 to 2^24 - 1
         * @param optionId the option's number
         * @param value the option's value, passed to the library in UTF-8
         * @return this builder
         * @throws IllegalArgumentException if the vendor's number is out of range, or the text has a NUL character
         */
        public Builder vendorOption(int vendorId, int optionId, String value) {
            return addOption(new VendorOption(vendorId, optionId, value));
        }

        /**
         * As {@link #vendorOption(int, int, int)} with an address. The caller must keep the memory at the address
         * valid.
         *
         * @param vendorId the vendor's number, 1 to 2^24 - 1
         * @param optionId the option's number
         * @param address the option's value
         * @return this builder
         * @throws IllegalArgumentException if the vendor's number is out of range
         */
        public Builder vendorAddress(int vendorId, int optionId, long address) {
            return addOption(new VendorOption(vendorId, optionId, address));
        }

        /** Replaces an option with the same key, since a list must not contain a key twice. */
        private Builder addOption(VendorOption option) {
            List<VendorOption> options = new ArrayList<>();
            if (values.get(CollectiveConfigField.EXT) instanceof List<?> earlier) {
                earlier.stream()
                        .map(one -> (VendorOption) one)
                        .filter(one -> !one.hasKeyOf(option))
                        .forEach(options::add);
            }
            options.add(option);
            values.put(CollectiveConfigField.EXT, List.copyOf(options));
            return this;
        }

        /**
         * Builds the configuration. Loads no library.
         *
         * @return the configuration
         * @throws IllegalArgumentException if minCTAs is greater than maxCTAs
         */
        public CollectiveConfig build() {
            Integer min = (Integer) values.get(CollectiveConfigField.MIN_CTAS);
            Integer max = (Integer) values.get(CollectiveConfigField.MAX_CTAS);
            if (min != null && max != null && min > max) {
                throw new IllegalArgumentException("minCTAs must be <= maxCTAs: " + min + " > " + max);
            }
            Map<CollectiveConfigField, Object> copy = new EnumMap<>(CollectiveConfigField.class);
            copy.putAll(values);
            return new CollectiveConfig(Collections.unmodifiableMap(copy));
        }

        private Builder setNumber(CollectiveConfigField field, int value) {
            field.checkRange(value);
            values.put(field, value);
            return this;
        }
    }
}
