/** {@code nccl4j survival}: a rank dies during the work of the others, repeatedly, and they continue. */
package io.github.nccl4j.tools.survival;
