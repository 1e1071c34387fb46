package io.github.nccl4j.highlevel;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.submission.ConfiguredCall;
import io.github.nccl4j.internal.submission.NativeWindow;
import io.github.nccl4j.internal.submission.OperationSubmitter;
import io.github.nccl4j.library.HostEngine;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What an operation keeps or releases on its way to NCCL, and the checks that are repeated there. */
class OperationSubmitterTest {
    private static final Device HOST = Device.host();
    private static final CudaStream STREAM = CudaStream.defaultOf(HOST);

    private static Communicator alone() {
        return Communicator.create(UniqueId.create(), 0, 1);
    }

    private static CollectiveConfig launching(CudaEvent event) {
        return CollectiveConfig.builder().launchCompletionEvent(event).build();
    }

    @Test
    void anEventOfACallThatAGroupRefusesIsReleased() {
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> buffer = HOST.allocate(ElementType.INT32, 6);
                CudaEvent first = CudaEvent.create(HOST);
                Group group = Group.open()) {
            buffer.fill(1);
            communicator.allReduce(buffer, buffer, ReduceOp.SUM, STREAM, launching(first));
            CudaStream stream = CudaStream.nonBlocking(HOST);
            CudaEvent second = CudaEvent.create(HOST);
            long event = second.nativeHandle();
            long streamHandle = stream.nativeHandle();
            CollectiveConfig config = launching(second);
            assertThrows(
                    IllegalArgumentException.class,
                    () -> communicator.allReduce(buffer, buffer, ReduceOp.SUM, stream, config));
            second.close();
            stream.close();
            assertEquals(nccl.ncclInvalidArgument, HostEngine.eventQuery(event), "nothing needs the event");
            assertEquals(nccl.ncclInvalidArgument, HostEngine.streamQuery(streamHandle), "nothing needs the stream");
            group.launch();
        }
    }

    /** Between the check of the arguments and the call, another thread may close the stream. */
    @Test
    void anEventIsReleasedIfTheStreamIsClosed() {
        try (Communicator communicator = alone()) {
            CudaEvent event = CudaEvent.create(HOST);
            long handle = event.nativeHandle();
            CollectiveConfig config = launching(event);
            CudaStream stream = CudaStream.nonBlocking(HOST);
            stream.close();
            assertThrows(
                    IllegalStateException.class,
                    () -> ConfiguredCall.begin(communicator.core(), config.call, stream.nativeStream));
            event.close();
            assertEquals(nccl.ncclInvalidArgument, HostEngine.eventQuery(handle), "nothing needs the event");
        }
    }

    /** Between the check of the arguments and the call, another thread may close a window. */
    @Test
    void windowsAreCheckedAgainWhileTheCommunicatorIsHeld() {
        try (Communicator communicator = alone();
                DeviceBuffer<Int32> first = HOST.allocateForWindow(ElementType.INT32, 1024);
                DeviceBuffer<Int32> second = HOST.allocateForWindow(ElementType.INT32, 1024);
                Window open = communicator.registerWindow(first, WindowFlag.COLL_SYMMETRIC)) {
            Window closed = communicator.registerWindow(second, WindowFlag.COLL_SYMMETRIC);
            closed.close();
            CommunicatorCore core = communicator.core();
            OperationSubmitter operations =
                    new OperationSubmitter(core, null, communicator.windows, CollectiveConfig.EMPTY.call);
            NativeBuffer elements = first.slice(0, 1).nativeBuffer;
            for (List<NativeWindow> windows : List.of(
                    List.of(open.nativeWindow, closed.nativeWindow), List.of(closed.nativeWindow, open.nativeWindow))) {
                IllegalStateException refusal = assertThrows(
                        IllegalStateException.class,
                        () -> operations.put(elements, windows.get(0), windows.get(1), 0, 0, STREAM.nativeStream));
                assertEquals(closed + " is closed", refusal.getMessage());
            }
            assertEquals(0, communicator.flightRecorder().recorded());
        }
    }
}
