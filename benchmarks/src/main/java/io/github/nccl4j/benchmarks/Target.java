package io.github.nccl4j.benchmarks;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.NativeLibrary;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;

/**
 * The arguments of the calls: for the library that does nothing, addresses that are not used; for a real library, a
 * communicator of one rank on the first GPU, and an element that is reduced in place, for which NCCL launches no work
 * on the GPU. A JVM has one target.
 */
final class Target {
    /** The system property that is set if the library is a real one. */
    static final String REAL = "nccl4j.benchmarks.real";

    private static Target target;

    final Communicator communicator;
    final CudaStream stream;
    final DeviceBuffer<Float32> send;
    final DeviceBuffer<Float32> receive;

    private Target() {
        if (isReal()) {
            // Also loaded by its name, so that JavaCPP Presets CUDA gets the same library.
            System.load(NativeLibrary.path());
            Device device = Device.cuda(0);
            communicator = Communicator.builder().device(device).create(UniqueId.create(), 0, 1);
            stream = CudaStream.nonBlocking(device);
            send = device.allocate(ElementType.FLOAT32, 1);
            send.fill(1.0);
            receive = send;
        } else {
            StubLibraries.load();
            FloatPointer memory = new FloatPointer(4);
            Device device = Device.cuda(0);
            send = DeviceBuffer.wrap(device, ElementType.FLOAT32, memory, 1);
            receive = DeviceBuffer.wrap(device, ElementType.FLOAT32, memory.getPointer(1), 1);
            communicator = Communicator.wrap(memory.address(), device);
            stream = CudaStream.wrap(device, memory.address());
        }
    }

    static boolean isReal() {
        return Boolean.getBoolean(REAL);
    }

    /** The target of this JVM. */
    static synchronized Target get() {
        if (target == null) {
            target = new Target();
        }
        return target;
    }

    long comm() {
        return communicator.nativeHandle();
    }

    /** A pointer to an address or a handle. */
    static Pointer at(long value) {
        return new Pointer() {
            {
                address = value;
            }
        };
    }

    /** Checks the result of a call with the operator ncclAvg, whose value the stub library returns. */
    static void checkReached(int result) {
        if (result != (isReal() ? nccl.ncclSuccess : nccl.ncclAvg)) {
            throw new IllegalStateException("the call did not reach the benchmark's library: its result is " + result);
        }
        if (isReal()) {
            requireOneLibrary();
        }
    }

    /** Throws unless all ways call the same library. */
    static void requireOneLibrary() {
        try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
            List<String> libraries = maps.filter(line -> line.matches(".*/libnccl\\.so[^/]*"))
                    .map(line -> line.substring(line.indexOf('/')))
                    .distinct()
                    .toList();
            if (libraries.size() != 1) {
                throw new IllegalStateException("all ways must call the same library: " + libraries);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
