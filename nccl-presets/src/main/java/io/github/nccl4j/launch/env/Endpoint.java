package io.github.nccl4j.launch.env;

/** Text form of network addresses. */
public final class Endpoint {
    /** Address of a store that is not in the process of a rank, with or without a port. */
    public static final String STORE_VARIABLE = "NCCL4J_STORE_ADDRESS";

    private static final int MAX_PORT = 65535;

    private Endpoint() {}

    /** The host of "host:port", of "[address]:port" or of a host alone; without brackets. */
    public static String host(String endpoint) {
        String text = endpoint.strip();
        int colon = portColon(text);
        return withoutBrackets(colon < 0 ? text : text.substring(0, colon));
    }

    /** The port of "host:port", or a default. Messages call the endpoint `name`. */
    public static int port(String name, String endpoint, int standard) {
        String text = endpoint.strip();
        int colon = portColon(text);
        if (colon < 0) {
            return standard;
        }
        try {
            int port = Integer.parseInt(text.substring(colon + 1));
            if (port >= 1 && port <= MAX_PORT) {
                return port;
            }
        } catch (NumberFormatException notANumber) {
            // Falls through to the message for a number out of range.
        }
        throw new IllegalArgumentException(name + " must end with a port from 1 to " + MAX_PORT + ": " + endpoint);
    }

    /** The colon before the port, or -1. An IPv6 address without brackets has no port. */
    private static int portColon(String text) {
        int colon = text.lastIndexOf(':');
        boolean isBareIpv6 = !text.startsWith("[") && text.indexOf(':') != colon;
        return isBareIpv6 || colon < text.lastIndexOf(']') ? -1 : colon;
    }

    /** "host:port", with brackets around an IPv6 address. */
    public static String format(String address, int port) {
        return (address.indexOf(':') >= 0 ? "[" + address + "]" : address) + ":" + port;
    }

    /** Removes the brackets of an IPv6 address, which a name lookup does not accept. */
    public static String withoutBrackets(String address) {
        String text = address.strip();
        return text.startsWith("[") && text.endsWith("]") ? text.substring(1, text.length() - 1) : text;
    }
}
