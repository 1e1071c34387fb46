package io.github.nccl4j.tests;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclLibraryException;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.NativeLibrary;
import io.github.nccl4j.nccl.ncclComm;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.SizeTPointer;

/** What the tests of the choice of library do in a JVM of its own: {@code main(scenario, argument)}. Prints what it saw. */
final class LoadingScenarios {
    private LoadingScenarios() {}

    public static void main(String... args) throws Exception {
        switch (args[0]) {
            case "describe" -> describe();
            case "call" -> call(args[1]);
            case "late-switch" -> lateSwitch(args[1], args[2]);
            case "choose" -> choose(args[1]);
            case "choose-unspellable" -> choose(args[1] + "/j\u00fcrgen/libnccl.so.2");
            case "unspellable-failure" -> unspellableFailure();
            case "candidates" -> candidates();
            case "forms" -> forms();
            case "raw-forms" -> rawForms();
            case "bias" -> bias();
            case "version" -> version();
            case "group" -> group();
            case "beside" -> {
                System.load(args[1]);
                rawForms();
            }
            case "race" -> race();
            case "first-use" -> firstUse();
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    /** JavaCPP's own class and ours are initialised by two threads at once. */
    private static void firstUse() throws InterruptedException {
        CyclicBarrier together = new CyclicBarrier(2);
        Thread pointers = new Thread(() -> {
            meet(together);
            new SizeTPointer(1).close();
        });
        pointers.start();
        meet(together);
        nccl.ncclGetVersion(new int[1]);
        pointers.join();
        System.out.println("both");
    }

    private static void meet(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (InterruptedException | BrokenBarrierException e) {
            throw new AssertionError(e);
        }
    }

    private static void describe() {
        System.out.println("path " + NativeLibrary.path());
        System.out.println("version " + NativeLibrary.version() + " " + NativeLibrary.versionCode());
        System.out.println("engine " + NativeLibrary.engine());
        System.out.println("form " + NativeLibrary.alltoAllvArguments());
    }

    private static void candidates() {
        try {
            for (NativeLibrary.Candidate candidate : NativeLibrary.candidates()) {
                System.out.println(candidate.place() + ": " + candidate.problem());
            }
        } catch (NcclLibraryException e) {
            System.out.println(e.getMessage());
        }
        System.out.println("loaded " + NativeLibrary.isLoaded());
    }

    /** Calls functions twice, to see that a failure harms no other call. */
    private static void call(String function) {
        for (int i = 0; i < 2; i++) {
            try {
                switch (function) {
                    case "ncclCommGrow" -> nccl.ncclCommGrow(0L, 2, 0L, 0, 0L, 0L);
                    case "ncclGetVersion" -> nccl.ncclGetVersion(new int[1]);
                    default -> throw new IllegalArgumentException(function);
                }
                System.out.println("returned");
            } catch (NcclLibraryException e) {
                System.out.println(e.getMessage());
            }
        }
    }

    private static void lateSwitch(String first, String second) {
        NativeLibrary.use(first);
        nccl.ncclGetVersion(new int[1]);
        try {
            NativeLibrary.use(second);
            System.out.println("switched");
        } catch (NcclLibraryException e) {
            System.out.println(e.getMessage());
        }
        System.out.println("path " + NativeLibrary.path());
    }

    private static void choose(String library) {
        System.out.println("loaded " + NativeLibrary.isLoaded());
        NativeLibrary.use(library);
        System.out.println("loaded " + NativeLibrary.isLoaded());
        describe();
        System.out.println("loaded " + NativeLibrary.isLoaded());
    }

    /** What a program asks that makes no use of ncclAlltoAllv. */
    private static void version() {
        System.out.println(NativeLibrary.version() + " " + NativeLibrary.engine() + " " + NativeLibrary.isVccl() + " "
                + NativeLibrary.provides("ncclAlltoAllv") + " "
                + NcclLibrary.get().flavor());
    }

    /** The first use of the form of 10 arguments, in a group of its thread. */
    private static void group() {
        nccl.ncclGroupStart();
        print("10", nccl.ncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 7L, 9, 10L, 11L));
        print("end", nccl.ncclGroupEnd());
    }

    private static void rawForms() {
        List<Runnable> calls = List.of(
                () -> print("raw 11", nccl.ncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9, 10L, 11L)),
                () -> print("raw 10", nccl.ncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 7L, 9, 10L, 11L)),
                () -> print("raw 9", nccl.ncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 9, 10L, 11L)));
        attempt(calls);
        System.out.println("form " + NativeLibrary.alltoAllvArguments());
    }

    private static void bias() {
        attempt(List.of(
                () -> print("raw", nccl.ncclAllReduceWithBias(1L, 2L, 3L, 4, 5, 6L, 7L, 8L)),
                () -> print("profiler", nccl.pncclAllReduceWithBias(1L, 2L, 3L, 4, 5, 6L, 7L, 8L))));
    }

    private static void attempt(List<Runnable> calls) {
        for (Runnable call : calls) {
            try {
                call.run();
            } catch (NcclLibraryException e) {
                System.out.println(e.getMessage());
            }
        }
    }

    /** An operation fails in a library whose path the locale cannot spell, as may be those of other settings. */
    private static void unspellableFailure() {
        NcclLibrary library = NcclLibrary.get();
        System.out.println("library exists: " + Files.exists(library.path()));
        try (DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 4);
                Communicator communicator =
                        Communicator.builder().device(Device.host()).create(UniqueId.create(), 0, 2)) {
            communicator.allReduce(buffer, ReduceOp.SUM, CudaStream.defaultOf(Device.host()));
            System.out.println("no failure");
        } catch (NcclResultException e) {
            System.out.println(e.getMessage());
            System.out.println("library of the exception exists: " + Files.exists(e.libraryPath()));
        }
    }

    /** All forms, each in raw-address and in Pointer form; the stub libraries return what shows how they were called. */
    private static void forms() {
        System.out.println("form " + NativeLibrary.alltoAllvArguments());
        try (SizeTPointer counts = new SizeTPointer(1).put(7)) {
            List<Runnable> calls = List.of(
                    () -> print("raw 11", nccl.ncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9, 10L, 11L)),
                    () -> print("raw 10", nccl.ncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 7L, 9, 10L, 11L)),
                    () -> print("raw 9", nccl.ncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 9, 10L, 11L)),
                    () -> print("profiler 11", nccl.pncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9, 10L, 11L)),
                    () -> print("profiler 10", nccl.pncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 7L, 9, 10L, 11L)),
                    () -> print("profiler 9", nccl.pncclAlltoAllv(1L, 2L, 3L, 4L, 5L, 6L, 9, 10L, 11L)),
                    () -> print(
                            "pointer 11",
                            nccl.ncclAlltoAllv(null, counts, counts, null, counts, counts, null, 8, 9, null, null)),
                    () -> print(
                            "pointer 10",
                            nccl.ncclAlltoAllv(null, counts, counts, null, counts, counts, null, 9, null, null)),
                    () -> print(
                            "pointer 9",
                            nccl.ncclAlltoAllv(
                                    null, counts, counts, null, counts, counts, 9, new ncclComm(at(10)), null)));
            attempt(calls);
        }
    }

    private static Pointer at(long where) {
        return new Pointer() {
            {
                address = where;
            }
        };
    }

    private static void print(String call, int result) {
        System.out.println(call + " returned " + result);
    }

    /** 32 threads make the first use of the bindings at the same moment, each of another function. */
    private static void race() throws Exception {
        int threads = 32;
        CyclicBarrier start = new CyclicBarrier(threads);
        ExecutorService pool = Executors.newFixedThreadPool(threads, task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        });
        List<Future<String>> results = new ArrayList<>();
        for (int i = 0; i < threads; i++) {
            int thread = i;
            results.add(pool.submit(() -> {
                start.await();
                int[] version = new int[1];
                int result = thread % 2 == 0 ? nccl.ncclGetVersion(version) : nccl.pncclGetVersion(version);
                String text = nccl.ncclGetErrorString(thread % 8);
                return result + " " + version[0] + " " + !text.isEmpty() + " " + NativeLibrary.provides("ncclBcast");
            }));
        }
        for (Future<String> result : results) {
            System.out.println(result.get());
        }
    }
}
