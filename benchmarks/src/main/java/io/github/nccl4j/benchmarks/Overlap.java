package io.github.nccl4j.benchmarks;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.bytedeco.cuda.cublas.cublasContext;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cublas;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/**
 * The part of an all-reduce that is hidden behind matrix products: the products (cuBLAS, by JavaCPP Presets CUDA) in one stream,
 * the all-reduces in another, each alone and both together, on all GPUs of this process. {@code overlap.cu} is the same in
 * C.
 */
@Command(
        name = "nccl4j overlap",
        mixinStandardHelpOptions = true,
        sortOptions = false,
        description = {
            "Measures which part of the shorter of two tasks is hidden by the other: matrix products in one stream and all-reduces in "
                    + "another, each alone and both together.",
            "",
            "Needs GPUs, NCCL, CUDA's runtime and cuBLAS. overlap.cu does the same in C, with the same options.",
            ""
        })
public final class Overlap implements Callable<Integer> {
    @Option(names = "-g", paramLabel = "N", description = "Number of GPUs, each with a thread. Default: all.")
    private Integer gpus;

    @Option(
            names = "-s",
            paramLabel = "N",
            defaultValue = "8192",
            description = "Rows and columns of the matrices. Default: ${DEFAULT-VALUE}.")
    private int order;

    @Option(
            names = "-p",
            paramLabel = "N",
            defaultValue = "20",
            description = "Number of products. Default: ${DEFAULT-VALUE}.")
    private int products;

    @Option(
            names = "-m",
            paramLabel = "MIB",
            defaultValue = "512",
            description = "Size of an all-reduce in MiB. Default: ${DEFAULT-VALUE}.")
    private long mebibytes;

    @Option(
            names = "-a",
            paramLabel = "N",
            defaultValue = "20",
            description = "Number of all-reduces. Default: ${DEFAULT-VALUE}.")
    private int allReduces;

    @Option(
            names = "-r",
            paramLabel = "N",
            defaultValue = "9",
            description = "Number of rounds; medians are shown. Default: ${DEFAULT-VALUE}.")
    private int rounds;

    @Spec
    private CommandSpec spec;

    private CyclicBarrier barrier;
    private double[] seconds;

    private Overlap() {}

    /**
     * Runs it.
     *
     * @param args the options
     */
    public static void main(String... args) {
        System.exit(Options.execute(new Overlap(), args));
    }

