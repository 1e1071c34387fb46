/** {@code nccl4j survival}: a rank dies amid the work of the others, again and again, and they go on. */
package io.github.nccl4j.tools.survival;
