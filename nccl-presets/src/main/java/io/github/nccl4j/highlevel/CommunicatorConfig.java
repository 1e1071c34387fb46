package io.github.nccl4j.highlevel;

import io.github.nccl4j.internal.config.ConfigField;
import io.github.nccl4j.internal.config.NativeArguments;
import io.github.nccl4j.internal.config.ReportedFaults;
import io.github.nccl4j.internal.log.HelpText;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * Options of a communicator, the fields of {@code ncclConfig_t}. NCCL chooses the values of fields that are not set.
 * NCCL's environment variables take precedence over every field.
 *
 * <pre>{@code
 * CommunicatorConfig config = CommunicatorConfig.builder()
 *         .blocking(false)
 *         .maxCtas(16)
 *         .commName("gradients")
 *         .build();
 * }</pre>
 *
 * <p>NCCL silently ignores fields that are newer than the library. Therefore {@link #requireSupportedBy} refuses a
 * configuration with fields that the library does not know, unless {@link Builder#ignoreUnsupported} was called.
 *
 * <p>Instances are immutable and may be used in any thread; a builder is confined to one thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html">NCCL: ncclConfig_t</a>
 * @since 0.1
 */
public final class CommunicatorConfig {
    private final Map<ConfigField, Object> values;
    private final boolean ignoresUnsupported;

    private CommunicatorConfig(Map<ConfigField, Object> values, boolean ignoresUnsupported) {
        this.values = Collections.unmodifiableMap(new EnumMap<>(values));
        this.ignoresUnsupported = ignoresUnsupported;
    }

    /**
     * Creates a builder.
     *
     * @return a builder without any field set
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Returns the fields that are set, by their names in C.
     *
     * @return an immutable map in the order of {@code ncclConfig_t}; values have the types of the builder's
     *     parameters, or are sets of them
     */
    public Map<String, Object> values() {
        Map<String, Object> named = new LinkedHashMap<>();
        values.forEach((field, value) -> named.put(field.cName, value));
        return Collections.unmodifiableMap(named);
    }

    /**
     * Checks that a library supports all fields that are set. With {@link Builder#ignoreUnsupported}, unsupported
     * fields are logged as warnings instead.
     *
     * @param library the library, usually {@link NcclLibrary#get()}
     * @throws NcclLibraryException if the library does not support a field; the message names the field, the release
     *     that it needs, and the loaded library
     */
    public void requireSupportedBy(NcclLibrary library) {
        supportedBy(library);
    }

    /** As {@link #requireSupportedBy}; returns the fields that the library supports. */
    Map<ConfigField, Object> supportedBy(NcclLibrary library) {
        return supportedBy(library.version(), library.toString());
    }

    /**
     * Returns the arguments of a call that creates a communicator. Nothing is allocated if the library lacks a field.
     *
     * @param config the configuration, or null for none
     */
    static NativeArguments arguments(CommunicatorConfig config, List<UniqueId> ids, NcclLibrary library) {
        ReportedFaults.warnOnce(
                ReportedFaults.ofLibrary(library.engine(), library.version(), System.getProperty("os.arch")));
        if (config != null) {
            ReportedFaults.warnOnce(ReportedFaults.ofConfig(library.engine(), library.version(), config.values()));
        }
        return new NativeArguments(
                config == null ? null : config.supportedBy(library),
                ids.stream().map(UniqueId::toBytes).toList());
    }

    /** As {@link #supportedBy(NcclLibrary)}, for a library of a version and with a description. */
    Map<ConfigField, Object> supportedBy(Version version, String library) {
        Map<ConfigField, Object> supported = new EnumMap<>(ConfigField.class);
        values.forEach((field, value) -> {
            boolean isAlone = field == ConfigField.MIN_CTAS && !values.containsKey(ConfigField.MAX_CTAS);
            Version since = isAlone ? ConfigField.MIN_CTAS_ALONE : field.since(value);
            if (version.isAtLeast(since)) {
                supported.put(field, value);
                return;
            }
            // If the value needs a newer release than the field, the message names the value, too.
            String what = isAlone
                    ? field.cName + " without maxCTAs"
                    : since.equals(field.since()) ? field.cName : field.cName + " " + value;
            String problem = what + " needs NCCL " + since + ", loaded is " + library;
            if (!ignoresUnsupported) {
                throw new NcclLibraryException(problem);
            }
            Logger logger = System.getLogger("io.github.nccl4j");
            logger.log(Level.WARNING, "{0}: left out" + HelpText.of("NCCL4J-0002"), problem);
        });
        return supported;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof CommunicatorConfig config
                && values.equals(config.values)
                && ignoresUnsupported == config.ignoresUnsupported;
    }

    @Override
    public int hashCode() {
        return values.hashCode();
    }

    /** {@return the fields that are set, such as "CommunicatorConfig{blocking=false, maxCTAs=16}"} */
    @Override
    public String toString() {
        return "CommunicatorConfig" + values();
    }

    /** Builder of a configuration. Setting a field again replaces its value. */
    public static final class Builder {
        private final Map<ConfigField, Object> values = new EnumMap<>(ConfigField.class);
        private boolean ignoresUnsupported;

        private Builder() {}

        /**
         * Sets whether NCCL's calls block until their work is done. A non-blocking call may return
         * {@code ncclInProgress} and continue in the background, so that nccl4j can apply the deadline by polling.
         *
         * <p>Default: true. Since NCCL 2.14.3.
         *
         * @param blocking true for blocking calls
         * @return this builder
         */
        public Builder blocking(boolean blocking) {
            return set(ConfigField.BLOCKING, blocking);
        }

        /**
         * Sets the number of thread blocks (CTAs) in a cluster, on GPUs that have clusters.
         *
         * <p>Default: NCCL chooses by the GPU, usually 4. Since NCCL 2.17.1.
         *
         * @param size 0 to 8; 0 disables clusters
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder cgaClusterSize(int size) {
            return setNumber(ConfigField.CGA_CLUSTER_SIZE, size);
        }

        /**
         * Sets the minimum number of thread blocks, and thereby of the GPU's multiprocessors, of a kernel of NCCL.
         * Without {@link #maxCtas} this field needs NCCL 2.31.2.
         *
         * <p>Default: 1. Since NCCL 2.17.1.
         *
         * @param count at least 1
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder minCtas(int count) {
            return setNumber(ConfigField.MIN_CTAS, count);
        }

        /**
         * Sets the maximum number of thread blocks of a kernel of NCCL. The GPU's other multiprocessors are free for
         * computation.
         *
         * <p>Default: 64. Since NCCL 2.17.1.
         *
         * @param count at least 1; NCCL treats numbers above 64 as 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder maxCtas(int count) {
            return setNumber(ConfigField.MAX_CTAS, count);
        }

        /**
         * Sets the network by its name in NCCL, such as "IB" or "Socket", or by the name of a plugin.
         *
         * <p>Default: the first network that works. Since NCCL 2.17.1.
         *
         * @param name the name
         * @return this builder
         * @throws IllegalArgumentException if the text is blank or has a NUL character
         */
        public Builder netName(String name) {
            return setText(ConfigField.NET_NAME, name);
        }

        /**
         * Sets whether communicators that are split from this communicator share its connections and buffers. Sharing
         * needs less memory and makes creation faster, but the operations of both are no longer independent.
         *
         * <p>Default: false. Since NCCL 2.18.1.
         *
         * @param share true to share
         * @return this builder
         */
        public Builder splitShare(boolean share) {
            return set(ConfigField.SPLIT_SHARE, share);
        }

        /**
         * Sets the class of service in the network. The network defines the meaning of the numbers.
         *
         * <p>Default: the network's default. Since NCCL 2.26.2.
         *
         * @param trafficClass any number except the smallest int, which NCCL reads as "not set"
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder trafficClass(int trafficClass) {
            return setNumber(ConfigField.TRAFFIC_CLASS, trafficClass);
        }

        /**
         * Sets the communicator's name in logs, profilers and exceptions. NCCL keeps the address of the text, also in
         * all descendants of the communicator, so nccl4j never frees the text: choose names from a limited set.
         *
         * <p>Default: none. Since NCCL 2.27.3.
         *
         * @param name the name
         * @return this builder
         * @throws IllegalArgumentException if the text is blank or has a NUL character
         */
        public Builder commName(String name) {
            return setText(ConfigField.COMM_NAME, name);
        }

        /**
         * Sets whether network switches that can reduce, such as switches with SHARP, perform reductions.
         *
         * <p>Default: false. Since NCCL 2.27.3.
         *
         * @param enable true to reduce in the switches
         * @return this builder
         */
        public Builder collnetEnable(boolean enable) {
            return set(ConfigField.COLLNET_ENABLE, enable);
        }

        /**
         * Sets the policy for NCCL's use of the GPU's multiprocessors. {@link CtaPolicy#ZERO} needs NCCL 2.28.3.
         *
         * <p>Default: {@link CtaPolicy#DEFAULT}. Since NCCL 2.27.3.
         *
         * @param policy the policy
         * @return this builder
         */
        public Builder ctaPolicy(CtaPolicy policy) {
            return set(ConfigField.CTA_POLICY, Objects.requireNonNull(policy, "policy"));
        }

        /**
         * Sets whether communicators that are shrunk from this communicator share its connections and buffers.
         *
         * <p>Default: false. Since NCCL 2.27.3.
         *
         * @param share true to share
         * @return this builder
         */
        public Builder shrinkShare(boolean share) {
            return set(ConfigField.SHRINK_SHARE, share);
        }

        /**
         * Sets the number of thread blocks of a kernel that reduces in the NVLink switch.
         *
         * <p>Default: NCCL chooses. Since NCCL 2.27.3.
         *
         * @param count at least 1
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder nvlsCtas(int count) {
            return setNumber(ConfigField.NVLS_CTAS, count);
        }

        /**
         * Sets the number of channels that send and receive use for each peer in the network. NCCL rounds up to a
         * power of two.
         *
         * <p>Default: NCCL chooses a number for all-to-all. Since NCCL 2.28.3.
         *
         * @param count 1 to 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder nChannelsPerNetPeer(int count) {
            return setNumber(ConfigField.N_CHANNELS_PER_NET_PEER, count);
        }

        /**
         * Sets whether NCCL schedules work for the best use of NVLink.
         *
         * <p>Default: false. Since NCCL 2.28.3.
         *
         * @param enable true to schedule for NVLink
         * @return this builder
         */
        public Builder nvlinkCentricSched(boolean enable) {
            return set(ConfigField.NVLINK_CENTRIC_SCHED, enable);
        }

        /**
         * Sets how the program uses the communicator with CUDA graphs: 0 in no graph, 1 in one graph only, 2 in
         * several graphs or both in graphs and outside of graphs. A higher mode makes NCCL do more work to keep
         * operations in order.
         *
         * <p>Default: 2. Since NCCL 2.29.2.
         *
         * @param mode 0 to 2
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder graphUsageMode(int mode) {
            return setNumber(ConfigField.GRAPH_USAGE_MODE, mode);
        }

        /**
         * Sets the number of contexts for put and signal. 0 disables put and signal, and needs NCCL 2.30.7.
         *
         * <p>Default: 1. Since NCCL 2.29.2.
         *
         * @param count at least 0
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder numRmaCtx(int count) {
            return setNumber(ConfigField.NUM_RMA_CTX, count);
        }

        /**
         * Sets the maximum number of peers with which this rank exchanges data by send and receive. Fewer peers need
         * less memory.
         *
         * <p>Default: all ranks. Since NCCL 2.30.3.
         *
         * @param count at least 1
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder maxP2pPeers(int count) {
            return setNumber(ConfigField.MAX_P2P_PEERS, count);
        }

        /**
         * Sets whether NCCL keeps its kernels in order while a graph is captured. With false, the program must keep
         * the order, and {@link #graphUsageMode} must be 0 or 1.
         *
         * <p>Default: true. Since NCCL 2.30.7.
         *
         * @param enable true if NCCL keeps the order
         * @return this builder
         */
        public Builder graphStreamOrdering(boolean enable) {
            return set(ConfigField.GRAPH_STREAM_ORDERING, enable);
        }

        /**
         * Sets whether kernels of this communicator may run concurrently with kernels of other communicators that have
         * this option, in the order in which this process launches them. They must not run concurrently with kernels of
         * communicators without this option.
         *
         * <p>Default: false. Since NCCL 2.31.2.
         *
         * @param enable true for the order of launches
         * @return this builder
         */
        public Builder launchOrderImplicit(boolean enable) {
            return set(ConfigField.LAUNCH_ORDER_IMPLICIT, enable);
        }

        /**
         * Sets the number of signals for put and wait in each context. 0 disables signals.
         *
         * <p>Default: 1. Since NCCL 2.31.2.
         *
         * @param count at least 0
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder numRmaSig(int count) {
            return setNumber(ConfigField.NUM_RMA_SIG, count);
        }

        /**
         * Sets whether NCCL sets signals up when it creates the communicator. With false, NCCL sets them up with the
         * first window, and they can't be used before.
         *
         * <p>Default: false. Since NCCL 2.31.2.
         *
         * @param enable true to set signals up at creation
         * @return this builder
         */
        public Builder rmaEagerInit(boolean enable) {
            return set(ConfigField.RMA_EAGER_INIT, enable);
        }

        /**
         * Sets whether the host can query the endpoints of NVIDIA's compute fabric. All ranks must pass the same mode.
         *
         * <p>Default: NCCL chooses. Since NCCL 2.31.2.
         *
         * @param mode the mode
         * @return this builder
         */
        @Incubating
        public Builder hostCftMode(HostCftMode mode) {
            return set(ConfigField.HOST_CFT_MODE, Objects.requireNonNull(mode, "mode"));
        }

        /**
         * Sets for which purposes the communicator does not use reductions and multicast in the NVLink switch.
         *
         * <p>Default: {@link NvlsHostMode#ENABLE}. Since NCCL 2.32.3.
         *
         * @param mode the mode
         * @param more modes that are combined with it
         * @return this builder
         * @throws IllegalArgumentException if {@link NvlsHostMode#ENABLE} is combined with another mode
         */
        public Builder nvlsHostMode(NvlsHostMode mode, NvlsHostMode... more) {
            Set<NvlsHostMode> modes = Collections.unmodifiableSet(EnumSet.of(mode, more));
            if (modes.size() > 1 && modes.contains(NvlsHostMode.ENABLE)) {
                throw new IllegalArgumentException("nvlsHostMode ENABLE must be alone: " + modes);
            }
            return set(ConfigField.NVLS_HOST_MODE, modes);
        }

        /**
         * Omits fields that the library does not support, and logs a warning for each, instead of refusing the
         * configuration.
         *
         * @return this builder
         */
        public Builder ignoreUnsupported() {
            ignoresUnsupported = true;
            return this;
        }

        /**
         * Builds the configuration. Loads no library.
         *
         * @return the configuration
         * @throws IllegalArgumentException if minCTAs is greater than maxCTAs, or graphStreamOrdering is false while
         *     graphUsageMode is 2
         */
        public CommunicatorConfig build() {
            Integer min = (Integer) values.get(ConfigField.MIN_CTAS);
            Integer max = (Integer) values.get(ConfigField.MAX_CTAS);
            if (min != null && max != null && min > max) {
                throw new IllegalArgumentException("minCTAs must be <= maxCTAs: " + min + " > " + max);
            }
            Object mode = values.getOrDefault(ConfigField.GRAPH_USAGE_MODE, 2);
            if (Boolean.FALSE.equals(values.get(ConfigField.GRAPH_STREAM_ORDERING)) && mode.equals(2)) {
                throw new IllegalArgumentException(
                        "graphStreamOrdering false needs graphUsageMode 0 or 1: graphUsageMode is 2"
                                + (values.containsKey(ConfigField.GRAPH_USAGE_MODE) ? "" : ", the default"));
            }
            return new CommunicatorConfig(values, ignoresUnsupported);
        }

        private Builder set(ConfigField field, Object value) {
            values.put(field, value);
            return this;
        }

        private Builder setNumber(ConfigField field, int value) {
            field.checkRange(value);
            return set(field, value);
        }

        private Builder setText(ConfigField field, String value) {
            if (value.isBlank() || value.indexOf('\0') >= 0) {
                throw new IllegalArgumentException(field.cName + " must not be blank or have a NUL character: '"
                        + value.replace("\0", "\\0") + "'");
            }
            return set(field, value);
        }
    }
}
