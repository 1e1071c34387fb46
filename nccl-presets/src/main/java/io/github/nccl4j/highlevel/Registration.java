package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;

/**
 * Memory that NCCL may use directly in operations of a communicator, instead of copying through its own.
 *
 * <pre>{@code
 * try (DeviceBuffer<Float32> gradients = device.allocateForWindow(ElementType.FLOAT32, 1 << 20);
 *         Registration registered = communicator.register(gradients)) {
 *     communicator.allReduce(gradients, ReduceOp.SUM, stream);
 *     communicator.work(stream).await();
 * }
 * }</pre>
 *
 * <p>It changes how fast operations are, never what they do; where the other ranks have not registered theirs, NCCL copies.
 * One fault of NCCL from 2.23.4 until 2.29.2 is to be known: a large collective on registered memory fails if the memory was
 * sent from or received into first. A warning is logged with these releases.
 *
 * <p><b>Ownership.</b> Closed by who made it, else with the communicator. It keeps the memory of its buffer: closing the
 * buffer first is allowed, and frees the memory when the registration is closed.
 *
 * <p><b>Threads.</b> As the communicator: one at a time.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/bufferreg.html">NCCL: registration</a>
 */
public final class Registration implements AutoCloseable {
    private final DeviceBuffer<?> buffer;
    private final long handle;
    private final Resource resource;

    /** Of a buffer that is pinned for it. */
    Registration(CommunicatorCore core, DeviceBuffer<?> buffer, long handle) {
        this.buffer = buffer;
        this.handle = handle;
        resource = new Resource(
                core,
                this,
                () -> core.deregister("ncclCommDeregister", comm -> nccl.ncclCommDeregister(comm, handle)),
                buffer::unpin);
    }

    /** {@return the buffer that is registered} */
    public DeviceBuffer<?> buffer() {
        return buffer;
    }

    /**
     * Returns true if NCCL has taken the memory. It has not where registrations are switched off, by {@code NCCL_LOCAL_REGISTER=0}
     * for example; operations work all the same.
     *
     * @return true if it may be used directly
     */
    public boolean isEffective() {
        return handle != 0;
    }

    /** {@return true if it is not closed} */
    public boolean isOpen() {
        return resource.isOpen();
    }

    /**
     * The handle for native code, valid as long as the registration is open; that is the caller's concern.
     *
     * @return what {@code ncclCommRegister} gave, 0 if it is not effective
     * @throws IllegalStateException if it is closed
     */
    public long nativeHandle() {
        resource.check();
        return handle;
    }

    /**
     * Gives up the registration, and with it the memory of its buffer if that is closed. Does nothing if it is closed. Not
     * collective, but waits until all work of a CUDA device is done.
     *
     * <p>C function: {@code ncclCommDeregister}, since NCCL 2.19.1.
     *
     * @throws IllegalStateException if another thread is in the communicator, or that is suspended; it is not closed then
     * @throws NcclTimeoutException if the device was not done before the communicator's deadline
     * @throws NcclResultException if NCCL fails; it is closed all the same, and keeps its memory as long as the communicator
     */
    @Override
    public void close() {
        resource.close();
    }

    /** {@return what it is: "registration of 1024 float32"} */
    @Override
    public String toString() {
        return "registration of " + buffer.length() + " " + buffer.type();
    }
}
