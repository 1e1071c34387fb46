package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Registration;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.Window;
import io.github.nccl4j.highlevel.WindowFlag;
import java.time.Duration;

/** What is done with {@link io.github.nccl4j.tests.StubLibraries#windows}, in a JVM of its own. Prints what it saw. */
final class WindowScenarios {
    private WindowScenarios() {}

    public static void main(String... args) {
        Communicator communicator =
                Communicator.builder().deadline(Duration.ofMillis(300)).create(UniqueId.create(), 0, 1);
        DeviceBuffer<Int32> buffer = Device.host().allocateForWindow(ElementType.INT32, 1024);
        switch (args[0]) {
            case "no-window" -> noWindow(communicator, buffer);
            case "lacks" -> lacks(communicator, buffer);
            case "failing-close" -> failingClose(communicator, buffer);
            case "not-effective" -> notEffective(communicator, buffer);
            case "late" -> late(communicator, buffer);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static boolean isKept() {
        return nccl.ncclGetLastError(0L).startsWith("1");
    }

    private static void noWindow(Communicator communicator, DeviceBuffer<Int32> buffer) {
        attempt(() -> communicator.registerWindow(buffer));
        attempt(() -> Group.run(() -> communicator.registerWindow(buffer)));
        buffer.close();
        System.out.println(isKept() ? "kept" : "freed");
        communicator.close();
    }

    private static void attempt(Runnable action) {
        try {
            action.run();
            System.out.println("ok");
        } catch (NcclException e) {
            System.out.println(e.getClass().getSimpleName() + ": " + e.getMessage());
        }
    }

    private static void says(Runnable action) {
        try {
            action.run();
            System.out.println("ok");
        } catch (NcclException e) {
            System.out.println(e.getMessage());
        }
    }

    private static void lacks(Communicator communicator, DeviceBuffer<Int32> buffer) {
        says(() -> communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC, WindowFlag.STRICT_ORDERING));
        try (Window window = communicator.registerWindow(buffer, WindowFlag.COLL_SYMMETRIC)) {
            says(() -> communicator.putSignal(buffer.slice(0, 1), window, 1, 0, RankThreads.STREAM));
            says(() -> communicator.signal(0, RankThreads.STREAM));
            says(() -> communicator.waitSignal(0, RankThreads.STREAM));
            says(window::userAddress);
        }
        communicator.close();
    }

    private static void failingClose(Communicator communicator, DeviceBuffer<Int32> buffer) {
        Window window = communicator.registerWindow(buffer);
        buffer.close();
        try {
            window.close();
        } catch (NcclException e) {
            System.out.println(e.getMessage().substring(0, e.getMessage().indexOf(" at rank")));
        }
        System.out.println("closed " + !window.isOpen());
        System.out.println("kept " + isKept());
        window.close();
        System.out.println("closed again");
        communicator.close();
        System.out.println("kept " + isKept());
    }

    private static void notEffective(Communicator communicator, DeviceBuffer<Int32> buffer) {
        try (Registration registration = communicator.register(buffer)) {
            System.out.println("effective " + registration.isEffective());
            System.out.println("handle " + registration.nativeHandle());
        }
        communicator.close();
        System.out.println("closed");
    }

    private static void late(Communicator communicator, DeviceBuffer<Int32> buffer) {
        try {
            communicator.registerWindow(buffer);
        } catch (NcclTimeoutException e) {
            System.out.println(e.getClass().getSimpleName());
        }
        System.out.println(communicator.state());
        buffer.close();
        System.out.println("kept " + isKept());
        communicator.close();
        System.out.println("kept " + isKept());
        System.out.println(communicator.state());
    }
}