    @Override
    public Integer call() throws Exception {
        Options.atLeast(spec, 1, "-s", order);
        Options.atLeast(spec, 1, "-p", products);
        Options.atLeast(spec, 1, "-m", mebibytes);
        Options.atLeast(spec, 1, "-a", allReduces);
        Options.atLeast(spec, 1, "-r", rounds);
        int there = gpus == null || gpus > 0 ? Device.cudaCount() : 0;
        int count = gpus == null ? there : gpus;
        Options.atLeast(spec, 1, gpus == null ? "the number of GPUs" : "-g", count);
        if (count > there) {
            throw new ParameterException(
                    spec.commandLine(), "-g must be at most the number of GPUs: " + count + " > " + there);
        }
        List<Device> devices = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            devices.add(Device.cuda(i));
        }
        List<Communicator> communicators = Communicator.createAll(devices);
        barrier = new CyclicBarrier(count);
        seconds = new double[count];
        ExecutorService pool = Executors.newFixedThreadPool(count);
        try {
            List<Future<double[]>> ranks = new ArrayList<>();
            for (Communicator communicator : communicators) {
                ranks.add(pool.submit(() -> new Rank(communicator).run()));
            }
            double[] times = ranks.get(0).get();
            for (Future<double[]> rank : ranks) {
                rank.get();
            }
            print(count, times);
        } finally {
            pool.shutdownNow();
            communicators.forEach(Communicator::close);
        }
        return 0;
    }

    private static void print(int count, double[] times) {
        double shorter = Math.min(times[0], times[1]);
        System.out.printf(
                Locale.ROOT,
                "%d GPUs: products %.3f ms, all-reduces %.3f ms, together %.3f ms: overlap %.1f %%%n",
                count,
                times[0] * 1e3,
                times[1] * 1e3,
                times[2] * 1e3,
                100 * (times[0] + times[1] - times[2]) / shorter);
    }

    private static void check(int result, String function) {
        if (result != 0) {
            throw new IllegalStateException(function + " returned " + result);
        }
    }

    /** One GPU: its matrices, buffer and two streams. */
    private final class Rank {
        private final Communicator communicator;
        private final CudaStream compute;
        private final CudaStream communication;
        private final DeviceBuffer<Float32> data;
        private final FloatPointer a;
        private final FloatPointer b;
        private final FloatPointer c;
        private final FloatPointer one = new FloatPointer(1f);
        private final FloatPointer zero = new FloatPointer(0f);
        private final cublasContext context = new cublasContext();

        Rank(Communicator communicator) {
            this.communicator = communicator;
            Device device = communicator.device();
            check(cudart.cudaSetDevice(device.index()), "cudaSetDevice");
            compute = CudaStream.nonBlocking(device);
            communication = CudaStream.nonBlocking(device);
            data = device.allocate(ElementType.FLOAT32, mebibytes << 20 >> 2);
            a = matrix();
            b = matrix();
            c = matrix();
            check(cublas.cublasCreate_v2(context), "cublasCreate");
            check(cublas.cublasSetStream_v2(context, new CUstream_st(at(compute.nativeHandle()))), "cublasSetStream");
            check(cublas.cublasSetMathMode(context, cublas.CUBLAS_TF32_TENSOR_OP_MATH), "cublasSetMathMode");
        }

        private static Pointer at(long handle) {
            return new Pointer() {
                {
                    address = handle;
                }
            };
        }

        private FloatPointer matrix() {
            FloatPointer matrix = new FloatPointer();
            long bytes = (long) order * order * Float.BYTES;
            check(cudart.cudaMalloc(matrix, bytes), "cudaMalloc");
            check(cudart.cudaMemset(matrix, 0, bytes), "cudaMemset");
            return matrix;
        }

        /** The medians: products alone, all-reduces alone, both. */
        double[] run() throws Exception {
            double[][] times = new double[3][rounds];
            // A round to warm up.
            for (int round = -1; round < rounds; round++) {
                for (int what = 0; what < times.length; what++) {
                    double time = time(what != 1 ? products : 0, what != 0 ? allReduces : 0);
                    if (round >= 0) {
                        times[what][round] = time;
                    }
                }
            }
            double[] medians = new double[times.length];
            for (int what = 0; what < times.length; what++) {
                Arrays.sort(times[what]);
                medians[what] = times[what][rounds / 2];
            }
            close();
            return medians;
        }

        /** The seconds on the slowest GPU. */
        private double time(int someProducts, int someAllReduces) throws Exception {
            await();
            long start = System.nanoTime();
            for (int i = 0; i < Math.max(someProducts, someAllReduces); i++) {
                if (i < someAllReduces) {
                    communicator.allReduce(data, ReduceOp.SUM, communication);
                }
                if (i < someProducts) {
                    multiply();
                }
            }
            compute.synchronize();
            communication.synchronize();
            seconds[communicator.rank()] = (System.nanoTime() - start) / 1e9;
            await();
            double slowest = Arrays.stream(seconds).max().orElseThrow();
            await();
            return slowest;
        }

        private void multiply() {
            int n = cublas.CUBLAS_OP_N;
            check(
                    cublas.cublasSgemm_v2(context, n, n, order, order, order, one, a, order, b, order, zero, c, order),
                    "cublasSgemm");
        }

        private void await() throws Exception {
            barrier.await(2, TimeUnit.MINUTES);
        }

        private void close() {
            check(cublas.cublasDestroy_v2(context), "cublasDestroy");
            for (FloatPointer matrix : List.of(a, b, c)) {
                check(cudart.cudaFree(matrix), "cudaFree");
                matrix.setNull();
            }
            data.close();
            compute.close();
            communication.close();
        }
    }
}
