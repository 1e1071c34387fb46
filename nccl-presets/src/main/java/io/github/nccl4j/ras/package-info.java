/**
 * Client of RAS (reliability, availability, serviceability), the status service that NCCL itself runs in each process since 2.24.
 *
 * <p>{@link io.github.nccl4j.ras.RasClient} asks the service, {@link io.github.nccl4j.ras.RasDefect} lists the releases
 * of NCCL in which a question can crash the job. This package uses no NCCL, CUDA or native code.
 */
@NullMarked
package io.github.nccl4j.ras;

import org.jspecify.annotations.NullMarked;
