package io.github.nccl4j.extensions;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.Element.Int32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Every rank has the elements that an oracle in plain Java gives it. */
class ReshardTest {
    private static final int SEED = 62;

    /** The elements of a rank's part, as their numbers in the whole tensor, found without {@link Box}. */
    private static int[] oracle(TensorLayout layout, int rank) {
        if (!layout.mesh().contains(rank)) {
            return new int[0];
        }
        long[] shape = layout.shape();
        List<List<Integer>> indices = new ArrayList<>();
        for (long length : shape) {
            indices.add(IntStream.range(0, (int) length).boxed().toList());
        }
        int rest = rank - layout.mesh().firstRank();
        int[] place = new int[layout.mesh().dimensions()];
        for (int i = place.length - 1; i >= 0; i--) {
            place[i] = rest % layout.mesh().length(i);
            rest /= layout.mesh().length(i);
        }
        for (int i = 0; i < place.length; i++) {
            Placement placement = layout.placements().get(i);
            if (placement.isShard()) {
                List<Integer> all = indices.get(placement.dimension());
                int share = (all.size() + layout.mesh().length(i) - 1)
                        / layout.mesh().length(i);
                int from = Math.min(all.size(), share * place[i]);
                indices.set(placement.dimension(), all.subList(from, Math.min(all.size(), from + share)));
            }
        }
        List<Integer> numbers = List.of(0);
        for (int d = 0; d < shape.length; d++) {
            List<Integer> longer = new ArrayList<>();
            for (int number : numbers) {
                for (int index : indices.get(d)) {
                    longer.add(number * (int) shape[d] + index);
                }
            }
            numbers = longer;
        }
        return numbers.stream().mapToInt(Integer::intValue).toArray();
    }

    private static List<Mesh> meshes(int size) {
        List<Mesh> meshes = new ArrayList<>(List.of(Mesh.of("x", size)));
        for (int length = 1; length <= size; length++) {
            if (size % length == 0 && (size == 1 || length != 1 && length != size)) {
                meshes.add(Mesh.of("x", length).by("y", size / length));
            }
        }
        return meshes;
    }

    private static List<TensorLayout> layouts(Mesh mesh, long... shape) {
        List<List<Placement>> all = List.of(List.of());
        for (int i = 0; i < mesh.dimensions(); i++) {
            List<List<Placement>> longer = new ArrayList<>();
            for (List<Placement> one : all) {
                for (int d = -1; d < shape.length; d++) {
                    List<Placement> more = new ArrayList<>(one);
                    more.add(d < 0 ? Placement.replicate() : Placement.shard(d));
                    longer.add(more);
                }
            }
            all = longer;
        }
        return all.stream()
                .map(placements -> TensorLayout.of(mesh, placements, shape))
                .toList();
    }

    /** Runs a plan twice with other elements, and checks every element of this rank. */
    private static void check(Communicator communicator, CudaStream stream, TensorLayout from, TensorLayout to) {
        int rank = communicator.rank();
        int[] given = oracle(from, rank);
        int[] wanted = oracle(to, rank);
        assertEquals(given.length, from.elements(rank), from.toString());
        try (DistributedTensor<Int32> source = DistributedTensor.allocate(communicator, from, ElementType.INT32);
                DistributedTensor<Int32> target = DistributedTensor.allocate(communicator, to, ElementType.INT32);
                Reshard<Int32> plan = Reshard.plan(communicator, source, target)) {
            for (int add = 1; add <= 2; add++) {
                int more = 1000 * add;
                source.local().ifPresent(part -> part.copyFrom(plus(given, more)));
                target.local().ifPresent(part -> part.fill(-1L));
                plan.run(stream);
                stream.synchronize();
                int[] found = new int[wanted.length];
                target.local().ifPresent(part -> part.copyTo(found));
                assertArrayEquals(plus(wanted, more), found, () -> "rank " + rank + ": " + from + " to " + to);
            }
        }
    }

