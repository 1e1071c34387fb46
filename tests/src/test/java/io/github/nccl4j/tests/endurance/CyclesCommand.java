package io.github.nccl4j.tests.endurance;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CommunicatorConfig;
import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.ReduceOp;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.tests.Held;
import io.github.nccl4j.tools.conformance.ProgressWatch;
import io.github.nccl4j.tools.launch.CommandErrors;
import io.github.nccl4j.tools.launch.JavaCommand;
import io.github.nccl4j.tools.launch.LaunchOptions;
import io.github.nccl4j.tools.launch.Launcher;
import io.github.nccl4j.tools.launch.LauncherWatch;
import io.github.nccl4j.tools.launch.OutputWatch;
import io.github.nccl4j.tools.support.FreeGpuMemory;
import io.github.nccl4j.tools.support.RankDevices;
import io.github.nccl4j.tools.support.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code nccl4j cycles}: makes and closes communicators and what belongs to them, again and again, and looks what is left. */
@Command(
        name = "nccl4j cycles",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Makes communicators, uses them, and closes them and all that belongs to them in random order.",
            "",
            "One process has a thread for each rank. Some communicators do not block, are split, have custom sums, are part of a "
                    + "graph that is still there when they end, or are aborted. After the first tenth, which warms up, open "
                    + "files, threads, memory and GPU memory must not grow. Exit code 1 if they do, or if an element is wrong.",
            ""
        })
public final class CyclesCommand implements Callable<Integer> {
    private static final Duration LIMIT = Duration.ofMinutes(2);
    private static final long SETTLE_NANOS = 10_000_000_000L;
    private static final long MORE_MEMORY = 64 << 20;
    private static final long MORE_GPU_MEMORY = 8 << 20;
    private static final int STALLED = 3;
    private static final int ELEMENTS = 100_000;

    @Mixin
    private LaunchOptions.Usual launch;

    @Option(
            names = {"-c", "--cycles"},
            paramLabel = "N",
            defaultValue = "500",
            description = "How often. Default: ${DEFAULT-VALUE}.")
    private int cycles;

    @Option(names = "--seed", paramLabel = "N", description = "What is made follows from it. Default: the time.")
    private Long seed;

    @Spec
    private CommandLine.Model.CommandSpec spec;

    private int graphs;
    private int aborts;

    private CyclesCommand() {}

    /**
     * Runs the command and ends this JVM.
     *
     * @param args the arguments
     */
    public static void main(String[] args) {
        LauncherWatch.start();
        OutputWatch.start();
        int code = CommandErrors.install(new CommandLine(new CyclesCommand())).execute(args);
        System.out.flush();
        System.exit(code);
    }

    /** What this process holds, and how much memory of the GPUs is free. */
    private record Seen(Held held, List<Long> freeOfGpus) {
        static Seen now(int gpus) throws InterruptedException {
            return new Seen(Held.now(), FreeGpuMemory.free(gpus));
        }

        boolean moreThan(Seen before) {
            return held.files() > before.held.files()
                    || held.threads() > before.held.threads()
                    || held.memory() > before.held.memory() + MORE_MEMORY
                    || FreeGpuMemory.lost(before.freeOfGpus, freeOfGpus) > MORE_GPU_MEMORY;
        }
    }

    @Override
    public Integer call() throws Exception {
        if (cycles < 10) {
            throw new ParameterException(spec.commandLine(), "-c must be at least 10: " + cycles);
        }
        int size = launch.ranks();
        if (!LauncherWatch.isLaunched()) {
            List<String> arguments = spec.commandLine().getParseResult().originalArgs();
            Map<String, String> environment =
                    new HashMap<>(launch.decide(size, true).environment());
            environment.put("MALLOC_ARENA_MAX", Held.ARENAS);
            return new Launcher(
                            JavaCommand.of(Held.FIXED_HEAP, CyclesCommand.class.getName(), arguments),
                            1,
                            environment,
                            launch.limit(),
                            System.out,
                            System.err,
                            false)
                    .run();
        }
        NcclLibrary library = NcclLibrary.get();
        List<Device> devices = RankDevices.of(0, size);
        int gpus = devices.get(0).isHost() ? 0 : size;
        long start = seed == null ? System.nanoTime() : seed;
        System.out.println(library + System.lineSeparator() + size + " ranks, " + cycles + " cycles, seed " + start);
        ProgressWatch watch =
                new ProgressWatch(LIMIT, System.err, () -> Runtime.getRuntime().halt(STALLED));
        watch.start();
        long began = System.nanoTime();
        Seen before = null;
        for (int cycle = 0; cycle < cycles; cycle++) {
            watch.at("cycle " + cycle);
            cycle(devices, start + cycle);
            // Of what grows, one sees so when: from the beginning on, with each abort, or never again.
            if (cycle > 0 && cycle % (cycles / 10) == 0) {
                Seen now = Seen.now(gpus);
                System.out.println("after " + (cycle + 1) + " cycles, " + aborts + " aborted: " + now.held);
                before = before == null ? now : before;
            }
        }
        watch.done();
        Seen after = settled(gpus, before);
        boolean more = after.moreThan(before);
        System.out.println("after " + cycles + " cycles, " + aborts + " aborted: " + after.held
                + (gpus == 0
                        ? ""
                        : "; GPU memory in use: " + FreeGpuMemory.difference(before.freeOfGpus, after.freeOfGpus)));
        System.out.printf(
                Locale.ROOT,
                "%d cycles, %d with graphs, %d aborted, %s, %.1f s%n",
                cycles,
                graphs,
                aborts,
                more ? "MORE is held than before" : "nothing left",
                (System.nanoTime() - began) / 1e9);
        return more ? 1 : 0;
    }

