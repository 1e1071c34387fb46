package io.github.nccl4j.tools.survival;

import io.github.nccl4j.highlevel.CallInterceptor;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Int64;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclException;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.NcclRemoteException;
import io.github.nccl4j.highlevel.NcclResultException;
import io.github.nccl4j.highlevel.NcclTimeoutException;
import io.github.nccl4j.highlevel.Recovery;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.launch.Rendezvous;
import io.github.nccl4j.launch.TcpStore;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.tools.conformance.ProgressWatch;
import io.github.nccl4j.tools.launch.Signals;
import io.github.nccl4j.tools.support.DaemonThreads;
import io.github.nccl4j.tools.survival.SurvivalCommand.Incident;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** One rank of a round of {@link SurvivalCommand}, in a process of its own. */
final class Survivor {
    /** A round that takes longer hangs: this process then prints all stacks and ends. */
    private static final Duration MORE_THAN_ENOUGH = Duration.ofSeconds(90);

    private static final int STALLED = 3;

    private static final int WARM_CALLS = 5;

    /** The file with the process id of the victim, written at the moment of the incident. */
    static final String PID = "pid";

    /** The victim adds this to its number after its pause, so that all ranks end their loops in the same call. */
    private static final int PAUSED = 1 << 20;

    /**
     * Objects that the garbage collector must copy or mark in a full collection: so few that the last pause of several exceeds their
     * sum little, also on a machine without a free processor.
     */
    private static final int LIVE_OBJECTS = 2_000_000;

    /** The value of all elements of a survivor's state, and its step. */
    private static final long STATE = 41;

    /** A sentence about a rank; operations, which may name a root, are indented. */
    private static final Pattern NAMES_A_RANK =
            Pattern.compile("^(?!Flight|\\s).*\\brank \\d", Pattern.CASE_INSENSITIVE);

    private final Task task;
    private final RankInfo self;
    private final Duration patience;
    private final AtomicBoolean shrunk = new AtomicBoolean();

    Survivor(Task task, RankInfo self, Duration patience) {
        this.task = task;
        this.self = self;
        this.patience = patience;
    }

    /** The task of the ranks of a round. */
    record Task(Loss loss, Duration deadline, int count, boolean exchange, boolean returns, Path folder) {
        /** The rank that is lost, the incident, and its time in milliseconds after the start of the loop. */
        record Loss(int victim, Incident incident, int moment) {}

        private static final String PROPERTY = "nccl4j.survival";

        /** For the JVM of a rank. */
        List<String> options() {
            return List.of("-D" + PROPERTY + "=" + loss.victim + "," + loss.incident + "," + loss.moment + ","
                    + deadline.toSeconds() + "," + count + "," + exchange + "," + returns + "," + folder);
        }

        static Optional<Task> ofProcess() {
            return Optional.ofNullable(System.getProperty(PROPERTY)).map(text -> {
                String[] parts = text.split(",", 8);
                return new Task(
                        new Loss(Integer.parseInt(parts[0]), Incident.valueOf(parts[1]), Integer.parseInt(parts[2])),
                        Duration.ofSeconds(Long.parseLong(parts[3])),
                        Integer.parseInt(parts[4]),
                        Boolean.parseBoolean(parts[5]),
                        Boolean.parseBoolean(parts[6]),
                        Path.of(parts[7]));
            });
        }
    }

