/** Loading of CUDA, and what the file of a library tells about it. */
package io.github.nccl4j.internal.cuda;
