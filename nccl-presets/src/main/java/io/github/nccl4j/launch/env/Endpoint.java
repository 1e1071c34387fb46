package io.github.nccl4j.launch.env;

/** Text form of network addresses. */
public final class Endpoint {
    private Endpoint() {}

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