    /** The result of a rank that was not killed. */
    record Report(boolean right, long millis, String exception, String end) {
        void write(Path folder, int rank) {
            try {
                Files.writeString(
                        folder.resolve("rank" + rank), right + "\n" + millis + "\n" + exception + "\n" + end + "\n");
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        static Report read(Path folder, int rank) throws IOException {
            Path file = folder.resolve("rank" + rank);
            if (!Files.exists(file)) {
                return new Report(false, -1, "no report", "no report");
            }
            List<String> lines = Files.readAllLines(file);
            return new Report(
                    Boolean.parseBoolean(lines.get(0)), Long.parseLong(lines.get(1)), lines.get(2), lines.get(3));
        }

        boolean names(int rank) {
            return exception.matches("(?i).*\\brank " + rank + "\\b.*");
        }

        @Override
        public String toString() {
            return "after " + millis + " ms " + exception + "; " + end;
        }
    }

    int run() {
        ProgressWatch watch = new ProgressWatch(
                MORE_THAN_ENOUGH.plus(task.deadline.multipliedBy(4)), System.err, () -> Runtime.getRuntime()
                        .halt(STALLED));
        watch.start();
        watch.at("its round");
        Device device = NcclLibrary.get().engine() == Engine.HOST
                ? Device.host()
                : Device.cuda(self.device(Device.cudaCount()));
        NcclLibrary.intercept(new CallInterceptor() {
            @Override
            public void after(Call call, int result, long nanoseconds) {
                if (call.function().equals("ncclCommShrink")) {
                    shrunk.set(true);
                }
            }
        });
        try (TcpStore store = TcpStore.builder().timeout(patience).open(self);
                CudaStream stream = CudaStream.nonBlocking(device);
                DeviceBuffer<Int64> numbers = device.allocate(ElementType.INT64, task.count);
                DeviceBuffer<Int64> received = device.allocate(ElementType.INT64, task.exchange ? task.count : 0);
                Recovery recovery = Recovery.begin(
                        store, "survival", Communicator.builder().device(device).deadline(task.deadline))) {
            return run(store, recovery, numbers, received, stream);
        }
    }

    private int run(
            TcpStore store,
            Recovery recovery,
            DeviceBuffer<Int64> numbers,
            DeviceBuffer<Int64> received,
            CudaStream stream) {
        if (store.attempt() > 0) {
            comeBack(store, recovery, numbers, stream);
            return 0;
        }
        if (task.loss.incident.isPause()) {
            pause(store, recovery, numbers, stream);
            return 0;
        }
        NcclResultException lost = null;
        for (int call = 0; lost == null; call++) {
            try {
                if (task.exchange) {
                    exchange(recovery, numbers, received, stream);
                } else {
                    require(
                            sum(recovery.communicator(), numbers, stream) == expected(recovery.members()),
                            "a sum is wrong");
                }
            } catch (NcclRemoteException | NcclTimeoutException failure) {
                lost = failure;
            }
            if (call == WARM_CALLS && self.rank() == task.loss.victim) {
                later(() -> die(store));
            }
        }
        long millis = sinceDeath(store);
        String exception = lost.getClass().getSimpleName() + ": " + summary(lost);
        recovery.recover(task.deadline.plusSeconds(2));
        if (task.returns) {
            boolean right = completes(recovery, numbers, stream, STATE);
            new Report(
                            right,
                            millis,
                            exception,
                            "complete again after " + sinceDeath(store) + " ms, all-reduce " + text(right))
                    .write(task.folder, self.rank());
            recovery.rendezvous("end").barrier("end", patience);
            return 0;
        }
        List<Integer> left = recovery.members();
        boolean right = !left.contains(task.loss.victim)
                && left.size() == self.worldSize() - 1
                && sum(recovery.communicator(), numbers, stream) == expected(left);
        new Report(
                        right,
                        millis,
                        exception,
                        (shrunk.get() ? "shrunk to ranks " : "created anew with ranks ") + left + ", all-reduce "
                                + text(right))
                .write(task.folder, self.rank());
        endTogether(store.among("end", left), left);
        return 0;
    }

    /** The first line of an exception's message without the library, and the lines that name a rank. */
    static String summary(Exception failure) {
        List<String> lines = failure.getMessage().lines().toList();
        return Stream.concat(
                        lines.stream().limit(1).map(line -> line.replaceFirst(" \\[.*", "")),
                        lines.stream()
                                .skip(1)
                                .filter(line -> NAMES_A_RANK.matcher(line).find()))
                .collect(Collectors.joining(" "));
    }

    /** Sums until the victim has paused; no rank may get an exception. */
    private void pause(TcpStore store, Recovery recovery, DeviceBuffer<Int64> numbers, CudaStream stream) {
        AtomicBoolean paused = new AtomicBoolean();
        AtomicLong collected = new AtomicLong();
        long expected = expected(recovery.members());
        long longest = 0;
        String exception = "no exception";
        boolean right;
        int call = 0;
        try {
            long sum;
            do {
                long own = self.rank() + 1L + (paused.get() ? PAUSED : 0);
                long start = System.nanoTime();
                sum = sum(recovery.communicator(), numbers, stream, own);
                longest = Math.max(longest, System.nanoTime() - start);
                if (call++ == WARM_CALLS && self.rank() == task.loss.victim) {
                    later(() -> pauseHere(paused, collected));
                }
            } while (sum == expected);
            right = sum == expected + PAUSED;
            store.barrier("end", patience);
        } catch (NcclException failure) {
            right = false;
            exception = failure.getClass().getSimpleName() + ": " + summary(failure);
        }
        new Report(
                        right,
                        TimeUnit.NANOSECONDS.toMillis(longest),
                        exception,
                        call + " calls, the longest in that time; all-reduce " + text(right)
                                + (collected.get() == 0 ? "" : "; collections of " + collected + " ms"))
                .write(task.folder, self.rank());
    }

    private void pauseHere(AtomicBoolean paused, AtomicLong collected) throws IOException, InterruptedException {
        writePid();
        if (task.loss.incident == Incident.PAUSE) {
            // The command continues this process.
            Signals.send("STOP", ProcessHandle.current().pid());
        } else if (task.loss.incident == Incident.COLLECT) {
            collected.set(collectGarbage());
        } else {
            Thread.sleep(SurvivalCommand.PAUSE.toMillis());
        }
        paused.set(true);
    }

    /** Makes the garbage collector pause for a time in all, with the pauses while objects are allocated; returns that time. */
    private static long collectGarbage() {
        long before = collectionMillis();
        Object[] live = new Object[LIVE_OBJECTS];
        Arrays.setAll(live, i -> new Object[1]);
        while (collectionMillis() - before < SurvivalCommand.PAUSE.toMillis()) {
            System.gc();
        }
        Reference.reachabilityFence(live);
        return collectionMillis() - before;
    }

    private static long collectionMillis() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
                .mapToLong(GarbageCollectorMXBean::getCollectionTime)
                .sum();
    }

