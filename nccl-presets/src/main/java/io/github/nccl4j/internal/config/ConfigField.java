package io.github.nccl4j.internal.config;

import io.github.nccl4j.highlevel.CtaPolicy;
import io.github.nccl4j.highlevel.HostCftMode;
import io.github.nccl4j.highlevel.NvlsHostMode;
import io.github.nccl4j.highlevel.Version;
import io.github.nccl4j.nccl.ncclConfig_t;
import java.util.Set;
import java.util.function.ObjIntConsumer;

/**
 * Fields of {@code ncclConfig_t}, in the order of the struct: names, ranges, and the releases that added them. The
 * only place with these releases; a test compares them with {@code nccl.h}.
 */
public enum ConfigField {
    BLOCKING("blocking", new Version(2, 14, 3), 0, 1, ncclConfig_t::blocking),
    CGA_CLUSTER_SIZE("cgaClusterSize", new Version(2, 17, 1), 0, 8, ncclConfig_t::cgaClusterSize),
    MIN_CTAS("minCTAs", new Version(2, 17, 1), 1, Integer.MAX_VALUE, ncclConfig_t::minCTAs),
    MAX_CTAS("maxCTAs", new Version(2, 17, 1), 1, Integer.MAX_VALUE, ncclConfig_t::maxCTAs),
    NET_NAME("netName", new Version(2, 17, 1)),
    SPLIT_SHARE("splitShare", new Version(2, 18, 1), 0, 1, ncclConfig_t::splitShare),
    TRAFFIC_CLASS(
            "trafficClass",
            new Version(2, 26, 2),
            Integer.MIN_VALUE + 1,
            Integer.MAX_VALUE,
            ncclConfig_t::trafficClass),
    COMM_NAME("commName", new Version(2, 27, 3)),
    COLLNET_ENABLE("collnetEnable", new Version(2, 27, 3), 0, 1, ncclConfig_t::collnetEnable),
    CTA_POLICY("CTAPolicy", new Version(2, 27, 3), 0, 2, ncclConfig_t::CTAPolicy),
    SHRINK_SHARE("shrinkShare", new Version(2, 27, 3), 0, 1, ncclConfig_t::shrinkShare),
    NVLS_CTAS("nvlsCTAs", new Version(2, 27, 3), 1, Integer.MAX_VALUE, ncclConfig_t::nvlsCTAs),
    N_CHANNELS_PER_NET_PEER("nChannelsPerNetPeer", new Version(2, 28, 3), 1, 64, ncclConfig_t::nChannelsPerNetPeer),
    NVLINK_CENTRIC_SCHED("nvlinkCentricSched", new Version(2, 28, 3), 0, 1, ncclConfig_t::nvlinkCentricSched),
    GRAPH_USAGE_MODE("graphUsageMode", new Version(2, 29, 2), 0, 2, ncclConfig_t::graphUsageMode),
    NUM_RMA_CTX("numRmaCtx", new Version(2, 29, 2), 0, Integer.MAX_VALUE, ncclConfig_t::numRmaCtx),
    MAX_P2P_PEERS("maxP2pPeers", new Version(2, 30, 3), 1, Integer.MAX_VALUE, ncclConfig_t::maxP2pPeers),
    GRAPH_STREAM_ORDERING("graphStreamOrdering", new Version(2, 30, 7), 0, 1, ncclConfig_t::graphStreamOrdering),
    LAUNCH_ORDER_IMPLICIT("launchOrderImplicit", new Version(2, 31, 2), 0, 1, ncclConfig_t::launchOrderImplicit),
    NUM_RMA_SIG("numRmaSig", new Version(2, 31, 2), 0, Integer.MAX_VALUE, ncclConfig_t::numRmaSig),
    RMA_EAGER_INIT("rmaEagerInit", new Version(2, 31, 2), 0, 1, ncclConfig_t::rmaEagerInit),
    HOST_CFT_MODE("hostCftMode", new Version(2, 31, 2), 1, 3, ncclConfig_t::hostCftMode),
    NVLS_HOST_MODE("nvlsHostMode", new Version(2, 32, 3), 0, Integer.MAX_VALUE, ncclConfig_t::nvlsHostMode);

    /** First release that accepts minCTAs without maxCTAs. */
    public static final Version MIN_CTAS_ALONE = new Version(2, 31, 2);

    /** The name in C. */
    public final String cName;

    private final Version since;
    private final int least;
    private final int most;
    private final ObjIntConsumer<ncclConfig_t> setter;

    ConfigField(String cName, Version since) {
        this(cName, since, 0, 0, null);
    }

    ConfigField(String cName, Version since, int least, int most, ObjIntConsumer<ncclConfig_t> setter) {
        this.cName = cName;
        this.since = since;
        this.least = least;
        this.most = most;
        this.setter = setter;
    }

    public Version since() {
        return since;
    }

    /** First release that accepts the field with this value. */
    public Version since(Object value) {
        if (value instanceof CtaPolicy policy) {
            return policy.since();
        }
        // Earlier releases require a positive number of contexts.
        return this == NUM_RMA_CTX && value.equals(0) ? new Version(2, 30, 7) : since;
    }

    public void checkRange(int value) {
        if (value < least || value > most) {
            throw new IllegalArgumentException(
                    most == Integer.MAX_VALUE
                            ? cName + " must be >= " + least + ": " + value
                            : cName + " must be in " + least + ".." + most + ": " + value);
        }
    }

    /** Writes a value to the struct. The value must not be a text. */
    public void write(ncclConfig_t config, Object value) {
        setter.accept(config, code(value));
    }

    private static int code(Object value) {
        if (value instanceof Boolean flag) {
            return flag ? 1 : 0;
        } else if (value instanceof CtaPolicy policy) {
            return policy.code();
        } else if (value instanceof HostCftMode mode) {
            return mode.code();
        } else if (value instanceof NvlsHostMode mode) {
            return mode.code();
        } else if (value instanceof Set<?> flags) {
            return flags.stream().mapToInt(ConfigField::code).reduce(0, (all, flag) -> all | flag);
        }
        return (Integer) value;
    }
}
