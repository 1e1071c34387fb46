package io.github.nccl4j.launch;

import java.io.IOException;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.Map;

/** Has the kernel find out within half a minute that a host is gone, which says nothing itself. */
final class Keepalive {
    /** In seconds, and a number of probes. By name, since the constants are in a module that a small Java may lack. */
    private static final Map<String, Integer> VALUES =
            Map.of("TCP_KEEPIDLE", 10, "TCP_KEEPINTERVAL", 5, "TCP_KEEPCOUNT", 4);

    private Keepalive() {}

    static void enable(SocketChannel channel) throws IOException {
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        for (SocketOption<?> option : channel.supportedOptions()) {
            Integer value = VALUES.get(option.name());
            if (value != null && option.type() == Integer.class) {
                @SuppressWarnings("unchecked")
                SocketOption<Integer> ofNumber = (SocketOption<Integer>) option;
                channel.setOption(ofNumber, value);
            }
        }
    }
}
