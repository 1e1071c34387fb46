/**
 * Calls of NCCL as Micrometer's meters: {@link io.github.nccl4j.micrometer.NcclMetrics}.
 *
 * <p>The artifact depends on Micrometer's core. Nothing is measured until a program binds the meters to a registry.
 */
@NullMarked
package io.github.nccl4j.micrometer;

import org.jspecify.annotations.NullMarked;
