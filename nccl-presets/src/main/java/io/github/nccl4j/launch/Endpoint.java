package io.github.nccl4j.launch;

/** How addresses are written. */
final class Endpoint {
    private Endpoint() {}

    /** "host:port", with brackets around an address that has colons itself. */
    static String format(String address, int port) {
        return (address.indexOf(':') >= 0 ? "[" + address + "]" : address) + ":" + port;
    }

    /** An address as it is looked up: without the brackets of IPv6. */
    static String withoutBrackets(String address) {
        String text = address.strip();
        return text.startsWith("[") && text.endsWith("]") ? text.substring(1, text.length() - 1) : text;
    }
}
