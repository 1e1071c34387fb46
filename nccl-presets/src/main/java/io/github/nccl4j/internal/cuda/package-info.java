/** Calls of CUDA, its loading, and the CUDA release of a library. */
package io.github.nccl4j.internal.cuda;
