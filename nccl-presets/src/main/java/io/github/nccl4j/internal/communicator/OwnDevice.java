package io.github.nccl4j.internal.communicator;

import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.internal.cuda.CudaRuntime;
import io.github.nccl4j.internal.cuda.NativeDevice;
import io.github.nccl4j.internal.threads.DaemonThreads;
import io.github.nccl4j.launch.RankInfo;
import io.github.nccl4j.library.Engine;
import io.github.nccl4j.library.NativeLibrary;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;

/**
 * The device of a rank that is about to create a communicator. The other ranks need the number of the device long
 * before the device is usable, because CUDA takes 0.5 s to start. If the rank has not chosen a device, a thread of its
 * own starts CUDA; a failure there is repeated, and thrown, in the thread that needs the result.
 */
public interface OwnDevice {
    /** Returns the device's number among the CUDA devices, after loading CUDA's runtime; or {@link NativeDevice#HOST_NUMBER}. */
    int index();

    NativeDevice get();

    /** Wraps a device that the program has chosen. */
    static OwnDevice of(Supplier<NativeDevice> choice) {
        return new OwnDevice() {
            @Override
            public int index() {
                NativeDevice device = choice.get();
                return device.number();
            }

            @Override
            public NativeDevice get() {
                return choice.get();
            }
        };
    }

    /** Chooses the device by the local rank and starts it in the background. */
    static OwnDevice start(RankInfo self) {
        Started device = new Started(self);
        DaemonThreads.startOrRun("nccl4j device", device::start);
        return device;
    }

    /** Returns a placeholder for a rank with an unknown local rank: it only checks that there is a device. */
    static OwnDevice unlocated(RankInfo self) {
        return new OwnDevice() {
            @Override
            public int index() {
                if (NcclLibrary.get().engine() == Engine.HOST) {
                    return NativeDevice.HOST_NUMBER;
                }
                if (NativeLibrary.gpuCount() == 0) {
                    throw new IllegalArgumentException("rank " + self.rank() + " sees no CUDA device");
                }
                CudaRuntime.require();
                return 0;
            }

            @Override
            public NativeDevice get() {
                throw new IllegalStateException("the local rank must be known to choose a device");
            }
        };
    }

    /** As {@link #start}, but in the calling thread. */
    static NativeDevice find(RankInfo self) {
        return new Started(self).find();
    }

    final class Started implements OwnDevice {
        private final RankInfo self;
        private final CompletableFuture<Void> known = new CompletableFuture<>();
        private final CompletableFuture<Void> ready = new CompletableFuture<>();
        /** The failure of the background thread, or null. */
        private volatile Throwable failure;

        private Started(RankInfo self) {
            this.self = self;
        }

        private void start() {
            try {
                number();
                known.complete(null);
                find();
            } catch (RuntimeException | Error e) {
                failure = e;
            } finally {
                known.complete(null);
                ready.complete(null);
            }
        }

        @Override
        public int index() {
            // Not in parallel with the background thread: threads that initialise the same classes can deadlock.
            known.join();
            return again(this::number);
        }

        @Override
        public NativeDevice get() {
            ready.join();
            return again(this::find);
        }

        /**
         * Repeats a step. A class that failed to initialise reports the cause only to its first user, here the
         * background thread.
         */
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
                return NativeDevice.HOST_NUMBER;
            }
            int number = self.device(NativeLibrary.gpuCount());
            CudaRuntime.require();
            return number;
        }

        private NativeDevice find() {
            int number = number();
            return number == NativeDevice.HOST_NUMBER ? NativeDevice.HOST : NativeDevice.cuda(number);
        }
    }
}
