package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.CudaGraph;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Uint8;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.Result;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * The measurements of one thread: all types, reductions, roots and sizes, each out of place and in place. All threads of all
 * processes run the same measurements; the thread with rank 0 reports the results.
 */
final class Bench {
    /** Enough calls, in small enough batches, that Java's optimizing compiler also compiles the loop. */
    private static final int JIT_CALLS = 50_000;

    /** Time for the compiler to finish in the background; {@link #JIT_TRIALS} calls then use the compiled code. */
    private static final int JIT_MILLIS = 300;

    private static final int JIT_TRIALS = 2000;

    private static final int SLOW_JIT_CALLS = 100;
    private static final int JIT_AT_ONCE = 20;

    /** The largest size of the warm-up calls; with larger ones they would take longer than the measurement. */
    private static final long JIT_BYTES = 64 << 10;

    /** Time to spin before a measurement: a processor is slow after a sleep, for example while creating a plan. */
    private static final long WAKE_NANOS = 1_000_000;

    /** Data of this size stay in the GPU's caches at any offset; few offsets keep the calls in the processor's caches. */
    private static final long CACHED_BYTES = 16 << 20;

    /** The number of buffer offsets for data up to {@link #CACHED_BYTES}. */
    private static final int FEW_PLACES = 4;

    /** The repetition of data that are timed, but not checked. */
    private static final int TIMED_REPETITION = 99;

    private final Settings settings;
    private final Collective collective;
    private final Traffic traffic;
    private final List<Member> members;
    private final int thread;
    private final Exchange exchange;
    private final Results results;
    private final int ranks;

    private final ByteBuffer staging = DataCheck.staging();

    /** Null without -I. */
    private IterationEvents events;

    private int repetition;
    private boolean compiled;
    private boolean wrongSeen;

    /** {@code results} is null in all threads except that with rank 0. */
    Bench(
            Settings settings,
            Collective collective,
            List<Member> members,
            int thread,
            Exchange exchange,
            Results results) {
        this.settings = settings;
        this.collective = collective;
        this.members = members;
        this.thread = thread;
        this.exchange = exchange;
        this.results = results;
        traffic = settings.traffic();
        ranks = members.get(0).size();
    }

    /** Runs all measurements; returns false if an element was wrong on any rank. */
    boolean run() {
        if (settings.perIteration == 0) {
            runTests();
        } else {
            int most = Math.max(settings.iterations, JIT_AT_ONCE);
            try (IterationEvents made = new IterationEvents(members, most, settings.blocking == 3)) {
                events = made;
                runTests();
            }
        }
        return !wrongSeen;
    }

    private void runTests() {
        for (ElementType<?> type : Types.named(settings.type)) {
            for (Operator operator : operators()) {
                for (int root : roots()) {
                    new Test(type, operator, root).run();
                }
            }
        }
    }

    private List<Operator> operators() {
        List<Operator> none = new ArrayList<>();
        none.add(null);
        return collective.reduces ? Operator.named(settings.operator) : none;
    }

    private List<Integer> roots() {
        if (!collective.rooted || settings.root >= 0) {
            return List.of(collective.rooted ? settings.root : -1);
        }
        List<Integer> all = new ArrayList<>();
        for (int rank = 0; rank < ranks; rank++) {
            all.add(rank);
        }
        return all;
    }

    private void barrier() {
        exchange.barrier(thread, members);
    }

    private void together(Runnable calls) {
        if (members.size() > 1) {
            Group.run(calls);
        } else {
            calls.run();
        }
    }

    /** The measurements of all sizes for one type, reduction and root. */
    private final class Test {
        private final ElementType<?> type;
        private final Operator operator;
        private final int root;
        private final int elementSize;
        private final DataCheck data;

        Test(ElementType<?> type, Operator operator, int root) {
            this.type = type;
            this.operator = operator;
            this.root = root;
            elementSize = type.sizeInBytes();
            Elements elements = new Elements(type, operator, ranks);
            data = settings.checks > 0 ? new DataCheck(elements, elementSize, staging) : null;
        }

        void run() {
            barrier();
            boolean warmsUp = !compiled && !Integer.valueOf(0).equals(settings.jitWarmup);
            if (!compiled) {
                letJavaCompile();
                compiled = true;
            }
            // Warm up, so that NCCL sets up its channels, with sizes that double, independent of the step of the
            // measurement.
            for (long bytes = settings.minBytes; bytes <= settings.maxBytes; bytes = Math.max(1, bytes * 2)) {
                try (Calls calls = calls(sizes(bytes), false, settings.warmup)) {
                    for (int i = 0; i < settings.warmup; i++) {
                        start(calls, i);
                    }
                    complete();
                }
            }
            if (warmsUp) {
                // The code of a measurement has to be compiled, too. This one does not count.
                measure(sizes(settings.minBytes), false);
                measure(sizes(settings.minBytes), true);
            }
            for (long cycle = 0; settings.cycles == 0 || cycle < settings.cycles; cycle++) {
                for (long bytes = settings.minBytes; bytes <= settings.maxBytes; bytes = settings.next(bytes)) {
                    measure(bytes);
                }
            }
        }

