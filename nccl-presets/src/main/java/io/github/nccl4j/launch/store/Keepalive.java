package io.github.nccl4j.launch.store;

import java.io.IOException;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.Map;

/** TCP keepalive: the kernel detects within half a minute that the host of the peer is gone. */
final class Keepalive {
    /**
     * Seconds before and between probes, and the number of probes. By name, because the constants are in the module jdk.net,
     * which a reduced Java may lack.
     */
    private static final Map<String, Integer> VALUES =
            Map.of("TCP_KEEPIDLE", 10, "TCP_KEEPINTERVAL", 5, "TCP_KEEPCOUNT", 4);

    private Keepalive() {}

    static void enable(SocketChannel channel) throws IOException {
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        for (SocketOption<?> option : channel.supportedOptions()) {
            Integer value = VALUES.get(option.name());
            if (value != null && option.type() == Integer.class) {
                @SuppressWarnings("unchecked")
                SocketOption<Integer> integer = (SocketOption<Integer>) option;
                channel.setOption(integer, value);
            }
        }
    }
}