    private static int[] plus(int[] numbers, int more) {
        return Arrays.stream(numbers).map(number -> number + more).toArray();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4, 5, 6})
    void everyPairOfPlacementsIsRight(int size) throws Exception {
        List<TensorLayout> layouts = meshes(size).stream()
                .flatMap(mesh -> layouts(mesh, 7, 5).stream())
                .toList();
        assertTrue(layouts.size() >= 3, layouts::toString);
        Ranks.run(size, (communicator, stream) -> {
            for (TensorLayout from : layouts) {
                for (TensorLayout to : layouts) {
                    check(communicator, stream, from, to);
                }
            }
        });
    }

    /** Some ranks are in one mesh, in both, or in none; parts may be empty; three dimensions of mesh and tensor. */
    @Test
    void anyMeshesAreRight() throws Exception {
        List<Mesh> meshes = List.of(
                Mesh.of("x", 1).startingAt(5),
                Mesh.of("x", 3),
                Mesh.of("x", 3).startingAt(3),
                Mesh.of("x", 4).startingAt(1),
                Mesh.of("x", 2).by("y", 2).startingAt(2),
                Mesh.of("x", 2).by("y", 1).by("z", 2));
        List<TensorLayout> layouts =
                meshes.stream().flatMap(mesh -> layouts(mesh, 3, 2, 5).stream()).toList();
        Random random = new Random(SEED);
        List<TensorLayout> chosen = IntStream.range(0, 240)
                .mapToObj(i -> layouts.get(random.nextInt(layouts.size())))
                .toList();
        Ranks.run(6, (communicator, stream) -> {
            for (int i = 0; i < chosen.size(); i += 2) {
                check(communicator, stream, chosen.get(i), chosen.get(i + 1));
            }
        });
    }

    @Test
    void replicasShareTheSending() {
        Mesh four = Mesh.of("x", 4);
        TensorLayout all = TensorLayout.of(four, List.of(Placement.replicate()), 8);
        TensorLayout others = TensorLayout.of(four.startingAt(4), List.of(Placement.shard(0)), 8);
        List<Transfer> transfers = Transfer.between(all, others);
        assertEquals(List.of(0, 1, 2, 3), transfers.stream().map(Transfer::from).toList());
        assertEquals(List.of(4, 5, 6, 7), transfers.stream().map(Transfer::to).toList());
    }

    @Test
    void wrongTensorsAreRefused() throws Exception {
        TensorLayout layout = TensorLayout.of(Mesh.of("x", 1), List.of(Placement.shard(0)), 4, 3);
        TensorLayout other = TensorLayout.of(Mesh.of("x", 1), List.of(Placement.shard(0)), 3, 4);
        TensorLayout tooLarge = TensorLayout.of(Mesh.of("x", 2), List.of(Placement.shard(0)), 4, 3);
        Ranks.run(1, (communicator, stream) -> {
            try (DistributedTensor<Float32> one =
                            DistributedTensor.allocate(communicator, layout, ElementType.FLOAT32);
                    DistributedTensor<Float32> two =
                            DistributedTensor.allocate(communicator, other, ElementType.FLOAT32);
                    DistributedTensor<Float32> target =
                            DistributedTensor.allocate(communicator, layout, ElementType.FLOAT32);
                    DeviceBuffer<Float32> longer = communicator.device().allocate(ElementType.FLOAT32, 13)) {
                assertThrows(IllegalArgumentException.class, () -> Reshard.plan(communicator, one, two));
                assertThrows(IllegalArgumentException.class, () -> Reshard.plan(communicator, one, one));
                assertThrows(
                        IllegalArgumentException.class, () -> DistributedTensor.wrap(communicator, layout, longer));
                assertThrows(
                        IllegalArgumentException.class,
                        () -> DistributedTensor.allocate(communicator, tooLarge, ElementType.FLOAT32));
                try (Reshard<Float32> plan = Reshard.plan(communicator, one, target);
                        Group group = Group.open()) {
                    assertThrows(IllegalStateException.class, () -> plan.run(stream));
                    group.launch();
                }
            }
        });
    }

    @Test
    void ranksThatDisagreeAreRefusedOnAllRanks() throws Exception {
        Mesh mesh = Mesh.of("x", 3);
        TensorLayout rows = TensorLayout.of(mesh, List.of(Placement.shard(0)), 6, 6);
        TensorLayout columns = TensorLayout.of(mesh, List.of(Placement.shard(1)), 6, 6);
        List<Integer> refused = Collections.synchronizedList(new ArrayList<>());
        Ranks.run(3, (communicator, stream) -> {
            TensorLayout to = communicator.rank() == 2 ? rows : columns;
            try (DistributedTensor<Int32> source = DistributedTensor.allocate(communicator, rows, ElementType.INT32);
                    DistributedTensor<Int32> target = DistributedTensor.allocate(communicator, to, ElementType.INT32)) {
                assertThrows(IllegalArgumentException.class, () -> Reshard.plan(communicator, source, target));
                refused.add(communicator.rank());
            }
        });
        assertEquals(3, refused.size(), refused.toString());
    }
}