        /** Runs all kinds of calls in turn: the interpreter would execute code paths that the compiler has not seen. */
        private void letJavaCompile() {
            int wanted = settings.jitWarmup != null
                    ? settings.jitWarmup
                    : members.get(0).communicator.device().isHost()
                                    || NcclLibrary.get().sharesGpus()
                            ? SLOW_JIT_CALLS
                            : JIT_CALLS;
            List<Calls> all = new ArrayList<>();
            try {
                for (long bytes : new long[] {settings.minBytes, settings.maxBytes}) {
                    for (boolean inPlace : new boolean[] {false, true}) {
                        all.add(calls(sizes(Math.min(bytes, JIT_BYTES)), inPlace, settings.iterations));
                    }
                }
                inTurn(all, wanted);
                if (wanted > JIT_TRIALS) {
                    pause();
                    inTurn(all, JIT_TRIALS);
                }
            } finally {
                all.forEach(Calls::close);
            }
        }

        private void inTurn(List<Calls> all, int wanted) {
            int iterations = Math.max(1, JIT_AT_ONCE / settings.aggregated);
            for (int turn = 0; turn * JIT_AT_ONCE < wanted; turn++) {
                barrier();
                enqueue(all.get(turn % all.size()), iterations, settings.aggregated);
                synchronize();
            }
        }

        private static void pause() {
            try {
                Thread.sleep(JIT_MILLIS);
            } catch (InterruptedException e) {
                throw new PerfException("interrupted");
            }
        }

        private Sizes sizes(long bytes) {
            return collective.sizes(bytes, elementSize, ranks, traffic);
        }

        private void measure(long bytes) {
            Sizes sizes = sizes(bytes);
            Measurement outOfPlace = measure(sizes, false);
            Measurement inPlace = measure(sizes, true);
            if (results != null) {
                String op = operator == null ? collective == Collective.HYPERCUBE ? "" : "none" : operator.label();
                results.add(new Row(
                        sizes.largest() * elementSize,
                        sizes.count(),
                        Types.label(type),
                        collective == Collective.SENDRECV ? settings.operator : op,
                        root,
                        outOfPlace,
                        inPlace));
            }
        }

        private Measurement measure(Sizes sizes, boolean inPlace) {
            try (Calls calls = calls(sizes, inPlace, settings.iterations * settings.aggregated)) {
                if (data != null) {
                    fill(sizes, inPlace, TIMED_REPETITION);
                }
                wake();
                start(calls, 0);
                complete();
                barrier();
                double seconds = time(calls);
                IterationTimes iterations = events == null ? null : iterationTimes();
                barrier();
                double algorithm = collective.algorithmBytes(sizes, elementSize, ranks) / seconds / 1e9;
                return new Measurement(
                        seconds * 1e6,
                        algorithm,
                        algorithm * collective.busFactor(ranks),
                        check(calls, sizes, inPlace),
                        iterations);
            }
        }

        /** The times of the iterations; null in all threads except the first of a process. */
        private IterationTimes iterationTimes() {
            // The last event may be pending, even if all calls are complete.
            synchronize();
            List<double[]> byProcess =
                    exchange.byProcess(thread, events.micros(settings.iterations, settings.aggregated));
            return byProcess == null ? null : IterationTimes.of(byProcess, settings.skipped);
        }

        private static void wake() {
            long start = System.nanoTime();
            while (System.nanoTime() - start < WAKE_NANOS) {
                Thread.onSpinWait();
            }
        }

        /** The time of a call in seconds. */
        private double time(Calls calls) {
            int count = settings.iterations * settings.aggregated;
            double seconds;
            if (settings.graphLaunches > 0) {
                seconds = timeGraph(calls) / settings.graphLaunches;
            } else {
                long start = System.nanoTime();
                double excluded = enqueue(calls, settings.iterations, settings.aggregated);
                double cpu = (System.nanoTime() - start) / 1e9 - excluded;
                complete();
                double all = (System.nanoTime() - start) / 1e9 - excluded;
                // With -z 3 the measured time ends before the last barrier.
                seconds = settings.cpuTime != 0 || settings.blocking == 3 ? cpu : all;
            }
            Exchange.Mode mode = Exchange.Mode.values()[settings.average];
            return exchange.combine(thread, members, seconds / count, mode);
        }

