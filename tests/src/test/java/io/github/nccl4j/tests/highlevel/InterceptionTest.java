package io.github.nccl4j.tests.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.AllToAllvPlan;
import io.github.nccl4j.highlevel.CallInterceptor;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.highlevel.WindowFlag;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What an interceptor sees of calls into the host engine, and that nobody is disturbed by it. */
@Timeout(600)
class InterceptionTest {

    /** Writes down the calls of this thread. */
    private static final class Recorder implements CallInterceptor {
        private final List<String> seen = new CopyOnWriteArrayList<>();
        private final Thread thread = Thread.currentThread();
        private Call open;

        @Override
        public void before(Call call) {
            if (Thread.currentThread() == thread) {
                open = call;
            }
        }

        @Override
        public void after(Call call, int result, long nanoseconds) {
            if (Thread.currentThread() == thread) {
                // Nobody sees what this throws.
                seen.add(call.function() + (call.type() < 0 ? "" : " " + call.count() + " " + call.bytes()) + " = "
                        + result + (call == open ? "" : " without its begin")
                        + (nanoseconds > 0 ? "" : " in " + nanoseconds + " ns"));
            }
        }
    }

    @Test
    void interceptorGetsCallDetails() {
        Recorder recorder = new Recorder();
        List<CallInterceptor.Call> calls = new CopyOnWriteArrayList<>();
        CallInterceptor keeper = new CallInterceptor() {
            @Override
            public void after(Call call, int result, long nanoseconds) {
                calls.add(call);
            }
        };
        CommunicatorConfig config =
                CommunicatorConfig.builder().commName("seen").build();
        try (Communicator communicator = Communicator.builder().config(config).create(UniqueId.create(), 0, 1);
                DeviceBuffer<Float32> buffer = Device.host().allocate(ElementType.FLOAT32, 10)) {
            CudaStream stream = CudaStream.defaultOf(communicator.device());
            CallInterceptor.Installed first = NcclLibrary.intercept(recorder);
            CallInterceptor.Installed second = NcclLibrary.intercept(keeper);
            try {
                communicator.allReduce(buffer, ReduceOp.SUM, stream);
                Group.run(() -> {
                    communicator.send(buffer.slice(0, 2), 0, stream);
                    communicator.recv(buffer.slice(2, 2), 0, stream);
                });
                nccl.ncclCommCount(communicator.nativeHandle(), new int[1]);
                // The second names are for interceptors themselves.
                nccl.pncclCommCount(communicator.nativeHandle(), new int[1]);
                second.close();
                second.close();
                communicator.broadcast(buffer, 0, stream);
            } finally {
                first.close();
            }
            communicator.allReduce(buffer, ReduceOp.SUM, stream);
            assertEquals(
                    List.of(
                            "ncclAllReduce 10 40 = 0",
                            "ncclGroupStart = 0",
                            "ncclSend 2 8 = 0",
                            "ncclRecv 2 8 = 0",
                            "ncclGroupEnd = 0",
                            "ncclCommCount = 0",
                            "ncclBroadcast 10 40 = 0"),
                    recorder.seen.stream()
                            // The watchdog and the group's wait ask now and then.
                            .filter(line -> !line.startsWith("ncclCommGetAsyncError"))
                            .toList());
            CallInterceptor.Call sum = calls.stream()
                    .filter(call -> call.function().equals("ncclAllReduce"))
                    .findFirst()
                    .orElseThrow();
            assertEquals(communicator.nativeHandle(), sum.communicator());
            assertEquals(0, sum.rank());
            assertEquals("seen", sum.communicatorName());
            assertTrue(calls.stream().noneMatch(call -> call.function().equals("ncclBroadcast")));
        }
    }

    /** Metrics would count an address as an error, one of another code in each process. */
    @Test
    @SuppressWarnings("try") // the interceptor is used by the library
    void functionsThatReturnNoResultHaveResultZero() {
        Recorder recorder = new Recorder();
        try (CallInterceptor.Installed installed = NcclLibrary.intercept(recorder)) {
            nccl.ncclGetLastError(0);
            nccl.ncclGetErrorString(nccl.ncclInvalidUsage);
        }
        assertEquals(List.of("ncclGetLastError = 0", "ncclGetErrorString = 0"), recorder.seen);
    }

    @Test
    void anInterceptorThatIsInstalledTwiceIsRemovedOnceByEach() {
        Recorder recorder = new Recorder();
        CallInterceptor.Installed first = NcclLibrary.intercept(recorder);
        CallInterceptor.Installed second = NcclLibrary.intercept(recorder);
        first.close();
        first.close();
        nccl.ncclGetVersion(new int[1]);
        second.close();
        nccl.ncclGetVersion(new int[1]);
        assertEquals(List.of("ncclGetVersion = 0"), recorder.seen);
    }

