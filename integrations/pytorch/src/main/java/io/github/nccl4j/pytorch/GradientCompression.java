package io.github.nccl4j.pytorch;

/**
 * The type in which gradients travel.
 *
 * @since 0.1
 */
public enum GradientCompression {
    /** That of the gradients. */
    NONE,
    /**
     * 16 bits, with the range of {@code float} and 8 bits of precision: half the traffic of {@code float}. Gradients of {@code
     * float} and {@code double} are rounded before they are sent, and their average is rounded again.
     */
    BFLOAT16
}
