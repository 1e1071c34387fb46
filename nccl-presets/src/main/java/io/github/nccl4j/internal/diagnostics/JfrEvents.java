package io.github.nccl4j.internal.diagnostics;

import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ProfiledOperation;
import io.github.nccl4j.internal.operation.OperationLog;
import io.github.nccl4j.internal.operation.Operator;
import java.time.Duration;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.FlightRecorderListener;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Recording;
import jdk.jfr.RecordingState;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import jdk.jfr.Timestamp;

/** Events for JDK Flight Recorder; used only while {@link Jfr#recording}. */
public final class JfrEvents {
    private JfrEvents() {}

    /** Fields of all events. */
    @Category("nccl4j")
    public abstract static class CommunicatorEvent extends Event {
        @Label("Communicator")
        @Description("The name, or the identity that is the same on all ranks")
        public String communicator;

        @Label("Rank")
        public int rank;

        @Label("Size")
        public int size;

        public void of(CommunicatorInfo subject) {
            communicator = subject.name().isEmpty() ? subject.identity() : subject.name();
            rank = subject.expectedRank();
            size = subject.expectedSize();
        }
    }

    /** Operation. Its duration is that of the C call; 0 within a group. */
    @Name("nccl4j.Operation")
    @Label("NCCL Operation")
    @StackTrace(false)
    public static final class OperationEvent extends CommunicatorEvent {
        @Label("Function")
        public String function;

        @Label("Sequence")
        public long sequence;

        @Label("Group")
        @Description("The number of the group in the communicator, 0 if there is none")
        public int group;

        @Label("Count")
        public long count;

        @Label("Type")
        public String type;

        @Label("Operator")
        public String op;

        @Label("Peer")
        @Description("The root or the other rank, -1 if there is none")
        public int peer;

        @Label("Stream")
        public long stream;
    }

    /** Group, from its launch to the end of the C call. */
    @Name("nccl4j.Group")
    @Label("NCCL Group")
    public static final class GroupEvent extends Event {
        @Label("Operations")
        public int operations;

        @Label("Communicators")
        public int communicators;
    }

    /** Wait for work. */
    @Name("nccl4j.Wait")
    @Label("NCCL Wait")
    public static final class WaitEvent extends CommunicatorEvent {
        @Label("Last Operation")
        public String last;
    }

    /** Creation of a communicator. */
    @Name("nccl4j.Creation")
    @Label("NCCL Communicator Creation")
    public static final class CreationEvent extends CommunicatorEvent {
        @Label("Function")
        public String function;
    }

    /** Operation as NCCL's profiler interface reports it. The event itself is made some milliseconds later. */
    @Name("nccl4j.Kernel")
    @Label("NCCL Kernel")
    @Category("nccl4j")
    @StackTrace(false)
    public static final class KernelEvent extends Event {
        @Label("Communicator")
        @Description("The name, or NCCL's id of the communicator in hexadecimal digits")
        public String communicator;

        @Label("Rank")
        public int rank;

        @Label("Size")
        public int size;

        @Label("Function")
        public String function;

        @Label("Sequence")
        @Description("The number of the nccl4j.Operation event, 0 if not known")
        public long sequence;

        @Label("Number")
        @Description("NCCL's number of the operation among those of its function, from 0")
        public long number;

        @Label("Bytes")
        @DataAmount
        public long bytes;

        @Label("Algorithm")
        public String algorithm;

        @Label("Protocol")
        public String protocol;

        @Label("Channels")
        public int channels;

        @Label("Tag")
        public long tag;

        @Label("Launched")
        @Timestamp(Timestamp.MILLISECONDS_SINCE_EPOCH)
        public long launched;

        @Label("Queued")
        @Description("From the launch to the start of the kernel, -1 if not known")
        @Timespan(Timespan.NANOSECONDS)
        public long queued;

        @Label("Kernel Time")
        @Description("On the GPU's clock, -1 if not known")
        @Timespan(Timespan.NANOSECONDS)
        public long kernelTime;

