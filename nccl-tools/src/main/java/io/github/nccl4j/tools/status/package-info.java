/** The command {@code nccl4j status}, which asks the ranks of a running job what they are at. */
package io.github.nccl4j.tools.status;
