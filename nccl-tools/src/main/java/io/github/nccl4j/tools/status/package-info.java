/** The command {@code nccl4j status}, which shows the operations that the ranks of a running job are executing. */
package io.github.nccl4j.tools.status;
