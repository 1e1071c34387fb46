package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.highlevel.CudaLibraryException;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.tools.support.Checks;

/** What runs in a JVM of its own. */
final class BufferScenarios {
    private BufferScenarios() {}

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "host" -> host();
            case "leak" -> leak();
            case "cuda" -> cuda();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void host() throws Exception {
        Checks checks = new Checks();
        new BufferSuite(Device.current(), checks).all();
        new AsyncCopySuite(Device.current(), checks).all();
        System.out.println(checks.passed() + " checks passed on " + Device.current());
    }

    private static void leak() throws Exception {
        dropSomething();
        for (int i = 0; i < 20; i++) {
            System.gc();
            Thread.sleep(50);
        }
    }

    private static void dropSomething() {
        try (DeviceBuffer<Float32> closed = Device.host().allocate(ElementType.FLOAT32, 11)) {
            closed.fill(1);
        }
        Device.host().allocate(ElementType.FLOAT32, 22).fill(1);
    }

    /** Twice, because JavaCPP's class says what is missing only once. */
    private static void cuda() {
        System.out.println("devices " + Device.cudaCount());
        for (int i = 0; i < 2; i++) {
            try {
                Device.cuda(0);
                System.out.println("no exception");
            } catch (CudaLibraryException missing) {
                System.out.println("exception " + missing.getMessage());
            }
        }
        Device.host().allocate(ElementType.FLOAT32, 1).close();
        System.out.println("host memory works");
    }
}