        private double timeGraph(Calls calls) {
            List<CudaGraph> graphs = capture(calls, settings.iterations, settings.aggregated);
            barrier();
            long start = System.nanoTime();
            for (int i = 0; i < settings.graphLaunches; i++) {
                launch(graphs);
            }
            double cpu = (System.nanoTime() - start) / 1e9;
            complete();
            double all = (System.nanoTime() - start) / 1e9;
            graphs.forEach(CudaGraph::close);
            return settings.cpuTime != 0 ? cpu : all;
        }

        /** The number of wrong elements on all ranks, or null if they are not checked. */
        private Long check(Calls calls, Sizes sizes, boolean inPlace) {
            if (data == null) {
                return null;
            }
            boolean checked = !inPlace || collective.checkedInPlace;
            repetition++;
            long wrong = 0;
            for (int i = 0; i < settings.checks && wrong == 0; i++) {
                fill(sizes, inPlace, repetition);
                if (settings.graphLaunches > 0) {
                    List<CudaGraph> graphs = capture(calls, 1, 1);
                    launch(graphs);
                    synchronize();
                    graphs.forEach(CudaGraph::close);
                } else {
                    start(calls, 0);
                    synchronize();
                }
                wrong = checked
                        ? (long) exchange.combine(thread, members, compare(sizes, inPlace), Exchange.Mode.SUM)
                        : 0;
            }
            wrongSeen |= wrong > 0;
            return checked ? wrong : null;
        }

        private void fill(Sizes sizes, boolean inPlace, int repetition) {
            for (Member member : members) {
                long bytes = sizes.largest() * elementSize;
                if (bytes > 0) {
                    begin(member.recv).slice(0, bytes).fill((long) Elements.UNTOUCHED);
                }
                DeviceBuffer<Uint8> target = begin(inPlace ? member.recv : member.send);
                data.write(target, sent(member, sizes, inPlace), repetition);
            }
            // Wait until all ranks have filled their buffers: a fast rank must not send into a buffer that is being
            // filled.
            barrier();
        }

        private List<Part> sent(Member member, Sizes sizes, boolean inPlace) {
            long place = inPlace ? sizes.sendInPlace() * member.rank() : 0;
            return collective.sent(sizes, member.rank(), root).stream()
                    .map(part -> part.at(part.offset() + place))
                    .toList();
        }

        private double compare(Sizes sizes, boolean inPlace) {
            long wrong = 0;
            for (Member member : members) {
                int rank = member.rank();
                long place = inPlace ? sizes.recvInPlace() * rank : 0;
                List<Part> parts = new ArrayList<>();
                for (Part part : collective.received(sizes, rank, ranks, root, elementSize, traffic)) {
                    if (inPlace && part.source() == Source.UNTOUCHED) {
                        parts.addAll(around(sent(member, sizes, true).get(0), part.length()));
                    } else {
                        parts.add(part.at(part.offset() + place));
                    }
                }
                wrong += data.wrong(begin(member.recv), parts, repetition);
            }
            return wrong;
        }

        /** A rank's own elements, surrounded by untouched memory. */
        private static List<Part> around(Part own, long length) {
            long end = own.offset() + own.length();
            return List.of(
                    Part.untouched(own.offset()),
                    own,
                    Part.untouched(length - end).at(end));
        }

        /** The part of a buffer after the first {@code -u} elements. */
        private DeviceBuffer<Uint8> begin(DeviceBuffer<Uint8> buffer) {
            long unaligned = (long) settings.unalign * elementSize;
            return buffer.slice(unaligned, buffer.length() - unaligned);
        }

        /**
         * The calls of all ranks of this thread, at buffer offsets that change between iterations, to exclude effects of caches.
         */
        private Calls calls(Sizes sizes, boolean inPlace, int iterations) {
            long bytes = sizes.largest() * elementSize;
            long places = bytes == 0 ? 1 : settings.maxBytes / bytes;
            // The highlevel package rejects in-place calls whose result NCCL does not define.
            boolean raw = settings.raw() || (inPlace && !collective.checkedInPlace);
            if (bytes * iterations < CACHED_BYTES) {
                places = Math.min(places, FEW_PLACES);
            }
            Call[][] calls = new Call[(int) Math.max(1, Math.min(places, iterations))][members.size()];
            for (int i = 0; i < calls.length; i++) {
                int place = i;
                together(() -> {
                    for (int m = 0; m < members.size(); m++) {
                        calls[place][m] = call(members.get(m), sizes, inPlace, place * bytes, raw);
                    }
                });
            }
            return new Calls(calls, raw);
        }

