package io.github.nccl4j.tests.conformance;

import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import io.github.nccl4j.library.Engine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The conformance suite as a program, without a test framework: on the engine that {@code -Dnccl4j.engine} chooses, with
 * a GPU for each rank unless that is the host engine.
 *
 * <pre>
 * ConformanceCheck RANKS [threads|one-thread] [blocking|non-blocking] [plain|windows]
 * ConformanceCheck --rank R --size N --id-file PATH [blocking|non-blocking] [plain|windows]
 * </pre>
 *
 * <p>The first form is one process with a thread for each rank, or one thread for all of them; without words it runs both
 * ways, with communicators that block and such that don't, and with the buffers in plain memory and in windows. The second form is one rank; the process of rank 0 writes the
 * id to the file, which must not be there before. Exits with 1 if a check has failed.
 */
public final class ConformanceCheck {
    private static final long ID_PAUSE_MILLISECONDS = 20;
    private static final long ID_LIMIT_MILLISECONDS = 60_000;

    private final Map<String, String> options = new LinkedHashMap<>();
    private final List<String> words = new ArrayList<>();
    private final Report total = new Report();

    private ConformanceCheck(String[] args) {
        for (int i = 0; i < args.length; i++) {
            if (args[i].startsWith("--")) {
                options.put(args[i], args[++i]);
            } else {
                words.add(args[i]);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        ConformanceCheck check = new ConformanceCheck(args);
        System.out.println(NcclLibrary.get());
        if (check.options.isEmpty()) {
            check.runHere(Integer.parseInt(check.words.remove(0)));
        } else {
            check.runRank();
        }
        System.out.println();
        check.total.print(System.out);
        System.exit(check.total.failed() == 0 ? 0 : 1);
    }

    static void suite(Crew crew) {
        new DataSuite(crew).run();
        new GroupSuite(crew).run();
        if (!crew.drivesSeveralRanks()) {
            new LifecycleSuite(crew).run();
        }
    }

    static void suiteInWindows(Crew crew) {
        new WindowSuite(crew).run();
    }

    private boolean wants(String way, String otherWay) {
        return words.contains(way) || !words.contains(otherWay);
    }

    /** A way to make ranks and run the suite. */
    private interface Way {
        Report run(Ranks ranks) throws Exception;
    }

    private void runBoth(String how, Way way) throws Exception {
        if (wants("blocking", "non-blocking")) {
            runEach(how + ", blocking", way, true);
        }
        if (wants("non-blocking", "blocking")) {
            runEach(how + ", non-blocking", way, false);
        }
    }

    private void runEach(String how, Way way, boolean blocking) throws Exception {
        if (wants("plain", "windows")) {
            run(how, way, new Ranks(blocking, ConformanceCheck::suite));
        }
        if (wants("windows", "plain")) {
            run(how + ", memory in windows", way, new Ranks(blocking, ConformanceCheck::suiteInWindows));
        }
    }

    private void run(String how, Way way, Ranks ranks) throws Exception {
        System.out.println("\n" + how + ":");
        long start = System.nanoTime();
        Report report = way.run(ranks);
        report.printSum(System.out);
        System.out.printf("in %.1f s%n", (System.nanoTime() - start) / 1e9);
        total.addAll(report);
    }

    private void runHere(int size) throws Exception {
        if (wants("threads", "one-thread")) {
            runBoth(size + " ranks in threads", ranks -> ranks.inThreads(size));
        }
        if (wants("one-thread", "threads")) {
            runBoth(size + " ranks in one thread", ranks -> ranks.inOneThread(size));
        }
    }

    private void runRank() throws Exception {
        int rank = Integer.parseInt(options.get("--rank"));
        int size = Integer.parseInt(options.get("--size"));
        Path file = Path.of(options.get("--id-file"));
        Device device =
                NcclLibrary.get().engine() == Engine.HOST ? Device.host() : Device.cuda(rank % Device.cudaCount());
        int[] run = new int[1];
        runBoth("rank " + rank + " of " + size, ranks -> {
            Path next = file.resolveSibling(file.getFileName() + "." + run[0]++);
            return ranks.inThisProcess(exchange(rank, next), rank, size, device);
        });
    }

    private static UniqueId exchange(int rank, Path file) throws IOException, InterruptedException {
        if (rank == 0) {
            UniqueId id = UniqueId.create();
            Path part = Files.write(file.resolveSibling(file.getFileName() + ".part"), id.toBytes());
            Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
            return id;
        }
        long start = System.nanoTime();
        while (!Files.exists(file)) {
            if (System.nanoTime() - start > ID_LIMIT_MILLISECONDS * 1_000_000) {
                throw new IllegalStateException("no id in " + file);
            }
            Thread.sleep(ID_PAUSE_MILLISECONDS);
        }
        return UniqueId.of(Files.readAllBytes(file));
    }
}
