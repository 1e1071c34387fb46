package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.global.nccl_device;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorProperties;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.nccl_device.ncclMultimemHandle_t;
import io.github.nccl4j.nccl_device.ncclTeam_t;
import java.time.Duration;
import java.util.OptionalLong;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/** What is done with {@link io.github.nccl4j.tests.StubLibraries#device}, in a JVM of its own. Prints what it saw. */
final class DeviceScenarios {
    private DeviceScenarios() {}

    public static void main(String... args) {
        try (Communicator communicator =
                Communicator.builder().deadline(Duration.ofMillis(300)).create(UniqueId.create(), 1, 4)) {
            switch (args[0]) {
                case "properties" -> properties(communicator);
                case "values" -> values();
                case "old-structures" -> oldStructures();
                case "addresses" -> addresses(communicator);
                case "late" -> late(communicator);
                default -> throw new IllegalArgumentException(args[0]);
            }
        }
    }

    private static void says(Runnable action) {
        try {
            action.run();
        } catch (NcclException | IllegalArgumentException | IllegalStateException e) {
            System.out.println(e.getMessage());
        }
    }

    private static void properties(Communicator communicator) {
        CommunicatorProperties told = communicator.properties();
        System.out.println(told);
        System.out.println(told.rank() + " " + told.size() + " " + told.cudaDevice() + " " + told.nvmlDevice() + " "
                + told.supportsDeviceApi() + " " + told.supportsMultimem());
        System.out.println(
                told.ginType() + " " + told.lsaTeams() + " " + told.supportsHostRma() + " " + told.railedGinType());
        System.out.println(told.hash() + " " + told.ginMinStride() + " " + told.ginConnection() + " " + told.ginTypes()
                + " " + told.runtimeDeviceCommunicatorBytes());
        System.out.println(told.supportsCft() + " " + told.supportsCftMulticast() + " " + told.supportsCftCounted());
    }

    /** Both forms of calls with structures that C takes and returns as they are. */
    private static void values() {
        try (ncclTeam_t world = nccl_device.ncclTeamWorld(1L);
                ncclMultimemHandle_t handle = new ncclMultimemHandle_t();
                PointerPointer<Pointer> cell = new PointerPointer<>(1);
                LongPointer plain = new LongPointer(1)) {
            System.out.println(world.nRanks() + " " + world.rank() + " " + world.stride());
            System.out.println(nccl_device.ncclTeamRankToWorld(null, world, 7));
            System.out.println(nccl_device.ncclTeamRankToWorld(1L, world.address(), 8));
            handle.mcBasePtr(plain);
            nccl_device.ncclGetMultimemDevicePointer(null, 16, handle, cell);
            System.out.println(cell.get(0).address() - plain.address());
            nccl_device.ncclGetMultimemDevicePointer(1L, 24, handle.address(), plain.address());
            System.out.println(plain.get() - plain.address());
        }
    }

    private static void oldStructures() {
        says(() -> System.out.println(nccl_device.ncclDevCommCreate(1L, 0L, 0L)));
    }

    private static void addresses(Communicator communicator) {
        try (DeviceBuffer<Int32> buffer = Device.host().allocateForWindow(ElementType.INT32, 1024)) {
            Window window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC);
            for (int rank = 0; rank < 4; rank++) {
                OptionalLong address = window.peerAddress(rank);
                System.out.println(address.isEmpty() ? "none" : address.getAsLong() - buffer.address());
            }
            System.out.println(window.multimemAddress().orElseThrow() - buffer.address());
            says(() -> window.peerAddress(-1));
            says(() -> window.peerAddress(4));
            window.close();
            says(() -> window.peerAddress(1));
            says(window::multimemAddress);
        }
    }

    private static void late(Communicator communicator) {
        DeviceBuffer<Int32> buffer = Device.host().allocateForWindow(ElementType.INT32, 1024);
        Window window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC);
        says(window::multimemAddress);
        System.out.println(communicator.state());
        // The call is never over.
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }
}
