package io.github.nccl4j.tools.doctor;

import java.time.Duration;

/**
 * Another host to connect to, on which doctor runs at the same time.
 *
 * @param address the address of the end that accepts, at both ends
 * @param port the port at which it accepts
 * @param accepts true at that end
 * @param limit the time limit
 */
public record Peer(String address, int port, boolean accepts, Duration limit) {}
