package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.RevokeFlag;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.WindowFlag;
import io.github.nccl4j.testing.Waiting;
import io.github.nccl4j.tests.ChildJvm;
import io.github.nccl4j.tests.Cxx;
import io.github.nccl4j.tests.FakeCuda;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The order of the calls that end communicators, made to a library that writes them down. */
class CallOrderTest {
    /** Writes each call to the file that the variable STUB_LOG names. An all-reduce returns when the communicator is revoked. */
    private static final String LIBRARY = """
            #include <atomic>
            #include <cstddef>
            #include <cstdint>
            #include <cstdio>
            #include <cstdlib>
            #include <unistd.h>
            #define API extern "C" int
            struct Id { char bytes[128]; };
            struct Comm { int number; std::atomic<bool> revoked; };
            static std::atomic<int> communicators, windows;
            static int log(const char* what, long number) {
              static FILE* file = fopen(getenv("STUB_LOG"), "a");
              fprintf(file, "%s %ld\\n", what, number);
              fflush(file);
              return 0;
            }
            static int make(Comm** comm) { *comm = new Comm{++communicators, {false}}; return 0; }
            // With the variable STUB_VERSION, is that release.
            API ncclGetVersion(int* version) {
              *version = getenv("STUB_VERSION") ? atoi(getenv("STUB_VERSION")) : 23007;
              return 0;
            }
            extern "C" const char* ncclGetErrorString(int) { return "stub"; }
            extern "C" const char* ncclGetLastError(void*) { return ""; }
            API ncclGetUniqueId(Id* id) { id->bytes[0] = 1; return 0; }
            // With the variable STUB_RESULT, fails after it has written the handle.
            static int create(Comm** comm) { return make(comm), getenv("STUB_RESULT") ? atoi(getenv("STUB_RESULT")) : 0; }
            API ncclCommInitRank(Comm** comm, int, Id, int) { return create(comm); }
            API ncclCommInitRankConfig(Comm** comm, int, Id, int, void*) { return create(comm); }
            API ncclCommSplit(Comm*, int, int, Comm** comm, void*) { return make(comm); }
            // A revoked communicator has an error, and each with the variable STUB_ERROR.
            API ncclCommGetAsyncError(Comm* comm, int* error) {
              *error = comm->revoked ? 6 : getenv("STUB_ERROR") ? atoi(getenv("STUB_ERROR")) : 0;
              return 0;
            }
            API ncclCommCount(Comm*, int* count) { *count = 1; return 0; }
            API ncclCommUserRank(Comm*, int* rank) { *rank = 0; return 0; }
            API ncclCommCuDevice(Comm*, int* device) { *device = 0; return 0; }
            API ncclCommFinalize(Comm* comm) { return log("finalize", comm->number); }
            // Not written down: some are destroyed by another thread.
            API ncclCommDestroy(Comm*) { return 0; }
            API ncclCommAbort(Comm* comm) { return log("abort", comm->number); }
            API ncclCommRevoke(Comm* comm, int) { log("revoke", comm->number); comm->revoked = true; return 0; }
            API ncclCommWindowRegister(Comm*, void*, size_t, void** window, int) {
              *window = (void*)(intptr_t)++windows;
              return 0;
            }
            API ncclCommWindowDeregister(Comm*, void* window) { return log("deregister", (long)(intptr_t)window); }
            API ncclMemAlloc(void** memory, size_t bytes) { return !(*memory = aligned_alloc(4096, bytes)); }
            API ncclMemFree(void* memory) { free(memory); return 0; }
            API ncclGroupStart() { return 0; }
            API ncclGroupEnd() { return 0; }
            API ncclAllReduce(const void*, void*, size_t, int, int, Comm* comm, void*) {
              log("enter", comm->number);
              // Ends by itself, so that a test that fails does not hang.
              for (int i = 0; i < 30000 && !comm->revoked; i++) usleep(1000);
              return log("leave", comm->number);
            }
            """;

    @TempDir
    private Path folder;

    private List<String> calls(String scenario) throws IOException {
        return calls(scenario, new ChildJvm());
    }

