package io.github.nccl4j.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.internal.communicator.CommunicatorCore;
import io.github.nccl4j.internal.communicator.Resource;
import io.github.nccl4j.internal.cuda.NativeBuffer;
import io.github.nccl4j.internal.memory.NativeMemory;
import io.github.nccl4j.internal.operation.RegistrationFaults;

/**
 * A registration of memory. NCCL may use registered memory directly in operations of a communicator, instead of copying
 * through its own memory.
 *
 * <pre>{@code
 * try (DeviceBuffer<Float32> gradients = device.allocateForWindow(ElementType.FLOAT32, 1 << 20);
 *         Registration registered = communicator.register(gradients)) {
 *     communicator.allReduce(gradients, ReduceOp.SUM, stream);
 *     communicator.work(stream).await();
 * }
 * }</pre>
 *
 * <p>A registration affects only the speed of operations; if other ranks have not registered their memory, NCCL copies.
 * NCCL 2.23.4 to 2.29.2 has a fault: a large collective on registered memory fails if the memory was used by a send or
 * receive before. A warning is logged with these releases.
 *
 * <p><b>Ownership.</b> The creator closes the registration, or it is closed with the communicator. A registration keeps
 * the memory of its buffer: if the buffer is closed first, closing the registration frees the memory.
 *
 * <p><b>Threads.</b> As the communicator: one thread at a time.
 *
 * @see <a href="https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/usage/bufferreg.html">NCCL: registration</a>
 * @since 0.1
 */
public final class Registration implements AutoCloseable {
    private final DeviceBuffer<?> buffer;
    private final long handle;
    private final Resource resource;

    /** Creates the registration of a buffer that was pinned for it. */
    private Registration(CommunicatorCore core, DeviceBuffer<?> buffer, long handle) {
        this.buffer = buffer;
        this.handle = handle;
        resource = new Resource(
                core,
                this,
                () -> core.calls().deregister("ncclCommDeregister", comm -> nccl.ncclCommDeregister(comm, handle)),
                buffer.nativeBuffer::unpin);
    }

    /** Registers a buffer, which must have been checked. */
    static Registration of(CommunicatorCore core, DeviceBuffer<?> buffer) {
        core.require("ncclCommRegister");
        NativeBuffer memory = buffer.nativeBuffer;
        if (memory.length == 0) {
            throw new IllegalArgumentException("buffer must have at least 1 element: " + buffer);
        }
        RegistrationFaults.warnOnce(core.library());
        memory.pin();
        boolean made = false;
        // NCCL leaves the cell unchanged if it registers nothing.
        try (NativeMemory cell = new NativeMemory(Long.BYTES)) {
            core.calls().alone(() -> {
                core.requireOpen();
                core.calls()
                        .callAlone(
                                "ncclCommRegister",
                                handle -> nccl.ncclCommRegister(handle, memory.address, memory.bytes, cell.address()));
            });
            made = true;
            return new Registration(core, buffer, cell.buffer().getLong(0));
        } finally {
            if (!made) {
                memory.unpin();
            }
        }
    }

    /** {@return the buffer that is registered} */
    public DeviceBuffer<?> buffer() {
        return buffer;
    }

    /**
     * Returns true if NCCL uses the registration. NCCL ignores registrations if they are disabled, for example by
     * {@code NCCL_LOCAL_REGISTER=0}; operations work nevertheless.
     *
     * @return true if the memory may be used directly
     */
    public boolean isEffective() {
        return handle != 0;
    }

    /** {@return true if the registration is not closed} */
    public boolean isOpen() {
        return resource.isOpen();
    }

    /**
     * Returns the handle for native code. It is valid while the registration is open.
     *
     * @return the handle of {@code ncclCommRegister}; 0 if the registration is not effective
     * @throws IllegalStateException if the registration is closed
     */
    public long nativeHandle() {
        resource.check();
        return handle;
    }

    /**
     * Ends the registration, and frees the memory of its buffer if the buffer is closed. Does nothing if the
     * registration is closed already. Not collective, but waits for all work of a CUDA device.
     *
     * <p>C function: {@code ncclCommDeregister}, since NCCL 2.19.1.
     *
     * @throws IllegalStateException if another thread uses the communicator, or the communicator is suspended; the
     *     registration stays open then
     * @throws NcclTimeoutException if the device's work was not done by the communicator's deadline
     * @throws NcclResultException if NCCL fails; the registration is closed nevertheless, and keeps its memory until
     *     the communicator ends
     */
    @Override
    public void close() {
        resource.close();
    }

    /** {@return a description: "registration of 1024 float32"} */
    @Override
    public String toString() {
        return "registration of " + buffer.length() + " " + buffer.type();
    }
}
