package io.github.nccl4j.tools.perf;

import io.github.nccl4j.highlevel.Communicator;
import io.github.nccl4j.highlevel.CudaStream;
import io.github.nccl4j.highlevel.DeviceBuffer;
import io.github.nccl4j.highlevel.Element.Float32;
import io.github.nccl4j.highlevel.ElementType;
import io.github.nccl4j.highlevel.Group;
import io.github.nccl4j.highlevel.ReduceOp;
import java.util.ArrayList;
import java.util.List;

/**
 * A way to average gradients over the ranks. The caller announces each gradient, in order; the exchange begins an operation in
 * its stream as soon as it has what the operation needs. Not thread-safe.
 */
abstract class GradientExchange implements AutoCloseable {
    /** The ways, with the names that the table and the JSON file give them. */
    enum Way {
        ONE_BY_ONE("one by one"),
        ONE_GROUP("one group"),
        COPIED("bucket, copied"),
        VIEWS("bucket, views"),
        GROUPS("group a bucket");

        final String label;

        Way(String label) {
            this.label = label;
        }
    }

    final Communicator communicator;
    final CudaStream stream;
    final List<DeviceBuffer<Float32>> gradients;

    private GradientExchange(Communicator communicator, CudaStream stream, List<DeviceBuffer<Float32>> gradients) {
        this.communicator = communicator;
        this.stream = stream;
        this.gradients = gradients;
    }

    /**
     * Creates an exchange, which owns its buckets and not the gradients.
     *
     * @param buckets for the ways with buckets
     */
    static GradientExchange of(
            Way way,
            Communicator communicator,
            CudaStream stream,
            List<DeviceBuffer<Float32>> gradients,
            List<GradientLayout.Bucket> buckets) {
        return switch (way) {
            case ONE_BY_ONE -> new OneByOne(communicator, stream, gradients);
            case ONE_GROUP ->
                new Groups(communicator, stream, gradients, List.of(new GradientLayout.Bucket(0, gradients.size(), 0)));
            case GROUPS -> new Groups(communicator, stream, gradients, buckets);
            case COPIED -> new Buckets(communicator, stream, gradients, buckets, true);
            case VIEWS -> new Buckets(communicator, stream, gradients, buckets, false);
        };
    }

    /** Called when the gradient is there. Does not wait for the device. */
    abstract void ready(int index);

    /** The buffer with the average of a gradient: its own, or its part of a bucket. */
    DeviceBuffer<Float32> result(int index) {
        return gradients.get(index);
    }

    /** The buffer from which a gradient is taken. */
    DeviceBuffer<Float32> source(int index) {
        return gradients.get(index);
    }

    @Override
    public void close() {}

    final void average(DeviceBuffer<Float32> buffer) {
        communicator.allReduce(buffer, ReduceOp.AVG, stream);
    }

    private static final class OneByOne extends GradientExchange {
        OneByOne(Communicator communicator, CudaStream stream, List<DeviceBuffer<Float32>> gradients) {
            super(communicator, stream, gradients);
        }

        @Override
        void ready(int index) {
            average(gradients.get(index));
        }
    }

    /** All-reduces of the gradients of a bucket in a group, each in place. */
    private static final class Groups extends GradientExchange {
        private final GradientLayout.Bucket[] ending;

        Groups(
                Communicator communicator,
                CudaStream stream,
                List<DeviceBuffer<Float32>> gradients,
                List<GradientLayout.Bucket> buckets) {
            super(communicator, stream, gradients);
            ending = new GradientLayout.Bucket[gradients.size()];
            buckets.forEach(bucket -> ending[bucket.end() - 1] = bucket);
        }

        @Override
        void ready(int index) {
            GradientLayout.Bucket bucket = ending[index];
            if (bucket != null) {
                Group.run(() -> gradients.subList(bucket.first(), bucket.end()).forEach(this::average));
            }
        }
    }

    /** One all-reduce for each bucket, whose memory is contiguous. */
    private static final class Buckets extends GradientExchange {
        private final boolean copied;
        private final List<DeviceBuffer<Float32>> flat = new ArrayList<>();
        /** By gradient. */
        private final List<DeviceBuffer<Float32>> views = new ArrayList<>();
        /** By gradient: the bucket that it completes, or null. */
        private final List<DeviceBuffer<Float32>> ending = new ArrayList<>();

        Buckets(
                Communicator communicator,
                CudaStream stream,
                List<DeviceBuffer<Float32>> gradients,
                List<GradientLayout.Bucket> buckets,
                boolean copied) {
            super(communicator, stream, gradients);
            this.copied = copied;
            try {
                for (GradientLayout.Bucket bucket : buckets) {
                    DeviceBuffer<Float32> memory = communicator.device().allocate(ElementType.FLOAT32, bucket.length());
                    flat.add(memory);
                    long offset = 0;
                    for (int i = bucket.first(); i < bucket.end(); i++) {
                        long length = gradients.get(i).length();
                        views.add(memory.slice(offset, length));
                        ending.add(i == bucket.end() - 1 ? memory : null);
                        offset += length;
                    }
                }
            } catch (RuntimeException | Error failed) {
                close();
                throw failed;
            }
        }

        @Override
        void ready(int index) {
            if (copied) {
                views.get(index).copyFromAsync(gradients.get(index), stream);
            }
            if (ending.get(index) != null) {
                average(ending.get(index));
            }
        }

        @Override
        DeviceBuffer<Float32> result(int index) {
            return views.get(index);
        }

        @Override
        DeviceBuffer<Float32> source(int index) {
            return copied ? gradients.get(index) : views.get(index);
        }

        @Override
        public void close() {
            flat.forEach(DeviceBuffer::close);
        }
    }
}
