/** The command {@code nccl4j ras}, which asks the RAS service of NCCL for the state of a running job. */
package io.github.nccl4j.tools.ras;