        @Label("Bus Bandwidth")
        @Description("In 10^9 bytes per second")
        public double busBandwidth;
    }

    /** Failure of a communicator. */
    @Name("nccl4j.Failure")
    @Label("NCCL Failure")
    public static final class FailureEvent extends CommunicatorEvent {
        @Label("Message")
        public String message;
    }

    public static void listen() {
        jdk.jfr.FlightRecorder.addListener(new FlightRecorderListener() {
            @Override
            public void recordingStateChanged(Recording recording) {
                updateRecording();
            }
        });
        updateRecording();
    }

    private static void updateRecording() {
        Jfr.set(jdk.jfr.FlightRecorder.isInitialized()
                && jdk.jfr.FlightRecorder.getFlightRecorder().getRecordings().stream()
                        .anyMatch(each -> each.getState() == RecordingState.RUNNING));
    }

    public static OperationEvent operation() {
        OperationEvent event = new OperationEvent();
        event.begin();
        return event;
    }

    /** Records the event of the last operation. */
    public static void end(OperationEvent event, CommunicatorInfo communicator) {
        event.end();
        if (!event.shouldCommit()) {
            return;
        }
        OperationLog.Entry entry = communicator.operationLog().last();
        event.of(communicator);
        event.function = entry.function();
        event.sequence = entry.sequence();
        event.group = entry.group();
        event.count = entry.operation().elements().count();
        if (entry.kind().hasElements()) {
            event.type = ElementType.values()
                    .get(entry.operation().elements().type())
                    .toString();
        }
        if (entry.kind().reduces()) {
            event.op = Operator.nameOf(entry.operation().op());
        }
        event.peer = entry.kind().hasPeer() ? entry.operation().peer() : -1;
        event.stream = entry.operation().stream();
        event.commit();
    }

    public static GroupEvent group(int operations, int communicators) {
        GroupEvent event = new GroupEvent();
        event.operations = operations;
        event.communicators = communicators;
        event.begin();
        return event;
    }

    public static WaitEvent waiting() {
        WaitEvent event = new WaitEvent();
        event.begin();
        return event;
    }

    public static void end(WaitEvent event, CommunicatorInfo communicator, String last) {
        event.end();
        if (event.shouldCommit()) {
            event.of(communicator);
            event.last = last;
            event.commit();
        }
    }

    public static CreationEvent creation(String function) {
        CreationEvent event = new CreationEvent();
        event.function = function;
        event.begin();
        return event;
    }

    public static void end(CreationEvent event, CommunicatorInfo communicator) {
        event.end();
        if (event.shouldCommit()) {
            event.of(communicator);
            event.commit();
        }
    }

    public static void recordKernel(ProfiledOperation operation) {
        KernelEvent event = new KernelEvent();
        if (!event.shouldCommit()) {
            return;
        }
        event.communicator = operation.name().isEmpty() ? Long.toHexString(operation.communicator()) : operation.name();
        event.rank = operation.rank();
        event.size = operation.size();
        event.function = operation.function();
        event.sequence = operation.sequence().orElse(0);
        event.number = operation.number();
        event.bytes = operation.bytes();
        event.algorithm = operation.algorithm();
        event.protocol = operation.protocol();
        event.channels = operation.channels();
        event.tag = operation.tag();
        event.launched = operation.launched().toEpochMilli();
        event.queued = operation.queued().map(Duration::toNanos).orElse(-1L);
        event.kernelTime = operation.kernelTime().map(Duration::toNanos).orElse(-1L);
        event.busBandwidth = operation.busBandwidth().orElse(0);
        event.commit();
    }

    public static void recordFailure(CommunicatorInfo communicator, Throwable failure) {
        FailureEvent event = new FailureEvent();
        if (event.shouldCommit()) {
            event.of(communicator);
            event.message = failure.getMessage();
            event.commit();
        }
    }
}
