package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.nccl_device.ncclCommProperties_t;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;

/**
 * Properties of a communicator: its rank, size and device, and its capabilities for kernels and windows.
 *
 * <pre>{@code
 * CommunicatorProperties properties = communicator.properties();
 * if (properties.supportsDeviceApi() && properties.lsaTeams().orElse(0) == 1) {
 *     System.out.println("every GPU reaches the windows of all ranks by loads and stores");
 * }
 * }</pre>
 *
 * <p>A property that the release of NCCL, or this nccl4j, does not have is empty.
 *
 * <p>Instances are immutable and may be used in any thread.
 *
 * @see Communicator#properties
 * @since 0.1
 */
@Incubating
public final class CommunicatorProperties {
    private static final Version SECOND = new Version(2, 29, 7);
    private static final Version THIRD = new Version(2, 31, 2);
    private static final Version FOURTH = new Version(2, 32, 3);
    /** Offset of the GIN type before {@link #SECOND}, where it is a single byte. */
    private static final int OFFSET_OF_EARLY_TYPE = 34;

    private static final int GIN_TYPES = 64;

    private final int rank;
    private final int size;
    private final int cudaDevice;
    private final int nvmlDevice;
    private final boolean deviceApi;
    private final boolean multimem;
    private final GinType ginType;
    private final OptionalInt lsaTeams;
    private final Optional<Boolean> hostRma;
    private final Optional<GinType> railedGinType;
    private final OptionalLong hash;
    private final OptionalInt ginMinStride;
    private final Optional<GinConnection> ginConnection;
    private final Optional<Set<GinType>> ginTypes;
    private final OptionalLong runtimeDeviceCommunicatorBytes;
    private final Optional<Boolean> cft;
    private final Optional<Boolean> cftMulticast;
    private final Optional<Boolean> cftCounted;

    /**
     * Copies the properties that a library has written.
     *
     * @param told the struct; its version is the release that defines its layout
     * @param bytes the memory of the struct
     */
    CommunicatorProperties(ncclCommProperties_t told, ByteBuffer bytes) {
        Version version = Version.of(told.version());
        boolean second = version.isAtLeast(SECOND);
        boolean third = version.isAtLeast(THIRD);
        boolean fourth = version.isAtLeast(FOURTH);
        rank = told.rank();
        size = told.nRanks();
        cudaDevice = told.cudaDev();
        nvmlDevice = told.nvmlDev();
        deviceApi = told.deviceApiSupport();
        multimem = told.multimemSupport();
        ginType = GinType.of(second ? told.ginType() : bytes.get(OFFSET_OF_EARLY_TYPE));
        lsaTeams = second ? OptionalInt.of(told.nLsaTeams()) : OptionalInt.empty();
        hostRma = when(second, told.hostRmaSupport());
        railedGinType = when(second, GinType.of(told.railedGinType()));
        hash = third ? OptionalLong.of(told.commHash()) : OptionalLong.empty();
        ginMinStride = third ? OptionalInt.of(told.ginMinStride()) : OptionalInt.empty();
        ginConnection = when(third, GinConnection.of(told.ginConnectionType()));
        ginTypes = when(third, types(told));
        runtimeDeviceCommunicatorBytes =
                third ? OptionalLong.of(told.devCommRuntimeVersionSize()) : OptionalLong.empty();
        cft = when(fourth, told.cftSupport());
        cftMulticast = when(fourth, told.cftMulticastSupport());
        cftCounted = when(fourth, told.cftCountedSupport());
    }

    private static <T> Optional<T> when(boolean isTold, T value) {
        return isTold ? Optional.of(value) : Optional.empty();
    }

    private static Set<GinType> types(ncclCommProperties_t told) {
        EnumSet<GinType> types = EnumSet.noneOf(GinType.class);
        for (int code = 1; code < GIN_TYPES; code++) {
            if (told.ginSupport(code)) {
                types.add(GinType.of(code));
            }
        }
        return Collections.unmodifiableSet(types);
    }

    /** The version of the struct to request: a library refuses a version newer than its own. */
    static int versionFor(int libraryCode) {
        return Math.min(libraryCode, nccl.NCCL_VERSION_CODE);
    }

    /** {@return the rank, as {@link Communicator#rank}} */
    public int rank() {
        return rank;
    }

    /** {@return the number of ranks, as {@link Communicator#size}} */
    public int size() {
        return size;
    }

    /** {@return the CUDA device number; with the host engine the number of the host's device} */
    public int cudaDevice() {
        return cudaDevice;
    }

