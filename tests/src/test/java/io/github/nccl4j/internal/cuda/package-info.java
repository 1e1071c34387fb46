/** Tests of what is not public in the package. */
package io.github.nccl4j.internal.cuda;
