package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.NcclLibraryException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * How NCCL carries out single collectives, such as by which algorithm: the last argument of {@link
 * Communicator#allReduce(DeviceBuffer, DeviceBuffer, ReduceOp, CudaStream, CollectiveConfig)} and of the seven others. Fields
 * that are not set are left to NCCL and to the communicator's configuration.
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
 * <p>All ranks of a collective pass equal configurations, but for the event, which is each rank's own; NCCL does not compare
 * them. The host engine and {@link CommunicatorBuilder#check} do, and name the field that differs.
 *
 * <p><b>Releases.</b> Configurations need NCCL 2.31.2. A call that the library can't make as it is configured throws a
 * {@link NcclLibraryException} that names the function or the field, the release that has it, and the library; nothing is
 * left out.
 *
 * <p><b>Memory.</b> NCCL reads a configuration from native memory, which is filled at the first call and used again at all
 * others. It is freed with this object, and kept as long as an open group, a captured graph, or a call that has not returned
 * may read it. Configurations need not be closed, and cost about 150 bytes each.
 *
 * <p>Instances are immutable and may be used in any number of calls, communicators and threads at once, one with an event in
 * one call at a time; builders are for one thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html">NCCL: ncclCollConfig_t</a>
 */
public final class CollectiveConfig {
    private static final int MOST_VENDOR_ID = (1 << 24) - 1;

    private final Map<CollectiveConfigField, Object> values;
    /** Null if there is none. */
    private final CudaEvent event;

    /** Null until the first call. */
    private volatile NativeCollectiveConfig struct;

    private CollectiveConfig(Map<CollectiveConfigField, Object> values) {
        this.values = values;
        event = (CudaEvent) values.get(CollectiveConfigField.LAUNCH_COMPLETION_EVENT);
    }

    /**
     * An option that only a vendor's own library reads; NVIDIA's reads none.
     *
     * @param vendorId the vendor's number, 1 to 2^24 - 1
     * @param optionId the option's number, which the vendor chooses
     * @param value an {@link Integer}, a {@link String}, or a {@link Long} with an address
     */
    public record VendorOption(int vendorId, int optionId, Object value) {
        /**
         * Checks the numbers and the value.
         *
         * @param vendorId the vendor's number
         * @param optionId the option's number
         * @param value its value
         * @throws IllegalArgumentException if the vendor's number is out of range, the value has another type, or a text has
         *     a NUL character
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

        /** {@return the key and the value: "7/1=fast"; of an address "7/1=0x7f12"} */
        @Override
        public String toString() {
            return vendorId + "/" + optionId + "="
                    + (value instanceof Long address ? "0x" + Long.toHexString(address) : value);
        }
    }

    /**
     * Starts a configuration.
     *
     * @return a builder with nothing set
     */
    public static Builder builder() {
        return new Builder(Map.of());
    }

    /**
     * A configuration that forces an algorithm, and sets nothing else.
     *
     * @param selection as {@link AlgorithmSelection#of} takes it: "ring"
     * @return the configuration
     * @throws IllegalArgumentException if the text names no algorithm
     */
    public static CollectiveConfig algorithm(String selection) {
        return builder().algorithm(selection).build();
    }

    /**
     * A builder with what is set here, such as to add the event of one rank.
     *
     * @return a new builder
     */
    public Builder toBuilder() {
        return new Builder(values);
    }

    /**
     * The fields that were set, by their names in C.
     *
     * @return an immutable map in the order of {@code ncclCollConfig_t}; values are of the types that the builder takes,
     *     those of {@code forceAlgSelection} Boolean, and those of {@code ext} lists of {@link VendorOption}
     */
    public Map<String, Object> values() {
        Map<String, Object> named = new LinkedHashMap<>();
        values.forEach((field, value) -> named.put(field.cName, value));
        return Collections.unmodifiableMap(named);
    }

    /**
     * Checks that a library takes all fields that were set, as every call does. Loads nothing, and calls nothing.
     *
     * @param library the library, mostly {@link NcclLibrary#get()}
     * @throws NcclLibraryException if it does not; the message names the field, the release it needs, and the loaded one
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

    /**
     * Where NCCL reads it, as long as this object is reachable.
     *
     * @param library that of this process
     * @throws NcclLibraryException if the library does not know a field
     */
    long struct(NcclLibrary library) {
        NativeCollectiveConfig made = struct;
        return (made != null ? made : makeStruct(library)).address();
    }

    private synchronized NativeCollectiveConfig makeStruct(NcclLibrary library) {
        if (struct == null) {
            requireSupportedBy(library);
            struct = new NativeCollectiveConfig(values);
        }
        return struct;
    }

    /** Null if there is none. */
    CudaEvent launchCompletionEvent() {
        return event;
    }

    /** Null if it is not set. */
    Integer cgaClusterSize() {
        return (Integer) values.get(CollectiveConfigField.CGA_CLUSTER_SIZE);
    }

    /** The fields that all ranks must agree on: "{maxCTAs=4, algSelection=ring}". Of an event and addresses, that there are. */
    String signature() {
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
    public boolean equals(Object other) {
        return other instanceof CollectiveConfig config && values.equals(config.values);
    }

    @Override
    public int hashCode() {
        return values.hashCode();
    }

    /** The fields that were set: "CollectiveConfig{maxCTAs=4, algSelection=ring}". */
    @Override
    public String toString() {
        return "CollectiveConfig" + values();
    }

    /** Collects the fields of a configuration. A field that is set again has the later value. */
    public static final class Builder {
        private final Map<CollectiveConfigField, Object> values = new EnumMap<>(CollectiveConfigField.class);

        private Builder(Map<CollectiveConfigField, Object> values) {
            this.values.putAll(values);
        }

        /**
         * The algorithms that NCCL may choose among. Where it has none of them for a call, because of the operation, the
         * machine or the buffers, the call fails with {@link Result#INVALID_ARGUMENT}.
         *
         * <p>Default: NCCL chooses among all. Since NCCL 2.31.2.
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
         * As {@link #algorithm(AlgorithmSelection)}, with the text of a selection.
         *
         * @param selection as {@link AlgorithmSelection#of} takes it: "ring"
         * @return this builder
         * @throws IllegalArgumentException if the text names no algorithm
         */
        public Builder algorithm(String selection) {
            return algorithm(AlgorithmSelection.of(selection));
        }

        /**
         * The algorithms that NCCL chooses among where it can. Where it has none of them for a call, it chooses among all.
         *
         * <p>Default: NCCL chooses among all. Since NCCL 2.31.2.
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
         * As {@link #preferAlgorithm(AlgorithmSelection)}, with the text of a selection.
         *
         * @param selection as {@link AlgorithmSelection#of} takes it: "ring"
         * @return this builder
         * @throws IllegalArgumentException if the text names no algorithm
         */
        public Builder preferAlgorithm(String selection) {
            return preferAlgorithm(AlgorithmSelection.of(selection));
        }

        /**
         * The least number of blocks of threads, and so of the GPU's multiprocessors, that the kernel takes.
         *
         * <p>Default: as the communicator. Since NCCL 2.31.2.
         *
         * @param count 1 to 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder minCtas(int count) {
            return setNumber(CollectiveConfigField.MIN_CTAS, count);
        }

        /**
         * The largest number of blocks of threads that the kernel takes; at most the communicator's.
         *
         * <p>Default: as the communicator. Since NCCL 2.31.2.
         *
         * @param count 1 to 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder maxCtas(int count) {
            return setNumber(CollectiveConfigField.MAX_CTAS, count);
        }

        /**
         * How many blocks of threads the kernel takes if it reduces in the NVLink switch.
         *
         * <p>Default: as the communicator. Since NCCL 2.31.2.
         *
         * @param count 1 to 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder nvlsCtas(int count) {
            return setNumber(CollectiveConfigField.NVLS_CTAS, count);
        }

        /**
         * How many blocks of threads work as one cluster, on GPUs that have clusters. The same in all collectives of a group:
         * NCCL does not define what others do.
         *
         * <p>Default: as the communicator. Since NCCL 2.31.2.
         *
         * @param size 0 to 8; 0 is none
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder cgaClusterSize(int size) {
            return setNumber(CollectiveConfigField.CGA_CLUSTER_SIZE, size);
        }

        /**
         * How freely NCCL uses the multiprocessors of the GPU.
         *
         * <p>Default: as the communicator. Since NCCL 2.31.2.
         *
         * @param policy the policy
         * @return this builder
         */
        public Builder ctaPolicy(CtaPolicy policy) {
            values.put(CollectiveConfigField.CTA_POLICY, Objects.requireNonNull(policy, "policy"));
            return this;
        }

        /**
         * A number that a profiler plugin gets with the events of the call, such as that of the training step.
         *
         * <p>Default: 0. Since NCCL 2.31.2.
         *
         * @param tag from 0: the most significant bit is reserved
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
         * An event that NCCL records when the kernel has been launched, not when it is done: work of another stream that
         * waits for it takes only the multiprocessors that are left. With CUDA before 12.3 it is recorded before the launch.
         * All ranks pass an event, each its own, or none does; in a group one call of a communicator may have one. An event
         * that is closed is destroyed when the call and the graph that has captured it are done.
         *
         * <p>Default: none. Since NCCL 2.32.3.
         *
         * @param event an event of {@link CudaEvent#create} on the communicator's device
         * @return this builder
         * @throws IllegalArgumentException if it is one that takes the time
         */
        public Builder launchCompletionEvent(CudaEvent event) {
            Objects.requireNonNull(event, "event");
            if (event.hasTiming()) {
                throw new IllegalArgumentException(
                        "launchCompletionEvent must not take the time, create it with CudaEvent.create: " + event);
            }
            values.put(CollectiveConfigField.LAUNCH_COMPLETION_EVENT, event);
            return this;
        }

        /**
         * Adds an option with a number for a vendor's library.
         *
         * <p>Default: none. Since NCCL 2.31.2, and ignored by NVIDIA's library.
         *
         * @param vendorId the vendor's number, 1 to 2^24 - 1
         * @param optionId the option's number
         * @param value its value
         * @return this builder
         * @throws IllegalArgumentException if the vendor's number is out of range
         */
        public Builder vendorOption(int vendorId, int optionId, int value) {
            return addOption(new VendorOption(vendorId, optionId, value));
        }

        /**
         * Adds an option with a text for a vendor's library.
         *
         * <p>Default: none. Since NCCL 2.31.2, and ignored by NVIDIA's library.
         *
         * @param vendorId the vendor's number, 1 to 2^24 - 1
         * @param optionId the option's number
         * @param value its value, which the library gets in UTF-8
         * @return this builder
         * @throws IllegalArgumentException if the vendor's number is out of range, or the text has a NUL character
         */
        public Builder vendorOption(int vendorId, int optionId, String value) {
            return addOption(new VendorOption(vendorId, optionId, value));
        }

        /**
         * Adds an option with an address for a vendor's library. What is there is the caller's concern.
         *
         * <p>Default: none. Since NCCL 2.31.2, and ignored by NVIDIA's library.
         *
         * @param vendorId the vendor's number, 1 to 2^24 - 1
         * @param optionId the option's number
         * @param address its value
         * @return this builder
         * @throws IllegalArgumentException if the vendor's number is out of range
         */
        public Builder vendorAddress(int vendorId, int optionId, long address) {
            return addOption(new VendorOption(vendorId, optionId, address));
        }

        /** An option that is set again has the later value, too: a list must not have a key twice. */
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
         * Makes the configuration. Loads no library.
         *
         * @return the configuration
         * @throws IllegalArgumentException if minCTAs is over maxCTAs
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