    /** What has nothing left to do may take its time to end. */
    private static Seen settled(int gpus, Seen before) throws InterruptedException {
        long start = System.nanoTime();
        Seen after = Seen.now(gpus);
        while (after.moreThan(before) && System.nanoTime() - start < SETTLE_NANOS) {
            after = Seen.now(gpus);
        }
        return after;
    }

    /** What is made in a cycle, the same on all ranks. */
    private record Plan(boolean blocking, boolean splits, boolean sums, boolean graph, boolean aborts, long order) {
        static Plan of(long seed, boolean graphs) {
            Random random = new Random(seed);
            return new Plan(
                    random.nextInt(3) > 0,
                    random.nextInt(3) == 0,
                    random.nextInt(3) == 0,
                    random.nextInt(3) == 0 && graphs,
                    random.nextInt(5) == 0,
                    random.nextLong());
        }
    }

    private void cycle(List<Device> devices, long cycleSeed) throws Exception {
        int size = devices.size();
        Plan plan = Plan.of(cycleSeed, devices.get(0).isCuda());
        graphs += plan.graph ? 1 : 0;
        aborts += plan.aborts ? 1 : 0;
        UniqueId id = UniqueId.create();
        CyclicBarrier used = new CyclicBarrier(size);
        List<Callable<Void>> ranks = new ArrayList<>();
        for (int r = 0; r < size; r++) {
            int rank = r;
            ranks.add(() -> {
                cycle(plan, devices.get(rank), id, rank, size, used);
                return null;
            });
        }
        Threads.together(ranks, LIMIT);
    }

    private static void cycle(Plan plan, Device device, UniqueId id, int rank, int size, CyclicBarrier used)
            throws Exception {
        CudaStream stream = CudaStream.nonBlocking(device);
        DeviceBuffer<Float32> buffer = device.allocate(ElementType.FLOAT32, ELEMENTS);
        Communicator all = Communicator.builder()
                .device(device)
                .config(CommunicatorConfig.builder().blocking(plan.blocking).build())
                .deadline(Duration.ofSeconds(60))
                .create(id, rank, size);
        List<AutoCloseable> others = new ArrayList<>(List.of(stream, buffer));
        List<Communicator> communicators = new ArrayList<>(List.of(all));
        if (plan.splits) {
            communicators.add(all.split(rank % 2, rank));
        }
        if (plan.sums) {
            others.add(all.preMulSum(ElementType.FLOAT32, 0.5));
        }
        buffer.fill(1f);
        if (plan.graph) {
            CudaGraph graph = CudaGraph.capture(stream, () -> all.allReduce(buffer, ReduceOp.SUM, stream));
            others.add(graph);
            graph.launch(stream);
            stream.synchronize(Duration.ofSeconds(60));
        } else {
            all.allReduce(buffer, ReduceOp.SUM, stream);
            all.work(stream).await();
        }
        float[] sums = new float[ELEMENTS];
        buffer.copyTo(sums);
        for (float sum : sums) {
            if (sum != size) {
                throw new AssertionError("rank " + rank + " got " + sum + ", expected " + size);
            }
        }
        if (plan.aborts) {
            // It would end what other ranks still wait for.
            used.await(LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
        end(plan, communicators, others);
    }

    private static void end(Plan plan, List<Communicator> communicators, List<AutoCloseable> others) throws Exception {
        List<AutoCloseable> things = new ArrayList<>(others);
        communicators.forEach(one -> things.add(plan.aborts ? one::abort : one::close));
        Collections.shuffle(things, new Random(plan.order));
        for (AutoCloseable thing : things) {
            thing.close();
        }
    }
}
