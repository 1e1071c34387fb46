/** Failed calls: the texts of the library, the description of a failure, and calls that may not return. */
package io.github.nccl4j.internal.failure;
