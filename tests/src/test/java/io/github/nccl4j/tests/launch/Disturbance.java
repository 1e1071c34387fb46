package io.github.nccl4j.tests.launch;

/**
 * What happens to the packets that a host sends.
 *
 * @param delayMillis the mean delay
 * @param jitterMillis the largest difference from it; packets overtake others
 * @param lossPercent the share of packets that are lost
 */
record Disturbance(int delayMillis, int jitterMillis, int lossPercent) {
    /** As the arguments of netem. */
    String netem() {
        return "delay " + delayMillis + "ms " + jitterMillis + "ms loss " + lossPercent + "%";
    }
}