    private List<String> calls(String scenario, ChildJvm jvm) throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        Path log = Files.createFile(folder.resolve("calls"));
        ChildJvm.Outcome outcome = FakeCuda.build(folder.resolve("cuda"))
                .jvm(jvm)
                .environment("STUB_LOG", log.toString())
                .property("nccl4j.library", Cxx.library(folder, "order", LIBRARY))
                .run(Scenario.class, scenario);
        assertEquals(0, outcome.exitCode(), outcome::output);
        return Files.readAllLines(log);
    }

    @Test
    void closesOwnedObjectsNewestFirst() throws IOException {
        assertEquals(List.of("deregister 2", "finalize 2", "deregister 1", "finalize 1"), calls("close"));
    }

    @Test
    void ranksOfOneThreadAreFinalizedOneAfterTheOther() throws IOException {
        assertEquals(List.of("finalize 2", "finalize 1"), calls("close-two"));
    }

    /** Finalizing would wait for the rank that the thread closes next. */
    @Test
    void ranksOfOneThreadAreNotFinalizedWhereThatWaitsForAll() throws IOException {
        assertEquals(List.of(), calls("close-two", new ChildJvm().environment("STUB_VERSION", "23203")));
    }

    @Test
    void theOnlyRankOfAProcessIsFinalized() throws IOException {
        assertEquals(
                List.of("deregister 2", "finalize 2", "deregister 1", "finalize 1"),
                calls("close", new ChildJvm().environment("STUB_VERSION", "23203")));
    }

    /** The program has finalized a rank, which waits for the others. */
    @Test
    void ranksAreFinalizedIfOneIsFinished() throws IOException {
        assertEquals(
                List.of("finalize 1", "finalize 2"),
                calls("finish-one", new ChildJvm().environment("STUB_VERSION", "23203")));
    }

    @Test
    void threadLeavesItsCallBeforeTheAbort() throws IOException {
        assertEquals(List.of("enter 1", "revoke 1", "leave 1", "abort 1"), calls("abort"));
    }

    @Test
    void abortsOwnedCommunicatorsFirst() throws IOException {
        assertEquals(List.of("abort 2", "abort 1"), calls("abort-owned"));
    }

    /** Destroying it frees it: NCCL has ended its work. */
    @Test
    void revokedCommunicatorIsNotAborted() throws IOException {
        assertEquals(List.of("revoke 1"), calls("revoke"));
    }

    /** NCCL has freed it already, whatever the handle is. */
    @Test
    void nothingIsCalledAfterACreationThatFailed() throws IOException {
        assertEquals(List.of(), calls("create", new ChildJvm().environment("STUB_RESULT", "2")));
    }

    /** NCCL frees no communicator whose creation fails after the call. */
    @Test
    void aNonBlockingCommunicatorWhoseCreationFailsIsAborted() throws IOException {
        ChildJvm jvm = new ChildJvm().environment("STUB_RESULT", "7").environment("STUB_ERROR", "2");
        assertEquals(List.of("abort 1"), calls("create-nonblocking", jvm));
    }

    /** In a JVM of its own, where the device is a fake. */
    static final class Scenario {
        private Scenario() {}

        public static void main(String[] args) throws Exception {
            if (args[0].startsWith("create")) {
                CommunicatorConfig config = CommunicatorConfig.builder()
                        .blocking(args[0].equals("create"))
                        .build();
                assertThrows(NcclResultException.class, () -> Communicator.builder()
                        .device(Device.cuda(0))
                        .config(config)
                        .create(UniqueId.create(), 0, 1));
                return;
            }
            if (args[0].equals("close-two") || args[0].equals("finish-one")) {
                UniqueId id = UniqueId.create();
                Communicator first =
                        Communicator.builder().device(Device.cuda(0)).create(id, 0, 2);
                Communicator second =
                        Communicator.builder().device(Device.cuda(0)).create(id, 1, 2);
                if (args[0].equals("finish-one")) {
                    first.finish();
                }
                second.close();
                first.close();
                return;
            }
            try (DeviceBuffer<Int32> one = Device.cuda(0).allocateForWindow(ElementType.INT32, 1024);
                    DeviceBuffer<Int32> two = Device.cuda(0).allocateForWindow(ElementType.INT32, 1024);
                    Communicator parent =
                            Communicator.builder().device(Device.cuda(0)).create(UniqueId.create(), 0, 1)) {
                if (args[0].equals("close")) {
                    parent.registerWindow(one, WindowFlag.COLL_SYMMETRIC);
                    parent.own(parent.split(0, 0));
                    parent.registerWindow(two, WindowFlag.COLL_SYMMETRIC);
                } else if (args[0].equals("abort-owned")) {
                    parent.own(parent.split(0, 0));
                    parent.abort();
                } else if (args[0].equals("revoke")) {
                    parent.revoke(RevokeFlag.DEFAULT);
                } else {
                    CompletableFuture<Void> ended = OtherThread.startInside(
                            parent, "in a call", () -> parent.allReduce(one, ReduceOp.SUM, parent.stream()));
                    Path log = Path.of(System.getenv("STUB_LOG"));
                    Waiting.until(
                            "a call of the stub", () -> Files.readString(log).contains("enter"));
                    parent.abort();
                    ended.handle((nothing, failure) -> null).join();
                }
            }
        }
    }
}