        private Call call(Member member, Sizes sizes, boolean inPlace, long shift, boolean raw) {
            long offset = shift + (long) settings.unalign * elementSize;
            long recv = member.recv.address() + offset;
            long send = inPlace ? recv : member.send.address() + offset;
            if (inPlace) {
                send += sizes.sendInPlace() * member.rank() * elementSize;
                recv += sizes.recvInPlace() * member.rank() * elementSize;
            }
            Arguments.Same same = new Arguments.Same(type, operator, root, traffic, settings.config());
            Arguments arguments = new Arguments(member, send, recv, sizes, same);
            return raw ? RawCalls.of(collective, arguments) : HighlevelCalls.of(collective, arguments);
        }
    }

    /** Calls by buffer offset and rank. */
    private record Calls(Call[][] at, boolean raw) implements AutoCloseable {
        @Override
        public void close() {
            for (Call[] ofPlace : at) {
                for (Call call : ofPlace) {
                    call.close();
                }
            }
        }
    }

    /** Enqueues iterations; returns the time in seconds to exclude from the measurement. */
    private double enqueue(Calls calls, int iterations, int aggregated) {
        long excluded = 0;
        for (int i = 0; i < iterations; i++) {
            if (events != null) {
                events.begin(i);
            }
            if (aggregated == 1) {
                start(calls, i);
            } else {
                startAggregated(calls, i, aggregated);
            }
            if (settings.blocking == 3) {
                synchronize();
                if (events != null) {
                    events.end(i);
                }
                long start = System.nanoTime();
                barrier();
                excluded += System.nanoTime() - start;
            }
        }
        if (events != null) {
            events.finish(iterations);
        }
        return excluded / 1e9;
    }

    private void startAggregated(Calls calls, int iteration, int aggregated) {
        if (calls.raw) {
            RawCalls.groupStart();
            for (int i = 0; i < aggregated; i++) {
                start(calls, iteration * aggregated + i);
            }
            RawCalls.groupEnd();
            return;
        }
        try (Group group = Group.open()) {
            for (int i = 0; i < aggregated; i++) {
                start(calls, iteration * aggregated + i);
            }
            group.launch();
        }
    }

    /** Enqueues a call of each rank of this thread. */
    private void start(Calls calls, int iteration) {
        Call[] ofRanks = calls.at[iteration % calls.at.length];
        if (ofRanks.length == 1) {
            ofRanks[0].enqueue();
        } else {
            startTogether(ofRanks, calls.raw);
        }
        if (settings.blocking != 0) {
            synchronize();
            if (settings.blocking == 1) {
                barrier();
            }
        }
    }

    private void startTogether(Call[] ofRanks, boolean raw) {
        if (raw) {
            RawCalls.groupStart();
            for (Call call : ofRanks) {
                call.enqueue();
            }
            RawCalls.groupEnd();
            return;
        }
        try (Group group = Group.open()) {
            for (Call call : ofRanks) {
                call.enqueue();
            }
            group.launch();
        }
    }

    /** Waits for the calls, unless each call has been waited for. */
    private void complete() {
        if (settings.blocking == 0 || settings.aggregated > 1) {
            synchronize();
        }
    }

    /** Waits for the streams. Polls without pauses, as nccl-tests, because pauses would add to the measured time. */
    private void synchronize() {
        long start = System.nanoTime();
        for (Member member : members) {
            while (!member.stream.isDone()) {
                Result result = member.communicator.asyncError();
                if (!result.equals(Result.SUCCESS)) {
                    throw new PerfException(
                            "rank " + member.rank() + ": " + result + "; " + member.communicator.lastError());
                }
                if (settings.timeout > 0 && System.nanoTime() - start > settings.timeout * 1_000_000_000L) {
                    throw new PerfException(
                            "rank " + member.rank() + ": timed out after " + settings.timeout + " s (-T)");
                }
                Thread.yield();
            }
        }
    }

    private List<CudaGraph> capture(Calls calls, int iterations, int aggregated) {
        List<CudaGraph> graphs = new ArrayList<>();
        capture(0, calls, iterations, aggregated, graphs);
        return graphs;
    }

    /** Captures the streams of the members from an index on. */
    private void capture(int from, Calls calls, int iterations, int aggregated, List<CudaGraph> graphs) {
        if (from == members.size()) {
            enqueue(calls, iterations, aggregated);
        } else {
            graphs.add(CudaGraph.capture(
                    members.get(from).stream, () -> capture(from + 1, calls, iterations, aggregated, graphs)));
        }
    }

    private void launch(List<CudaGraph> graphs) {
        // The list begins with the innermost capture, that of the last member.
        for (int i = 0; i < members.size(); i++) {
            graphs.get(members.size() - 1 - i).launch(members.get(i).stream);
        }
    }
}
