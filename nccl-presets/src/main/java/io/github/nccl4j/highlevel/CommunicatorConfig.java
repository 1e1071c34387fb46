package io.github.nccl4j.highlevel;

import io.github.nccl4j.library.NcclLibraryException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * How a communicator is to be. What is not set is left to NCCL, whose environment variables win over all of it.
 *
 * <pre>{@code
 * CommunicatorConfig config = CommunicatorConfig.builder()
 *         .blocking(false)
 *         .maxCtas(16)
 *         .commName("gradients")
 *         .build();
 * }</pre>
 *
 * <p>A library ignores fields that are newer than it is, and says nothing. So {@link #requireSupportedBy} refuses a
 * configuration whose fields the library does not know, unless the builder said {@link Builder#ignoreUnsupported}.
 *
 * <p>Instances are immutable; builders are for one thread.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/api/types.html">NCCL: ncclConfig_t</a>
 */
public final class CommunicatorConfig {
    private final Map<ConfigField, Object> values;
    private final boolean ignoresUnsupported;

    private CommunicatorConfig(Map<ConfigField, Object> values, boolean ignoresUnsupported) {
        this.values = Collections.unmodifiableMap(new EnumMap<>(values));
        this.ignoresUnsupported = ignoresUnsupported;
    }

    /**
     * Starts a configuration.
     *
     * @return a builder with nothing set
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * The fields that were set, by their names in C.
     *
     * @return an immutable map in the order of {@code ncclConfig_t}; values are of the types that the builder takes, or sets
     *     of them
     */
    public Map<String, Object> values() {
        Map<String, Object> named = new LinkedHashMap<>();
        values.forEach((field, value) -> named.put(field.cName, value));
        return Collections.unmodifiableMap(named);
    }

    /**
     * Checks that a library takes all fields that were set. Where the builder said {@link Builder#ignoreUnsupported},
     * those that it does not take are logged as warnings instead.
     *
     * @param library the library, mostly {@link NcclLibrary#get()}
     * @throws NcclLibraryException if it does not; the message names the field, the release it needs, and the loaded one
     */
    public void requireSupportedBy(NcclLibrary library) {
        supportedBy(library);
    }

    /** The fields that the library takes, after the check. */
    Map<ConfigField, Object> supportedBy(NcclLibrary library) {
        Map<ConfigField, Object> supported = new EnumMap<>(ConfigField.class);
        values.forEach((field, value) -> {
            boolean isAlone = field == ConfigField.MIN_CTAS && !values.containsKey(ConfigField.MAX_CTAS);
            Version since = isAlone ? ConfigField.MIN_CTAS_ALONE : field.since(value);
            if (library.version().isAtLeast(since)) {
                supported.put(field, value);
                return;
            }
            // A newer release for the value than for the field: it is the value that the library does not know.
            String what = isAlone
                    ? field.cName + " without maxCTAs"
                    : since.equals(field.since()) ? field.cName : field.cName + " " + value;
            String problem = what + " needs NCCL " + since + ", loaded is " + library;
            if (!ignoresUnsupported) {
                throw new NcclLibraryException(problem);
            }
            Logger logger = System.getLogger("io.github.nccl4j");
            logger.log(Level.WARNING, "{0}: left out", problem);
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

    /** The fields that were set: "CommunicatorConfig{blocking=false, maxCTAs=16}". */
    @Override
    public String toString() {
        return "CommunicatorConfig" + values();
    }

    /** Collects the fields of a configuration. A field that is set again has the later value. */
    public static final class Builder {
        private final Map<ConfigField, Object> values = new EnumMap<>(ConfigField.class);
        private boolean ignoresUnsupported;

        private Builder() {}

        /**
         * Whether calls wait until they have done their work. If not, they may answer {@code ncclInProgress} and go on, which
         * is what makes deadlines possible.
         *
         * <p>Default: true. Since NCCL 2.14.3.
         *
         * @param blocking whether calls wait
         * @return this builder
         */
        public Builder blocking(boolean blocking) {
            return set(ConfigField.BLOCKING, blocking);
        }

        /**
         * How many blocks of threads work as one cluster, on GPUs that have clusters.
         *
         * <p>Default: NCCL chooses by the GPU, mostly 4. Since NCCL 2.17.1.
         *
         * @param size 0 to 8; 0 is none
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder cgaClusterSize(int size) {
            return setNumber(ConfigField.CGA_CLUSTER_SIZE, size);
        }

        /**
         * The least number of blocks of threads, and so of the GPU's multiprocessors, that a kernel of NCCL takes. Without
         * {@link #maxCtas} it needs NCCL 2.31.2.
         *
         * <p>Default: 1. Since NCCL 2.17.1.
         *
         * @param count from 1
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder minCtas(int count) {
            return setNumber(ConfigField.MIN_CTAS, count);
        }

        /**
         * The largest number of blocks of threads that a kernel of NCCL takes; what is left can compute.
         *
         * <p>Default: 64. Since NCCL 2.17.1.
         *
         * @param count from 1; NCCL takes numbers over 64 for 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder maxCtas(int count) {
            return setNumber(ConfigField.MAX_CTAS, count);
        }

        /**
         * The network to be used, by the name that NCCL gives it, such as "IB" or "Socket", or that of a plugin.
         *
         * <p>Default: the first that works. Since NCCL 2.17.1.
         *
         * @param name the name
         * @return this builder
         * @throws IllegalArgumentException if the text is blank or has a NUL character
         */
        public Builder netName(String name) {
            return setText(ConfigField.NET_NAME, name);
        }

        /**
         * Whether communicators that are split off share connections and buffers with this one: less memory and a faster
         * start, but what they do is not independent any more.
         *
         * <p>Default: false. Since NCCL 2.18.1.
         *
         * @param share whether they share
         * @return this builder
         */
        public Builder splitShare(boolean share) {
            return set(ConfigField.SPLIT_SHARE, share);
        }

        /**
         * The class of service in the network. What the numbers mean is up to the network.
         *
         * <p>Default: that of the network. Since NCCL 2.26.2.
         *
         * @param trafficClass any number but the smallest int, which NCCL takes for "not set"
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder trafficClass(int trafficClass) {
            return setNumber(ConfigField.TRAFFIC_CLASS, trafficClass);
        }

        /**
         * The communicator's name in logs, profilers and exceptions. NCCL keeps the address of the text, for all descendants
         * of the communicator too, so nccl4j never frees it: take names from a limited set.
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
         * Whether switches that can reduce, such as those with SHARP, do so.
         *
         * <p>Default: false. Since NCCL 2.27.3.
         *
         * @param enable whether they do
         * @return this builder
         */
        public Builder collnetEnable(boolean enable) {
            return set(ConfigField.COLLNET_ENABLE, enable);
        }

        /**
         * How freely NCCL uses the multiprocessors of the GPU. {@link CtaPolicy#ZERO} needs NCCL 2.28.3.
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
         * Whether communicators that are shrunk from this one share connections and buffers with it.
         *
         * <p>Default: false. Since NCCL 2.27.3.
         *
         * @param share whether they share
         * @return this builder
         */
        public Builder shrinkShare(boolean share) {
            return set(ConfigField.SHRINK_SHARE, share);
        }

        /**
         * How many blocks of threads a kernel takes that reduces in the NVLink switch.
         *
         * <p>Default: NCCL chooses. Since NCCL 2.27.3.
         *
         * @param count from 1
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder nvlsCtas(int count) {
            return setNumber(ConfigField.NVLS_CTAS, count);
        }

        /**
         * How many channels send and receive use for each peer in the network. NCCL rounds up to a power of two.
         *
         * <p>Default: NCCL chooses what suits all-to-all. Since NCCL 2.28.3.
         *
         * @param count 1 to 64
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder nChannelsPerNetPeer(int count) {
            return setNumber(ConfigField.N_CHANNELS_PER_NET_PEER, count);
        }

        /**
         * Whether work is laid out for the best use of NVLink.
         *
         * <p>Default: false. Since NCCL 2.28.3.
         *
         * @param enable whether it is
         * @return this builder
         */
        public Builder nvlinkCentricSched(boolean enable) {
            return set(ConfigField.NVLINK_CENTRIC_SCHED, enable);
        }

        /**
         * How the communicator is used with CUDA graphs: 0 not at all, 1 in one graph only, 2 in several graphs or in graphs
         * and outside. The less is promised, the more NCCL does to keep the order.
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
         * How many contexts there are for put and signal. 0 turns them off, and needs NCCL 2.30.7.
         *
         * <p>Default: 1. Since NCCL 2.29.2.
         *
         * @param count from 0
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder numRmaCtx(int count) {
            return setNumber(ConfigField.NUM_RMA_CTX, count);
        }

        /**
         * With how many peers this rank exchanges data by send and receive at most; fewer peers need less memory.
         *
         * <p>Default: all ranks. Since NCCL 2.30.3.
         *
         * @param count from 1
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder maxP2pPeers(int count) {
            return setNumber(ConfigField.MAX_P2P_PEERS, count);
        }

        /**
         * Whether NCCL keeps its kernels in order while a graph is captured. If not, the program does, and
         * {@link #graphUsageMode} must be 0 or 1.
         *
         * <p>Default: true. Since NCCL 2.30.7.
         *
         * @param enable whether NCCL keeps the order
         * @return this builder
         */
        public Builder graphStreamOrdering(boolean enable) {
            return set(ConfigField.GRAPH_STREAM_ORDERING, enable);
        }

        /**
         * Whether kernels of this communicator may run beside those of others that have it too, in the order in which this
         * process launches them. They must not run beside those of communicators that do without.
         *
         * <p>Default: false. Since NCCL 2.31.2.
         *
         * @param enable whether the order of launches counts
         * @return this builder
         */
        public Builder launchOrderImplicit(boolean enable) {
            return set(ConfigField.LAUNCH_ORDER_IMPLICIT, enable);
        }

        /**
         * How many signals for put and wait each context has. 0 is none.
         *
         * <p>Default: 1. Since NCCL 2.31.2.
         *
         * @param count from 0
         * @return this builder
         * @throws IllegalArgumentException if the value is out of range
         */
        public Builder numRmaSig(int count) {
            return setNumber(ConfigField.NUM_RMA_SIG, count);
        }

        /**
         * Whether signals are set up with the communicator. If not, they are with its first window, and cannot be used
         * before.
         *
         * <p>Default: false. Since NCCL 2.31.2.
         *
         * @param enable whether it is done at once
         * @return this builder
         */
        public Builder rmaEagerInit(boolean enable) {
            return set(ConfigField.RMA_EAGER_INIT, enable);
        }

        /**
         * Whether the endpoints of NVIDIA's compute fabric can be asked for on the host. The same on every rank.
         *
         * <p>Default: NCCL chooses. Since NCCL 2.31.2.
         *
         * @param mode the mode
         * @return this builder
         */
        public Builder hostCftMode(HostCftMode mode) {
            return set(ConfigField.HOST_CFT_MODE, Objects.requireNonNull(mode, "mode"));
        }

        /**
         * For what the communicator does without reductions and multicast in the NVLink switch.
         *
         * <p>Default: {@link NvlsHostMode#ENABLE}. Since NCCL 2.32.3.
         *
         * @param mode the mode
         * @param more further ones, which come on top of it
         * @return this builder
         * @throws IllegalArgumentException if {@link NvlsHostMode#ENABLE} is among several
         */
        public Builder nvlsHostMode(NvlsHostMode mode, NvlsHostMode... more) {
            Set<NvlsHostMode> modes = Collections.unmodifiableSet(EnumSet.of(mode, more));
            if (modes.size() > 1 && modes.contains(NvlsHostMode.ENABLE)) {
                throw new IllegalArgumentException("nvlsHostMode ENABLE must be alone: " + modes);
            }
            return set(ConfigField.NVLS_HOST_MODE, modes);
        }

        /**
         * Lets libraries that are too old for a field do without it: a warning is logged, and the field is left out.
         *
         * @return this builder
         */
        public Builder ignoreUnsupported() {
            ignoresUnsupported = true;
            return this;
        }

        /**
         * Makes the configuration. Loads no library.
         *
         * @return the configuration
         * @throws IllegalArgumentException if fields do not go together: minCTAs over maxCTAs, or graphStreamOrdering off
         *     while graphUsageMode is 2
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
                throw new IllegalArgumentException(field.cName + " must not be blank and have no NUL character: '"
                        + value.replace("\0", "\\0") + "'");
            }
            return set(field, value);
        }
    }
}
