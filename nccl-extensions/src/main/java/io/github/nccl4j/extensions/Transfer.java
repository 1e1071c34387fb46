package io.github.nccl4j.extensions;

import java.util.ArrayList;
import java.util.List;

/**
 * Elements that a rank gives to a rank, possibly to itself. Immutable.
 *
 * @param from the rank that has the elements in the source layout
 * @param to the rank that needs them in the target layout
 * @param box the elements, at least one
 */
record Transfer(int from, int to, Box box) {
    /** All transfers between two layouts, in the same order on all ranks. */
    static List<Transfer> between(TensorLayout source, TensorLayout target) {
        Mesh owners = source.mesh();
        Mesh users = target.mesh();
        List<Integer> shards = new ArrayList<>();
        for (int rank = owners.firstRank(); rank < owners.firstRank() + owners.size(); rank++) {
            if (replica(source, rank) == 0) {
                shards.add(rank);
            }
        }
        int replicas = owners.size() / shards.size();
        List<Transfer> transfers = new ArrayList<>();
        for (int to = users.firstRank(); to < users.firstRank() + users.size(); to++) {
            Box needed = target.box(to);
            for (int shard : shards) {
                Box box = source.box(shard).intersection(needed);
                if (box.elements() > 0) {
                    boolean isOwn = owners.contains(to) && withReplica(source, to, 0) == shard;
                    // Replicas share the work: each user asks another one.
                    int from = isOwn ? to : withReplica(source, shard, (to - users.firstRank()) % replicas);
                    transfers.add(new Transfer(from, to, box));
                }
            }
        }
        return transfers;
    }

    /** The number of a rank among those that hold the same part. */
    private static int replica(TensorLayout layout, int rank) {
        int[] coordinates = layout.mesh().coordinates(rank);
        int replica = 0;
        for (int i = 0; i < coordinates.length; i++) {
            if (!layout.placements().get(i).isShard()) {
                replica = replica * layout.mesh().length(i) + coordinates[i];
            }
        }
        return replica;
    }

    /** The rank with this number among those that hold the same part as a rank. */
    private static int withReplica(TensorLayout layout, int rank, int replica) {
        int[] coordinates = layout.mesh().coordinates(rank);
        int rest = replica;
        for (int i = coordinates.length - 1; i >= 0; i--) {
            if (!layout.placements().get(i).isShard()) {
                coordinates[i] = rest % layout.mesh().length(i);
                rest /= layout.mesh().length(i);
            }
        }
        return layout.mesh().rank(coordinates);
    }
}
