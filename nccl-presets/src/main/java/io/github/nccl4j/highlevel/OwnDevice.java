package io.github.nccl4j.highlevel;

import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.library.Engine;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * The device of a rank that makes a communicator with others: they want to know which it is long before it can be used,
 * for CUDA takes half a second to start. Of a rank that has not chosen one CUDA starts in a thread of its own. What fails
 * there fails again, and is thrown, where it is asked for.
 */
interface OwnDevice {
    int HOST = -1;

    /** Its number among the CUDA devices, whose runtime is loaded then; or {@link #HOST}. */
    int index();

    Device get();

    /** A device that was chosen, and so can be used. */
    static OwnDevice of(Supplier<Device> choice) {
        return new OwnDevice() {
            @Override
            public int index() {
                Device device = choice.get();
                return device.isHost() ? HOST : device.index();
            }

            @Override
            public Device get() {
                return choice.get();
            }
        };
    }

    /** The device of a rank's place on its host. Starts it. */
    static OwnDevice start(RankInfo self) {
        Started device = new Started(self);
        Thread thread = new Thread(device::start, "nccl4j device");
        thread.setDaemon(true);
        thread.start();
        return device;
    }

    /** Stands for the device of a rank that does not know its place on its host: tells only that there is a device. */
    static OwnDevice unlocated(RankInfo self) {
        return new OwnDevice() {
            @Override
            public int index() {
                if (NcclLibrary.get().engine() == Engine.HOST) {
                    return HOST;
                }
                if (Device.cudaCount() == 0) {
                    throw new IllegalArgumentException("rank " + self.rank() + " sees no CUDA device");
                }
                CudaRuntime.require();
                return 0;
            }

            @Override
            public Device get() {
                throw new IllegalStateException("the local rank must be known to choose a device");
            }
        };
    }

    /** As {@link #start}, in the calling thread. */
    static Device find(RankInfo self) {
        return new Started(self).find();
    }

    final class Started implements OwnDevice {
        private final RankInfo self;
        private final CompletableFuture<Void> known = new CompletableFuture<>();
        private final CompletableFuture<Void> ready = new CompletableFuture<>();
        /** What the thread has failed with. */
        private volatile Throwable failure;

        private Started(RankInfo self) {
            this.self = self;
        }

        private void start() {
            try {
                number();
                known.complete(null);
                find();
            } catch (RuntimeException | LinkageError e) {
                failure = e;
            } finally {
                known.complete(null);
                ready.complete(null);
            }
        }

        @Override
        public int index() {
            // Not at the same time: threads that initialise the same classes can wait for each other.
            known.join();
            return again(this::number);
        }

        @Override
        public Device get() {
            ready.join();
            return again(this::find);
        }

        /** A class that could not be initialised says why to the first who needs it, and that was the thread. */
        private <T> T again(Supplier<T> step) {
            try {
                return step.get();
            } catch (LinkageError e) {
                if (failure instanceof LinkageError first && first != e) {
                    first.addSuppressed(e);
                    throw first;
                }
                throw e;
            }
        }

        private int number() {
            if (NcclLibrary.get().engine() == Engine.HOST) {
                return HOST;
            }
            int number = self.device(Device.cudaCount());
            CudaRuntime.require();
            return number;
        }

        private Device find() {
            int number = number();
            return number == HOST ? Device.host() : Device.cuda(number);
        }
    }
}
