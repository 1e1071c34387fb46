package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.github.nccl4j.extensions.DistributedTensor;
import io.github.nccl4j.extensions.Mesh;
import io.github.nccl4j.extensions.Placement;
import io.github.nccl4j.extensions.Reshard;
import io.github.nccl4j.extensions.TensorLayout;
import io.github.nccl4j.extensions.library.ExtensionException;
import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.Device;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.UniqueId;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What {@link Reshard#planWithM2n} gives NCCL M2N, with stand-ins for that library, NCCL and CUDA. One rank. */
class M2nReshardTest {
    /** Says what it gets, and copies a part to one of the same shape. Fails if it is told to. */
    private static final String M2N = """
            #include <cstddef>
            #include <cstdio>
            #include <cstdlib>
            #include <dlfcn.h>
            struct Mesh { size_t size; unsigned version; int ndims; int* dims; int startRank; };
            struct Tensor { size_t size; unsigned version; void* data; size_t* shape; int ndims; int type; const Mesh* mesh; int* placements; };
            static int handles;
            extern "C" const char* ncclM2nGetLastError() { return "no such layout\\n"; }
            extern "C" int ncclM2nInit(void** handle, const void* config) {
              *handle = &handles;
              handles++;
              return config ? 4 : 0;
            }
            extern "C" int ncclM2nFinalize(void* handle) {
              printf("%d handles\\n", handle == &handles ? --handles : -1);
              fflush(stdout);
              return 0;
            }
            static size_t describe(const char* side, const Tensor* t) {
              size_t elements = 1;
              printf("%s %zu.%u.%zu.%u %zu type %d shape", side, t->size, t->version, t->mesh->size, t->mesh->version, (size_t)t->data, t->type);
              for (int i = 0; i < t->ndims; elements *= t->shape[i++]) printf(" %zu", t->shape[i]);
              printf(" mesh from %d", t->mesh->startRank);
              for (int i = 0; i < t->mesh->ndims; i++) printf(" %d:%d", t->mesh->dims[i], t->placements[i]);
              printf("\\n");
              return elements;
            }
            extern "C" int ncclReshard(void* handle, void* comm, const Tensor* from, const Tensor* to, void* stream) {
              size_t elements = describe("from", from);
              describe("to", to);
              fflush(stdout);
              auto copy = (int (*)(void*, const void*, size_t, int, void*))dlsym(RTLD_DEFAULT, "cudaMemcpyAsync");
              if (handle != &handles || !comm || !copy || getenv("M2N_FAILS")) return 5;
              return copy(to->data, from->data, elements * sizeof(float), 3, stream);
            }
            """;

    @TempDir
    static Path folder;

    private static FakeCuda cuda;
    private static Path nccl;
    private static Path m2n;

    @BeforeAll
    static void makeLibraries() throws IOException {
        assumeTrue(System.getProperty("nccl4j.test.cuda") != null, "needs the natives of JavaCPP Presets CUDA");
        cuda = FakeCuda.build(folder);
        nccl = cuda.nvidiasNccl();
        m2n = Cxx.library(folder, "m2n", M2N);
    }

    private static List<String> run(ChildJvm jvm) throws IOException {
        ChildJvm.Outcome outcome =
                cuda.jvm(jvm).property("nccl4j.library", nccl).run(Program.class);
        assertEquals(0, outcome.exitCode(), outcome::output);
        assertTrue(outcome.output().contains(FakeCuda.NOTHING_LEFT), outcome::output);
        String text = outcome.output();
        for (String side : List.of("source", "target")) {
            Matcher address = Pattern.compile(side + " is at (\\d+)\\R").matcher(text);
            if (address.find()) {
                text = address.replaceFirst("").replace(" " + address.group(1) + " ", " " + side + " ");
            }
        }
        return text.lines().filter(line -> !line.contains("fake CUDA")).toList();
    }

    @Test
    void descriptorsHaveLayoutsAndMemory() throws IOException {
        assertEquals(
                List.of(
                        "matrix: M2N true",
                        "from 56.2.32.2 source type 7 shape 4 6 mesh from 0 1:0 1:-1",
                        "to 56.2.32.2 target type 7 shape 4 6 mesh from 0 1:1",
                        "0 handles",
                        "right true",
                        "closed: the plan is closed",
                        "four dimensions: M2N false",
                        "right true",
                        "two shards: M2N false",
                        "right true",
                        "empty: M2N false",
                        "right true"),
                run(new ChildJvm().property("nccl4j.m2n.library", m2n)));
    }

    @Test
    void failuresHaveResultAndReason() throws IOException {
        List<String> lines =
                run(new ChildJvm().property("nccl4j.m2n.library", m2n).environment("M2N_FAILS", "1"));
        assertTrue(
                lines.contains("ncclReshard failed: ncclInvalidUsage: no such layout, ncclInvalidUsage"),
                lines::toString);
        assertTrue(lines.contains("0 handles"), lines::toString);
    }

    @Test
    void thePortableFormRunsWithoutTheLibrary() throws IOException {
        List<String> lines = run(new ChildJvm().property("nccl4j.m2n.library", folder.resolve("none")));
        assertEquals(List.of("matrix: M2N false", "right true", "four dimensions: M2N false"), lines.subList(0, 3));
    }

    /** Runs in a JVM of its own. */
    static final class Program {
        public static void main(String... args) {
            try (Communicator communicator =
                            Communicator.builder().device(Device.cuda(0)).create(UniqueId.create(), 0, 1);
                    CudaStream stream = CudaStream.nonBlocking(communicator.device())) {
                Mesh one = Mesh.of("x", 1);
                Mesh two = one.by("y", 1);
                Placement all = Placement.replicate();
                Placement rows = Placement.shard(0);
                Placement columns = Placement.shard(1);
                move(communicator, stream, "matrix", two, List.of(rows, all), one, List.of(columns), 4, 6);
                move(communicator, stream, "four dimensions", one, List.of(rows), one, List.of(columns), 1, 2, 3, 4);
                move(communicator, stream, "two shards", two, List.of(rows, columns), one, List.of(all), 4, 6);
                move(communicator, stream, "empty", one, List.of(rows), one, List.of(rows), 4, 0);
            }
        }

        private static void move(
                Communicator communicator,
                CudaStream stream,
                String name,
                Mesh from,
                List<Placement> before,
                Mesh to,
                List<Placement> after,
                long... shape) {
            int elements = (int) Arrays.stream(shape).reduce(1, (a, b) -> a * b);
            float[] numbers = new float[elements];
            for (int i = 0; i < elements; i++) {
                numbers[i] = i + 1;
            }
            Reshard<Float32> closed;
            boolean usedM2n;
            try (DistributedTensor<Float32> source = DistributedTensor.allocate(
                            communicator, TensorLayout.of(from, before, shape), ElementType.FLOAT32);
                    DistributedTensor<Float32> target = DistributedTensor.allocate(
                            communicator, TensorLayout.of(to, after, shape), ElementType.FLOAT32)) {
                try (Reshard<Float32> plan = Reshard.planWithM2n(communicator, source, target)) {
                    closed = plan;
                    usedM2n = plan.usesM2n();
                    System.out.println(name + ": M2N " + usedM2n);
                    source.local().ifPresent(part -> part.copyFrom(numbers));
                    if (usedM2n) {
                        System.out.println(
                                "source is at " + source.local().orElseThrow().address());
                        System.out.println(
                                "target is at " + target.local().orElseThrow().address());
                    }
                    plan.run(stream);
                    stream.synchronize();
                } catch (ExtensionException e) {
                    System.out.println(e.getMessage() + ", " + e.result().name());
                    return;
                }
                float[] found = target.local().map(part -> part.toFloatArray()).orElse(new float[0]);
                System.out.println("right " + Arrays.equals(numbers, found));
                if (usedM2n) {
                    try {
                        closed.run(stream);
                    } catch (IllegalStateException e) {
                        System.out.println("closed: " + e.getMessage());
                    }
                }
            }
        }
    }
}