    /** Removing the last interceptor ends the reports, but not that of the call in which it is removed. */
    @Test
    void aCallIsReportedToItsEndThoughItsInterceptorIsReplaced() {
        Recorder next = new Recorder();
        Thread caller = Thread.currentThread();
        List<String> seen = new CopyOnWriteArrayList<>();
        CallInterceptor.Installed[] installed = new CallInterceptor.Installed[2];
        installed[0] = NcclLibrary.intercept(new CallInterceptor() {
            @Override
            public void before(Call call) {
                if (Thread.currentThread() == caller) {
                    installed[0].close();
                    installed[1] = NcclLibrary.intercept(next);
                }
            }

            @Override
            public void after(Call call, int result, long nanoseconds) {
                if (Thread.currentThread() == caller) {
                    seen.add(call.function());
                }
            }
        });
        nccl.ncclGetVersion(new int[1]);
        nccl.ncclGetErrorString(nccl.ncclInvalidUsage);
        installed[1].close();
        assertEquals(List.of("ncclGetVersion"), seen);
        assertEquals(List.of("ncclGetErrorString = 0"), next.seen);
    }

    @Test
    void exceptionOfInterceptorIsIgnored() {
        CallInterceptor broken = new CallInterceptor() {
            @Override
            public void before(Call call) {
                throw new IllegalStateException("before");
            }

            @Override
            public void after(Call call, int result, long nanoseconds) {
                throw new AssertionError("after");
            }
        };
        Recorder recorder = new Recorder();
        CallInterceptor.Installed first = NcclLibrary.intercept(broken);
        CallInterceptor.Installed second = NcclLibrary.intercept(recorder);
        try {
            assertEquals(0, nccl.ncclGetVersion(new int[1]));
            assertEquals(4, nccl.ncclGetVersion((int[]) null));
        } finally {
            second.close();
            first.close();
        }
        assertEquals(List.of("ncclGetVersion = 0", "ncclGetVersion = 4"), recorder.seen);
    }

    /** VCCL spoils what it keeps of other operations of a group. */
    @Test
    void nativeAllToAllvSharesNoGroup() {
        Recorder recorder = new Recorder();
        long[] count = {8};
        long[] start = {0};
        try (Communicator communicator = Communicator.create(UniqueId.create(), 0, 1)) {
            DeviceBuffer<Float32> memory = Device.host().allocateForWindow(ElementType.FLOAT32, 1024);
            communicator.registerWindow(memory, WindowFlag.COLL_SYMMETRIC);
            CudaStream stream = CudaStream.defaultOf(communicator.device());
            DeviceBuffer<Float32> send = memory.slice(0, 8);
            AllToAllvPlan<Float32> plan =
                    communicator.planAllToAllv(send, count, start, memory.slice(8, 8), count, start);
            AllToAllvPlan<Float32> other =
                    communicator.planAllToAllv(send, count, start, memory.slice(16, 8), count, start);
            assertTrue(plan.usesNativeCall() && other.usesNativeCall());
            CallInterceptor.Installed installed = NcclLibrary.intercept(recorder);
            try {
                Group.run(() -> {
                    communicator.allReduce(memory.slice(24, 8), ReduceOp.SUM, stream);
                    communicator.allToAllv(plan, stream);
                    communicator.broadcast(memory.slice(32, 8), 0, stream);
                    communicator.allToAllv(other, stream);
                });
            } finally {
                installed.close();
            }
        }
        List<String> functions = recorder.seen.stream()
                .map(line -> line.split(" ")[0])
                .filter(name -> name.startsWith("ncclGroup") || name.matches("nccl(AllReduce|AlltoAllv|Broadcast)"))
                .toList();
        assertEquals(
                List.of(
                        "ncclGroupStart, ncclAllReduce, ncclAllReduce, ncclGroupEnd",
                        "ncclGroupStart, ncclAlltoAllv, ncclGroupEnd",
                        "ncclGroupStart, ncclAlltoAllv, ncclGroupEnd",
                        "ncclGroupStart, ncclAllReduce, ncclBroadcast, ncclGroupEnd"),
                List.of(String.join(", ", functions).split("(?<=ncclGroupEnd), ")));
        assertEquals(
                2,
                recorder.seen.stream().filter("ncclAlltoAllv 8 32 = 0"::equals).count());
    }

    @Test
    void rejectsNullInterceptor() {
        assertThrows(NullPointerException.class, () -> NcclLibrary.intercept(null));
    }

    /** Installing and removing goes on while other threads call. */
    @Test
    void interceptorMayChangeDuringCalls() throws InterruptedException {
        Thread[] callers = new Thread[2];
        List<Integer> wrong = new CopyOnWriteArrayList<>();
        for (int i = 0; i < callers.length; i++) {
            callers[i] = new Thread(() -> {
                int[] version = new int[1];
                for (int n = 0; n < 20000; n++) {
                    version[0] = 0;
                    if (nccl.ncclGetVersion(version) != 0 || version[0] == 0) {
                        wrong.add(n);
                    }
                }
            });
            callers[i].start();
        }
        Recorder recorder = new Recorder();
        int rounds = 0;
        do {
            CallInterceptor.Installed installed = NcclLibrary.intercept(recorder);
            nccl.ncclGetVersion(new int[1]);
            installed.close();
            rounds++;
        } while (callers[0].isAlive() || callers[1].isAlive());
        for (Thread caller : callers) {
            caller.join();
        }
        assertEquals(List.of(), wrong);
        assertEquals(Collections.nCopies(rounds, "ncclGetVersion = 0"), recorder.seen);
    }
}