    /** {@return the device number in the whole machine, independent of CUDA_VISIBLE_DEVICES} */
    public int nvmlDevice() {
        return nvmlDevice;
    }

    /** {@return true if a device communicator can be created, so that kernels can communicate} */
    public boolean supportsDeviceApi() {
        return deviceApi;
    }

    /** {@return true if one address can refer to the memory of several GPUs, see {@link Window#multimemAddress}} */
    public boolean supportsMultimem() {
        return multimem;
    }

    /** {@return the type of networking by which kernels reach all ranks} */
    public GinType ginType() {
        return ginType;
    }

    /**
     * Returns the number of LSA teams. The GPUs of an LSA team access each other's windows by loads and stores; see
     * {@link Window#peerAddress}. All teams have the same size and consist of consecutive ranks.
     *
     * @return the number of teams; empty before NCCL 2.29.7
     */
    public OptionalInt lsaTeams() {
        return lsaTeams;
    }

    /** {@return true if {@link Communicator#putSignal}, signals and waiting for signals work; empty before NCCL 2.29.7} */
    public Optional<Boolean> supportsHostRma() {
        return hostRma;
    }

    /** {@return the type of networking to the ranks with the same index in other teams; empty before NCCL 2.29.7} */
    public Optional<GinType> railedGinType() {
        return railedGinType;
    }

    /** {@return a hash that is equal on all ranks and usually differs between communicators; empty before NCCL 2.31.2} */
    public OptionalLong hash() {
        return hash;
    }

    /** {@return the minimum stride of the ranks that kernels reach over the network; empty before NCCL 2.31.2} */
    public OptionalInt ginMinStride() {
        return ginMinStride;
    }

    /** {@return the set of ranks that kernels reach over the network; empty before NCCL 2.31.2} */
    public Optional<GinConnection> ginConnection() {
        return ginConnection;
    }

    /** {@return all types of networking by which kernels can reach ranks, an immutable set; empty before NCCL 2.31.2} */
    public Optional<Set<GinType>> ginTypes() {
        return ginTypes;
    }

    /**
     * Returns the size of a device communicator for kernels that are compiled at run time with the library's own
     * header.
     *
     * @return the size in bytes; empty before NCCL 2.31.2
     */
    public OptionalLong runtimeDeviceCommunicatorBytes() {
        return runtimeDeviceCommunicatorBytes;
    }

    /** {@return true if NVIDIA's compute fabric connects ranks; empty before NCCL 2.32.3} */
    public Optional<Boolean> supportsCft() {
        return cft;
    }

    /** {@return true if the compute fabric can write to several ranks at once; empty before NCCL 2.32.3} */
    public Optional<Boolean> supportsCftMulticast() {
        return cftMulticast;
    }

    /**
     * Returns true if the compute fabric counts arriving data, for windows with {@code NCCL_WIN_CFT_COUNTED}.
     *
     * @return true if the fabric counts data; empty before NCCL 2.32.3
     */
    public Optional<Boolean> supportsCftCounted() {
        return cftCounted;
    }

    /** {@return the properties that are not empty, such as "rank=0, size=2, cudaDevice=0, ..."} */
    @Override
    public String toString() {
        Map<String, Object> all = new LinkedHashMap<>();
        all.put("rank", rank);
        all.put("size", size);
        all.put("cudaDevice", cudaDevice);
        all.put("nvmlDevice", nvmlDevice);
        all.put("deviceApi", deviceApi);
        all.put("multimem", multimem);
        all.put("ginType", ginType);
        lsaTeams.ifPresent(value -> all.put("lsaTeams", value));
        hostRma.ifPresent(value -> all.put("hostRma", value));
        railedGinType.ifPresent(value -> all.put("railedGinType", value));
        hash.ifPresent(value -> all.put("hash", "0x" + Long.toHexString(value)));
        ginMinStride.ifPresent(value -> all.put("ginMinStride", value));
        ginConnection.ifPresent(value -> all.put("ginConnection", value));
        ginTypes.ifPresent(value -> all.put("ginTypes", value));
        runtimeDeviceCommunicatorBytes.ifPresent(value -> all.put("runtimeDeviceCommunicatorBytes", value));
        cft.ifPresent(value -> all.put("cft", value));
        cftMulticast.ifPresent(value -> all.put("cftMulticast", value));
        cftCounted.ifPresent(value -> all.put("cftCounted", value));
        String text = all.toString();
        return text.substring(1, text.length() - 1);
    }
}
