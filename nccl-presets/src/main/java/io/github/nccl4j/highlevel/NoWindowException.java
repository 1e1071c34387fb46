package io.github.nccl4j.highlevel;

import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Thrown if NCCL created no window, because the communicator has no symmetric memory. NCCL continues without a window.
 * The program can continue, too, but can't use {@link Communicator#putSignal}. The message names the requirements of
 * windows.
 *
 * <p>Instances are immutable.
 *
 * @since 0.1
 */
public final class NoWindowException extends NcclException {
    private static final long serialVersionUID = 1L;

    private NoWindowException(String message) {
        super(message);
    }

    static NoWindowException of(String communicator, NcclLibrary library, Map<String, String> environment) {
        boolean onlyOneNode = !library.version().isAtLeast(new Version(2, 29, 2));
        String settings = Stream.of("NCCL_WIN_ENABLE", "NCCL_CUMEM_ENABLE", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")
                .map(name -> name + (environment.containsKey(name) ? "=" + environment.get(name) : " is not set"))
                .collect(Collectors.joining(", "));
        return new NoWindowException("ncclCommWindowRegister succeeded, but created no window: " + communicator
                + " has no symmetric memory. It needs"
                + " cuMem (NCCL_CUMEM_ENABLE not 0, and a driver and a container that allow it), NCCL_WIN_ENABLE not"
                + " 0, P2P between all its GPUs (NCCL_P2P_DISABLE not 1), and "
                + (onlyOneNode
                        ? "all ranks on one node; and memory of ncclMemAlloc"
                        : "all ranks in one NVLink or PCIe domain, or a network that supports GIN")
                + ". Here " + settings + ". NCCL_DEBUG=INFO shows more. [" + library + "]");
    }

    @Override
    public String helpId() {
        return "NCCL4J-0007";
    }
}
