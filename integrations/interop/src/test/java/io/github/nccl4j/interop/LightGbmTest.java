package io.github.nccl4j.interop;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.microsoft.ml.lightgbm.SWIGTYPE_p_double;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_float;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_int;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_p_void;
import com.microsoft.ml.lightgbm.SWIGTYPE_p_void;
import com.microsoft.ml.lightgbm.lightgbmlib;
import com.microsoft.ml.lightgbm.lightgbmlibConstants;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.UniqueId;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * LightGBM from Maven Central trains the same model over a communicator as over its own sockets. Each rank is a thread, which
 * has a network of its own in LightGBM. The property {@code lightgbm.rounds} measures both in turn:
 * {@code JAVA_TOOL_OPTIONS=-Dlightgbm.rounds=11 ./nccl4j test-one LightGbmTest#socketsAndCommunicatorGiveOneModel}.
 */
class LightGbmTest {
    private static final int ROWS = 10_000;
    private static final int COLUMNS = 50;
    private static final int ROUNDS = Integer.getInteger("lightgbm.rounds", 1);
    private static final int ITERATIONS = ROUNDS > 1 ? 30 : 10;

    @TempDir
    private static Path folder;

    private record Trained(String model, double seconds) {}

    /** A way in which LightGBM's ranks talk. */
    private interface Network {
        Trained train(int rank, int size);
    }

    @BeforeAll
    static void load() throws IOException {
        for (String name : List.of("lib_lightgbm.so", "lib_lightgbm_swig.so")) {
            Path file = folder.resolve(name);
            try (InputStream library =
                    lightgbmlib.class.getResourceAsStream("/com/microsoft/ml/lightgbm/linux/x86_64/" + name)) {
                Files.copy(library, file);
            }
            System.load(file.toString());
        }
    }

    @Test
    void socketsAndCommunicatorGiveOneModel() throws Exception {
        List<Double> ratios = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            List<Trained> sockets = trainOverSockets(2);
            List<Trained> communicator = trainOverCommunicator(2);
            assertOneModel(sockets);
            assertOneModel(communicator);
            assertEquals(sockets.get(0).model, communicator.get(0).model);
            ratios.add(communicator.get(0).seconds / sockets.get(0).seconds);
        }
        ratios.sort(null);
        if (ROUNDS > 1) {
            System.out.printf(
                    Locale.ROOT,
                    "LightGBM, %d iterations: %.2f of the time of its sockets (median of %d, %.2f to %.2f)%n",
                    ITERATIONS,
                    ratios.get(ROUNDS / 2),
                    ROUNDS,
                    ratios.get(0),
                    ratios.get(ROUNDS - 1));
        }
    }

    /** Three ranks have blocks of unequal size, and sums of which the order matters. */
    @Test
    void everyRunGivesOneModel() throws Exception {
        List<Trained> first = trainOverCommunicator(3);
        assertOneModel(first);
        assertEquals(first.get(0).model, trainOverCommunicator(3).get(0).model);
        // The model knows the rows of all ranks.
        assertNotEquals(trainOverCommunicator(2).get(0).model, first.get(0).model);
    }

    private static void assertOneModel(List<Trained> ranks) {
        assertEquals(1, new HashSet<>(ranks.stream().map(Trained::model).toList()).size());
        assertTrue(ranks.get(0).model.contains("Tree=" + (ITERATIONS - 1)));
    }

    @SuppressWarnings("try") // the network is used by LightGBM
    private static List<Trained> trainOverCommunicator(int size) throws Exception {
        UniqueId id = UniqueId.create();
        return train(size, (rank, ranks) -> {
            try (Communicator communicator = Communicator.create(id, rank, ranks);
                    LightGbmNetwork network = new LightGbmNetwork(communicator)) {
                return train(rank, ranks);
            }
        });
    }

    private static List<Trained> trainOverSockets(int size) throws Exception {
        int[] ports = freePorts(size);
        String machines =
                IntStream.of(ports).mapToObj(port -> "127.0.0.1:" + port).collect(Collectors.joining(","));
        return train(size, (rank, ranks) -> {
            check(lightgbmlib.LGBM_NetworkInit(machines, ports[rank], 1, ranks));
            try {
                return train(rank, ranks);
            } finally {
                check(lightgbmlib.LGBM_NetworkFree());
            }
        });
    }

    private static List<Trained> train(int size, Network network) throws InterruptedException, ExecutionException {
        ExecutorService threads = Executors.newFixedThreadPool(size);
        try {
            List<Future<Trained>> ranks = new ArrayList<>();
            for (int i = 0; i < size; i++) {
                int rank = i;
                ranks.add(threads.submit(() -> network.train(rank, size)));
            }
            List<Trained> trained = new ArrayList<>();
            for (Future<Trained> rank : ranks) {
                trained.add(rank.get());
            }
            return trained;
        } finally {
            threads.shutdown();
        }
    }

    /** Trains on the rows of a rank. */
    private static Trained train(int rank, int size) {
        String parameters = "objective=regression tree_learner=data pre_partition=true num_threads=1 verbosity=-1"
                + " num_machines=" + size;
        SWIGTYPE_p_double values = lightgbmlib.new_doubleArray((long) ROWS * COLUMNS);
        SWIGTYPE_p_float labels = lightgbmlib.new_floatArray(ROWS);
        fill(values, labels, rank);
        SWIGTYPE_p_p_void created = lightgbmlib.new_voidpp();
        check(lightgbmlib.LGBM_DatasetCreateFromMat(
                lightgbmlib.double_to_voidp_ptr(values),
                lightgbmlibConstants.C_API_DTYPE_FLOAT64,
                ROWS,
                COLUMNS,
                1,
                parameters,
                null,
                created));
        SWIGTYPE_p_void data = lightgbmlib.voidpp_value(created);
        check(lightgbmlib.LGBM_DatasetSetField(
                data, "label", lightgbmlib.float_to_voidp_ptr(labels), ROWS, lightgbmlibConstants.C_API_DTYPE_FLOAT32));
        check(lightgbmlib.LGBM_BoosterCreate(data, parameters, created));
        SWIGTYPE_p_void booster = lightgbmlib.voidpp_value(created);
        SWIGTYPE_p_int finished = lightgbmlib.new_intp();
        long start = System.nanoTime();
        for (int i = 0; i < ITERATIONS; i++) {
            check(lightgbmlib.LGBM_BoosterUpdateOneIter(booster, finished));
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        String model =
                lightgbmlib.LGBM_BoosterSaveModelToStringSWIG(booster, 0, -1, 0, 1 << 20, lightgbmlib.new_int64_tp());
        check(lightgbmlib.LGBM_BoosterFree(booster));
        check(lightgbmlib.LGBM_DatasetFree(data));
        lightgbmlib.delete_intp(finished);
        lightgbmlib.delete_voidpp(created);
        lightgbmlib.delete_floatArray(labels);
        lightgbmlib.delete_doubleArray(values);
        return new Trained(model, seconds);
    }

    private static void fill(SWIGTYPE_p_double values, SWIGTYPE_p_float labels, int rank) {
        Random random = new Random(rank);
        for (int row = 0; row < ROWS; row++) {
            double label = 0;
            for (int column = 0; column < COLUMNS; column++) {
                double value = random.nextGaussian();
                label += value * (column % 7 - 3) + (column % 5 == 0 ? value * value : 0);
                lightgbmlib.doubleArray_setitem(values, (long) row * COLUMNS + column, value);
            }
            lightgbmlib.floatArray_setitem(labels, row, (float) label);
        }
    }

    private static void check(int code) {
        assertEquals(0, code, lightgbmlib::LGBM_GetLastError);
    }

    /** Different ones, because all are open at once. */
    private static int[] freePorts(int number) throws IOException {
        List<ServerSocket> sockets = new ArrayList<>();
        try {
            for (int i = 0; i < number; i++) {
                sockets.add(new ServerSocket(0, 1, InetAddress.getLoopbackAddress()));
            }
            return sockets.stream().mapToInt(ServerSocket::getLocalPort).toArray();
        } finally {
            for (ServerSocket socket : sockets) {
                close(socket);
            }
        }
    }

    private static void close(ServerSocket socket) {
        try {
            socket.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
