package io.github.nccl4j.tests.highlevel;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/**
 * Right and wrong calls in random order, of several threads on the same things, against the host engine:
 * {@code RandomMisuse [--calls N] [--seed N] [--threads N]}. Each must succeed or end in an exception that the
 * documentation names. Prints how many of each there were; the exit code is 0 if there was nothing else, and no thread
 * got stuck.
 */
final class RandomMisuse {
    private static final Duration STUCK = Duration.ofSeconds(120);

    private final long calls;
    private final long seed;
    private final RandomThings things = new RandomThings();
    private final AtomicLong begun = new AtomicLong();
    private final Map<String, LongAdder> outcomes = new ConcurrentHashMap<>();
    private final Map<String, Throwable> failures = new ConcurrentHashMap<>();

    private RandomMisuse(long calls, long seed) {
        this.calls = calls;
        this.seed = seed;
    }

    public static void main(String... args) throws InterruptedException {
        Map<String, Long> options =
                new TreeMap<>(Map.of("--calls", 100_000L, "--seed", System.nanoTime(), "--threads", 3L));
        for (int i = 0; i + 1 < args.length; i += 2) {
            if (options.replace(args[i], Long.parseLong(args[i + 1])) == null) {
                throw new IllegalArgumentException("unknown option " + args[i] + "; there are " + options.keySet());
            }
        }
        RandomMisuse run = new RandomMisuse(options.get("--calls"), options.get("--seed"));
        System.exit(run.run(options.get("--threads").intValue()) ? 0 : 1);
    }

    /** What one thread does. */
    private final class Worker implements Runnable {
        private final RandomCalls random;
        private volatile long since = System.nanoTime();
        private volatile String doing = "";

        Worker(long seed) {
            random = new RandomCalls(seed, things);
        }

        @Override
        public void run() {
            while (begun.getAndIncrement() < calls) {
                RandomCalls.Call call = random.next();
                doing = call.name();
                since = System.nanoTime();
                note(call.name(), attempt(call));
            }
            random.end();
            doing = "";
        }

        private Throwable attempt(RandomCalls.Call call) {
            try {
                call.code().run();
                return null;
            } catch (Throwable e) {
                return e;
            }
        }

        private void note(String call, Throwable thrown) {
            String outcome = thrown == null ? "success" : thrown.getClass().getSimpleName();
            outcomes.computeIfAbsent(outcome, key -> new LongAdder()).increment();
            String wrong = thrown == null ? null : random.problem(call, thrown);
            if (wrong != null) {
                failures.putIfAbsent(call + ": " + wrong, thrown);
            }
        }

        boolean isStuck() {
            return !doing.isEmpty() && System.nanoTime() - since > STUCK.toNanos();
        }
    }

    private boolean run(int threads) throws InterruptedException {
        System.out.println("seed " + seed + ", " + calls + " calls in " + threads + " threads");
        long start = System.nanoTime();
        Map<Thread, Worker> workers = new LinkedHashMap<>();
        for (int i = 0; i < threads; i++) {
            Worker worker = new Worker(seed + i);
            Thread thread = new Thread(worker, "worker " + i);
            thread.setDaemon(true);
            workers.put(thread, worker);
        }
        workers.keySet().forEach(Thread::start);
        for (Map.Entry<Thread, Worker> one : workers.entrySet()) {
            while (one.getKey().isAlive()) {
                one.getKey().join(100);
                if (workers.values().stream().anyMatch(Worker::isStuck)) {
                    stuck(workers);
                    return false;
                }
            }
        }
        things.close();
        proveUsable();
        new TreeMap<>(outcomes).forEach((outcome, count) -> System.out.println(count + " " + outcome));
        failures.forEach((what, thrown) -> {
            System.out.println("WRONG " + what);
            thrown.printStackTrace(System.out);
        });
        System.out.println(failures.size() + " kinds of wrong outcomes, 0 crashes, 0 threads stuck, "
                + Duration.ofNanos(System.nanoTime() - start).toSeconds() + " s");
        return failures.isEmpty();
    }

    private static void stuck(Map<Thread, Worker> workers) {
        workers.forEach((thread, worker) -> {
            System.out.println(
                    thread.getName() + " is " + (worker.isStuck() ? "stuck" : "not stuck") + " in " + worker.doing);
            for (StackTraceElement frame : thread.getStackTrace()) {
                System.out.println("    " + frame);
            }
        });
    }

    private static void proveUsable() {
        try (MisuseWorld world = new MisuseWorld()) {
            world.proveUsable();
        }
    }
}