    private static String text(boolean right) {
        return right ? "right" : "WRONG";
    }

    private long sinceDeath(TcpStore store) {
        long now = System.currentTimeMillis();
        return now - ByteBuffer.wrap(store.get("died", patience)).getLong();
    }

    /** The part of the process that takes the place of the killed one. */
    private void comeBack(TcpStore store, Recovery recovery, DeviceBuffer<Int64> numbers, CudaStream stream) {
        boolean right = completes(recovery, numbers, stream, 0);
        new Report(right, sinceDeath(store), "was killed and came back", "all-reduce " + text(right))
                .write(task.folder, self.rank());
        recovery.rendezvous("end").barrier("end", patience);
    }

    /** Admits ranks until none is missing; returns true if all have the state of a survivor and the right sum. */
    private boolean completes(Recovery recovery, DeviceBuffer<Int64> numbers, CudaStream stream, long state) {
        boolean isComplete = false;
        boolean right = true;
        while (!isComplete) {
            if (recovery.admit(task.deadline.plusSeconds(2))) {
                numbers.fill(state);
                long step = recovery.broadcastState(state, stream, numbers);
                right &= step == STATE && common(numbers) == STATE;
                isComplete = recovery.members().size() == self.worldSize();
            }
            right &= sum(recovery.communicator(), numbers, stream) == expected(recovery.members());
        }
        return right;
    }

    /** One of the survivors ends the rank that was stopped. */
    private void endTogether(Rendezvous survivors, List<Integer> left) {
        survivors.barrier("end", patience);
        if (task.loss.incident == Incident.STOP && self.rank() == left.get(0)) {
            ProcessHandle.of(Long.parseLong(read(PID))).ifPresent(ProcessHandle::destroyForcibly);
        }
    }

    private static long expected(List<Integer> ranks) {
        return ranks.stream().mapToLong(rank -> rank + 1L).sum();
    }

    /** Sends this rank's numbers to the next member and receives those of the previous one, in one group. */
    private void exchange(
            Recovery recovery, DeviceBuffer<Int64> numbers, DeviceBuffer<Int64> received, CudaStream stream) {
        Communicator communicator = recovery.communicator();
        int next = (communicator.rank() + 1) % communicator.size();
        int previous = (communicator.rank() + communicator.size() - 1) % communicator.size();
        numbers.fill(self.rank() + 1L);
        communicator.sendRecv(numbers, next, received, previous, stream);
        communicator.work(stream).await();
        require(
                common(received) == recovery.members().get(previous) + 1L,
                "the numbers of rank " + recovery.members().get(previous) + " are wrong");
    }

    /** The sum of the ranks' numbers, if all elements have it, else -1. */
    private long sum(Communicator communicator, DeviceBuffer<Int64> numbers, CudaStream stream) {
        return sum(communicator, numbers, stream, self.rank() + 1L);
    }

    private long sum(Communicator communicator, DeviceBuffer<Int64> numbers, CudaStream stream, long own) {
        numbers.fill(own);
        communicator.allReduce(numbers, ReduceOp.SUM, stream);
        communicator.work(stream).await();
        return common(numbers);
    }

    /** The value of all elements, or -1 if they differ. */
    private long common(DeviceBuffer<Int64> buffer) {
        long[] elements = new long[task.count];
        buffer.copyTo(elements);
        for (long element : elements) {
            if (element != elements[0]) {
                return -1;
            }
        }
        return elements[0];
    }

    private void require(boolean right, String what) {
        if (!right) {
            throw new IllegalStateException("rank " + self.rank() + ": " + what);
        }
    }

    /** The incident of a victim. */
    @FunctionalInterface
    private interface Event {
        void run() throws IOException, InterruptedException;
    }

    private void later(Event event) {
        DaemonThreads.start("incident", () -> {
            try {
                Thread.sleep(task.loss.moment);
                event.run();
            } catch (IOException | InterruptedException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    private void die(TcpStore store) throws IOException {
        writePid();
        store.set(
                "died",
                ByteBuffer.allocate(Long.BYTES)
                        .putLong(System.currentTimeMillis())
                        .array());
        kill(ProcessHandle.current().pid(), task.loss.incident.name());
    }

    /** The file appears with its content. */
    private void writePid() throws IOException {
        Path file = Files.writeString(
                task.folder.resolve("new-" + PID), "" + ProcessHandle.current().pid());
        Files.move(file, task.folder.resolve(PID));
    }

    private String read(String name) {
        try {
            return Files.readString(task.folder.resolve(name));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void kill(long pid, String signal) {
        try {
            Signals.send(signal, pid);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
